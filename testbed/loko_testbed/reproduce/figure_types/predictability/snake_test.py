"""Figure 7 and table IV: throughput in the snake test, the study's "shoelace" (RFC 8239)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from loko.switch_model.device import load_device
from loko_testbed.measure.predictability import throughput
from loko_testbed.measure.predictability.measurements import Measurement, measure
from loko_testbed.measure.predictability.subject import switch_under_test
from loko_testbed.measure.predictability.throughput import FRAME_BYTES
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel, Panel, ScaledAxes
from loko_testbed.reproduce.figure_types.predictability.document import Predictability, SnakeTest, Throughputs
from loko_testbed.reproduce.figure_types.predictability.times import key
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.replay.tasks import compute_each
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
    tasks = {
        (device, length, rate): Measurement.of(
            device, throughput.measure, length, rate, packets=packets, seed=options.seed
        )
        for device in figure.devices
        for length in FRAME_BYTES
        for rate in rates
    }
    passages = compute_each(measure, tasks, options, progress)
    panels: list[Panel] = []
    findings: dict[str, float] = {}
    for device in figure.devices:
        curves, from_bytes = [], []
        for length in FRAME_BYTES:
            of = [passages[device, length, rate] for rate in rates]
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
            "device": [device for device, _, _ in passages],
            "frame_bytes": [length for _, length, _ in passages],
            "rate_mbps": [rate for _, _, rate in passages],
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
    tasks = {
        (device, length): Measurement.of(device, throughput.find, length, packets=packets, seed=options.seed)
        for device in figure.devices
        for length in sizes
    }
    throughputs = compute_each(measure, tasks, options, progress)
    findings: dict[str, float] = {}
    table: list[list[str | float]] = []
    for device in figure.devices:
        short, long = (throughputs[device, length] for length in sizes)
        ports = switch_under_test(device).ports
        total = [rate.mbps * ports / 1e3 for rate in (short, long)]
        name = key(device)
        findings[f"forwards_{name}_mpps"] = short.frames_per_s / 1e6
        findings[f"short_{name}_gbps"] = total[0]
        findings[f"long_{name}_gbps"] = total[1]
        for size, rate in zip(sizes, (short, long), strict=True):
            findings[f"port_{name}_{size}_mpps"] = rate.frames_per_s / ports / 1e6
        findings[f"line_rate_lengths_{name}"] = float(short.is_line_rate + long.is_line_rate)
        words = [
            "line rate" if rate.is_line_rate else f"{gbps:.2f} Gbit/s"
            for rate, gbps in zip((short, long), total, strict=True)
        ]
        table.append([load_device(device).title, round(short.frames_per_s / 1e6, 2), *words])
    rows = pa.table(
        {
            "device": [device for device, _ in throughputs],
            "frame_bytes": [length for _, length in throughputs],
            "mbps": [rate.mbps for rate in throughputs.values()],
            "frames_per_s": [rate.frames_per_s for rate in throughputs.values()],
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
