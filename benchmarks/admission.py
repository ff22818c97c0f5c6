"""Measure admission decisions per second through the library's public interface, on a ring of 31 switches.

*Cycles* request a flow that fits and release it again, one second apart on the clock passed in, so that the
released flow's charge is paid off each time; a cycle counts as one decision. *Refusals* request flows that do
not fit. The authors' library (Maven group ``de.tum.ei.lkn.eces``, multi-hop model of DetServ) is measured in
turns with ours, with the same allocation of every queue. It searches a path for every request; ours caches
the path between two hosts.

*Plans that survive* request flows in every state after a single cable fails, on a ring of switch chips with
chords. They are measured with bounds that are found only where coarse ones do not show that a flow fits, and
with bounds that are found for every request.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.measure import ROOT, BenchmarkError, Spread, run
from loko.admission import Admission, Admitted, LokoAdmission
from loko.admission.packets import PacketAdmission
from loko.admission.port_queues import PortAdmission
from loko.admission.protection import Protection, failures_of, protect
from loko.switch_model.allocation import FULL_RATE
from loko.switch_model.calculus import PathStep, PortServer, RateLatency, TokenBucket, TotalFlow
from loko.switch_model.calculus.whole_path import whole_path_ns
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION, UNKNOWN, loko_scenario
from loko.topology.lab import Lab, lab_of, load_lab
from loko.topology.lab_allocation import allocations_of

SWITCHES: Final = 31
ON_A_PATH: Final = 6
"""Switches that each flow crosses (links, in the peer's terms)."""
_HOPS: Final = (3, 6, 8, 12)
_SECONDS: Final = 2.0
_CLOCK: Final = count(0, 1_000_000_000)
"""The clock passed to admission, in ns; a released flow no longer affects the next cycle."""
CHIPS: Final = 14
SURVIVING: Final = 120
"""Flows of a plan that survives the failure of any cable."""
_CHORDS: Final = ((0, 7), (3, 10), (5, 12))
_PEER: Final = ROOT / "benchmarks" / "eces-peer"


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions per second of one scheme."""

    cycles_per_s: Spread
    refusals_per_s: Spread


@dataclass(frozen=True, slots=True)
class AdmissionSpeed:
    """The result; `peer` is None where Maven or a JDK is missing."""

    loko: Decisions
    packets: Decisions
    peer: Decisions | None
    whole_path_ms: dict[int, Spread]
    """CPU time of the bound of one whole path, by its number of ports."""
    surviving_s: Spread
    """CPU time of a plan that survives."""
    surviving_ratio: Spread
    """Its time with the bounds of every request, over its time without."""


class _BoundsOfEveryRequest(PortAdmission):
    _finds_bounds_late = False


def measure(*, repetitions: int = 5) -> AdmissionSpeed:
    """Measure all in turns. Raises `BenchmarkError` if the peer does not build or an answer is wrong."""
    lab, chips = load_lab("ring"), _ring_of_chips()
    loko = LokoAdmission(lab, allocations_of(lab, FULL_RATE, EVALUATION))
    packets = PacketAdmission(lab, EVALUATION)
    surviving_s, ratios = zip(*(_surviving(chips) for _ in range(repetitions)), strict=True)
    measured_s: dict[str, list[tuple[float, float]]] = {"loko": [], "packets": [], "peer": []}
    with tempfile.TemporaryDirectory() as folder:
        peer = _build_peer(Path(folder))
        for _ in range(repetitions):
            measured_s["loko"].append(_ours(loko))
            measured_s["packets"].append(_ours(packets))
            if peer:
                measured_s["peer"].append(peer())
    return AdmissionSpeed(
        loko=_decisions(measured_s["loko"]),
        packets=_decisions(measured_s["packets"]),
        peer=_decisions(measured_s["peer"]) if measured_s["peer"] else None,
        whole_path_ms={
            hops: Spread.of([_whole_path_ms(hops, burst) for burst in range(1, repetitions + 1)])
            for hops in _HOPS
        },
        surviving_s=Spread.of(surviving_s),
        surviving_ratio=Spread.of(ratios),
    )


def _decisions(decisions_s: list[tuple[float, float]]) -> Decisions:
    cycles, refusals = zip(*decisions_s, strict=True)
    return Decisions(Spread.of(cycles), Spread.of(refusals))


def _ours(admission: Admission) -> tuple[float, float]:
    return _rate(admission, burst_bytes=306, fits=True), _rate(admission, burst_bytes=4134, fits=False)


def _rate(admission: Admission, *, burst_bytes: float, fits: bool) -> float:
    flows = [
        Flow(
            id=f"f{number}",
            source=f"h{number + 1}a",
            destination=f"h{(number + ON_A_PATH - 1) % SWITCHES + 1}b",
            udp_source=5000,
            udp_destination=6000,
            rate_bps=100e3,
            burst_bytes=burst_bytes,
            frame_bytes=306,
        )
        for number in range(SWITCHES)
    ]
    admission.advance(next(_CLOCK))
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < _SECONDS:
        for flow in flows:
            if isinstance(admission.request(flow), Admitted) is not fits:
                raise BenchmarkError(
                    f"admission: {admission.scheme}: a burst of {burst_bytes} is not as expected"
                )
            if fits:
                admission.release(flow.id, now_ns=next(_CLOCK))
        done += len(flows)
    return done / (time.perf_counter() - begin)


def has_java() -> bool:
    """Whether the machine has Maven and a JDK."""
    return shutil.which("mvn") is not None and shutil.which("java") is not None


def java_classes(folder: Path) -> str:
    """Build the Java peers there; return their class path, empty without Maven or a JDK."""
    if not has_java():
        return ""
    shutil.copytree(_PEER, folder / "peer")
    maven: list[str | Path] = ["mvn", "-B", "-q", "-f", folder / "peer" / "pom.xml"]
    classpath = folder / "classpath"
    usage = run([*maven, "compile", "dependency:build-classpath", f"-Dmdep.outputFile={classpath}"])
    if not classpath.exists():
        raise BenchmarkError(f"the Java peer does not build: {_first_error(usage.output)}")
    return f"{folder / 'peer' / 'target' / 'classes'}:{classpath.read_text(encoding='utf-8')}"


def _build_peer(folder: Path) -> Callable[[], tuple[float, float]] | None:
    classes = java_classes(folder)
    if not classes:
        return None

    def peer() -> tuple[float, float]:
        output = run(["java", "-cp", classes, "AdmissionPeer", SWITCHES, ON_A_PATH, str(_SECONDS)]).output
        line = next((line for line in output.splitlines() if line.startswith("result ")), None)
        if line is None:
            raise BenchmarkError(f"the Java peer gives no result: {output.strip().splitlines()[-1:]}")
        _, cycles, refusals = line.split()
        return float(cycles), float(refusals)

    return peer


def _first_error(output: str) -> str:
    return next((line for line in output.splitlines() if "ERROR" in line), "no error message")


def _whole_path_ms(hops: int, frames: int) -> float:
    """Return the time for one path of a ring of 16 with a flow from every server. Loads seen are kept."""
    service = RateLatency(rate_bps=1e9, latency_ns=12_336.0)
    server = PortServer(service=service, line_rate_bps=1e9, frame_bytes=1542.0)
    servers = {f"s{number}": server for number in range(16)}
    network = TotalFlow(servers)
    bucket = TokenBucket(rate_bps=1e7, burst_bytes=1542.0 * frames)
    paths = [tuple(PathStep(f"s{(first + hop) % 16}") for hop in range(hops)) for first in range(16)]
    for path in paths:
        network.add(path, bucket)
    bounds = network.settle(servers)
    began = time.process_time()
    whole_path_ns(network, paths[0], [(path, bucket) for path in paths], bounds)
    return 1e3 * (time.process_time() - began)


def _ring_of_chips() -> Lab:
    """Return chips in a ring with chords, each with two hosts."""
    cables = [*((number, (number + 1) % CHIPS) for number in range(CHIPS)), *_CHORDS]
    ports = [count(1) for _ in range(CHIPS)]
    hosts = {f"h{number + 1}{which}": number for number in range(CHIPS) for which in "ab"}
    return lab_of(
        {
            "name": "chips",
            "title": "ring of chips with chords",
            "switches": {
                f"s{number}": {"datapath_id": f"00:00:02:00:00:00:01:{number:02x}", "profile": "ideal-1g"}
                for number in range(CHIPS)
            },
            "hosts": {
                host: {"mac": f"02:00:00:00:00:{place:02x}", "ip": f"10.0.0.{place}/24"}
                for place, host in enumerate(hosts, start=1)
            },
            "links": [
                *({"a": host, "b": f"s{number}:{next(ports[number])}"} for host, number in hosts.items()),
                *({"a": f"s{a}:{next(ports[a])}", "b": f"s{b}:{next(ports[b])}"} for a, b in cables),
            ],
        }
    )


def _surviving(lab: Lab) -> tuple[float, float]:
    """Return the CPU seconds of a plan, and how many times as long it takes with all bounds."""
    rng = Random(1)
    flows = [
        Flow(
            id=f"f{number}",
            source=source,
            destination=destination,
            udp_source=5000 + number,
            udp_destination=6000 + number,
            rate_bps=500e3,
            burst_bytes=1518,
            frame_bytes=1518,
        )
        for number in range(SURVIVING)
        for source, destination in [rng.sample(list(lab.hosts), 2)]
    ]
    scenario = loko_scenario(entries=UNKNOWN, packet_sizes_bytes=(1518,))
    failures = failures_of(lab, ["cables=1"])
    spent_s = []
    for kind in (PortAdmission, _BoundsOfEveryRequest):
        began = time.process_time()
        planned = protect(lab, flows, partial(kind, lab, scenario), failures, protection=Protection.BACKUP)
        spent_s.append(time.process_time() - began)
        if planned.plan.refused:
            raise BenchmarkError("admission: a flow of the plan that survives is refused")
    return spent_s[0], spent_s[1] / spent_s[0]
