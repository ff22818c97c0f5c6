"""Send bursts and messages through a slice; find groups and orders in the arrivals (section IV-A)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko.slicing.document import HtbPort, HtbQueue, Port, TrtcmPort, load_slices
from loko.slicing.lengths import on_wire
from loko.switch_model.device import load_device
from loko.units import NS_PER_MS, NS_PER_US
from loko_testbed.live.datapaths import instead_of_dpdk, missing_for_dpdk
from loko_testbed.measure.slices.groups import (
    gap_seen_ns,
    group_lengths,
    longest_gap_ns,
    max_pause_ns,
    step_lengths,
)
from loko_testbed.measure.slices.injection import InjectionMethod, best_injection_method
from loko_testbed.measure.slices.port import SENDERS, SliceTrial, transmit, transmit_live
from loko_testbed.measure.slices.release import PacketTimes, Release
from loko_testbed.reproduce.chart import (
    Chart,
    ChartAxis,
    ChartCurve,
    FindingPlace,
    LinePanel,
    TimelineBar,
    TimelineInstant,
    TimelinePanel,
    TimelineRow,
)
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.slices.document import BurstSeries, Messages, Segmentation, Slices
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.replay.tasks import compute_tasks
from loko_testbed.reproduce.result import AxisLabel, NoteResult, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import LOST, RunError
from loko_testbed.tasks.progress import NoProgress, Progress


def parameters(figure: Slices, options: Options) -> Mapping[str, Any]:
    """Return sliced port and switch, on which the result depends apart from the figure's document."""
    port = load_slices(figure.slices)
    live: dict[str, Any] = {}
    if options.mode == "live":
        by_htb = isinstance(port, HtbPort)
        live = (
            {"injection": best_injection_method().value} if by_htb else {"dpdk": missing_for_dpdk() is None}
        )
    return live | {
        "port": port.model_dump(mode="json"),
        "device": load_device(figure.device).model_dump(mode="json"),
    }


def compute(figure: Slices, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Replay the figure."""
    repetitions = figure.quick.repetitions if options.quick else figure.repetitions
    progress.begin(1, 0, "runs")
    if isinstance(figure.sends, Messages):
        messages = _messages(figure, figure.sends, repetitions, options)
    else:
        messages = _bursts(figure, figure.sends, repetitions, options)
    progress.advance(figure.name)
    return messages


def _real_time(port: Port, injection: InjectionMethod, options: Options) -> tuple[bool, list[NoteResult]]:
    """Return whether the figure is replayed in real time, with notes for its reader."""
    if options.mode != "live":
        return False, []
    if isinstance(port, HtbPort):
        return True, [NoteResult(where="this replay", text=injection.remark)]
    remark = instead_of_dpdk("This figure")
    return remark is None, [] if remark is None else [NoteResult(where="this replay", text=f"{remark}.")]


class _BurstTimes:
    """Bursts of packets with pauses in between: when each packet was sent and received."""

    def __init__(self, figure: Slices, lengths: list[int], repetitions: int, options: Options) -> None:
        """Send bursts of these lengths in packets, `repetitions` times each."""
        port = load_slices(figure.slices)
        self.slot_ns = on_wire(figure.frame_bytes) * 8e9 / port.link_rate_bps
        self.gap_ns = longest_gap_ns(port, figure.frame_bytes)
        self._torn_ns = max_pause_ns(port, figure.frame_bytes)
        self._lengths = [length for length in lengths for _ in range(repetitions)]
        pause_ns = round(figure.pause_ms * NS_PER_MS)
        # Pauses vary by up to a hundredth, so that repetitions begin at different phases of periodic
        # timers. The phases are the same for all lengths, so that these differ in nothing else.
        phases_ns = np.random.default_rng(options.seed).integers(0, pause_ns // 100 + 1, repetitions)
        starts_ns = np.arange(1, len(self._lengths) + 1) * pause_ns + np.tile(phases_ns, len(lengths))
        release = Release(
            queue=0,
            host=SENDERS[0],
            frame_bytes=figure.frame_bytes,
            instants_ns=np.repeat(starts_ns, self._lengths),
        )
        self.findings: dict[str, float] = {}
        injection = best_injection_method()
        real_time, self.notes = _real_time(port, injection, options)
        self.profile = "" if real_time else figure.device
        if real_time:
            sent, share = transmit_live(port, {0: release}, injection=injection)
            self.all = sent[0]
            self.findings["switch_cpu_percent"] = 100 * share
        else:
            trial = SliceTrial(port, figure.device, {0: release}, options.seed)
            (carried,) = compute_tasks(transmit, [trial], options, NoProgress())
            self.all = carried[0]
        self.each = [
            PacketTimes(sent, received)
            for sent, received in zip(
                self._cut(self.all.sent_ns), self._cut(self.all.received_ns), strict=True
            )
        ]
        even = [self._is_even(place) for place in range(len(self.each))]
        if not real_time and not all(even):
            raise RunError(f"{figure.name}: a burst came before the last one had left; lengthen pause_ms")
        self.whole = [
            [
                self.each[place]
                for place in range(first, first + repetitions)
                if even[place] and self._came(place)
            ]
            for first in range(0, len(self.each), repetitions)
        ]
        """For each of `lengths` the bursts that were sent as one and arrived completely.

        The others lost packets; or they were torn apart, or sent before the last one had left, because the
        host was kept from running.
        """
        if not all(self.whole) and (isinstance(figure.sends, Messages) or not any(self.whole)):
            raise RunError(
                f"{figure.name}: no burst was sent as one and arrived whole; run it while nothing else runs"
            )
        if real_time and isinstance(port, TrtcmPort):
            received_ns = [sent.received_ns for sent in chain(*self.whole)]
            self.gap_ns = max(self.gap_ns, gap_seen_ns(received_ns))
        self.findings |= {
            "lost_packets": float((self.all.received_ns == LOST).sum()),
            "uneven_bursts": float(len(even) - sum(even)),
        }
        self.caption = f"{sum(map(len, self.whole))} of {len(self.each)} bursts, sent as one"
        if options.mode == "live" and not real_time:
            self.caption += " in virtual time"

    def _cut(self, values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        return np.split(values, np.cumsum(self._lengths)[:-1])

    def rows(self) -> pa.Table:
        """Return a table with a row for each packet."""
        lengths = np.array(self._lengths)
        return pa.table(
            {
                "sending": np.repeat(np.arange(len(lengths)), lengths),
                "packets": np.repeat(lengths, lengths),
                "packet": np.concatenate([np.arange(1, length + 1) for length in lengths]),
                "sent_ns": self.all.sent_ns,
                "received_ns": self.all.received_ns,
            }
        )

    def _came(self, place: int) -> bool:
        return bool((self.each[place].received_ns != LOST).all())

    def _is_even(self, place: int) -> bool:
        """Whether a burst was sent at link rate, after the previous one had arrived completely."""
        sent_ns = self.each[place].sent_ns
        at_once = bool((np.diff(sent_ns) <= self._torn_ns).all())
        return at_once and (place == 0 or self.each[place - 1].received_ns.max() < sent_ns[0])


def _bursts(
    figure: Slices, sends: BurstSeries, repetitions: int, options: Options
) -> tuple[Outcome, pa.Table]:
    sendings = _BurstTimes(figure, sends.lengths, repetitions, options)
    whole = dict(zip(sends.lengths, sendings.whole, strict=True))
    groups = {length: _complete_groups(bursts, sendings.gap_ns) for length, bursts in whole.items()}
    findings = {
        **sendings.findings,
        **_group_findings(groups),
        **_first_and_later(
            [sent for sent in chain(*sendings.whole) if len(sent.sent_ns) > 1], sendings.gap_ns
        ),
    }
    stairs = sends.shows == "burst-latency"
    if stairs:
        latency_us = {
            length: [(burst.received_ns.max() - burst.sent_ns[0]) / NS_PER_US for burst in bursts]
            for length, bursts in whole.items()
        }
        findings |= _stair_findings(latency_us, sendings.slot_ns)
        panel = _stairs(latency_us, _steps("step_packets", findings, sends))
    else:
        panel = _segments(whole, _steps("group_packets", findings, sends))
    outcome = Outcome(
        chart=Chart(panels=[panel], caption=sendings.caption),
        findings=findings,
        x=AxisLabel(name="packets in the burst" if stairs else "packet", unit=""),
        profile=sendings.profile,
        table=_group_table(groups),
        notes=sendings.notes,
        runs=repetitions,
        assumptions=_assumptions(figure),
    )
    return outcome, sendings.rows()


def _complete_groups(bursts: list[PacketTimes], gap_ns: float) -> list[int]:
    """Return the lengths of all groups except each burst's last, which its end may have cut off."""
    return [length for burst in bursts for length in group_lengths(burst.received_ns, gap_ns)[:-1]]


def _group_findings(groups: Mapping[int, list[int]]) -> dict[str, float]:
    every = [length for lengths in groups.values() for length in lengths]
    if not every:
        return {}
    medians = [float(np.median(lengths)) for lengths in groups.values() if lengths]
    return {
        "group_packets": float(np.median(every)),
        "shortest_group_packets": float(min(every)),
        "longest_group_packets": float(max(every)),
        "groups_differ_packets": max(medians) - min(medians),
    }


def _first_and_later(bursts: list[PacketTimes], gap_ns: float) -> dict[str, float]:
    """Return the median lengths of bursts' first groups and of later ones, without each burst's last."""
    groups = [group_lengths(burst.received_ns, gap_ns)[:-1] for burst in bursts]
    first = [lengths[0] for lengths in groups if lengths]
    later = [length for lengths in groups for length in lengths[1:]]
    findings = {}
    if first:
        findings["first_group_packets"] = float(np.median(first))
    if later:
        findings["later_group_packets"] = float(np.median(later))
    return findings


def _stair_findings(latency_us: Mapping[int, list[float]], slot_ns: float) -> dict[str, float]:
    if any(not values for values in latency_us.values()):
        return {}
    medians = np.array([np.median(values) for values in latency_us.values()])
    steps = step_lengths(medians * NS_PER_US, slot_ns)
    findings = {"steps": float(len(steps))}
    if steps:
        findings["step_packets"] = float(np.median(steps))
        findings["shortest_step_packets"] = float(min(steps))
        findings["longest_step_packets"] = float(max(steps))
        findings["rise_within_step_percent"] = _rise_within_step_percent(medians, steps)
    return findings


def _rise_within_step_percent(latency_us: NDArray[np.float64], steps: list[int]) -> float:
    """Return the largest growth of latency within a step, in per cent of the mean rise per step."""
    firsts = np.concatenate([[0], np.cumsum(steps)])
    within = latency_us[firsts[1:] - 1] - latency_us[firsts[:-1]]
    rise = (latency_us[firsts[-1]] - latency_us[0]) / len(steps)
    return 100 * float(within.max() / rise)


def _group_table(groups: Mapping[int, list[int]]) -> TableResult:
    rows: list[list[Any]] = []
    for packets, lengths in groups.items():
        if lengths:
            rows.append([packets, len(lengths), min(lengths), float(np.median(lengths)), max(lengths)])
    return TableResult(columns=["packets in the burst", "groups", "shortest", "median", "longest"], rows=rows)


def _steps(finding: str, findings: Mapping[str, float], sends: BurstSeries) -> list[FindingPlace]:
    """Return the places of the length of a step: where each of them ends."""
    length = findings.get(finding, 0)
    ends = range(1, int(max(sends.lengths) / length) + 1) if length else ()
    return [FindingPlace(finding=finding, of="x", scale=end, offset=0.5, words="a step") for end in ends]


def _stairs(latency_us: Mapping[int, list[float]], steps: list[FindingPlace]) -> LinePanel:
    there = {length: values for length, values in latency_us.items() if values}
    curve = ChartCurve(
        label="median, least and most",
        x=[float(length) for length in there],
        y=[float(np.median(values)) for values in there.values()],
        low=[min(values) for values in there.values()],
        high=[max(values) for values in there.values()],
    )
    return LinePanel(
        x=ChartAxis(label="packets in the burst", low=0),
        y=ChartAxis(label="latency of the whole burst [us]", low=0),
        findings=steps,
        curves=[curve],
    )


def _segments(whole: Mapping[int, list[PacketTimes]], steps: list[FindingPlace]) -> LinePanel:
    curves = []
    for length, bursts in whole.items():
        latencies = [(burst.received_ns - burst.sent_ns) / NS_PER_US for burst in bursts]
        if latencies:
            medians = np.median(np.stack(latencies), axis=0)
            curves.append(
                ChartCurve(
                    label=f"{length} packets", x=list(map(float, range(1, length + 1))), y=medians.tolist()
                )
            )
    return LinePanel(
        x=ChartAxis(label="packet in the burst", low=0),
        y=ChartAxis(label="latency of the packet [us], median", low=0),
        findings=steps,
        curves=curves,
    )


def _messages(
    figure: Slices, sends: Messages, repetitions: int, options: Options
) -> tuple[Outcome, pa.Table]:
    lengths = [len(case.order()) for case in sends.cases]
    sendings = _BurstTimes(figure, lengths, repetitions, options)
    findings = dict(sendings.findings)
    rows: list[list[Any]] = []
    for case, these in zip(sends.cases, sendings.whole, strict=True):
        arrived = {part: _arrival_us(case, part, these) for part in ("data", "command")}
        for part, value in arrived.items():
            findings[f"{part}_{case.name}_us"] = value
        rows.append([case.name, arrived["data"], arrived["command"], max(arrived.values())])
    panel = TimelinePanel(
        x=ChartAxis(label="time since the first packet was sent [us], median", low=0),
        rows=[
            _timeline(case, these, sendings.slot_ns, findings)
            for case, these in zip(sends.cases, sendings.whole, strict=True)
        ],
    )
    outcome = Outcome(
        chart=Chart(panels=[panel], caption=sendings.caption),
        findings=findings,
        x=AxisLabel(name="case", unit=""),
        profile=sendings.profile,
        table=TableResult(
            columns=["case", "all data after [us]", "command after [us]", "both after [us]"], rows=rows
        ),
        notes=sendings.notes,
        runs=repetitions,
        assumptions=_assumptions(figure),
    )
    return outcome, sendings.rows()


def _timeline(
    case: Segmentation, sendings: list[PacketTimes], slot_ns: float, findings: Mapping[str, float]
) -> TimelineRow:
    """Return the arrivals of a case's packets, and the instants at which all data and the command are there.

    A bar is as long as its packet takes on the link.
    """
    arrived_ns = np.median(np.stack([trial.received_ns - trial.sent_ns[0] for trial in sendings]), axis=0)
    bars = [
        TimelineBar(
            label=" and ".join(case.messages[message].holds),
            begin=float(end_ns - slot_ns) / NS_PER_US,
            end=float(end_ns) / NS_PER_US,
        )
        for message, end_ns in zip(case.order(), arrived_ns, strict=True)
    ]
    instants = [
        TimelineInstant(label=label, at=findings[f"{part}_{case.name}_us"])
        for part, label in (("data", "all data delivered"), ("command", "command delivered"))
    ]
    return TimelineRow(name=f"case {case.name}", bars=bars, instants=instants)


def _arrival_us(case: Segmentation, part: str, sendings: list[PacketTimes]) -> float:
    """Return the median time from the first packet until all messages that hold the part have arrived."""
    holds = np.array([part in message.holds for message in case.messages])[case.order()]
    return float(
        np.median([(trial.received_ns[holds].max() - trial.sent_ns[0]) / NS_PER_US for trial in sendings])
    )


def _assumptions(figure: Slices) -> dict[str, float]:
    """Return the values that the paper does not print."""
    port = load_slices(figure.slices)
    queue = port.queues[0]
    rate_bps = queue.rate_bps if isinstance(queue, HtbQueue) else queue.cir_bps
    return {"queue_rate_mbps": rate_bps / 1e6, "link_rate_mbps": port.link_rate_bps / 1e6}


_VIRTUAL_S: Final = 3.0
_BUILD_S: Final = 5.0


def _estimate_s(figure: Slices) -> dict[str, float]:
    kinds = len(figure.sends.cases if isinstance(figure.sends, Messages) else figure.sends.lengths)
    times = {"virtual": _VIRTUAL_S, "live": _BUILD_S + kinds * figure.repetitions * figure.pause_ms / 1e3}
    return {mode: times[mode] for mode in figure.modes if mode in times}


FIGURE_TYPE: Final = FigureType(
    documents=(Slices,),
    compute=OneByOne(compute, parameters),
    estimate_s=_estimate_s,
)
