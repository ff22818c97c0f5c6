"""Each check of findings, on numbers for which the claim holds and on numbers for which it does not."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from loko_testbed.reproduce.facts import Fact
from loko_testbed.reproduce.figure import Evidence, NotTestable
from loko_testbed.reproduce.finding_checks import FindingCheck, number_with_unit

CHECK: TypeAdapter = TypeAdapter(FindingCheck)
FINDINGS = {"a_us": 100.0, "b_us": 104.0, "c_us": 300.0, "zero_us": 0.0}


def verdict(check: dict, *, value: float | str | None = 100.0):
    """Return the verdict of a check with `value` as the paper's number."""
    fact = Fact(reference="f", where="sec 1", role="calibration", text="t", value=value)
    made = CHECK.validate_python(check)
    if made.needs_number:
        assert fact.number == value
    return made.find(Evidence(fact=fact, findings=FINDINGS))


@pytest.mark.parametrize(
    ("check", "holds"),
    [
        ({"kind": "near", "finding": "b_us", "within_percent": 4}, True),
        ({"kind": "near", "finding": "b_us", "within_percent": 3.9}, False),
        ({"kind": "near", "finding": "b_us", "within": 4}, True),
        ({"kind": "near", "finding": "b_us", "within": 3, "value": 102}, True),
        ({"kind": "near", "finding": "b_us", "within": 3, "value": 100}, False),
        ({"kind": "at_most", "finding": "a_us"}, True),
        ({"kind": "at_most", "finding": "b_us"}, False),
        ({"kind": "below", "finding": "a_us"}, False),
        ({"kind": "below", "finding": "a_us", "value": 101}, True),
        ({"kind": "at_least", "finding": "a_us"}, True),
        ({"kind": "at_least", "finding": "a_us", "value": 100.5}, False),
        ({"kind": "above", "finding": "a_us"}, False),
        ({"kind": "above", "finding": "b_us"}, True),
        ({"kind": "rounds", "finding": "b_us", "decimals": 0, "value": 104}, True),
        ({"kind": "rounds", "finding": "b_us", "decimals": 1, "value": 104.1}, False),
        ({"kind": "between", "finding": "b_us", "low": 104, "high": 105}, True),
        ({"kind": "between", "finding": "b_us", "low": 105, "high": 106}, False),
        ({"kind": "rising", "findings": ["a_us", "b_us", "c_us"]}, True),
        ({"kind": "rising", "findings": ["a_us", "c_us", "b_us"]}, False),
        ({"kind": "rising", "findings": ["a_us", "a_us"]}, False),
        ({"kind": "smallest", "findings": ["a_us", "c_us", "b_us"]}, True),
        ({"kind": "smallest", "findings": ["b_us", "c_us", "a_us"]}, False),
        ({"kind": "largest", "findings": ["c_us", "a_us", "b_us"]}, True),
        ({"kind": "largest", "findings": ["b_us", "c_us"]}, False),
        ({"kind": "ratio", "finding": "c_us", "over": "a_us", "at_least": 3, "at_most": 3}, True),
        ({"kind": "ratio", "finding": "c_us", "over": "a_us", "at_least": 3.1}, False),
        ({"kind": "ratio", "finding": "c_us", "over": "zero_us", "at_most": 5}, False),
    ],
)
def test_checks(check: dict, holds: bool) -> None:
    assert verdict(check)[1] is holds


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "near", "finding": "d_us", "within": 3},
        {"kind": "between", "finding": "d_us", "low": 0, "high": 1},
        {"kind": "rising", "findings": ["a_us", "d_us"]},
        {"kind": "ratio", "finding": "a_us", "over": "d_us", "at_most": 1},
    ],
)
def test_what_was_not_measured_is_not_testable(check: dict) -> None:
    answer = verdict(check)
    assert isinstance(answer, NotTestable)
    assert answer.why == "this replay did not measure: d [us]"


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"kind": "near", "finding": "b_us", "within_percent": 4}, "within 4 % of 100 us"),
        ({"kind": "near", "finding": "b_us", "within": 3}, "within 3 us of 100 us"),
        ({"kind": "near", "finding": "b_percent", "within": 3}, "within 3 percentage points of 100 %"),
        ({"kind": "near", "finding": "b", "within": 0, "value": 9}, "exactly 9"),
        ({"kind": "at_most", "finding": "b_us"}, "at most 100 us"),
        ({"kind": "at_least", "finding": "b_us"}, "at least 100 us"),
        ({"kind": "below", "finding": "b_us", "value": 2}, "below 2 us"),
        ({"kind": "above", "finding": "b_us", "value": 2}, "above 2 us"),
        ({"kind": "rounds", "finding": "b_us", "decimals": 2}, "rounds to 100.00 us"),
        ({"kind": "between", "finding": "b_us", "low": 1, "high": 2}, "from 1 to 2 us"),
        ({"kind": "between", "finding": "b", "low": 1.5e6, "high": 2.5e6}, "from 1500000 to 2500000"),
        ({"kind": "rising", "findings": ["a_us", "b_us"]}, "each above the one before"),
        ({"kind": "smallest", "findings": ["a_us", "b_us"]}, "the first below all others"),
        ({"kind": "largest", "findings": ["a_us", "b_us"]}, "the first above all others"),
        ({"kind": "ratio", "finding": "a_us", "over": "b_us", "at_least": 2}, "at least 2 times"),
        ({"kind": "ratio", "finding": "a_us", "over": "b_us", "at_most": 2}, "at most 2 times"),
        ({"kind": "ratio", "finding": "a_us", "over": "b_us", "at_least": 1, "at_most": 2}, "1 to 2 times"),
    ],
)
def test_every_check_says_when_the_claim_holds(check: dict, words: str) -> None:
    fact = Fact(reference="f", where="sec 1", role="calibration", text="t", value=100.0)
    assert CHECK.validate_python(check).tolerance(fact) == words


def test_a_claim_about_several_findings_is_not_ticked_without_all_of_them() -> None:
    rising = verdict({"kind": "rising", "findings": ["a_us", "c_us", "d_us"]})
    assert isinstance(rising, NotTestable)
    assert verdict({"kind": "rising", "findings": ["c_us", "a_us", "d_us"]})[1] is False
    smallest = verdict({"kind": "smallest", "findings": ["d_us", "a_us", "b_us"]})
    assert isinstance(smallest, NotTestable)


def test_what_does_not_rise_is_said_with_numbers_and_places_not_with_names() -> None:
    check = {"kind": "rising", "findings": ["a_us", "c_us", "b_us"], "places": ["1/s", "4/s", "16/s"]}
    said, holds = verdict(check)
    assert not holds
    assert " at 4/s before " in said
    assert said.endswith(" us at 16/s")
    assert "c_us" not in said
    with pytest.raises(ValidationError, match="a place for each"):
        CHECK.validate_python({"kind": "rising", "findings": ["a_us", "b_us"], "places": ["1/s"]})


def test_a_qualitative_fact_needs_a_value_in_the_check() -> None:
    assert verdict({"kind": "at_most", "finding": "a_us", "value": 100}, value="slow")[1] is True
    assert CHECK.validate_python({"kind": "at_most", "finding": "a_us"}).needs_number


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "near", "finding": "a_us"},
        {"kind": "near", "finding": "a_us", "within": 1, "within_percent": 1},
        {"kind": "between", "finding": "a_us", "low": 2, "high": 1},
        {"kind": "ratio", "finding": "a_us", "over": "b_us"},
        {"kind": "rising", "findings": ["a_us"]},
    ],
)
def test_checks_that_could_never_tell_are_refused(check: dict) -> None:
    with pytest.raises(ValidationError):
        CHECK.validate_python(check)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("p_us", 322.123, "322.1 us"),
        ("tp_mbps", 0.31, "0.31 Mbit/s"),
        ("error_percent", 5.999, "5.999 %"),
        ("cases", 12096.0, "12096"),
    ],
)
def test_numbers_are_written_with_their_units(name: str, value: float, text: str) -> None:
    assert number_with_unit(name, value) == text
