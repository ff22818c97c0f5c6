"""Figure 7a: processing time of FlowMod Add by numbers of entries and actions (section 3.2.3)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from loko_testbed.measure.bench.procedures.messages import ACTIONS, ENTRIES, PROCEDURE, flow_adds
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel
from loko_testbed.reproduce.figure_types.control_plane.document import ControlPlane
from loko_testbed.reproduce.figure_types.control_plane.parts import US, measure_parts, rows_of, times_of
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel
from loko_testbed.simulation.options import Options, Progress


def compute_adds(figure: ControlPlane, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Measure missing samples and compute mean times. Raises `InputError` or `RunError`."""
    samples, late = measure_parts(
        figure, options, progress, tuple(procedure.key for procedure in flow_adds())
    )
    times = times_of(samples)
    means = {
        actions: [float(times[PROCEDURE.key("Add", entries, actions)].mean()) / US for entries in ENTRIES]
        for actions in ACTIONS
    }
    findings = {f"add_{actions}_actions_us": float(np.mean(line)) for actions, line in means.items()}
    findings["change_over_entries_max_percent"] = max(
        100 * (max(line) - min(line)) / float(np.mean(line)) for line in means.values()
    )
    findings["late_barriers"] = float(late)
    panel = LinePanel(
        x=ChartAxis(label="number of entries, the new one included"),
        y=ChartAxis(label="mean processing time [us]", low=0, high=1.25 * max(map(max, means.values()))),
        curves=[
            ChartCurve(
                label=f"{actions} action{'s' if actions != 1 else ''}", x=list(map(float, ENTRIES)), y=[*line]
            )
            for actions, line in means.items()
        ],
    )
    caption = f"{figure.count(quick=options.quick)} samples a point"
    outcome = Outcome(
        chart=Chart(panels=[panel], caption=caption),
        findings=findings,
        x=AxisLabel(name="number of entries", unit=""),
        profile=figure.chosen(options).form,
    )
    return outcome, rows_of(times)
