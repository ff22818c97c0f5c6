"""Step 0: how many independent services a switch has, from what its ports forward together."""

from __future__ import annotations

import pyarrow as pa

from loko.switch_model.device import load_device
from loko_testbed.measure.predictability import independent_services
from loko_testbed.measure.predictability.measurements import Measurement, measure
from loko_testbed.measure.predictability.subject import switch_under_test
from loko_testbed.reproduce.figure_types.predictability.document import Predictability, Services
from loko_testbed.reproduce.figure_types.predictability.times import key
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.replay.tasks import compute_each
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress


def compute_services(
    figure: Predictability, measures: Services, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Decide for each device which of its ports share a service."""
    loaded = {device: min(measures.ports, switch_under_test(device).ports) for device in figure.devices}
    tasks = {
        device: Measurement.of(device, independent_services.measure, ports, seed=options.seed)
        for device, ports in loaded.items()
    }
    results = compute_each(measure, tasks, options, progress)
    findings: dict[str, float] = {}
    table: list[list[str | float]] = []
    for device, rates in results.items():
        groups = independent_services.independent_services(rates)
        alone, together = rates[frozenset({1})], rates[frozenset(range(1, loaded[device] + 1))]
        findings[f"services_{key(device)}"] = float(len(groups))
        findings[f"loaded_{key(device)}_ports"] = float(loaded[device])
        findings[f"all_over_one_{key(device)}"] = together / alone
        table.append(
            [
                load_device(device).title,
                loaded[device],
                len(groups),
                ", ".join(" ".join(map(str, sorted(group))) for group in groups),
                round(alone),
                round(together),
            ]
        )
    every = [(device, ports, rate) for device, rates in results.items() for ports, rate in rates.items()]
    rows = pa.table(
        {
            "device": [device for device, _, _ in every],
            "ports": [" ".join(map(str, sorted(ports))) for _, ports, _ in every],
            "forwarded_per_s": [rate for _, _, rate in every],
        }
    )
    columns = ["switch", "ports loaded", "services", "of ports", "port 1 alone [frames/s]", "all [frames/s]"]
    outcome = Outcome(
        chart=None,
        findings=findings,
        x=AxisLabel(name="ports", unit=""),
        table=TableResult(columns=columns, rows=table),
    )
    return outcome, rows
