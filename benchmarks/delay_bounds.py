"""Five questions about one network, put to this project and to other tools, with the time that each takes.

The network is a ring of six Zodiac FX with two hosts each. For tools of network calculus a switch is one
server for all of its ports: R and T of the model, for frames of 306 bytes and 17 entries, without what boards
do by themselves. A flow sends 200 kbit/s in bursts of one frame.

xTFA and panco come through Saihu (`LOKO_SAIHU`, `LOKO_SAIHU_PYTHON`: docs/port-queues.md). DNC and the
authors' admission are Java libraries, which Maven gets. What is missing is left out, with the reason.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.admission import has_java, java_classes
from benchmarks.measure import BenchmarkError
from loko.admission import Admission, Admitted, LokoAdmission
from loko.admission.packets import PacketAdmission
from loko.control.entries import EVALUATION_ENTRIES, switch_entries
from loko.switch_model.allocation import FULL_RATE
from loko.switch_model.calculus import PathStep, PortServer, RateLatency, TokenBucket, TotalFlow
from loko.switch_model.calculus.total_flow import UnsettledError
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION
from loko.topology.lab import Lab, load_lab
from loko.topology.lab_allocation import allocations_of
from loko.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_S, US_PER_MS
from loko_testbed.reproduce.saihu import Saihu, SaihuNetwork, saihu_bounds, saihu_of_environment
from loko_testbed.simulation.traffic import Releases, Sender
from loko_testbed.simulation.virtual import PoweredLab, lab_network

SWITCHES: Final = 6
_LAB: Final = f"""name: ring-of-six
title: Ring of six Zodiac FX with two hosts each
ring: {{switches: {SWITCHES}, hosts_per_switch: 2, one_way: true}}
"""
_FRAME_BYTES: Final = 306
_RATE_BPS: Final = 200e3
DEADLINE_MS: Final = 8.0
"""Of question 5."""
_NO_DEADLINE_MS: Final = 1e3
EMULATED: Final = "frames in emulated boards, longest"
_PERIODS: Final = 20_000
_PERIOD_NS: Final = 20_000_000
_SPREAD_NS: Final = 2_000_000
_ON_CABLE_NS: Final = (8 + _FRAME_BYTES) * 80
"""With preamble, at 100 Mbit/s."""
_MOST_FLOWS: Final = 40
_PATIENCE_S: Final = 300
_AUTHORS_FRAME_BYTES: Final = 1530
_AUTHORS_MODELS: Final = {"eces-dnm, multi-hop model": "MHM", "eces-dnm, threshold model (Chameleon)": "TBM"}
_SAIHU_METHODS: Final = ("xtfa/TFA", "panco/TFA", "panco/SFA", "panco/PLP")


class AskedFlow(NamedTuple):
    """A flow from a switch's first host to the second host of the switch where it ends."""

    first: int
    """Its first switch, from 1."""
    hops: int
    """How many switches it crosses."""

    @property
    def switches(self) -> tuple[str, ...]:
        """The switches that it crosses, in order."""
        return tuple(f"s{(self.first - 1 + hop) % SWITCHES + 1}" for hop in range(self.hops))


class Question(NamedTuple):
    """The flows of a question, which asks how long a frame of the first one may take."""

    name: str
    flows: tuple[AskedFlow, ...]


class Answer(NamedTuple):
    """The answer of a tool, and the time it took; a reason if there is none."""

    value: float | None
    """In ms, or a number of flows."""
    seconds: float
    reason: str = ""


PATH: Final = AskedFlow(1, 4)
QUESTIONS: Final = (
    Question("1: one switch", (AskedFlow(1, 1),) * 6),
    Question("2: a path", (PATH,) * 3),
    Question(
        "3: flows across the path", (PATH, *(AskedFlow(first, 2) for first in (1, 2, 3) for _ in range(2)))
    ),
    Question("4: a circle", tuple(AskedFlow(first, 4) for first in range(1, SWITCHES + 1))),
)
MOST: Final = f"5: most flows within {DEADLINE_MS:g} ms"


class Server(NamedTuple):
    """The service of a switch."""

    rate_bps: float
    latency_ns: float
    """T, with the time l/R of a whole frame."""
    buffer_bytes: float
    burst_bytes: float
    """The largest burst of the allocation `full-rate`."""
    delay_ns: float
    """The bound of that allocation."""


Bounds = Callable[[Sequence[AskedFlow]], Mapping[str, Answer]]
"""For the flows of a question: by method, what it answers for the first of them."""


def measure() -> dict[str, dict[str, Answer]]:
    """Put every question to every tool; return the answers by tool and question.

    Raises `BenchmarkError` if a tool that is there does not run.
    """
    with tempfile.TemporaryDirectory() as scratch:
        lab = ring()
        server = server_of(lab)
        classes = java_classes(Path(scratch))
        answers = {
            "ours, Loko's admission": _admission(
                lambda: LokoAdmission(lab, allocations_of(lab, FULL_RATE, EVALUATION))
            ),
            "ours, whole frames (packets)": _admission(lambda: PacketAdmission(lab, EVALUATION)),
        }
        answers[EMULATED] = _emulated(lab)
        for tool in _calculators(server, classes):
            for question in QUESTIONS:
                for method, answer in tool(question.flows).items():
                    answers.setdefault(method, {})[question.name] = answer
            for method, answer in _most(tool).items():
                answers[method][MOST] = answer
        for name, model in _AUTHORS_MODELS.items() if classes else ():
            answers[name] = _guarantees(server, classes, model)
    return answers


def left_out() -> dict[str, str]:
    """Return the tools that this machine or any lacks, with the reason."""
    missing = {}
    if saihu_of_environment() is None:
        missing["xTFA, panco"] = "LOKO_SAIHU names no clone of Saihu (docs/port-queues.md)"
    if not has_java():
        missing["DNC, eces-dnm, Chameleon's admission"] = "needs mvn and a JDK"
    return missing


def ring() -> Lab:
    """Return the network."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lab.yml")
        file.write_text(_LAB, encoding="utf-8")
        return load_lab(str(file)).as_printed()


def server_of(lab: Lab) -> Server:
    """Return the service of the lab's switches, which are all alike."""
    allocation = allocations_of(lab, FULL_RATE, EVALUATION)["s1"]
    splits = allocation.splits
    return Server(
        rate_bps=splits.service_rate_bps,
        latency_ns=splits.empty_delay_ns,
        buffer_bytes=splits.capacity_bytes,
        burst_bytes=allocation.max_burst_bytes,
        delay_ns=allocation.delay_ns,
    )


def _calculators(server: Server, classes: str) -> Iterator[Bounds]:
    """Yield what computes bounds for flows that are all known beforehand."""
    yield lambda flows: {"ours, total flow analysis": total_flow(server, flows)}
    if saihu := saihu_of_environment():
        yield lambda flows: _saihu(server, flows, saihu)
    if classes:
        yield lambda flows: _dnc(server, flows, classes)


def _flows(asked: Sequence[AskedFlow]) -> list[Flow]:
    return [
        Flow(
            id=f"f{number}",
            source=f"h{flow.first}a",
            destination=f"h{(flow.first + flow.hops - 2) % SWITCHES + 1}b",
            udp_source=1000 + number,
            udp_destination=5000,
            rate_bps=_RATE_BPS,
            burst_bytes=float(_FRAME_BYTES),
            frame_bytes=_FRAME_BYTES,
        )
        for number, flow in enumerate(asked)
    ]


def _admission(empty: Callable[[], Admission]) -> dict[str, Answer]:
    """Ask for the flows one after another; the guarantee is that of the first."""
    answers = {}
    for question in QUESTIONS:
        flows, scheme = _flows(question.flows), empty()
        began = time.perf_counter()
        given = [scheme.request(flow) for flow in flows]
        seconds = time.perf_counter() - began
        admitted = [answer for answer in given if isinstance(answer, Admitted)]
        refused = len(given) - len(admitted)
        first = given[0]
        answers[question.name] = (
            Answer(first.guarantee_ns / NS_PER_MS, seconds)
            if isinstance(first, Admitted) and not refused
            else Answer(None, seconds, f"refuses {refused} of {len(given)} flows")
        )
    flows, scheme = _flows((PATH,) * _MOST_FLOWS), empty()
    began = time.perf_counter()
    fitting = 0
    for flow in flows:
        answer = scheme.request(flow)
        if not isinstance(answer, Admitted) or answer.guarantee_ns > DEADLINE_MS * NS_PER_MS:
            break
        fitting += 1
    answers[MOST] = Answer(fitting, time.perf_counter() - began)
    return answers


def _emulated(lab: Lab) -> dict[str, Answer]:
    """Return the longest that a frame of the first flow is in the emulated boards, of many that meet others.

    No valid bound is below it. In each period all flows send a frame within a time that is drawn anew, from 0
    to `_SPREAD_NS`.
    """
    answers = {}
    chance = np.random.default_rng(1)
    for question in QUESTIONS:
        began = time.perf_counter()
        admission = LokoAdmission(lab, allocations_of(lab, FULL_RATE, EVALUATION))
        given = [admission.request(flow) for flow in _flows(question.flows)]
        admitted = [answer for answer in given if isinstance(answer, Admitted)]
        tables = switch_entries(lab, admitted, entries=EVALUATION_ENTRIES)
        powered = PoweredLab(lab, lab_network(lab, tables, seed=1), 1)
        begins_ns = _PERIOD_NS * np.arange(1, _PERIODS + 1)
        spreads_ns = chance.integers(0, _SPREAD_NS, _PERIODS, endpoint=True)
        senders = [
            Sender.of(
                number,
                answer.flow,
                Releases(instants_ns=begins_ns + chance.integers(0, spreads_ns, endpoint=True)),
            )
            for number, answer in enumerate(admitted)
        ]
        records = powered.run(senders, duration_ns=(_PERIODS + 2) * _PERIOD_NS, drain_ns=_PERIOD_NS)
        mine = records.flow == 0
        longest_ns = int((records.received_ns[mine] - records.sent_ns[mine]).max())
        cables = len(admitted[0].path) + 1
        inside_ns = longest_ns - cables * _ON_CABLE_NS
        answers[question.name] = Answer(inside_ns / NS_PER_MS, time.perf_counter() - began)
    answers[MOST] = Answer(None, 0.0, "not asked")
    return answers


def total_flow(server: Server, flows: Sequence[AskedFlow]) -> Answer:
    """Return our bound for the first of these flows, by total flow analysis."""
    port = PortServer(service=RateLatency(rate_bps=server.rate_bps, latency_ns=server.latency_ns))
    bucket = TokenBucket(rate_bps=_RATE_BPS, burst_bytes=_FRAME_BYTES)
    names = sorted({name for flow in flows for name in flow.switches})
    began = time.perf_counter()
    network = TotalFlow(dict.fromkeys(names, port))
    for flow in flows:
        network.add([PathStep(name) for name in flow.switches], bucket)
    try:
        bounds_ns = network.settle(names)
    except UnsettledError as error:
        return Answer(None, time.perf_counter() - began, f"no bound: {error}")
    total_ns = sum(bounds_ns[name] for name in flows[0].switches)
    return Answer(total_ns / NS_PER_MS, time.perf_counter() - began)


def _saihu(server: Server, flows: Sequence[AskedFlow], saihu: Saihu) -> dict[str, Answer]:
    names = [f"f{number}" for number in range(len(flows))]
    network = SaihuNetwork(
        name="ring",
        paths={name: flow.switches for name, flow in zip(names, flows, strict=True)},
        buckets=dict.fromkeys(names, TokenBucket(rate_bps=_RATE_BPS, burst_bytes=_FRAME_BYTES)),
        service=RateLatency(rate_bps=server.rate_bps, latency_ns=server.latency_ns),
        line_rate_bps=100e6,
        frame_bytes=_FRAME_BYTES,
        shortest_frame_bytes=_FRAME_BYTES,
        is_shaped=False,
        has_packetizer=False,
    )
    return {
        method.replace("/", " ").replace("xtfa", "xTFA"): Answer(None, 0.0, error)
        if error or seconds is None
        else Answer(delays_us["f0"] / US_PER_MS, seconds)
        for method, (seconds, delays_us, error) in saihu_bounds(saihu, network, _SAIHU_METHODS).items()
    }


def _dnc(server: Server, flows: Sequence[AskedFlow], classes: str) -> dict[str, Answer]:
    lines = [f"server {server.rate_bps / BITS_PER_BYTE} {server.latency_ns / NS_PER_S}"]
    lines += [f"flow {_RATE_BPS / BITS_PER_BYTE} {_FRAME_BYTES} {' '.join(flow.switches)}" for flow in flows]
    answers = {}
    for line in _output(["java", "-cp", classes, "BoundsPeer"], "\n".join(lines)).splitlines():
        kind, method, *rest = line.split(" ", 2)
        if kind == "result":
            seconds, delay_s = map(float, rest[0].split())
            answers[f"DNC {method}"] = Answer(1e3 * delay_s, seconds)
        elif kind == "refused":
            answers[f"DNC {method}"] = Answer(None, 0.0, rest[0])
    return answers


def _most(bounds: Bounds) -> dict[str, Answer]:
    """Return by method how many equal flows keep the deadline: add flows until the bound is above it."""
    most: dict[str, Answer] = {}
    seconds: dict[str, float] = {}
    for count in range(1, _MOST_FLOWS + 1):
        for method, answer in bounds((PATH,) * count).items():
            if method in most:
                continue
            seconds[method] = seconds.get(method, 0.0) + answer.seconds
            if answer.value is None or answer.value > DEADLINE_MS:
                most[method] = Answer(count - 1, seconds[method], answer.reason)
        if seconds.keys() == most.keys():
            break
    return most


def _guarantees(server: Server, classes: str, model: str) -> dict[str, Answer]:
    """Ask the authors' admission for the flows one after another, each question of an empty network."""
    answers = {}
    for question in QUESTIONS:
        told = _requested(server, classes, model, question.flows, deadline_ms=_NO_DEADLINE_MS)
        seconds = sum(answer.seconds for answer in told)
        refused = sum(answer.value is None for answer in told)
        answers[question.name] = (
            Answer(None, seconds, f"refuses {refused} of {len(told)} flows")
            if refused
            else Answer(told[0].value, seconds)
        )
    told = _requested(server, classes, model, (PATH,) * _MOST_FLOWS, deadline_ms=DEADLINE_MS)
    fitting = list(takewhile(lambda answer: answer.value is not None, told))
    answers[MOST] = Answer(len(fitting), sum(answer.seconds for answer in told[: len(fitting) + 1]))
    return answers


def _requested(
    server: Server, classes: str, model: str, flows: Sequence[AskedFlow], *, deadline_ms: float
) -> list[Answer]:
    bucket = f"{_RATE_BPS / BITS_PER_BYTE} {_FRAME_BYTES}"
    lines = [f"{bucket} {flow.first - 1} {flow.hops} {deadline_ms / US_PER_MS}" for flow in flows]
    # The multi-hop model sets two of its largest frames aside in each queue; the latency is that of the link.
    queue_bytes = server.burst_bytes + 2 * _AUTHORS_FRAME_BYTES if model == "MHM" else server.buffer_bytes
    words = ["java", "-cp", classes, "GuaranteesPeer", model, SWITCHES, server.rate_bps / BITS_PER_BYTE]
    words += [server.latency_ns / NS_PER_S, queue_bytes, (server.delay_ns - server.latency_ns) / NS_PER_S]
    told = []
    for line in _output([*words, _FRAME_BYTES], "\n".join(lines)).splitlines():
        kind, *values = line.split()
        if kind in {"admitted", "refused"}:
            told.append(Answer(1e3 * float(values[1]) if kind == "admitted" else None, float(values[0])))
    return told


def _output(words: Sequence[object], given: str) -> str:
    try:
        return subprocess.run(
            [str(word) for word in words],
            input=given,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=True,
        ).stdout
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"delay bounds: {words[0]} took more than {_PATIENCE_S} s") from None
    except (OSError, subprocess.CalledProcessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1]
        raise BenchmarkError(f"delay bounds: {words[0]} does not run: {said}") from None


def table(answers: Mapping[str, Mapping[str, Answer]]) -> str:
    """Return the answers as a Markdown table, a row for each tool: bound in ms or flows, and the time."""
    questions = [*(question.name for question in QUESTIONS), MOST]
    lines = [f"| tool | {' | '.join(questions)} |", "|---" * (len(questions) + 1) + "|"]
    lines += [
        f"| {tool} | {' | '.join(_cell(given[question]) for question in questions)} |"
        for tool, given in answers.items()
    ]
    return "\n".join(lines) + "\n"


def _cell(answer: Answer) -> str:
    value, seconds = answer_and_time(answer)
    return f"{value} ({seconds})" if seconds else value


def answer_and_time(answer: Answer) -> tuple[str, str]:
    """Write an answer with its unit, and the time that it took; no time if there is only a reason."""
    if answer.value is None:
        return f"none: {answer.reason}", ""
    value = f"{answer.value} flows" if isinstance(answer.value, int) else f"{answer.value:.3f} ms"
    took_ms = 1e3 * answer.seconds
    return value, f"{took_ms:.2g} ms" if took_ms < 10 else f"{took_ms:,.0f} ms"
