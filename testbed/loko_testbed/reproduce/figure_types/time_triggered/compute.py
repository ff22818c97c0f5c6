"""Send by time slots, case by case, in virtual time or on this machine; judge delays and use of slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko.schedule.preemption import longest_wait_ns
from loko.switch_model.device import load_device
from loko.topology.lab import Lab, load_lab
from loko.units import NS_PER_US, US_PER_S
from loko_testbed.reproduce.analysis import distribution
from loko_testbed.reproduce.chart import (
    Chart,
    ChartAxis,
    Cloud,
    FindingPlace,
    LinePanel,
    Panel,
    TimePanel,
)
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.time_triggered.document import TimeTriggeredCase, TimeTriggeredFigure
from loko_testbed.reproduce.figure_types.time_triggered.trial import SlotFrameTimes, SlotTrial
from loko_testbed.reproduce.figure_types.time_triggered.veths import NotHereError, transmit_live
from loko_testbed.reproduce.figure_types.time_triggered.virtual import transmit
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.replay.tasks import compute_tasks
from loko_testbed.reproduce.result import AxisLabel, HostResult, NoteResult, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.progress import Progress

_DOTS: Final = 4000
"""Most frames of a case that are drawn; all that met a stall are drawn."""
_MOST_STALLED_PERCENT: Final = 10.0
"""Largest share of frames with a stall at which a case in real time is judged.

While nothing else ran, the share was below 1 % in each case of figure 4a and table 2.
"""
_Chosen = NDArray[np.bool_] | NDArray[np.int64]
"""A choice of frames: a mask or indices."""


def parameters(figure: TimeTriggeredFigure, _options: Options) -> Mapping[str, Any]:
    """Return the lab's device, on which the result depends apart from the figure's document."""
    profile = next(iter(load_lab(figure.lab).switches.values())).profile.name
    return {"device": load_device(profile).model_dump(mode="json")}


def compute(figure: TimeTriggeredFigure, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Replay the figure."""
    live = options.real_time
    if live:
        figure = figure.in_real_time()
    packets = figure.live_packets if live else figure.packets
    if options.quick:
        packets = min(packets, figure.quick.packets)
    sendings = [SlotTrial(figure.of(case), case, packets, options.seed) for case in figure.cases]
    sent: dict[str, SlotFrameTimes] = {}
    missing: list[NoteResult] = []
    if live:
        progress.begin(len(sendings), 0, "cases")
        for trial in sendings:
            try:
                sent[trial.case.name] = transmit_live(trial)
            except NotHereError as error:
                missing.append(NoteResult(where="sec 4", text=f"{str(error).rstrip('.')}."))
            progress.advance(f"{figure.name}, {trial.case.label}")
    else:
        sendings_done = compute_tasks(
            transmit, sendings, options, progress, lambda trial: trial.case.label, unit="cases"
        )
        sent = dict(zip([case.name for case in figure.cases], sendings_done, strict=True))
    figure = figure.model_copy(update={"cases": [case for case in figure.cases if case.name in sent]})
    if empty := [name for name, trial in sent.items() if not (trial.came & ~trial.stalled).any()]:
        raise RunError(
            f"{figure.name}: {empty[0]}: no frame arrived without a stall: run it while nothing else runs"
        )
    findings: dict[str, float] = {}
    for case in figure.cases:
        findings |= live_findings(case, sent[case.name]) if live else _findings(case, sent[case.name])
    lab = load_lab(figure.lab)
    if not live and figure.cross_frame_bytes:
        findings |= _waits(lab, max(figure.cross_frame_bytes))
    outcome = Outcome(
        chart=_chart(figure, sent, f"{packets} frames a flow", live=live),
        findings=findings,
        x=AxisLabel(name="end-to-end delay", unit="us"),
        profile="" if live else next(iter(lab.switches.values())).profile.name,
        table=_table(figure, sent, live=live),
        seconds=max(_seconds(figure, case, packets) for case in figure.cases),
        assumptions=_assumptions(figure, live=live),
        host=_host(sent),
        notes=[*_notes(sent), *(not_judged(figure, sent) if live else []), *missing],
    )
    return outcome, _rows(figure, sent)


def _chart(
    figure: TimeTriggeredFigure, sent: Mapping[str, SlotFrameTimes], caption: str, *, live: bool
) -> Chart | None:
    """Return the chart; None for a table in virtual time, which is drawn as such."""
    if live:
        return Chart(panels=_live_panels(figure, sent), columns=2, caption=caption)
    if figure.table:
        return None
    return Chart(panels=[_distributions(figure, sent)], caption=caption)


def _late_us(sent: SlotFrameTimes, chosen: _Chosen) -> NDArray[np.float64]:
    """Return how long after the beginning of their slots frames were handed over, in us."""
    return np.asarray(np.maximum(sent.begun_ns - sent.due_ns, 0)[chosen] / NS_PER_US)


def _delays_us(sent: SlotFrameTimes, chosen: _Chosen) -> NDArray[np.float64]:
    """Return the delays from the source's program to the destination's, in us.

    For a frame that was handed over before its slot, for the kernel to hold, the delay counts from the slot.
    """
    return (sent.received_ns[chosen] - np.maximum(sent.begun_ns, sent.due_ns)[chosen]) / NS_PER_US


def _statistics(name: str, delays_us: NDArray[np.float64]) -> dict[str, float]:
    least, most = float(delays_us.min()), float(delays_us.max())
    return {
        f"{name}_mean_us": float(delays_us.mean()),
        f"{name}_deviation_us": float(delays_us.std()),
        f"{name}_least_us": least,
        f"{name}_most_us": most,
        f"{name}_jitter_us": most - least,
    }


def _findings(case: TimeTriggeredCase, sent: SlotFrameTimes) -> dict[str, float]:
    return {
        **_statistics(case.name, _delays_us(sent, sent.came)),
        f"{case.name}_lost_packets": float((~sent.came).sum()),
    }


def live_findings(case: TimeTriggeredCase, sent: SlotFrameTimes) -> dict[str, float]:
    """Return findings on a case in real time, from the frames that met no stall.

    They include how late frames were handed over, and how long the kernel took to take them. If too many met
    a stall, only the shares of stalls and cross traffic are returned, so no claim on the case is judged.
    """
    quiet, name = sent.came & ~sent.stalled, f"live_{case.name}"
    stalled = {f"{name}_stalled_percent": 100 * float(sent.stalled.mean())}
    if sent.cross_percent is not None:
        stalled[f"{name}_cross_percent"] = sent.cross_percent
    if not _is_judged(sent):
        return stalled
    delays_us = _delays_us(sent, quiet)
    late_us = _late_us(sent, quiet)
    taken_us = (sent.done_ns[quiet] - sent.begun_ns[quiet]) / NS_PER_US
    return {
        **_statistics(name, delays_us),
        f"{name}_p50_us": float(np.quantile(delays_us, 0.5)),
        f"{name}_p99_us": float(np.quantile(delays_us, 0.99)),
        f"{name}_late_p50_us": float(np.quantile(late_us, 0.5)),
        f"{name}_late_p99_us": float(np.quantile(late_us, 0.99)),
        f"{name}_late_most_us": float(late_us.max()),
        f"{name}_taken_p50_us": float(np.quantile(taken_us, 0.5)),
        f"{name}_lost_packets": float((~sent.came & ~sent.stalled).sum()),
        **stalled,
    }


def _waits(lab: Lab, cross_bytes: int) -> dict[str, float]:
    """Return how long a frame with priority waits for one of cross traffic, or for a fragment of it."""
    return {
        f"{waited_for}_wait_us": longest_wait_ns(cross_bytes, lab.rate_bps(lab.links[0]), preempted=preempted)
        / NS_PER_US
        for waited_for, preempted in (("frame", False), ("fragment", True))
    }


def _is_judged(sent: SlotFrameTimes) -> bool:
    """Return whether so few frames met a stall that the others are representative."""
    return 100 * float(sent.stalled.mean()) <= _MOST_STALLED_PERCENT


def not_judged(figure: TimeTriggeredFigure, sent: Mapping[str, SlotFrameTimes]) -> list[NoteResult]:
    """Return a note for each case that is not judged."""
    return [
        NoteResult(
            where="sec 4",
            text=f"{case.label}: not judged: {100 * sent[case.name].stalled.mean():.0f} % of the frames met a"
            f" stall of this machine, and at most {_MOST_STALLED_PERCENT:g} % may.",
        )
        for case in figure.cases
        if not _is_judged(sent[case.name])
    ]


def _table(figure: TimeTriggeredFigure, sent: Mapping[str, SlotFrameTimes], *, live: bool) -> TableResult:
    rows: list[list[str | float]] = []
    for case in figure.cases:
        trial = sent[case.name]
        chosen = trial.came & ~trial.stalled
        delays_us = _delays_us(trial, chosen)
        row: list[str | float] = [
            case.label,
            len(trial.flow),
            int((~trial.came).sum()),
            *(
                round(float(value), 2)
                for value in (delays_us.mean(), delays_us.std(), delays_us.min(), delays_us.max())
            ),
        ]
        if live:
            late_us = _late_us(trial, chosen)
            row += [round(float(np.quantile(late_us, share)), 2) for share in (0.5, 0.99, 1)]
            row += [int(trial.stalled.sum())]
        rows.append(row)
    columns = ["case", "frames", "lost", "mean [us]", "deviation [us]", "least [us]", "most [us]"]
    if live:
        columns += ["behind the slot, median [us]", "99 % [us]", "most [us]", "left out: met a stall"]
    statistics = ("", "", "lost_packets", "mean_us", "deviation_us", "least_us", "most_us")
    more = [""] * (len(columns) - len(statistics))
    return TableResult(
        columns=columns,
        rows=rows,
        findings=[
            [*(f"{case.name}_{name}" if name and not live else "" for name in statistics), *more]
            for case in figure.cases
        ],
    )


def _distributions(figure: TimeTriggeredFigure, sent: Mapping[str, SlotFrameTimes]) -> LinePanel:
    return LinePanel(
        x=ChartAxis(label="end-to-end delay [us]"),
        y=ChartAxis(label="frames [%]", low=0, high=100),
        findings=[
            FindingPlace(finding=f"{case.name}_{name}_us", of="x")
            for case in figure.cases
            for name in ("mean", "most")
        ],
        curves=[
            distribution(case.label, _delays_us(sent[case.name], sent[case.name].came))
            for case in figure.cases
        ],
    )


def _live_panels(figure: TimeTriggeredFigure, sent: Mapping[str, SlotFrameTimes]) -> list[Panel]:
    """Return a panel of delays over time for each case, with stalls marked, and one of lateness."""
    panels: list[Panel] = []
    for case in figure.cases:
        trial = sent[case.name]
        clouds = []
        for label, chosen in (
            ("no stall", trial.came & ~trial.stalled),
            ("met a stall of the host", trial.came & trial.stalled),
        ):
            places = np.flatnonzero(chosen)
            if label == "no stall" and len(places) > _DOTS:
                places = places[:: len(places) // _DOTS + 1]
            delays_us = _delays_us(trial, places)
            clouds.append(Cloud(label=label, x=(trial.due_ns[places] / 1e9).tolist(), y=delays_us.tolist()))
        panels.append(
            TimePanel(
                title=case.label,
                x=ChartAxis(label="slot at [s]"),
                y=ChartAxis(label="end-to-end delay [us]", log=True),
                clouds=clouds,
            )
        )
    slots = LinePanel(
        title="how well slots were kept (no stall)",
        x=ChartAxis(label="handed over behind the beginning of the slot [us]", low=0, linear_to=1),
        y=ChartAxis(label="frames [%]", low=0, high=100),
        curves=[
            distribution(
                case.label,
                _late_us(sent[case.name], ~sent[case.name].stalled),
            )
            for case in figure.cases
        ],
    )
    return [*panels, slots]


def _assumptions(figure: TimeTriggeredFigure, *, live: bool) -> dict[str, float]:
    """Return the values that the paper does not print."""
    bursts = {case.cross_burst_frames for case in figure.cases if case.cross_percent}
    if live or not bursts:
        return {}
    return {"longest_cross_burst_frames": float(max(bursts))}


def _host(sent: Mapping[str, SlotFrameTimes]) -> HostResult:
    stalls = [stall for trial in sent.values() for stall in trial.stalls]
    if not stalls:
        return HostResult()
    return HostResult(
        stalls=len(stalls), worst_stall_us=max(stall.duration_ns for stall in stalls) / NS_PER_US
    )


def _notes(sent: Mapping[str, SlotFrameTimes]) -> list[NoteResult]:
    obtained = sorted({trial.scheduling for trial in sent.values() if trial.scheduling})
    if not obtained:
        return []
    return [
        NoteResult(
            where="sec 4", text=f"The source's thread ran with this scheduling: {'; '.join(obtained)}."
        )
    ]


def _rows(figure: TimeTriggeredFigure, sent: Mapping[str, SlotFrameTimes]) -> pa.Table:
    """Return a table with a row for each frame."""
    ones: Sequence[SlotFrameTimes] = [sent[case.name] for case in figure.cases]
    case_of_row = np.repeat(np.arange(len(ones), dtype=np.int32), [len(trial.flow) for trial in ones])
    columns = ("flow", "due_ns", "begun_ns", "done_ns", "received_ns", "stalled")
    return pa.table(
        {
            "case": pa.DictionaryArray.from_arrays(
                pa.array(case_of_row), pa.array([case.name for case in figure.cases], pa.string())
            ),
            **{name: np.concatenate([getattr(trial, name) for trial in ones]) for name in columns},
        }
    )


_FRAMES_A_SECOND: Final = 50_000.0
"""Frames per second of computing, in virtual time on one core."""
_CROSS_SECONDS: Final = 20.0
"""Seconds of computing for each second of cross traffic."""
_BUILD_S: Final = 1.5


def _seconds(figure: TimeTriggeredFigure, case: TimeTriggeredCase, packets: int) -> float:
    return packets * figure.of(case).period_us / US_PER_S


def _estimate_s(figure: TimeTriggeredFigure) -> dict[str, float]:
    virtual_s = sum(
        figure.packets * case.flows / _FRAMES_A_SECOND
        + (_seconds(figure, case, figure.packets) * _CROSS_SECONDS if case.cross_percent else 0)
        for case in figure.cases
    )
    live = figure.in_real_time()
    live_s = sum(_BUILD_S + _seconds(live, case, figure.live_packets) for case in figure.cases)
    return {
        mode: seconds for mode, seconds in (("virtual", virtual_s), ("live", live_s)) if mode in figure.modes
    }


FIGURE_TYPE: Final = FigureType(
    documents=(TimeTriggeredFigure,),
    compute=OneByOne(compute, parameters),
    estimate_s=_estimate_s,
)
