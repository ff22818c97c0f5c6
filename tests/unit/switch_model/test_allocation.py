"""Table 2, figure 14 and equation 8."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loko.document import InputError
from loko.switch_model.allocation import (
    ALLOCATION_RULES,
    FIFTH_RATE,
    FULL_RATE,
    AllocationRule,
    allocate,
    scheme_named,
)
from loko.switch_model.calculus import TokenBucket, aggregate, backlog_bound_bytes
from loko.switch_model.device import load_profile
from loko.switch_model.scenario import (
    EVALUATION,
    TABLE_1_ENTRIES,
    TABLE_1_FRAME_BYTES,
    ActionType,
    MatchType,
    PriorityOrder,
    Scenario,
    UsedEntry,
)
from loko.switch_model.service_curve import Rounding, service_curve
from loko.switch_model.split import echo_traffic, split

ZODIAC = load_profile("zodiac-fx").with_exact_clocks()
SERVICE = service_curve(ZODIAC, EVALUATION)
FULL, FIFTH = allocate(SERVICE, FULL_RATE), allocate(SERVICE, FIFTH_RATE)


@pytest.mark.parametrize(
    ("allocation", "rate_mbps", "burst_kb", "delay_ms"),
    [(FULL, 11.8, 2.02, 1.86), (FIFTH, 2.37, 2.32, 2.07)],
    ids=["full-rate", "fifth-rate"],
)
def test_table_2(allocation, rate_mbps, burst_kb, delay_ms) -> None:
    decimals = len(str(rate_mbps).split(".")[1])
    assert allocation.max_rate_bps / 1e6 == pytest.approx(rate_mbps, abs=0.5 * 10**-decimals)
    assert allocation.max_burst_bytes / 1024 == pytest.approx(burst_kb, abs=0.005)  # kB = 1024 bytes
    assert allocation.delay_ns / 1e6 == pytest.approx(delay_ms, abs=0.005)
    assert allocation.feasible


def test_guarantees_of_section_6_1() -> None:
    assert round(2 * FULL.delay_ns / 1e6, 2) == 3.72
    assert round(2 * FIFTH.delay_ns / 1e6, 2) == 4.13


def heat_map(
    scheme: AllocationRule, rounding: Rounding = Rounding.FLOOR
) -> dict[tuple[int, int], float | None]:
    def bound_ms(entries: int, size: int) -> float | None:
        scenario = Scenario(
            entries=entries,
            match=MatchType.FIVE_TUPLE,
            action=ActionType.OUTPUT,
            packet_sizes_bytes=(size,),
            priorities=PriorityOrder.INCREASING,
            used_entry=UsedEntry.LAST,
        )
        allocation = allocate(service_curve(ZODIAC, scenario, rounding), scheme)
        return allocation.delay_ns / 1e6 if allocation.feasible else None

    return {(n, size): bound_ms(n, size) for n in TABLE_1_ENTRIES for size in TABLE_1_FRAME_BYTES}


# Figure 14 recomputed independently from the fitted model (the plot itself has no numbers); None is white.
FIGURE_14_FULL = {
    1: (1.06, 0.44, 0.28, None, None, None, None),
    17: (5.00, 1.86, 1.07, 0.88, None, None, None),
    65: (16.84, 6.12, 3.43, 2.77, None, None, None),
    128: (32.37, 11.71, 6.54, 5.26, None, None, None),
}
FIGURE_14_FIFTH = {
    1: (1.10, 0.52, 0.39, 0.41, 0.44, 0.53, 0.63),
    17: (5.17, 2.06, 1.31, 1.16, 0.99, 1.05, 1.10),
    65: (17.39, 6.70, 4.05, 3.43, 2.79, 2.85, 2.90),
    128: (33.42, 12.79, 7.66, 6.41, 5.15, 5.21, 5.26),
}


@pytest.mark.parametrize(
    ("scheme", "expected"), [(FULL_RATE, FIGURE_14_FULL), (FIFTH_RATE, FIGURE_14_FIFTH)], ids=["14a", "14b"]
)
def test_figure_14(scheme, expected) -> None:
    computed = heat_map(scheme)
    for entries, row in expected.items():
        for size, delay_ms in zip(TABLE_1_FRAME_BYTES, row, strict=True):
            here = computed[entries, size]
            if delay_ms is None:
                assert here is None, (entries, size)
            else:
                # The profile rounds the fitted coefficients to 0.1 ns an entry and 0.03 ps a byte.
                assert here == pytest.approx(delay_ms, abs=0.0051 + 2e-4 * delay_ms), (entries, size)


def test_ceiling_rule_colours_more_of_figure_14a() -> None:
    floor, ceiling = heat_map(FULL_RATE), heat_map(FULL_RATE, Rounding.CEILING)
    assert floor[17, 1032] is None
    assert ceiling[17, 1032] == pytest.approx(0.90, abs=0.006)
    assert ceiling[1, 1032] is None


def test_infeasible_allocation_says_why() -> None:
    scenario = Scenario(
        entries=17, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT, packet_sizes_bytes=(1516,)
    )
    allocation = allocate(service_curve(ZODIAC, scenario), FULL_RATE)
    assert not allocation.feasible
    assert "less than one frame of 1516" in allocation.reason


@pytest.mark.parametrize(
    ("allocation", "ratio", "rate_bps", "burst_bytes"),
    [(FIFTH, 2, 394_970, 344.3), (FULL, 0, 5_924_500, 345.2)],
    ids=["fig17", "fig18"],
)
def test_equation_8(allocation, ratio, rate_bps, burst_bytes) -> None:
    shares = split(allocation, ratio=ratio)
    assert shares.feasible
    assert shares.second.rate_bps == pytest.approx(rate_bps, rel=1e-4)
    assert shares.second.burst_bytes == pytest.approx(burst_bytes, abs=0.06)
    assert shares.first.rate_bps == ratio * shares.second.rate_bps
    assert shares.first.burst_bytes == ratio * shares.second.burst_bytes


@pytest.mark.parametrize(("allocation", "ratio"), [(FULL, 1), (FULL, 2), (FIFTH, 3)])
def test_infeasible_splits_of_section_6_1_1(allocation, ratio) -> None:
    shares = split(allocation, ratio=ratio)
    assert not shares.feasible
    assert "a frame has 306" in shares.reason


def test_equation_8_with_control_traffic_of_figure_19b() -> None:
    shares = split(FULL, ratio=0, control=echo_traffic(750))
    assert echo_traffic(750) == TokenBucket(rate_bps=396_000, burst_bytes=66)
    assert shares.second.rate_bps == pytest.approx((FULL.max_rate_bps - 396_000) / 2)
    assert shares.feasible == (shares.second.burst_bytes >= 306)


@given(st.sampled_from([FULL, FIFTH]), st.floats(0, 5), st.floats(0, 1000))
def test_equation_8_uses_up_exactly_the_allocation(allocation, ratio, echoes_per_s) -> None:
    control = echo_traffic(echoes_per_s)
    shares = split(allocation, ratio=ratio, control=control)
    if not shares.feasible:
        return
    entering = [shares.first, shares.second]
    entering += [flow.delayed(allocation.delay_ns) for flow in entering]
    total = aggregate([*entering, control])
    assert total.rate_bps == pytest.approx(allocation.max_rate_bps)
    assert total.burst_bytes == pytest.approx(allocation.max_burst_bytes)


@given(st.floats(0.01, 1.0), st.integers(1, 128), st.integers(64, 1518))
def test_allocated_traffic_never_overflows_the_buffer(fraction, entries, size) -> None:
    scenario = Scenario(
        entries=entries, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT, packet_sizes_bytes=(size,)
    )
    service = service_curve(ZODIAC, scenario)
    allocation = allocate(service, AllocationRule(name="some", rate_fraction=fraction))
    if allocation.feasible:
        traffic = TokenBucket(rate_bps=allocation.max_rate_bps, burst_bytes=allocation.max_burst_bytes)
        assert backlog_bound_bytes(traffic, service.curve) <= service.capacity_bytes * (1 + 1e-12)


@given(st.floats(0.01, 0.99))
def test_less_rate_leaves_more_burst_and_more_delay(fraction) -> None:
    part = allocate(SERVICE, AllocationRule(name="part", rate_fraction=fraction))
    assert part.max_burst_bytes > FULL.max_burst_bytes
    assert part.delay_ns > FULL.delay_ns


def test_schemes_by_name() -> None:
    assert scheme_named("fifth-rate") is ALLOCATION_RULES["fifth-rate"] is FIFTH_RATE
    with pytest.raises(InputError, match=r"'half' is unknown \(allowed: full-rate, fifth-rate\)"):
        scheme_named("half")
    with pytest.raises(InputError, match="is not in"):
        AllocationRule(name="double", rate_fraction=2)


@pytest.mark.parametrize("echoes_per_s", [-1, math.nan, math.inf])
def test_echo_requests_have_a_rate(echoes_per_s: float) -> None:
    with pytest.raises(InputError, match=f"{echoes_per_s} is no rate; give 0 or more"):
        echo_traffic(echoes_per_s)


def test_negative_ratio_is_refused() -> None:
    with pytest.raises(InputError, match="negative"):
        split(FULL, ratio=-1)
