"""Measure packets per CPU second of our simulator in OpenFlow 1.0 and 1.3, and of ns-3, in turns.

All carry the same four flows through two switches; the generic switch, and ns-3, also through one. ns-3 is
measured with a network as its users write it, and with one written by hand on its bare event loop. Rings of
boards tell whether large networks are as fast as small ones. All this is measured on the simulator as it is
shipped (the profile `dist` of Cargo), and OpenFlow 1.0 also on the build that the tests use.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.builds import built
from benchmarks.measure import ROOT, BenchmarkError, Spread, run

SIMULATED_S = 100
"""Length of a turn in virtual time. It takes seconds of CPU time, so that starting a program is
negligible."""

RING_SECONDS = {100: 10, 1_000: 1, 4_096: 1}
"""By number of boards of a ring, the length of a turn in virtual time."""

_PEERS = ROOT / "benchmarks" / "ns3-peer"
_NS3_MODULES = ("core", "internet", "network", "point-to-point", "traffic-control")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatorThroughput:
    """Packets delivered per CPU second; values of the peers are None where ns-3 is not installed."""

    simulator: Spread
    simulator13: Spread
    """Our simulator with OpenFlow 1.3 sessions."""
    versions: Spread
    """Ratio of OpenFlow 1.3 to 1.0."""
    tested: Spread
    """Our simulator in the build of the tests."""
    builds: Spread
    """Ratio of the shipped build to that."""
    generic: Spread
    """Our simulator with two ideal switches of the generic device, 1 Gbit/s."""
    generic_ratio: Spread | None
    """Likewise to ns-3 as its users write it."""
    one_generic: Spread
    """Our simulator with one such switch."""
    one_peer: Spread | None
    """ns-3 as its users write it, with one node in place of two."""
    one_generic_ratio: Spread | None
    rings: dict[int, Spread]
    """By number of boards; counts the time of the event loop only, not of building the ring."""
    peer: Spread | None
    ratio: Spread | None
    by_hand: Spread | None
    """The network written by hand on ns-3's event loop."""
    by_hand_ratio: Spread | None
    peer_name: str


def measure(*, repetitions: int) -> EmulatorThroughput:
    """Measure all in turns, so that slow periods of the machine affect all. Raises `BenchmarkError`."""
    simulator, tested = _build_simulator("dist"), _build_simulator("release")
    with tempfile.TemporaryDirectory() as folder:
        peer = _build_peer(Path(folder), "two_switch")
        by_hand = _build_peer(Path(folder), "by_hand")
        ours: list[float] = []
        newer: list[float] = []
        of_tests: list[float] = []
        generic: list[float] = []
        one_generic: list[float] = []
        theirs: list[float] = []
        their_one: list[float] = []
        bare: list[float] = []
        rings: dict[int, list[float]] = {boards: [] for boards in RING_SECONDS}
        for _ in range(repetitions):
            ours.append(_simulated(simulator, "1.0"))
            of_tests.append(_simulated(tested, "1.0"))
            newer.append(_simulated(simulator, "1.3"))
            generic.append(_simulated(simulator, "generic"))
            one_generic.append(_simulated(simulator, "one-generic"))
            if peer and by_hand:
                theirs.append(_peer_simulated(peer))
                their_one.append(_peer_simulated(peer, "--switches=1"))
                bare.append(_peer_simulated(by_hand))
            for boards, speeds in rings.items():
                speeds.append(_ring_simulated(simulator, boards))
    return EmulatorThroughput(
        simulator=Spread.of(ours),
        simulator13=Spread.of(newer),
        versions=_ratio(newer, ours),
        tested=Spread.of(of_tests),
        builds=_ratio(ours, of_tests),
        generic=Spread.of(generic),
        generic_ratio=_ratio(generic, theirs) if theirs else None,
        one_generic=Spread.of(one_generic),
        one_peer=Spread.of(their_one) if their_one else None,
        one_generic_ratio=_ratio(one_generic, their_one) if their_one else None,
        rings={boards: Spread.of(speeds) for boards, speeds in rings.items()},
        peer=Spread.of(theirs) if theirs else None,
        ratio=_ratio(ours, theirs) if theirs else None,
        by_hand=Spread.of(bare) if bare else None,
        by_hand_ratio=_ratio(ours, bare) if bare else None,
        peer_name=_peer_name(),
    )


def _ratio(ours: list[float], theirs: list[float]) -> Spread:
    return Spread.of([our / their for our, their in zip(ours, theirs, strict=True)])


def _simulated(program: Path, switches: str) -> float:
    """Return packets per CPU second of our simulator, over all loads of its example."""
    usage = run([program, SIMULATED_S, switches])
    loads = json.loads(usage.output)
    return float(sum(load["received"] * load["repetitions"] for load in loads)) / usage.cpu_s


def _ring_simulated(program: Path, boards: int) -> float:
    """Return packets per CPU second in a ring, without the time to build it."""
    usage = run([program, RING_SECONDS[boards], "1.0", boards])
    (load,) = json.loads(usage.output)
    return float(load["packets_per_cpu_second"])


def _peer_simulated(program: Path, *options: str) -> float:
    """Return packets per CPU second of ns-3."""
    usage = run([program, f"--seconds={SIMULATED_S}", *options])
    return float(json.loads(usage.output)["packets"]) / usage.cpu_s


def _build_simulator(profile: str) -> Path:
    run(
        [
            *("cargo", "build", "--profile", profile, "--locked", "--quiet", "--workspace"),
            *("--example", "throughput", "--manifest-path", "switch-emulator/Cargo.toml"),
        ]
    )
    return built(profile) / "examples" / "throughput"


def _build_peer(folder: Path, name: str) -> Path | None:
    """Compile the peer of this name; None where ns-3 or a compiler is missing."""
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
    # If the package is unknown, no line mentions it.
    lines = run(["dpkg-query", "-W", "-f", "${Version}\n", "libns3-dev"]).output.split()
    return f"ns-3 {lines[-1]}" if lines and lines[-1][:1].isdigit() else "ns-3"
