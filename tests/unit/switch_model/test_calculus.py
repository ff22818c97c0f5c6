"""Curves and their bounds, with the edge cases r = R, R = 0, r = R = 0 and infinity."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loko.switch_model.calculus import (
    NOTHING,
    RateLatency,
    TokenBucket,
    aggregate,
    backlog_bound_bytes,
    bytes_in,
    delay_bound_ns,
    output_curve,
    time_ns,
)

rates = st.floats(min_value=0, max_value=1e10)
bursts = st.floats(min_value=0, max_value=1e6)
latencies = st.floats(min_value=0, max_value=1e9)
buckets = st.builds(TokenBucket, rate_bps=rates, burst_bytes=bursts)
servers = st.builds(RateLatency, rate_bps=rates, latency_ns=latencies)


def test_backlog_and_delay_of_a_worked_example() -> None:
    arrival = TokenBucket(rate_bps=8e6, burst_bytes=1000)
    service = RateLatency(rate_bps=16e6, latency_ns=1e6)
    assert backlog_bound_bytes(arrival, service) == 1000 + 1000  # 8 Mbit/s for 1 ms are 1000 bytes
    assert delay_bound_ns(arrival, service) == 1e6 + 0.5e6
    assert output_curve(arrival, service) == TokenBucket(rate_bps=8e6, burst_bytes=2000)


def test_equal_rates_are_stable() -> None:
    arrival = TokenBucket(rate_bps=1e6, burst_bytes=125)
    service = RateLatency(rate_bps=1e6, latency_ns=1e6)
    assert backlog_bound_bytes(arrival, service) == 250
    assert delay_bound_ns(arrival, service) == 2e6


@pytest.mark.parametrize("bound", [backlog_bound_bytes, delay_bound_ns])
def test_more_rate_than_service_is_unbounded(bound) -> None:
    assert bound(TokenBucket(rate_bps=2, burst_bytes=0), RateLatency(rate_bps=1, latency_ns=0)) == math.inf


def test_a_server_that_never_serves() -> None:
    never = RateLatency(rate_bps=0, latency_ns=5)
    once = TokenBucket(rate_bps=0, burst_bytes=10)
    assert delay_bound_ns(once, never) == math.inf
    assert backlog_bound_bytes(once, never) == 10
    assert delay_bound_ns(NOTHING, never) == 0
    assert backlog_bound_bytes(NOTHING, RateLatency(rate_bps=0, latency_ns=math.inf)) == 0


def test_an_infinitely_fast_server_only_adds_its_latency() -> None:
    fast = RateLatency(rate_bps=math.inf, latency_ns=7)
    assert delay_bound_ns(TokenBucket(rate_bps=1e9, burst_bytes=1e6), fast) == 7
    assert delay_bound_ns(TokenBucket(rate_bps=1e9, burst_bytes=0), fast) == 7


def test_negative_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        TokenBucket(rate_bps=-1, burst_bytes=0)
    with pytest.raises(ValueError, match="negative"):
        RateLatency(rate_bps=1, latency_ns=math.nan)


def test_zero_amounts() -> None:
    assert bytes_in(rate_bps=math.inf, duration_ns=0) == 0
    assert time_ns(size_bytes=0, rate_bps=0) == 0
    assert aggregate([]) == NOTHING


@given(st.lists(buckets, max_size=8), st.randoms())
def test_aggregate_does_not_depend_on_order(flows, random) -> None:
    shuffled = list(flows)
    random.shuffle(shuffled)
    assert aggregate(shuffled) == aggregate(flows)


@given(buckets, servers, st.floats(min_value=0, max_value=1e6))
def test_bounds_grow_with_traffic_and_latency(arrival, service, more) -> None:
    larger = TokenBucket(rate_bps=arrival.rate_bps + more, burst_bytes=arrival.burst_bytes + more)
    later = RateLatency(rate_bps=service.rate_bps, latency_ns=service.latency_ns + more)
    for bound in (backlog_bound_bytes, delay_bound_ns):
        assert bound(larger, service) >= bound(arrival, service)
        assert bound(arrival, later) >= bound(arrival, service)


@given(buckets, servers, st.floats(min_value=1e-3, max_value=1e10))
def test_faster_service_never_delays_more(arrival, service, faster) -> None:
    improved = RateLatency(rate_bps=service.rate_bps + faster, latency_ns=service.latency_ns)
    assert delay_bound_ns(arrival, improved) <= delay_bound_ns(arrival, service)


@given(
    st.integers(1, 10**9),
    st.integers(0, 10**5),
    st.integers(1, 10**9),
    st.integers(0, 10**8),
    st.integers(0, 10**9),
)
def test_bounds_hold_at_every_instant(rate, burst, service_rate, latency, at_ns) -> None:
    """In exact arithmetic, the arrival curve is nowhere farther from the service curve than the bounds."""
    if rate > service_rate:
        return
    arrival, service = (
        TokenBucket(rate_bps=rate, burst_bytes=burst),
        RateLatency(rate_bps=service_rate, latency_ns=latency),
    )
    arrived = burst + Fraction(rate * at_ns, 8 * 10**9)
    served = Fraction(service_rate * max(0, at_ns - latency), 8 * 10**9)
    assert arrived - served <= backlog_bound_bytes(arrival, service) * (1 + 1e-12)
    served_at_ns = latency + arrived * 8 * 10**9 / service_rate
    assert served_at_ns - at_ns <= delay_bound_ns(arrival, service) * (1 + 1e-12) + 1e-3


@given(buckets, st.lists(latencies, max_size=5))
def test_burst_growth_adds_up_along_a_path(arrival, delays) -> None:
    hop = arrival
    for delay_ns in delays:
        hop = hop.delayed(delay_ns)
    assert hop.rate_bps == arrival.rate_bps
    assert hop.burst_bytes == pytest.approx(arrival.delayed(math.fsum(delays)).burst_bytes)
