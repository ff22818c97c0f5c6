"""Section II-B.3, figure 5: processing times of a high-priority flow, alone and beside low-priority flows."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from loko.switch_model.device import load_device
from loko.units import NS_PER_MS, NS_PER_US
from loko_testbed.measure.predictability import priority_queueing
from loko_testbed.measure.predictability.measurements import Measurement, measure
from loko_testbed.measure.predictability.priority_queueing import (
    LOW_BYTES,
    InterferingTraffic,
    PriorityDelays,
    between_percent,
    excesses_us,
)
from loko_testbed.measure.predictability.subject import SwitchUnderTest, switch_under_test
from loko_testbed.reproduce.analysis import distribution
from loko_testbed.reproduce.chart import (
    Chart,
    ChartAxis,
    Cloud,
    FindingPlace,
    LinePanel,
    Panel,
    Reference,
    TimePanel,
)
from loko_testbed.reproduce.figure_types.predictability.document import (
    Interferences,
    Predictability,
    PriorityQueueing,
)
from loko_testbed.reproduce.figure_types.predictability.times import key
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.replay.tasks import compute_each
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_PARTS: Final = ("alone", *(f"beside {length} bytes" for length in LOW_BYTES))


def compute_queueing(
    figure: Predictability, measures: PriorityQueueing, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce figure 5, with a panel for each switch that has priorities."""
    bursts = measures.quick_bursts if options.quick else measures.bursts
    tasks = {
        device: Measurement.of(device, priority_queueing.measure, bursts=bursts, seed=options.seed)
        for device in figure.devices
    }
    delays = compute_each(measure, tasks, options, progress)
    findings: dict[str, float] = {
        "without_priorities": float(sum(delay.refused for delay in delays.values()))
    }
    panels: list[Panel] = []
    rows: list[list[str | float]] = []
    for device, delay in delays.items():
        if delay.refused:
            rows.append([load_device(device).title, *["no enqueue"] * (len(LOW_BYTES) + 1)])
            continue
        subject = switch_under_test(device).at_card_rate()
        excesses = excesses_us(subject, delay)
        name = key(device)
        findings |= {
            f"excess_{name}_{size}_us": excess for size, excess in zip(LOW_BYTES, excesses, strict=True)
        }
        findings[f"epsilon_{name}_us"] = max(excesses)
        findings[f"differs_{name}_us"] = max(excesses) - min(excesses)
        findings[f"between_{name}_percent"] = _between_percent(delay)
        findings[f"least_beside_{name}_us"] = _least_us(delay, 1) - _least_us(delay, 0)
        rows.append(
            [load_device(device).title, *(round(excess, 2) for excess in excesses), round(max(excesses), 2)]
        )
        panels.append(_panel(device, subject, delay))
    outcome = Outcome(
        chart=Chart(
            panels=panels,
            columns=2,
            caption=f"{bursts} bursts a part; lines: equation 2 beside 1000, 500, and 100 bytes",
        ),
        findings=findings,
        x=AxisLabel(name="time", unit="ms"),
        table=TableResult(
            columns=[
                "switch",
                *(f"beyond equation 2 beside {size} bytes [us]" for size in LOW_BYTES),
                "most [us]",
            ],
            rows=rows,
        ),
    )
    return outcome, _rows(delays)


def _between_percent(delays: PriorityDelays) -> float:
    """Return the share of times between both extremes beside the longest frames of low priority."""
    came = delays.processing_ns >= 0
    alone, beside = (delays.processing_ns[came & (delays.part == part)] for part in (0, 1))
    return between_percent(alone, beside)


def compute_interferences(
    figure: Predictability, measures: Interferences, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Measure the excess over equation 2 in every case, with a curve of all times for each."""
    bursts = measures.quick_bursts if options.quick else measures.bursts
    tasks = {
        (device, case.name): Measurement.of(
            device,
            priority_queueing.measure_beside,
            InterferingTraffic(
                high_bytes=case.high_bytes,
                low_bytes=case.low_bytes,
                low_flows=case.low_flows,
                low_percent=case.low_percent,
            ),
            bursts=bursts,
            seed=options.seed,
        )
        for device in figure.devices
        for case in measures.cases
    }
    delays = compute_each(measure, tasks, options, progress)
    findings: dict[str, float] = {}
    rows: list[list[str | float]] = []
    panels: list[Panel] = []
    for device in figure.devices:
        subject = switch_under_test(device).at_card_rate()
        excesses = {
            case.name: delays[device, case.name].excess_us(subject.slot_ns(case.low_bytes))
            for case in measures.cases
        }
        for case in measures.cases:
            delay, where = delays[device, case.name], f"{key(device)}_{case.name}"
            findings[f"epsilon_{where}_us"] = excesses[case.name]
            findings[f"most_{where}_us"] = delay.most_us
            findings[f"between_{where}_percent"] = delay.between_percent
            rows.append(
                [
                    load_device(device).title,
                    case.label,
                    round(delay.most_us, 2),
                    round(excesses[case.name], 2),
                    round(delay.between_percent, 1),
                ]
            )
        findings[f"differs_{key(device)}_us"] = max(excesses.values()) - min(excesses.values())
        panels.append(
            LinePanel(
                title=load_device(device).title,
                x=ChartAxis(label="time of high priority [us]", low=0),
                y=ChartAxis(label="frames [%]", low=0, high=100),
                curves=[
                    distribution(case.label, delays[device, case.name].beside_us) for case in measures.cases
                ],
            )
        )
    columns = ["switch", "beside", "most [us]", "beyond equation 2 [us]", "between both extremes [%]"]
    outcome = Outcome(
        chart=Chart(panels=panels, columns=2, caption=f"{bursts} bursts a case"),
        findings=findings,
        x=AxisLabel(name="time", unit="us"),
        table=TableResult(columns=columns, rows=rows),
    )
    return outcome, pa.table(
        {
            "device": [device for (device, _), delay in delays.items() for _ in delay.beside_us],
            "case": [case for (_, case), delay in delays.items() for _ in delay.beside_us],
            "processing_us": np.concatenate([delay.beside_us for delay in delays.values()]),
        }
    )


def _least_us(delays: PriorityDelays, part: int) -> float:
    return float(delays.processing_ns[delays.part == part].min()) / NS_PER_US


def _panel(device: str, subject: SwitchUnderTest, delays: PriorityDelays) -> TimePanel:
    came = delays.processing_ns >= 0
    alone_us = float(delays.processing_ns[came & (delays.part == 0)].max()) / NS_PER_US
    clouds = []
    for place, label in enumerate(_PARTS):
        chosen = came & (delays.part == place)
        clouds.append(
            Cloud(
                label=label,
                x=(delays.sent_ns[chosen] / NS_PER_MS).tolist(),
                y=(delays.processing_ns[chosen] / NS_PER_US).tolist(),
            )
        )
    references = [
        Reference(label="equation 2", value=alone_us + subject.slot_ns(length) / NS_PER_US)
        for length in LOW_BYTES
    ]
    return TimePanel(
        title=load_device(device).title,
        x=ChartAxis(label="sent at [ms]"),
        y=ChartAxis(label="time of high priority [us]", low=0),
        findings=[
            FindingPlace(finding=f"epsilon_{key(device)}_us", offset=line.value, words="beyond equation 2")
            for line in references
        ],
        clouds=clouds,
        references=references,
    )


def _rows(delays: dict[str, PriorityDelays]) -> pa.Table:
    """Return a table with a row for each high-priority frame."""
    names = [device for device, delay in delays.items() for _ in range(len(delay.part))]
    every = list(delays.values())
    return pa.table(
        {
            "device": pa.array(names, pa.string()).dictionary_encode(),
            "part": np.concatenate([delay.part for delay in every]),
            "sent_ns": np.concatenate([delay.sent_ns for delay in every]),
            "processing_ns": np.concatenate([delay.processing_ns for delay in every]),
        }
    )
