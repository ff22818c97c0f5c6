"""A ring of boards with one host each, and the flows that Loko admits there (section 6.2, figure 20)."""

from __future__ import annotations

import random
from typing import Final

from loko.admission.planning import Plan, plan
from loko.admission.schemes import admission_of, variant_named
from loko.switch_model.allocation import FULL_RATE
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION
from loko.topology.lab import Endpoint, Lab, ring_lab
from loko.topology.ring import Ring

PAPER_BOARDS: Final = 31
PAPER_REQUESTS: Final = 100
RATES_BPS: Final = (750_000, 1_000_000)
BURST_BYTES: Final = 306
"""One frame, so that conforming senders send at even intervals."""

HOST_PORT, NEXT_PORT, PREVIOUS_PORT = 1, 2, 3


def ring(boards: int) -> Lab:
    """Return a bidirectional ring of at least three boards, with h1 at s1 and so on."""
    return ring_lab(Ring(switches=boards, one_way=False))


def ring_links(boards: int) -> list[tuple[Endpoint, Endpoint]]:
    """Return the links between the boards."""
    return [
        (
            Endpoint(node=f"s{number}", port=NEXT_PORT),
            Endpoint(node=f"s{number % boards + 1}", port=PREVIOUS_PORT),
        )
        for number in range(1, boards + 1)
    ]


def admitted(lab: Lab, *, hops: int, seed: int) -> tuple[Plan, int]:
    """Request flows as in the paper, with its number per board; return the plan and the number of requests.

    Each flow goes from a random host to the one `hops` boards further; the allocation is full-rate, D = 1.86
    ms.
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
    return plan(lab, flows, admission_of(lab, variant_named(FULL_RATE.name), EVALUATION)), requests
