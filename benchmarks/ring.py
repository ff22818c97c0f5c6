"""A ring of boards with a host each, and the flows that Loko admits to it (section 6.2, figure 20)."""

from __future__ import annotations

import random
from ipaddress import IPv4Interface
from pathlib import Path
from types import MappingProxyType
from typing import Final

from loko.allocation import FULL_RATE
from loko.device import load_profile
from loko.flow import Flow
from loko.lab import Endpoint, Host, Lab, Link, Switch
from loko.plan import Plan, plan
from loko.scenario import EVALUATION

PAPER_BOARDS: Final = 31
PAPER_REQUESTS: Final = 100
RATES_BPS: Final = (750_000, 1_000_000)
BURST_BYTES: Final = 306
"""One frame: whoever keeps to it sends at even intervals."""

HOST_PORT, NEXT_PORT, PREVIOUS_PORT, CONTROL_PORT = 1, 2, 3, 4


def ring(boards: int) -> Lab:
    """A ring of at least three boards, h1 at s1 and so on; port 2 leads to the next board, port 3 back."""
    profile = load_profile("zodiac-fx")
    switches = {
        f"s{number}": Switch(
            name=f"s{number}",
            datapath_id=int(_board_mac(number).replace(":", ""), 16),
            profile=profile,
            config=MappingProxyType({"mac": _board_mac(number), "ofchecks": False}),
        )
        for number in range(1, boards + 1)
    }
    hosts = {
        f"h{number}": Host(
            name=f"h{number}", mac=f"02:00:00:00:00:{number:02x}", ip=IPv4Interface(f"10.0.0.{number}/24")
        )
        for number in range(1, boards + 1)
    }
    links = [
        Link(a=Endpoint(node=f"h{number}", port=1), b=Endpoint(node=f"s{number}", port=HOST_PORT))
        for number in range(1, boards + 1)
    ]
    links += [Link(a=near, b=far) for near, far in ring_links(boards)]
    return Lab(
        name="ring",
        title=f"Ring of {boards} boards",
        path=Path("ring"),
        switches=MappingProxyType(switches),
        hosts=MappingProxyType(hosts),
        links=tuple(links),
        control_port=CONTROL_PORT,
    )


def ring_links(boards: int) -> list[tuple[Endpoint, Endpoint]]:
    """The links between the boards."""
    return [
        (
            Endpoint(node=f"s{number}", port=NEXT_PORT),
            Endpoint(node=f"s{number % boards + 1}", port=PREVIOUS_PORT),
        )
        for number in range(1, boards + 1)
    ]


def admitted(lab: Lab, *, hops: int, seed: int) -> tuple[Plan, int]:
    """What Loko admits of the paper's requests, in the paper's number a board, and how many these were.

    Each goes from a random host to the one `hops` boards further on; full rate, D = 1.86 ms.
    """
    boards = len(lab.hosts)
    chance = random.Random(seed)
    requests = round(PAPER_REQUESTS * boards / PAPER_BOARDS)
    flows = []
    for number in range(requests):
        source = chance.randrange(boards)
        flows.append(
            Flow(
                id=f"f{number}",
                source=f"h{source + 1}",
                destination=f"h{(source + hops) % boards + 1}",
                udp_source=5000 + number,
                udp_destination=5000 + number,
                rate_bps=chance.choice(RATES_BPS),
                burst_bytes=BURST_BYTES,
                frame_bytes=EVALUATION.frame_bytes[0],
            )
        )
    return plan(lab, flows, scheme=FULL_RATE, scenario=EVALUATION), requests


def _board_mac(number: int) -> str:
    return f"70:b3:d5:6c:00:{number:02x}"
