"""The benchmark of bounds for ports against other tools: its input to them, and its use of their output."""

import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import port_bounds
from benchmarks.measure import BenchmarkError
from benchmarks.port_bounds import SHAPINGS, corrected_us, longest_found_us, networks, ours

ANALYZER = """
import json

class Result:
    def __init__(self, delays):
        self.flow_delays = delays

class TSN_Analyzer:
    def __init__(self, netfile, temp_path, shaping):
        self.network = json.load(open(netfile))
        self.shaping = shaping
        self.results = []

    def analyze_xtfa(self, methods):
        raise ValueError("no such thing")

    def analyze_panco(self, methods):
        print("words on standard output")
        hop_us = {"TFA": 10, "SFA": 20, "PLP": 5}[methods]
        self.results.append(Result({
            flow["name"]: 1e-6 * hop_us * len(flow["path"]) for flow in self.network["flows"]
        }))
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_ = networks()
    monkeypatch.setattr(port_bounds, "networks", lambda: iter([first]))
    monkeypatch.setattr(port_bounds, "RUNS", 50)


@pytest.fixture
def saihu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def install(analyzer: str) -> None:
        package = tmp_path / "a clone" / "src" / "saihu"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "interface.py").write_text(analyzer, encoding="utf-8")
        monkeypatch.setenv("LOKO_SAIHU", str(tmp_path / "a clone"))
        monkeypatch.setenv("LOKO_SAIHU_PYTHON", sys.executable)

    return install


@pytest.mark.parametrize("network", list(networks()), ids=lambda network: network.name)
def test_every_network_has_bounds_that_shaping_lowers(network: port_bounds.PortNetwork) -> None:
    free, fluid, frames = (next(ours(network, shaping)).delays_us for shaping in SHAPINGS)
    assert set(free) == set(fluid) == set(frames) == set(network.paths)
    assert all(fluid[flow] <= frames[flow] <= free[flow] for flow in network.paths)
    assert any(frames[flow] < free[flow] for flow in network.paths)


def test_a_ring_has_the_bound_of_the_closed_form() -> None:
    ring, *_ = networks()
    flows, hops, share, burst_bytes, latency_us = 6, 3, 0.1, 3084, 12.336
    assert len(ring.paths) == flows
    alone_us = latency_us + hops * burst_bytes * 8 / 1000
    by_hand_us = hops * alone_us / (1 - share * hops * (hops - 1) / 2)
    mine = next(ours(ring, SHAPINGS[0]))
    assert max(mine.delays_us.values()) == pytest.approx(by_hand_us, abs=0.01)


@pytest.mark.usefixtures("small")
def test_without_a_peer_only_ours_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOKO_SAIHU", raising=False)
    told: list[str] = []
    values, rows = port_bounds.measure(tell=told.append)
    assert "only ours" in told[0]
    methods = ["ours"] * len(SHAPINGS) + ["ours, whole paths", "frames in a simulation"]
    assert [bounds["method"] for bounds in values["bounds"]] == methods
    assert len(rows) == len(methods)


@pytest.mark.usefixtures("small")
def test_bounds_of_a_peer_stand_beside_ours(saihu: Callable[[str], None]) -> None:
    saihu(ANALYZER)
    values, rows = port_bounds.measure(tell=lambda _: None)
    bounds_of = {(bounds["shaping"], bounds["method"]): bounds for bounds in values["bounds"]}
    mine = bounds_of["whole frames", "ours"]["worst_us"]
    assert bounds_of["whole frames", "ours, whole paths"]["worst_us"] < mine
    assert bounds_of["whole frames", "ours, whole paths"]["exceeded"] == 0
    assert any(row[2].endswith("frames of 6 flows take longer") for row in rows)
    for method, worst_us in {"panco/TFA": 30, "panco/SFA": 60, "panco/PLP": 15}.items():
        bounds = bounds_of["whole frames", method]
        assert bounds["worst_us"] == pytest.approx(worst_us)
        assert bounds["of_ours"][0] == pytest.approx(worst_us / mine)
        assert bounds["exceeded"] == 6
    assert bounds_of["whole frames", "panco/PLP, corrected"]["worst_us"] == pytest.approx(15 + 2 * 12.336)
    assert bounds_of["whole frames", "panco/SFA, corrected"]["worst_us"] == pytest.approx(60 + 2 * 12.336)
    assert ("whole frames", "panco/TFA, corrected") not in bounds_of
    refused = bounds_of["no shaping", "xtfa/TFA"]
    assert refused["worst_us"] is None
    assert refused["error"] == "ValueError: no such thing"
    assert any(row[1:] == ("none", "ValueError: no such thing") for row in rows)


@pytest.mark.parametrize(
    ("network", "method", "flow", "bound_us"),
    [
        ("ring of 6, 3 hops", "PLP", "f3", 140.98),
        ("ring of 12, 6 hops", "PLP", "f4", 257.17),
        ("line of 15, 4 hops", "PLP", "f11", 113.51),
        ("random, 12 switches, 60 flows", "PLP", "f53", 98.69),
        ("random, 12 switches, 60 flows", "SFA", "f33", 62.15),
    ],
)
def test_frames_exceed_bounds_of_a_fluid(
    network: str, method: str, flow: str, bound_us: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds are those of panco with a packetizer, as Saihu at 68955f62 (2024-04-01) prints them.

    A frame waits at each port until all of it is there, which the bounds leave out.
    """
    monkeypatch.setattr(port_bounds, "RUNS", 1000)
    chosen = next(candidate for candidate in networks() if candidate.name == network)
    seen_us = longest_found_us(chosen, flow)
    assert seen_us > bound_us, method
    assert seen_us <= corrected_us(chosen, {flow: bound_us})[flow]
    sums, whole = ours(chosen, SHAPINGS[-1])
    assert seen_us <= whole.delays_us[flow] <= sums.delays_us[flow]


@pytest.mark.usefixtures("small")
def test_a_peer_that_does_not_start_is_one_line(saihu: Callable[[str], None]) -> None:
    saihu("import a_module_that_nobody_has")
    with pytest.raises(BenchmarkError, match=r"^Saihu does not run: .*a_module_that_nobody_has.*$"):
        port_bounds.measure(tell=lambda _: None)


def test_a_folder_that_is_no_clone_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKO_SAIHU", str(tmp_path))
    with pytest.raises(BenchmarkError, match="has no src/saihu"):
        port_bounds.measure(tell=lambda _: None)


def test_a_network_that_is_overloaded_has_no_bound() -> None:
    ring, *_ = networks()
    heavy = {
        flow: port_bounds.TokenBucket(rate_bps=4e8, burst_bytes=bucket.burst_bytes)
        for flow, bucket in ring.buckets.items()
    }
    full = port_bounds.PortNetwork(name="full", paths=ring.paths, buckets=heavy)
    (mine,) = ours(full, SHAPINGS[-1])
    assert mine.error
    assert not mine.delays_us
    assert not math.isinf(mine.seconds or 0)
