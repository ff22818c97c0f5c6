"""OFTest's verdicts on the board: the recorded outcomes are explained, documented, and up to date."""

from __future__ import annotations

import re
from pathlib import Path

import oftest_compare
import oftest_outcomes
import oftest_trial
import pytest
from live_harness import needs_namespaces
from oftest_trial import FAILS, PASSES, SKIPPED, Observed

SUITES = oftest_outcomes.load()
QUIRKS = Path(__file__).parent.parent.parent / "docs" / "quirks.md"
SAMPLE = [
    ("firmware", "basic.Echo"),  # passes
    ("firmware", "basic.EchoWithData"),
    ("firmware", "pktact.ModifyAll"),
    ("firmware", "pktact.WildcardPriorityWithDelete"),  # needs four ports
    ("spec", "basic.EchoWithData"),
    ("firmware", "groups.GroupModifyNonexisting"),  # OpenFlow 1.3
    ("spec", "groups.GroupModifyNonexisting"),
]
"""A sample. All of them take twenty minutes: `make oftest`."""


def suite_of(test: str) -> oftest_outcomes.Suite:
    return next(suite for suite in SUITES.values() if test in suite.tests)


@pytest.mark.parametrize("version", SUITES)
def test_every_failure_has_one_reason(version):
    suite = SUITES[version]
    tests = suite.tests
    assert len(tests) == len(set(tests))
    assert suite.four_ports <= set(tests)
    assert len(suite.fails_with_specification) == 1  # the documentation says "one"
    assert set(suite.fails_with_specification) <= set(suite.passes)


def test_every_quirk_exists():
    known = {int(number) for number in re.findall(r"^\| (\d+) \|", QUIRKS.read_text(), re.MULTILINE)}
    named = {quirk for suite in SUITES.values() for reason in suite.reasons for quirk in reason.quirks}
    assert named <= known


def test_a_failure_without_a_quirk_fails_with_the_specification_too():
    for suite in SUITES.values():
        for reason in suite.reasons:
            assert reason.quirks or reason.specification


def test_a_reason_must_be_given():
    with pytest.raises(ValueError, match=r"neither a quirk nor another reason: \['basic.Echo'\]"):
        oftest_outcomes.Reason.parse({"asks": "a", "board": "b", "tests": {"basic.Echo": "no reply"}})


def test_documentation_tells_the_outcomes():
    text = oftest_outcomes.DOCUMENT.read_text()
    tables = oftest_outcomes.render(SUITES)
    assert oftest_outcomes.written(text, tables) == text, "run 'python tests/clients/oftest_outcomes.py'"


@pytest.mark.parametrize(
    ("test", "mode", "result", "said", "differs"),
    [
        ("basic.Echo", "firmware", PASSES, "", False),
        ("basic.Echo", "firmware", FAILS, "no reply", True),
        ("basic.Echo", "firmware", SKIPPED, "", True),
        ("flow_stats.TwoFlowStats", "firmware", PASSES, "", True),
        (
            "flow_stats.TwoFlowStats",
            "firmware",
            FAILS,
            "Total stats packet count 4 does not match number sent 2",
            False,
        ),
        ("flow_stats.TwoFlowStats", "firmware", FAILS, "Barrier failed", True),
        ("flow_stats.TwoFlowStats", "spec", PASSES, "", False),
        ("flow_stats.TwoFlowStats", "spec", FAILS, "whatever", True),
        ("pktact.ModifyAll", "spec", FAILS, "whatever", False),
        ("detailed_contr_sw_messages.DeleteEmerFlow", "firmware", PASSES, "", False),
        ("detailed_contr_sw_messages.DeleteEmerFlow", "spec", FAILS, "Test Failed", False),
        ("detailed_contr_sw_messages.DeleteEmerFlow", "spec", PASSES, "", True),
    ],
)
def test_what_differs(test, mode, result, said, differs):
    difference = oftest_compare.difference(suite_of(test), test, mode, Observed(result, said, ""))
    assert (difference is not None) == differs


@pytest.mark.parametrize(
    ("said", "differs"),
    [
        ("Did not receive pkt on 2", False),
        ("barrier failed", False),  # the error and the barrier's reply are in one segment
        ("No response to stats request", True),
    ],
)
def test_one_of_several_outcomes_is_enough(said, differs):
    test = "actions.SetIPv6Dst"
    difference = oftest_compare.difference(SUITES["1.3"], test, "firmware", Observed(FAILS, said, ""))
    assert (difference is not None) == differs


@pytest.mark.namespaces
@pytest.mark.waits
@needs_namespaces
@pytest.mark.parametrize("case", SAMPLE, ids="-".join)
def test_outcomes(case, program, tmp_path):
    if missing := oftest_trial.missing():
        pytest.skip(missing)
    mode, test = case
    version = next(version for version, suite in SUITES.items() if test in suite.tests)
    difference, observed = oftest_compare.compare(SUITES[version], version, test, mode, program, tmp_path)
    assert difference is None, observed.board_log


def test_oftest_has_the_recorded_tests():
    if missing := oftest_trial.missing():
        pytest.skip(missing)
    for version, suite in SUITES.items():
        assert oftest_trial.standard_tests(version) == suite.tests
