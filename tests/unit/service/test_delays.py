"""Measured delays: what is kept of them, and how they are transmitted."""

from __future__ import annotations

import pytest

from loko.service.delays import (
    RECENT,
    SPAN_NS,
    SPANS,
    DelayObservation,
    DelayStatistics,
    decode_observation,
    encode_observations,
)


def observation(*delays_ns: int, flow: str = "a", lost: int = 0) -> DelayObservation:
    return DelayObservation(flow=flow, sent=len(delays_ns) + lost, lost=lost, delays_ns=delays_ns)


def book(**guarantees_ns: float) -> DelayStatistics:
    kept = DelayStatistics()
    kept.set_flows(guarantees_ns)
    return kept


def test_numbers_of_a_flow() -> None:
    delays = book(a=100.0)
    delays.add(observation(*range(1, 101)), now_ns=0)
    delays.add(observation(101, 5000, lost=3), now_ns=0)
    values = delays.values()["a"]
    assert (values["sent"], values["received"], values["lost"], values["late"]) == (105, 102, 3, 2)
    assert (values["min_ns"], values["max_ns"]) == (1, 5000)
    assert (values["p50_ns"], values["p99_ns"]) == (51, 101)


def test_delay_that_equals_the_guarantee_is_not_late() -> None:
    delays = book(a=100.0)
    delays.add(observation(100), now_ns=0)
    assert delays.values()["a"]["late"] == 0


def test_histogram_ends_at_the_guarantee_where_the_late_ones_begin() -> None:
    delays = book(a=8000.0)
    delays.add(observation(0, 99, 100, 7999, 8000, 1_000_000), now_ns=0)
    histogram = delays.values()["a"]["histogram"]
    assert histogram["bin_ns"] == 100
    counts = {index: number for index, number in enumerate(histogram["counts"]) if number}
    assert counts == {0: 2, 1: 1, 79: 1, 80: 1, len(histogram["counts"]) - 1: 1}


def test_quantiles_forget_and_totals_do_not() -> None:
    delays = book(a=1e6)
    delays.add(observation(900), now_ns=0)
    delays.add(observation(*[5] * RECENT), now_ns=0)
    values = delays.values()["a"]
    assert (values["p99_ns"], values["max_ns"], values["received"]) == (5, 900, RECENT + 1)
    assert sum(values["histogram"]["counts"]) == RECENT


def test_flow_that_goes_is_forgotten_and_a_new_guarantee_begins_anew() -> None:
    delays = book(a=10.0, b=10.0)
    delays.add(observation(1, flow="a"), now_ns=0)
    delays.add(observation(1, flow="b"), now_ns=0)
    delays.set_flows({"b": 10.0})
    delays.add(observation(1, flow="a"), now_ns=0)
    assert list(delays.values()) == ["b"]
    delays.set_flows({"a": 10.0, "b": 20.0})
    assert delays.values() == {}


def test_flow_whose_packets_are_all_lost_has_no_quantiles() -> None:
    delays = book(a=10.0)
    delays.add(observation(lost=2), now_ns=0)
    values = delays.values()["a"]
    assert (values["lost"], values["min_ns"], values["p50_ns"]) == (2, None, None)


def test_observations_travel_in_lines_and_many_in_several() -> None:
    many = observation(*range(1_000_000, 1_020_000), lost=7)
    lines = encode_observations([many, observation(1, flow="b")]).splitlines(keepends=True)
    parts = [decode_observation(line) for line in lines]
    assert max(map(len, lines)) < 100_000
    mine = [part for part in parts if part.flow == "a"]
    assert len(mine) > 1
    assert sum((part.delays_ns for part in mine), ()) == many.delays_ns
    assert (sum(part.sent for part in mine), sum(part.lost for part in mine)) == (many.sent, 7)
    assert parts[-1] == observation(1, flow="b")


@pytest.mark.parametrize("line", [b"", b"no", b"{}", b"[]", b'{"flow": "a", "delays_ns": []}', b"3"])
def test_other_lines_are_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text is whatever the parser says
        decode_observation(line)


def test_delays_over_time_are_kept_second_by_second() -> None:
    delays = book(a=100.0)
    for second in range(SPANS + 2):
        delays.add(observation(second, second + 10, lost=1), now_ns=second * SPAN_NS + 5)
    delays.add(observation(7), now_ns=(SPANS + 1) * SPAN_NS + 9)
    shown = delays.over_time("a", now_ns=(SPANS + 2) * SPAN_NS)
    assert shown is not None
    assert len(shown["spans"]) == SPANS
    last = shown["spans"][-1]
    assert (last["ago_ns"], last["received"], last["sent"], last["lost"]) == (SPAN_NS, 3, 4, 1)
    assert (last["min_ns"], last["max_ns"]) == (7, SPANS + 11)
    assert last["mean_ns"] == (7 + 2 * SPANS + 12) / 3
    assert delays.over_time("b", now_ns=0) is None
