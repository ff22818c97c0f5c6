"""Figure 7 and table IV: throughput in the snake test, the study's "shoelace" (RFC 8239)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from loko.switch_model.device import load_device
from loko_testbed.measure.predictability.subject import switch_under_test
from loko_testbed.measure.predictability.throughput import FRAME_BYTES
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel, Panel, ScaledAxes
from loko_testbed.reproduce.figure_types.predictability.document import Predictability, SnakeTest, Throughputs
from loko_testbed.reproduce.figure_types.predictability.tasks import (
    SnakeTestTask,
    compute_each,
    lossless_rate,
    received_rate,
)
from loko_testbed.reproduce.figure_types.predictability.times import key
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_QUICK_RATES: Final = 4
"""A replay with ``--quick`` uses each `_QUICK_RATES`-th rate only."""


def compute_snake_test(
    figure: Predictability, measures: SnakeTest, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce figure 7: received by sent rate."""
    packets = measures.quick_packets if options.quick else measures.packets
    rates = measures.rates.values(_QUICK_RATES if options.quick else 1)
    tasks = [
        SnakeTestTask(device=device, packets=packets, seed=options.seed, frame_bytes=length, rate_mbps=rate)
        for device in figure.devices
        for length in FRAME_BYTES
        for rate in rates
    ]
    passages = compute_each(received_rate, tasks, options, progress)
    panels: list[Panel] = []
    findings: dict[str, float] = {}
    for device in figure.devices:
        curves, from_bytes = [], []
        for length in FRAME_BYTES:
            of = [
                passage
                for task, passage in passages.items()
                if (task.device, task.frame_bytes) == (device, length)
            ]
            curves.append(
                ChartCurve(
                    label=f"{length} bytes",
                    x=[passage.rate_mbps for passage in of],
                    y=[passage.received_mbps for passage in of],
                    marker=False,
                )
            )
            if not any(passage.lost for passage in of):
                from_bytes.append(length)
            clean = [passage.rate_mbps for passage in of if not passage.lost]
            findings[f"no_loss_{key(device)}_{length}_mbps"] = max(clean, default=0.0)
        findings[f"line_rate_from_{key(device)}_bytes"] = float(min(from_bytes, default=0))
        panels.append(
            LinePanel(
                title=f"{load_device(device).title}, {switch_under_test(device).ports} ports",
                x=ChartAxis(label="sent by each source [Mbit/s]", low=0),
                y=ChartAxis(label="received of it [Mbit/s]", low=0),
                curves=curves,
                scaled=ScaledAxes(
                    factor=switch_under_test(device).ports / 1e3,
                    x="sent to the switch [Gbit/s]",
                    y="forwarded [Gbit/s]",
                ),
            )
        )
    rows = pa.table(
        {
            "device": [task.device for task in passages],
            "frame_bytes": [task.frame_bytes for task in passages],
            "rate_mbps": [task.rate_mbps for task in passages],
            "received_mbps": [passage.received_mbps for passage in passages.values()],
            "sent": [passage.sent for passage in passages.values()],
            "lost": [passage.lost for passage in passages.values()],
        }
    )
    outcome = Outcome(
        chart=Chart(panels=panels, columns=2, caption=f"{packets} packets from each source a rate"),
        findings=findings,
        x=AxisLabel(name="rate", unit="Mbit/s"),
    )
    return outcome, rows


def compute_table(
    figure: Predictability, measures: Throughputs, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Produce table IV: the highest rates without loss."""
    packets = measures.quick_packets if options.quick else measures.packets
    sizes = (FRAME_BYTES[0], FRAME_BYTES[-1])
    tasks = [
        SnakeTestTask(device=device, packets=packets, seed=options.seed, frame_bytes=length)
        for device in figure.devices
        for length in sizes
    ]
    throughputs = {
        (task.device, task.frame_bytes): throughput
        for task, throughput in compute_each(lossless_rate, tasks, options, progress).items()
    }
    findings: dict[str, float] = {}
    table: list[list[str | float]] = []
    for device in figure.devices:
        short, long = (throughputs[device, length] for length in sizes)
        ports = switch_under_test(device).ports
        total = [throughput.mbps * ports / 1e3 for throughput in (short, long)]
        name = key(device)
        findings[f"forwards_{name}_mpps"] = short.frames_per_s / 1e6
        findings[f"short_{name}_gbps"] = total[0]
        findings[f"long_{name}_gbps"] = total[1]
        for size, throughput in zip(sizes, (short, long), strict=True):
            findings[f"port_{name}_{size}_mpps"] = throughput.frames_per_s / ports / 1e6
        findings[f"line_rate_lengths_{name}"] = float(short.is_line_rate + long.is_line_rate)
        words = [
            "line rate" if throughput.is_line_rate else f"{gbps:.2f} Gbit/s"
            for throughput, gbps in zip((short, long), total, strict=True)
        ]
        table.append([load_device(device).title, round(short.frames_per_s / 1e6, 2), *words])
    rows = pa.table(
        {
            "device": [device for device, _ in throughputs],
            "frame_bytes": [length for _, length in throughputs],
            "mbps": [throughput.mbps for throughput in throughputs.values()],
            "frames_per_s": [throughput.frames_per_s for throughput in throughputs.values()],
        }
    )
    outcome = Outcome(
        chart=None,
        findings=findings,
        x=AxisLabel(name="frame", unit="bytes"),
        table=TableResult(
            columns=["switch", "million frames/s at 64 bytes", "at 64 bytes", "at 1516 bytes"],
            rows=table,
            findings=[
                [
                    "",
                    *(
                        f"{word}_{key(device)}_{unit}"
                        for word, unit in (("forwards", "mpps"), ("short", "gbps"), ("long", "gbps"))
                    ),
                ]
                for device in figure.devices
            ],
        ),
    )
    return outcome, rows
