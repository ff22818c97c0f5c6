"""A ring of boards with a host each, and the flows that Loko admits to it (section 6.2, figure 20)."""

from __future__ import annotations

import random
from typing import Final

from loko.allocation import FULL_RATE
from loko.flow import Flow
from loko.lab import Endpoint, Lab, ring_lab
from loko.planning import Plan, plan
from loko.ring import Ring
from loko.scenario import EVALUATION
from loko.schemes import admission_of, choice_named

PAPER_BOARDS: Final = 31
PAPER_REQUESTS: Final = 100
RATES_BPS: Final = (750_000, 1_000_000)
BURST_BYTES: Final = 306
"""One frame: whoever keeps to it sends at even intervals."""

HOST_PORT, NEXT_PORT, PREVIOUS_PORT = 1, 2, 3


def ring(boards: int) -> Lab:
    """A ring of at least three boards, h1 at s1 and so on; flows go round both ways."""
    return ring_lab(Ring(switches=boards, one_way=False))


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
    return plan(lab, flows, admission_of(lab, choice_named(FULL_RATE.name), EVALUATION)), requests
