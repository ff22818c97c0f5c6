"""The packet rates of section 2.3, from profiles."""

from __future__ import annotations

import pytest

from loko.document import InputError
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.model.document import RatesOfSwitch
from loko_testbed.reproduce.figure_types.model.packet_rates import compute, forwarded, received

MBPS = 1_000_000


def test_ports_receive_what_their_links_carry_without_preamble_and_gap() -> None:
    case = RatesOfSwitch(profile="zodiac-fx", ports=4)
    assert received(case, 100 * MBPS) == pytest.approx(4 * 100e6 / 512)


def test_longer_packets_are_fewer_but_more_bits() -> None:
    short, long = (forwarded("banana-pi-r1", length) for length in (64, 1470))
    assert short > long
    assert short * 64 < long * 1470


def test_a_switch_chip_has_no_cpu_that_forwards() -> None:
    with pytest.raises(InputError, match="dell-s4048-on"):
        forwarded("dell-s4048-on", 64)


def test_every_claim_has_its_finding() -> None:
    figure = experiments()["loko/rates"]
    outcome, _ = compute(figure)
    assert {claim.check.finding for claim in figure.claims} <= outcome.findings.keys()
