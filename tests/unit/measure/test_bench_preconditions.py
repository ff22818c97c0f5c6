"""A campaign's samples show whether a switch is of the kind that Loko needs."""

from __future__ import annotations

import numpy as np

from loko.switch_model.scenario import ActionType, MatchType, PriorityOrder, UsedEntry
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.equations import LinkTiming, throughput_bps
from loko_testbed.measure.bench.preconditions import preconditions
from loko_testbed.measure.bench.procedures import buffer, dp_time, throughput

WIRE = LinkTiming()
TABLES = {1: 100_000, 128: 1_353_000}


def five_tuple(entries, **order):
    return TableCase(entries=entries, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT, **order)


def samples(times_ns, *, factor=1.0, frames=(9,)):
    """Return samples of 306 bytes: times around `times_ns`, and `factor` times equation 6's throughput."""
    samples = {buffer.PROCEDURE.key(five_tuple(128)): {306: np.array(frames, dtype=np.int64)}}
    for entries, time in times_ns.items():
        spread = np.linspace(-2500, 2500, 1000).astype(np.int64)
        samples[dp_time.PROCEDURE.key(five_tuple(entries))] = {306: time + spread}
        rate = factor * throughput_bps(306, time, WIRE)
        samples[throughput.PROCEDURE.key(five_tuple(entries))] = {
            306: np.array([round(rate)], dtype=np.int64)
        }
    return samples


def verdicts(measured):
    return [precondition.holds for precondition in preconditions(measured, WIRE)]


def test_a_slow_deterministic_switch_has_all_of_them() -> None:
    assert verdicts(samples(TABLES)) == [True] * 5


def test_a_tail_is_found_in_any_case() -> None:
    measured = samples(TABLES)
    measured[dp_time.PROCEDURE.key(five_tuple(1))][306][-1] = 300_000
    spread, tail, *_ = preconditions(measured, WIRE)
    assert tail.holds is False
    assert "slowest frame 300.0 us, 3.0 times p50 (1 entries, five-tuple, 306 bytes)" in tail.measured
    assert "1 of 2000 frames" in tail.measured
    assert spread.holds is True  # one of a thousand is beyond p99.9
    measured[dp_time.PROCEDURE.key(five_tuple(1))][306][-20:] = 300_000
    assert preconditions(measured, WIRE)[0].holds is False


def test_a_switch_that_looks_at_no_entry_is_told_apart() -> None:
    same = preconditions(samples({1: 40_000, 128: 41_000}, factor=18), WIRE)
    assert [precondition.holds for precondition in same] == [True, True, False, False, True]
    assert "1.02 times: 40.0 us with 1 entries, 41.0 us with 128" in same[2].measured
    assert "+1700%" in same[3].measured


def test_the_precision_of_the_search_is_no_error_of_equation_6() -> None:
    slow = {1: 4_000_000, 128: 6_000_000}
    measured = samples(slow)
    for sizes in (measured[throughput.PROCEDURE.key(five_tuple(entries))] for entries in slow):
        sizes[306] += 300_000
    assert preconditions(measured, WIRE)[3].holds is True
    for sizes in (measured[throughput.PROCEDURE.key(five_tuple(entries))] for entries in slow):
        sizes[306] += 300_000
    assert preconditions(measured, WIRE)[3].holds is False


def test_tables_whose_first_entry_decides_need_not_grow() -> None:
    measured = samples(TABLES)
    for entries in TABLES:
        first = five_tuple(entries, priorities=PriorityOrder.DECREASING, used_entry=UsedEntry.FIRST)
        measured[dp_time.PROCEDURE.key(first)] = {306: measured[dp_time.PROCEDURE.key(five_tuple(1))][306]}
    assert preconditions(measured, WIRE)[2].holds is True


def test_what_was_not_measured_is_not_judged() -> None:
    assert verdicts({}) == [None] * 5
    assert preconditions(samples(TABLES, frames=()), WIRE)[4].holds is False
