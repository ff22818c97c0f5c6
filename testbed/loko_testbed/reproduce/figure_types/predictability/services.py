"""Step 0: how many independent services a switch has, from what its ports forward together."""

from __future__ import annotations

import pyarrow as pa

from loko.switch_model.device import load_device
from loko_testbed.measure.predictability.independent_services import independent_services
from loko_testbed.measure.predictability.subject import switch_under_test
from loko_testbed.reproduce.figure_types.predictability.document import Predictability, Services
from loko_testbed.reproduce.figure_types.predictability.tasks import (
    ServicesTask,
    compute_each,
    forwarded_together,
)
from loko_testbed.reproduce.figure_types.predictability.times import key
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress


def compute_services(
    figure: Predictability, measures: Services, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Decide for each device which of its ports share a service."""
    tasks = [
        ServicesTask(
            device=device,
            packets=0,
            seed=options.seed,
            ports=min(measures.ports, switch_under_test(device).ports),
        )
        for device in figure.devices
    ]
    results = compute_each(forwarded_together, tasks, options, progress)
    findings: dict[str, float] = {}
    table: list[list[str | float]] = []
    for task, rates in results.items():
        groups = independent_services(rates)
        alone, together = rates[frozenset({1})], rates[frozenset(range(1, task.ports + 1))]
        findings[f"services_{key(task.device)}"] = float(len(groups))
        findings[f"loaded_{key(task.device)}_ports"] = float(task.ports)
        findings[f"all_over_one_{key(task.device)}"] = together / alone
        table.append(
            [
                load_device(task.device).title,
                task.ports,
                len(groups),
                ", ".join(" ".join(map(str, sorted(group))) for group in groups),
                round(alone),
                round(together),
            ]
        )
    every = [(task, ports, rate) for task, rates in results.items() for ports, rate in rates.items()]
    rows = pa.table(
        {
            "device": [task.device for task, _, _ in every],
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
