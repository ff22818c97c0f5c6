"""Figures 2, 3 and 15: processing times as boxes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko.switch_model.device import load_device
from loko.units import NS_PER_US
from loko_testbed.measure.predictability import processing_time, tag_stack
from loko_testbed.measure.predictability.marks import thresholds
from loko_testbed.measure.predictability.measurements import Measurement, measure
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
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.replay.tasks import compute_each
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
_ON_CHIP: Final = "chip"
"""The case of figure 3 that a switch forwards in hardware."""
_FAST_US: Final = 3.0
"""Switches whose times stay below this have their own scale, as in the paper."""


class TimedCase(NamedTuple):
    """Processing times of a device in one scenario, at its place in a figure."""

    device: str
    place: str
    times_ns: NDArray[np.int64] | None
    """None if the switch refuses the entries."""
    times: ScenarioTimes


_Tasks = Mapping[tuple[str, str], Measurement[NDArray[np.int64] | None]]
"""Measurements by device and place."""


def compute_times(
    figure: Predictability, measures: ProcessingTimes, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce figures 2a to 2f: processing times in hardware by one dimension."""
    packets = measures.quick_packets if options.quick else measures.packets
    scenarios = _scenarios(measures.varies)
    timed = _timed(_of_scenarios(figure, scenarios, packets, options.seed), packets, options, progress)
    limits = thresholds()
    hardware = [case for case in timed if in_hardware(case.times, limits)]
    places = list(scenarios)
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
        _ON_CHIP: TimingScenario(rate_mbps=rate),
        "nw-src": TimingScenario(action="set-nw-src", rate_mbps=rate),
        "tp-src": TimingScenario(action="set-tp-src", rate_mbps=rate),
        "dl-dst": TimingScenario(match="dl-dst", rate_mbps=rate),
        "64 B": TimingScenario(frame_bytes=64, rate_mbps=rate),
    }
    timed = _timed(_of_scenarios(figure, cases, packets, options.seed), packets, options, progress)
    limits = thresholds()
    shown = [
        case
        for case in timed
        if case.times.came and (case.place == _ON_CHIP) == in_hardware(case.times, limits)
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
    hardware = [case for case in shown if in_hardware(case.times, limits)]
    software = [case for case in shown if not in_hardware(case.times, limits)]
    findings: dict[str, float] = {"lost_packets": float(sum(case.times.lost for case in shown))}
    for device in figure.devices:
        findings[f"software_cases_{key(device)}"] = float(sum(case.device == device for case in software))
    if hardware and software:
        slowest = max(case.times.most_us for case in software)
        findings["slower_orders"] = float(np.log10(slowest / max(case.times.median_us for case in hardware)))
        wide, narrow = (
            [
                float(np.percentile(case.times_ns, 75) - np.percentile(case.times_ns, 25))
                for case in cases_of
                if case.times_ns is not None
            ]
            for cases_of in (software, hardware)
        )
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
    tasks = {
        (device, str(tags)): Measurement.of(
            device, tag_stack.measure, tags, packets=packets, seed=options.seed
        )
        for device in figure.devices
        for tags in measures.tags
    }
    places = [str(tags) for tags in measures.tags]
    timed = _timed(tasks, packets, options, progress)
    hardware = [case for case in timed if in_hardware(case.times, thresholds())]
    works = [device for device in figure.devices if any(case.device == device for case in hardware)]
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


def _scenarios(varies: str) -> dict[str, TimingScenario]:
    """Return the scenarios of a figure by the names of their places."""
    if varies != "order":
        return dict(variations(varies))  # type: ignore[arg-type]  # the others are dimensions
    return {
        f"{_SHORT[priorities]}, {rule}": TimingScenario(priorities=priorities, matching_rule=rule)
        for priorities, rule in product(VALUES["priorities"], VALUES["matching_rule"])
    }


def _of_scenarios(
    figure: Predictability, scenarios: Mapping[str, TimingScenario], packets: int, seed: int
) -> _Tasks:
    return {
        (device, place): Measurement.of(device, processing_time.measure, scenario, packets=packets, seed=seed)
        for device in figure.devices
        for place, scenario in scenarios.items()
    }


def _timed(tasks: _Tasks, packets: int, options: Options, progress: Progress) -> list[TimedCase]:
    return [
        TimedCase(device, place, times_ns, summary(times_ns, packets))
        for (device, place), times_ns in compute_each(measure, tasks, options, progress).items()
    ]


def _panel(timed: list[TimedCase], places: list[str], x: ChartAxis, device: str) -> BoxPanel:
    """Return the boxes of a switch; similar switches get the same axes."""
    of = [case.times for case in timed if case.device == device]
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


def _box_at(timed: list[TimedCase], place: str, device: str) -> BoxStatistics | None:
    for case in timed:
        if (case.place, case.device) == (place, device) and case.times_ns is not None:
            return box_of(case.times_ns, low=0, high=100, per=NS_PER_US).model_copy(update={"mean": None})
    return None


def _findings(figure: Predictability, timed: list[TimedCase], hardware: list[TimedCase]) -> dict[str, float]:
    findings: dict[str, float] = {"lost_packets": float(sum(case.times.lost for case in hardware))}
    influences = []
    for device in figure.devices:
        of = {case.place: case.times for case in hardware if case.device == device}
        name = key(device)
        findings[f"not_in_hardware_{name}"] = float(sum(case.device == device for case in timed) - len(of))
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


def _outside(timed: list[TimedCase], hardware: list[TimedCase]) -> TableResult | None:
    """Return a table of the scenarios that are not forwarded in hardware, with what became of them."""
    inside = {(case.device, case.place) for case in hardware}
    rows: list[list[str | float]] = [
        [
            _title(case.device),
            case.place,
            "refused" if case.times.refused else "software" if case.times.came else "no frame came",
        ]
        for case in timed
        if (case.device, case.place) not in inside
    ]
    return TableResult(columns=["switch", "value", "what becomes of it"], rows=rows) if rows else None


def _rows(timed: list[TimedCase]) -> pa.Table:
    """Return a table with a row for each received frame."""
    taken = [(case, case.times_ns) for case in timed if case.times_ns is not None and len(case.times_ns)]
    counts = [len(times_ns) for _, times_ns in taken]

    def column(values: list[str]) -> pa.Array:
        names = list(dict.fromkeys(values))
        places = np.array([names.index(value) for value in values], dtype=np.int32)
        return pa.DictionaryArray.from_arrays(np.repeat(places, counts), pa.array(names, pa.string()))

    empty = np.array([], dtype=np.int64)
    devices = column([case.device for case, _ in taken])
    return pa.table(
        {
            "device": devices,
            "place": column([case.place for case, _ in taken]),
            "case": devices,
            "processing_ns": np.concatenate([empty, *(times_ns for _, times_ns in taken)]).astype(np.int32),
        }
    )
