"""The assumptions of the baselines, and why their guarantees do not hold here (section 2.3)."""

from __future__ import annotations

from typing import Final

from loko.topology.conditions import FLOWS_CONFORM, Condition, SchemeConditions

LINE_RATE: Final = Condition(
    id="line-rate", text="Every switch forwards at the rate of its links, however many frames come at once."
)
INDEPENDENT_PORTS: Final = Condition(
    id="independent-ports", text="The ports of a switch share no server and no buffer."
)
ONE_PACKET_PER_EPOCH: Final = Condition(
    id="one-packet-per-epoch", text="Each host sends at most one packet in each network epoch."
)

_GUARANTEES_NOTHING: Final = (
    "for comparison only: on switches with one CPU for all ports its guarantees do not hold"
)
"""Figures 3 and 15; nobody has shown for any other switch of this project that they hold."""
SILO_CONDITIONS: Final = SchemeConditions(
    conditions=(FLOWS_CONFORM, LINE_RATE, INDEPENDENT_PORTS), baseline=_GUARANTEES_NOTHING
)
QJUMP_CONDITIONS: Final = SchemeConditions(
    conditions=(FLOWS_CONFORM, LINE_RATE, INDEPENDENT_PORTS, ONE_PACKET_PER_EPOCH),
    baseline=_GUARANTEES_NOTHING,
)
