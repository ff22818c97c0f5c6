"""Figures of all queues of a sliced port: the verdicts are counted, apart for what others could take away."""

from __future__ import annotations

from loko_testbed.measure.slices.judgement import SliceRow, SliceVerdict
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.sliced_port.compute import FIGURE_TYPE, verdict_counts

QUEUES = experiments()["slicing/queues"]


def row(what: str, verdict: SliceVerdict) -> SliceRow:
    return SliceRow(slice="a", what=what, configured="1", measured="2", verdict=verdict)


def test_verdicts_are_counted_by_port() -> None:
    judged = [
        row("rate", SliceVerdict.DIFFERS),
        row("burst", SliceVerdict.NOT_MEASURED),
        row("rate beside b", SliceVerdict.AS_CONFIGURED),
        row("under attack by b", SliceVerdict.DIFFERS),
    ]
    assert verdict_counts("port", judged) == {
        "port_rows": 4,
        "port_differ": 2,
        "port_not_measured": 1,
        "port_beside_rows": 2,
        "port_beside_as_configured": 1,
        "port_beside_differ": 1,
    }


def test_every_claim_is_about_a_port_of_the_figure() -> None:
    assert {claim.check.finding.split("_")[0] for claim in QUEUES.claims} <= set(QUEUES.switches)


def test_more_queues_take_longer() -> None:
    fewer = QUEUES.model_copy(update={"switches": {"two": QUEUES.switches["two"]}})
    assert FIGURE_TYPE.estimate_s(fewer)["virtual"] < FIGURE_TYPE.estimate_s(QUEUES)["virtual"]
