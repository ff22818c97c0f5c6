"""Figures 12 to 14: how many frames a queue holds while others are full."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pyarrow as pa

from loko.switch_model.device import load_device
from loko_testbed.measure.predictability import buffers
from loko_testbed.measure.predictability.buffers import QueueCapacity
from loko_testbed.measure.predictability.measurements import Measurement, measure
from loko_testbed.measure.predictability.subject import switch_under_test
from loko_testbed.reproduce.chart import Chart, ChartAxis, FindingPlace, HeatPanel, Panel
from loko_testbed.reproduce.figure_types.predictability.document import Buffers, Predictability
from loko_testbed.reproduce.figure_types.predictability.times import key
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.replay.tasks import compute_each
from loko_testbed.reproduce.result import AxisLabel
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress


def compute_buffers(
    figure: Predictability, measures: Buffers, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce figures 12 to 14: a panel for each device and frame length."""
    ports = measures.quick_ports if options.quick else measures.ports
    tasks = {
        case: Measurement.of(
            device, buffers.measure, congested, queues, seed=options.seed, frame_bytes=length
        )
        for case in product(figure.devices, measures.frame_bytes, ports, measures.queues)
        for device, length, congested, queues in (case,)
        if queues <= switch_under_test(device).queues
    }
    results = compute_each(measure, tasks, options, progress)
    capacities = {case: capacity for case, capacity in results.items() if capacity is not None}
    findings: dict[str, float] = {}
    panels: list[Panel] = []
    for device, length in product(figure.devices, measures.frame_bytes):
        of = {case[2:]: capacity for case, capacity in capacities.items() if case[:2] == (device, length)}
        where = f"{key(device)}_{length}"
        findings |= {f"held_{where}_{a}_{b}_frames": capacity.frames for (a, b), capacity in of.items()}
        told = [capacity.frames for capacity in of.values()]
        findings[f"most_{where}_frames"], findings[f"least_{where}_frames"] = max(told), min(told)
        findings[f"varies_{where}_frames"] = max(
            capacity.most_frames - capacity.least_frames for capacity in of.values()
        )
        panels.append(
            HeatPanel(
                title=f"{load_device(device).title}, {length} bytes",
                x=ChartAxis(label="congested ports"),
                y=ChartAxis(label="congested queues of each"),
                findings=[
                    FindingPlace(
                        finding=f"{word}_{where}_frames",
                        of="cell",
                        x=ports.index(place[0]),
                        y=measures.queues.index(place[1]),
                    )
                    for word, place in (("most", _place(of, max(told))), ("least", _place(of, min(told))))
                ],
                value=ChartAxis(label="frames", low=0, high=max(told)),
                x_values=[float(port) for port in ports],
                y_values=[float(queue) for queue in measures.queues],
                cells=[[of[a, b].frames if (a, b) in of else None for a in ports] for b in measures.queues],
            )
        )
    if len(figure.devices) > 1:
        findings |= _ratios(figure, measures, findings)
    rows = pa.table(
        {
            "device": [case[0] for case in capacities],
            "frame_bytes": [case[1] for case in capacities],
            "congested_ports": [case[2] for case in capacities],
            "congested_queues": [case[3] for case in capacities],
            "frames": [capacity.frames for capacity in capacities.values()],
            "least_frames": [capacity.least_frames for capacity in capacities.values()],
            "most_frames": [capacity.most_frames for capacity in capacities.values()],
        }
    )
    outcome = Outcome(
        chart=Chart(panels=panels, columns=2, caption="median of what the highest queue of a port holds"),
        findings=findings,
        x=AxisLabel(name="congested ports", unit=""),
    )
    return outcome, rows


def _place(capacities: Mapping[tuple[int, int], QueueCapacity], frames: float) -> tuple[int, int]:
    """Return the first numbers of congested ports and queues at which a queue holds so many frames."""
    return next(place for place, capacity in capacities.items() if capacity.frames == frames)


def _ratios(figure: Predictability, measures: Buffers, findings: dict[str, float]) -> dict[str, float]:
    """Return the ratios of what the first device holds to what the second one does."""
    first, second = (f"{key(device)}_{measures.frame_bytes[0]}" for device in figure.devices[:2])
    return {
        f"times_{word}": findings[f"{word}_{first}_frames"] / findings[f"{word}_{second}_frames"]
        for word in ("most", "least")
    }
