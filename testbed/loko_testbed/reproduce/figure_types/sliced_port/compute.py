"""Measure all queues of sliced ports in virtual time, as `loko bench slices` does, and count the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from loko_testbed.measure.slices.campaign import SlicePart, measure_part
from loko_testbed.measure.slices.devices import open_device
from loko_testbed.measure.slices.document import SlicedSwitch, load_sliced_switch
from loko_testbed.measure.slices.judgement import SliceRow, SliceVerdict, rows
from loko_testbed.measure.slices.measurements import parts
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.sliced_port.document import SlicedPortFigure
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.replay.tasks import compute_tasks
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_COLUMNS: Final = ["port", "queue", "property", "configured", "measured", "verdict", "because"]
_BESIDE: Final = ("rate beside", "under attack by")
"""How properties begin that another queue could take away."""
_S_A_PART: Final = 1.5


def parameters(figure: SlicedPortFigure, _options: Options) -> Mapping[str, Any]:
    """Return the ports, on which the result depends apart from the figure's document."""
    return {
        name: {"port": switch.port().model_dump(mode="json"), "device": open_device(switch).parameters()}
        for name, switch in _switches(figure).items()
    }


def compute(figure: SlicedPortFigure, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Measure and judge every queue of every port."""
    switches = _switches(figure)
    tasks = {name: _tasks(switch, options.seed) for name, switch in switches.items()}
    every = [task for of in tasks.values() for task in of]
    measured = compute_tasks(measure_part, every, options, progress, lambda task: str(task.key))
    numbers = iter(measured)
    findings: dict[str, float] = {}
    table: list[list[str | float]] = []
    for name, switch in switches.items():
        port = switch.port()
        samples = {task.key: next(numbers) for task in tasks[name]}
        judged = rows(port, switch.counted_as(), samples)
        findings |= verdict_counts(name, judged)
        findings[f"{name}_queues"] = float(len(port.queues))
        table += [
            [switch.title, row.slice, row.what, row.configured, row.measured, row.verdict, row.because]
            for row in judged
        ]
    outcome = Outcome(
        chart=None,
        findings=findings,
        x=AxisLabel(name="queue", unit=""),
        table=TableResult(columns=_COLUMNS, rows=table),
    )
    columns = {column: [str(row[place]) for row in table] for place, column in enumerate(_COLUMNS)}
    return outcome, pa.table(columns)


def _switches(figure: SlicedPortFigure) -> dict[str, SlicedSwitch]:
    return {name: load_sliced_switch(switch) for name, switch in figure.switches.items()}


def _tasks(switch: SlicedSwitch, seed: int) -> list[SlicePart]:
    device = open_device(switch)
    return [SlicePart(switch, seed, part.key) for part in parts(switch.port(), switch.counted_as(), device)]


def verdict_counts(name: str, judged: list[SliceRow]) -> dict[str, float]:
    """Count the verdicts of a port, and of them those of properties that another queue could take away."""
    counts = Counter(row.verdict for row in judged)
    beside = Counter(row.verdict for row in judged if row.what.startswith(_BESIDE))
    return {
        f"{name}_rows": float(len(judged)),
        f"{name}_differ": float(counts[SliceVerdict.DIFFERS]),
        f"{name}_not_measured": float(counts[SliceVerdict.NOT_MEASURED]),
        f"{name}_beside_rows": float(beside.total()),
        f"{name}_beside_as_configured": float(beside[SliceVerdict.AS_CONFIGURED]),
        f"{name}_beside_differ": float(beside[SliceVerdict.DIFFERS]),
    }


def _estimate_s(figure: SlicedPortFigure) -> dict[str, float]:
    return {"virtual": _S_A_PART * sum(len(_tasks(switch, 1)) for switch in _switches(figure).values())}


FIGURE_TYPE: Final = FigureType(
    documents=(SlicedPortFigure,),
    compute=OneByOne(compute, parameters),
    estimate_s=_estimate_s,
)
