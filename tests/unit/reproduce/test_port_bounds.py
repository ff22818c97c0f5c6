"""The study of bounds for ports beside other tools: its input to them, and its use of their output."""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loko.document import InputError
from loko.switch_model.calculus.token_buckets import TokenBucket
from loko_testbed.reproduce.studies.port_bounds import (
    SHAPINGS,
    STUDY,
    PortBoundsSize,
    PortNetwork,
    corrected_us,
    longest_found_us,
    networks,
    ours,
)
from loko_testbed.simulation.runner import RunError

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


def measured() -> list[dict[str, Any]]:
    """Return the rows of the first network, with few simulations."""
    [task] = STUDY.tasks(PortBoundsSize(runs=50, networks=1), 1)
    return STUDY.measure(task)


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
def test_every_network_has_bounds_that_shaping_lowers(network: PortNetwork) -> None:
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


def test_without_a_peer_only_ours_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOKO_SAIHU", raising=False)
    [task] = STUDY.tasks(PortBoundsSize(runs=50, networks=1), 1)
    assert "only ours" in str(task)
    rows = STUDY.measure(task)
    methods = ["ours"] * len(SHAPINGS) + ["ours, whole paths", "frames in a simulation"]
    assert [row["method"] for row in rows] == methods
    shown = STUDY.show(rows)
    assert shown.findings["ours_exceeded"] == shown.findings["ours_whole_paths_exceeded"] == 0
    assert shown.findings["ours_whole_paths_most_ratio"] <= 1


def test_bounds_of_a_peer_stand_beside_ours(saihu: Callable[[str], None]) -> None:
    saihu(ANALYZER)
    rows = measured()
    bounds_of = {(row["shaping"], row["method"]): row for row in rows}
    mine = bounds_of["whole frames", "ours"]["worst_us"]
    assert bounds_of["whole frames", "ours, whole paths"]["worst_us"] < mine
    for method, worst_us in {"panco/TFA": 30, "panco/SFA": 60, "panco/PLP": 15}.items():
        bounds = bounds_of["whole frames", method]
        assert bounds["worst_us"] == pytest.approx(worst_us)
        assert bounds["ratio"] == pytest.approx(worst_us / mine)
        assert bounds["exceeded"] == 6
    assert bounds_of["whole frames", "panco/PLP, corrected"]["worst_us"] == pytest.approx(15 + 2 * 12.336)
    assert bounds_of["whole frames", "panco/SFA, corrected"]["worst_us"] == pytest.approx(60 + 2 * 12.336)
    assert ("whole frames", "panco/TFA, corrected") not in bounds_of
    assert bounds_of["no shaping", "xtfa/TFA"]["worst_us"] is None
    shown = STUDY.show(rows)
    assert shown.findings["panco_plp_exceeded"] == 6
    assert shown.table is not None
    assert [row[3:5] for row in shown.table.rows if row[2] == "xtfa/TFA"] == [
        ["none", "ValueError: no such thing"]
    ] * 2


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
def test_frames_exceed_bounds_of_a_fluid(network: str, method: str, flow: str, bound_us: float) -> None:
    """The bounds are those of panco with a packetizer, as Saihu at 68955f62 (2024-04-01) prints them.

    A frame waits at each port until all of it is there, which the bounds leave out.
    """
    chosen = next(candidate for candidate in networks() if candidate.name == network)
    seen_us = longest_found_us(chosen, flow, runs=1000, seed=1)
    assert seen_us > bound_us, method
    assert seen_us <= corrected_us(chosen, {flow: bound_us})[flow]
    sums, whole = ours(chosen, SHAPINGS[-1])
    assert seen_us <= whole.delays_us[flow] <= sums.delays_us[flow]


def test_a_peer_that_does_not_start_is_one_line(saihu: Callable[[str], None]) -> None:
    saihu("import a_module_that_nobody_has")
    with pytest.raises(RunError, match=r"^Saihu does not run: .*a_module_that_nobody_has.*$"):
        measured()


def test_a_folder_that_is_no_clone_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKO_SAIHU", str(tmp_path))
    with pytest.raises(InputError, match="has no src/saihu"):
        measured()


def test_a_network_that_is_overloaded_has_no_bound() -> None:
    ring, *_ = networks()
    heavy = {
        flow: TokenBucket(rate_bps=4e8, burst_bytes=bucket.burst_bytes)
        for flow, bucket in ring.buckets.items()
    }
    full = PortNetwork(name="full", paths=ring.paths, buckets=heavy)
    (mine,) = ours(full, SHAPINGS[-1])
    assert mine.error
    assert not mine.delays_us
    assert not math.isinf(mine.seconds or 0)
