"""Bounds for whole paths of ports: by hand, and against whole frames."""

from __future__ import annotations

import math
from random import Random

import pytest

from evaluation.adversary.port_frames import whole_path_trial
from loko.calculus import RateLatency, Server, Step, TokenBucket, TotalFlow
from loko.calculus.whole_path import whole_path_ns
from loko.solvers.linear import LinearProgram


def tandem(hops: int, *, line_rate_bps: float, latency_ns: float = 0.0, rate_bps: float = 1e6):
    server = Server(service=RateLatency(rate_bps=1e9, latency_ns=latency_ns), line_rate_bps=line_rate_bps)
    network = TotalFlow({str(place): server for place in range(hops)}, frame_bytes=1000)
    path = [Step(str(place)) for place in range(hops)]
    bucket = TokenBucket(rate_bps=rate_bps, burst_bytes=10_000)
    network.add(path, bucket)
    bounds = network.settle(network.servers)
    return whole_path_ns(network, path, [(path, bucket)], bounds), sum(bounds.values())


@pytest.mark.parametrize("hops", [2, 3, 5])
@pytest.mark.parametrize("line_rate_bps", [1e9, math.inf])
@pytest.mark.parametrize("rate_bps", [1e6, 5e8])
def test_a_burst_is_paid_once(hops: int, line_rate_bps: float, rate_bps: float) -> None:
    """Ten frames of 1000 bytes: 80 us at the first port, and a frame's 8 us at each further one."""
    whole_ns, sum_ns = tandem(hops, line_rate_bps=line_rate_bps, rate_bps=rate_bps)
    assert whole_ns == pytest.approx(80_000 + (hops - 1) * 8_000, abs=2)
    assert whole_ns <= sum_ns
    if math.isinf(line_rate_bps):
        assert sum_ns > hops * 80_000
    late_ns, _ = tandem(hops, line_rate_bps=line_rate_bps, rate_bps=rate_bps, latency_ns=5_000)
    assert late_ns == pytest.approx(whole_ns + hops * 5_000, abs=2)


def test_no_frame_of_random_networks_exceeds_the_bound_of_its_path() -> None:
    trials = [trial for seed in range(16) if (trial := whole_path_trial(seed, runs=250)) is not None]
    assert max(trial.worst for trial in trials) <= 1
    # The search comes close to the bounds, and the bounds are below the sums.
    assert max(trial.worst for trial in trials) > 0.98
    assert min(trial.of_sum for trial in trials) < 0.95


def test_the_bound_does_not_depend_on_the_order_of_the_flows() -> None:
    server = Server(service=RateLatency(rate_bps=1e9, latency_ns=100.0), line_rate_bps=1e9)
    rng = Random(1)
    flows = []
    for _ in range(9):
        first = rng.randrange(6)
        path = [Step(f"s{(first + hop) % 6}") for hop in range(rng.randint(1, 4))]
        flows.append((path, TokenBucket(rate_bps=rng.uniform(1e6, 8e7), burst_bytes=rng.uniform(84, 5000))))
    found = set()
    for _ in range(4):
        network = TotalFlow({f"s{place}": server for place in range(6)}, frame_bytes=1542)
        for path, bucket in flows:
            network.add(path, bucket)
        bounds = network.settle(network.servers)
        longest = max((path for path, _ in flows), key=lambda path: (len(path), path))
        found.add(whole_path_ns(network, longest, flows, bounds))
        rng.shuffle(flows)
    assert len(found) == 1


def test_the_bound_of_a_program_needs_no_trust_in_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """x + y <= 4 and x - y <= 1 with 0 <= x, y <= 3: x is at most 2.5; any other prices give more."""
    program = LinearProgram()
    x, y = program.variable(0.0, 3.0), program.variable(0.0, 3.0)
    program.row([(x, 1.0), (y, 1.0)], 4.0)
    program.row([(x, 1.0), (y, -1.0)], 1.0)
    assert program.most(x) == pytest.approx(2.5, abs=1e-6)
    assert program.most(x) >= 2.5
    for prices in ([0.0, 0.0], [0.6, 0.4], [-1.0, 2.0]):
        monkeypatch.setattr("loko.solvers.linear.highspy.Highs.getSolution", lambda _: Priced(prices))  # noqa: B023
        assert program.most(x) >= 2.5
    monkeypatch.setattr("loko.solvers.linear.highspy.Highs.getSolution", lambda _: Priced([]))
    assert math.isinf(program.most(x))


class Priced:
    """The solution of a solver that is wrong."""

    def __init__(self, row_dual: list[float]) -> None:
        self.row_dual = row_dual
