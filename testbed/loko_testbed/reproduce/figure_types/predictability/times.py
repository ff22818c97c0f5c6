"""Figures 2, 3 and 15: processing times as boxes."""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko.switch_model.device import load_device
from loko.units import NS_PER_US
from loko_testbed.measure.predictability.marks import thresholds
from loko_testbed.measure.predictability.processing_time import ScenarioTimes, in_hardware, summary
from loko_testbed.measure.predictability.table_iii import VALUES, TimingScenario, variations
from loko_testbed.reproduce.analysis import box_of
from loko_testbed.reproduce.chart import (
    BoxGroup,
    BoxPanel,
    BoxStatistics,
    Chart,
    ChartAxis,
    FindingPlace,
    Panel,
)
from loko_testbed.reproduce.figure_types.predictability.document import (
    Predictability,
    ProcessingTimes,
    SoftwareTimes,
    TagStacks,
)
from loko_testbed.reproduce.figure_types.predictability.tasks import (
    TagStackTask,
    TimingTask,
    compute_each,
    processing_times,
    tag_stack_times,
)
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_WHISKERS: Final = "least and most"
_NAMES: Final = {
    "entries": "entries in the table",
    "match": "match",
    "action": "action",
    "order": "priorities of the entries, entry that is used",
    "frame_bytes": "frame [bytes]",
    "rate_mbps": "rate [Mbit/s]",
}
_SHORT: Final = {"increasing": "incr.", "decreasing": "decr.", "same": "same"}
_MOST_BESIDE: Final = 40
"""Most characters in all names of places for which two panels fit side by side."""
_FAST_US: Final = 3.0
"""Switches whose times stay below this have their own scale, as in the paper."""

TimesByCase = list[tuple[TimingTask, NDArray[np.int64] | None, ScenarioTimes]]


def compute_times(
    figure: Predictability, measures: ProcessingTimes, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce figures 2a to 2f: processing times in hardware by one dimension."""
    packets = measures.quick_packets if options.quick else measures.packets
    tasks = [
        TimingTask(
            device=device, packets=packets, seed=options.seed, place=place, group=device, scenario=scenario
        )
        for device in figure.devices
        for place, scenario in _scenarios(measures.varies)
    ]
    timed = _measured(tasks, options, progress)
    limits = thresholds()
    hardware = [case for case in timed if in_hardware(case[2], limits)]
    places = list(dict.fromkeys(task.place for task in tasks))
    x = ChartAxis(label=_NAMES[measures.varies])
    panels: list[Panel] = [_panel(hardware, places, x, device) for device in figure.devices]
    outcome = Outcome(
        chart=Chart(
            panels=panels,
            columns=1 if sum(map(len, places)) > _MOST_BESIDE else 2,
            caption=f"{packets} packets a scenario; those in hardware only",
        ),
        findings=_findings(figure, timed, hardware),
        x=AxisLabel(name=_NAMES[measures.varies], unit=""),
        table=_outside(timed, hardware),
    )
    return outcome, _rows(timed)


def compute_software(
    figure: Predictability, measures: SoftwareTimes, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce figure 3: processing times in software."""
    packets = measures.quick_packets if options.quick else measures.packets
    rate = measures.rate_mbps
    cases = {
        "chip": TimingScenario(rate_mbps=rate),
        "nw-src": TimingScenario(action="set-nw-src", rate_mbps=rate),
        "tp-src": TimingScenario(action="set-tp-src", rate_mbps=rate),
        "dl-dst": TimingScenario(match="dl-dst", rate_mbps=rate),
        "64 B": TimingScenario(frame_bytes=64, rate_mbps=rate),
    }
    tasks = [
        TimingTask(
            device=device, packets=packets, seed=options.seed, place=case, group=device, scenario=scenario
        )
        for device in figure.devices
        for case, scenario in cases.items()
    ]
    timed = _measured(tasks, options, progress)
    limits = thresholds()
    shown = [
        case
        for case in timed
        if case[2].came and (case[0].scenario == next(iter(cases.values()))) == in_hardware(case[2], limits)
    ]
    panels: list[Panel] = [
        BoxPanel(
            title=_title(device),
            x=ChartAxis(label="rewritten, matched, or sent"),
            y=ChartAxis(label="processing time [us]", log=True, low=1, high=1e6),
            places=list(cases),
            groups=[BoxGroup(label="", boxes=[_box_at(shown, case, device) for case in cases])],
            whiskers=_WHISKERS,
        )
        for device in figure.devices
    ]
    hardware = [case for case in shown if in_hardware(case[2], limits)]
    software = [case for case in shown if not in_hardware(case[2], limits)]
    findings: dict[str, float] = {"lost_packets": float(sum(times.lost for _, _, times in shown))}
    for device in figure.devices:
        of = [times for task, _, times in software if task.device == device]
        findings[f"software_cases_{key(device)}"] = float(len(of))
    if hardware and software:
        slowest = max(times.most_us for _, _, times in software)
        findings["slower_orders"] = float(
            np.log10(slowest / max(times.median_us for _, _, times in hardware))
        )
        wide = [
            float(np.percentile(ns, 75) - np.percentile(ns, 25)) for _, ns, _ in software if ns is not None
        ]
        narrow = [
            float(np.percentile(ns, 75) - np.percentile(ns, 25)) for _, ns, _ in hardware if ns is not None
        ]
        findings["wider_orders"] = float(np.log10(np.median(wide) / np.median(narrow)))
    outcome = Outcome(
        chart=Chart(panels=panels, columns=2, caption=f"{packets} packets a case, {rate:g} Mbit/s"),
        findings=findings,
        x=AxisLabel(name="case", unit=""),
    )
    return outcome, _rows(timed)


def compute_stacks(
    figure: Predictability, measures: TagStacks, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce figure 15: processing times by number of tags."""
    packets = measures.quick_packets if options.quick else measures.packets
    tasks = [
        TagStackTask(device=device, packets=packets, seed=options.seed, tags=tags)
        for device in figure.devices
        for tags in measures.tags
    ]
    all_times = compute_each(tag_stack_times, tasks, options, progress)
    places = [str(tags) for tags in measures.tags]
    timed: TimesByCase = [
        (
            TimingTask(
                device=task.device,
                packets=packets,
                seed=options.seed,
                place=str(task.tags),
                group=task.device,
                scenario=TimingScenario(),
            ),
            times_ns,
            summary(times_ns, packets),
        )
        for task, times_ns in all_times.items()
    ]
    hardware = [case for case in timed if in_hardware(case[2], thresholds())]
    works = [device for device in figure.devices if any(task.device == device for task, *_ in hardware)]
    x = ChartAxis(label="tags of a frame")
    findings = _findings(figure, timed, hardware)
    findings["works"] = float(len(works))
    bounds = [findings[f"spread_{key(device)}_us"] for device in works]
    findings["spread_most_us"] = max(bounds, default=0.0)
    outcome = Outcome(
        chart=Chart(
            panels=[_panel(hardware, places, x, device) for device in works],
            columns=2,
            caption=f"{packets} packets a case; the outermost tag is matched and taken off",
        ),
        findings=findings,
        x=AxisLabel(name="tags", unit=""),
        table=_outside(timed, hardware),
    )
    return outcome, _rows(timed)


def key(device: str) -> str:
    """Return a device's name in the form used in names of findings."""
    return device.replace("-", "_")


def _title(device: str) -> str:
    return load_device(device).title


def _scenarios(varies: str) -> list[tuple[str, TimingScenario]]:
    if varies != "order":
        return list(variations(varies))  # type: ignore[arg-type]  # the others are dimensions
    return [
        (f"{_SHORT[priorities]}, {rule}", TimingScenario(priorities=priorities, matching_rule=rule))
        for priorities, rule in product(VALUES["priorities"], VALUES["matching_rule"])
    ]


def _measured(tasks: list[TimingTask], options: Options, progress: Progress) -> TimesByCase:
    results = compute_each(processing_times, tasks, options, progress)
    return [(task, times_ns, summary(times_ns, task.packets)) for task, times_ns in results.items()]


def _panel(timed: TimesByCase, places: list[str], x: ChartAxis, device: str) -> BoxPanel:
    """Return the boxes of a switch; similar switches get the same axes."""
    of = [times for task, _, times in timed if task.device == device]
    most_us = max((times.most_us for times in of), default=1.0)
    low, high = (1.5, _FAST_US) if most_us < _FAST_US else (3.0, max(5.5, most_us))
    if of and min(times.least_us for times in of) < low:
        low, high = 0.0, most_us * 1.1
    return BoxPanel(
        title=_title(device),
        x=x,
        y=ChartAxis(label="processing time [us]", low=low, high=high),
        findings=[FindingPlace(finding=f"median_{key(device)}_us")],
        places=places,
        groups=[BoxGroup(label="", boxes=[_box_at(timed, place, device) for place in places])],
        whiskers=_WHISKERS,
    )


def _box_at(timed: TimesByCase, place: str, group: str) -> BoxStatistics | None:
    for task, times_ns, _ in timed:
        if task.place == place and task.group == group and times_ns is not None:
            return box_of(times_ns, low=0, high=100, per=NS_PER_US).model_copy(update={"mean": None})
    return None


def _findings(figure: Predictability, timed: TimesByCase, hardware: TimesByCase) -> dict[str, float]:
    findings: dict[str, float] = {"lost_packets": float(sum(times.lost for _, _, times in hardware))}
    influences = []
    for device in figure.devices:
        of = {task.place: times for task, _, times in hardware if task.device == device}
        name = key(device)
        findings[f"not_in_hardware_{name}"] = float(
            sum(task.device == device for task, _, _ in timed) - len(of)
        )
        if not of:
            continue
        medians = [times.median_us for times in of.values()]
        influences.append(max(medians) - min(medians))
        findings[f"influence_{name}_us"] = influences[-1]
        findings[f"median_{name}_us"] = float(np.median(medians))
        findings[f"bound_{name}_us"] = max(times.most_us for times in of.values())
        findings[f"spread_{name}_us"] = float(
            np.median([times.most_us - times.least_us for times in of.values()])
        )
        for place, of_place in of.items():
            where = f"{name}_{place.replace('-', '_').replace('., ', '_').replace(', ', '_')}"
            findings[f"p_{where}_us"] = of_place.median_us
            findings[f"least_{where}_us"] = of_place.least_us
            findings[f"most_{where}_us"] = of_place.most_us
    findings["influence_most_us"] = max(influences, default=0.0)
    return findings


def _outside(timed: TimesByCase, hardware: TimesByCase) -> TableResult | None:
    """Return a table of the scenarios that are not forwarded in hardware, with what became of them."""
    there = {id(task) for task, _, _ in hardware}
    rows: list[list[str | float]] = [
        [
            _title(task.device),
            task.place,
            "refused" if times.refused else "no frame came" if not times.came else "software",
        ]
        for task, _, times in timed
        if id(task) not in there
    ]
    return TableResult(columns=["switch", "value", "what becomes of it"], rows=rows) if rows else None


def _rows(timed: TimesByCase) -> pa.Table:
    """Return a table with a row for each received frame."""
    there = [(task, times_ns) for task, times_ns, _ in timed if times_ns is not None]
    counts = [len(times_ns) for _, times_ns in there]

    def column(values: list[str]) -> pa.Array:
        indices = np.repeat(np.arange(len(values), dtype=np.int32), counts)
        return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string()))

    empty = np.array([], dtype=np.int64)
    return pa.table(
        {
            "device": column([task.device for task, _ in there]).dictionary_decode().dictionary_encode(),
            "place": column([task.place for task, _ in there]).dictionary_decode().dictionary_encode(),
            "case": column([task.group for task, _ in there]).dictionary_decode().dictionary_encode(),
            "processing_ns": np.concatenate([empty, *(times_ns for _, times_ns in there)]).astype(np.int32),
        }
    )
