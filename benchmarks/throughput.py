"""Packets a CPU second: our simulator, in OpenFlow 1.0 and 1.3, and ns-3 carry four flows, turn by turn.

ns-3 twice: as its users write such a network, and by hand on its bare event loop. Rings of boards tell
whether large networks are as quick as small ones.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import ROOT, BenchmarkError, Spread, run
from benchmarks.one_board import built

SIMULATED_S = 100
"""Length of a turn in virtual time: seconds of CPU time, so that starting a program counts for nothing."""

RING_SECONDS = {100: 10, 1_000: 1, 4_096: 1}
"""Boards of each ring, and its length of a turn in virtual time."""

_PEERS = ROOT / "benchmarks" / "ns3-peer"
_NS3_MODULES = ("core", "internet", "network", "point-to-point", "traffic-control")


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Packets delivered a CPU second; `peer` and `ratio` are None where ns-3 is not installed."""

    simulator: Spread
    simulator13: Spread
    """With boards in sessions of OpenFlow 1.3."""
    versions: Spread
    """1.3 : 1.0."""
    rings: dict[int, Spread]
    """By the number of boards; only what the event loop takes counts, without building the ring."""
    peer: Spread | None
    ratio: Spread | None
    by_hand: Spread | None
    """ns-3's event loop without anything else of it."""
    by_hand_ratio: Spread | None
    peer_name: str


def measure(*, repetitions: int) -> Throughput:
    """Run all turn by turn, so that a slow minute of the machine hits all. Raises `BenchmarkError`."""
    simulator = _build_simulator()
    with tempfile.TemporaryDirectory() as folder:
        peer = _build_peer(Path(folder), "two_switch")
        by_hand = _build_peer(Path(folder), "by_hand")
        ours: list[float] = []
        newer: list[float] = []
        theirs: list[float] = []
        bare: list[float] = []
        rings: dict[int, list[float]] = {boards: [] for boards in RING_SECONDS}
        for _ in range(repetitions):
            ours.append(_simulated(simulator, "1.0"))
            newer.append(_simulated(simulator, "1.3"))
            if peer and by_hand:
                theirs.append(_peer_simulated(peer))
                bare.append(_peer_simulated(by_hand))
            for boards, speeds in rings.items():
                speeds.append(_ring_simulated(simulator, boards))
    return Throughput(
        simulator=Spread.of(ours),
        simulator13=Spread.of(newer),
        versions=Spread.of([one / other for one, other in zip(newer, ours, strict=True)]),
        rings={boards: Spread.of(speeds) for boards, speeds in rings.items()},
        peer=Spread.of(theirs) if theirs else None,
        ratio=_ratio(ours, theirs),
        by_hand=Spread.of(bare) if bare else None,
        by_hand_ratio=_ratio(ours, bare),
        peer_name=_peer_name(),
    )


def _ratio(ours: list[float], theirs: list[float]) -> Spread | None:
    return Spread.of([our / their for our, their in zip(ours, theirs, strict=True)]) if theirs else None


def _simulated(program: Path, openflow: str) -> float:
    """Packets a CPU second of our simulator, over all the loads that its example carries."""
    usage = run([program, SIMULATED_S, openflow])
    loads = json.loads(usage.output)
    return float(sum(load["received"] * load["repetitions"] for load in loads)) / usage.cpu_s


def _ring_simulated(program: Path, boards: int) -> float:
    """The same of a ring, without what building it takes."""
    usage = run([program, RING_SECONDS[boards], "1.0", boards])
    (load,) = json.loads(usage.output)
    return float(load["packets_per_cpu_second"])


def _peer_simulated(program: Path) -> float:
    """Packets a CPU second of ns-3."""
    usage = run([program, f"--seconds={SIMULATED_S}"])
    return float(json.loads(usage.output)["packets"]) / usage.cpu_s


def _build_simulator() -> Path:
    run(
        [
            *("cargo", "build", "--release", "--locked", "--quiet", "--workspace"),
            *("--example", "throughput", "--manifest-path", "switch-emulator/Cargo.toml"),
        ]
    )
    return built() / "examples" / "throughput"


def _build_peer(folder: Path, name: str) -> Path | None:
    """The peer of this name, compiled, or None where ns-3 or a compiler for it is missing."""
    if not Path("/usr/include/ns3").is_dir() or shutil.which("g++") is None:
        return None
    program = folder / name
    libraries = [f"-lns3-{module}" for module in _NS3_MODULES]
    usage = run(["g++", "-std=c++17", "-O2", "-o", program, _PEERS / f"{name}.cc", *libraries])
    if not program.exists():
        raise BenchmarkError(f"the ns-3 peer does not compile: {usage.output.strip().splitlines()[-1]}")
    return program


def _peer_name() -> str:
    if shutil.which("dpkg-query") is None:
        return "ns-3"
    version = run(["dpkg-query", "-W", "-f", "${Version}\n", "libns3-dev"]).output.strip().splitlines()[-1]
    return f"ns-3 {version}" if version[:1].isdigit() else "ns-3"
