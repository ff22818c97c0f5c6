"""Figure 7a: processing time of FlowMod Add by numbers of entries and actions (section 3.2.3)."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from loko.units import NS_PER_US
from loko_testbed.measure.bench.procedures.messages import ACTIONS, ENTRIES, PROCEDURE, flow_adds
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel
from loko_testbed.reproduce.figure_types.bench.document import ControlPlane
from loko_testbed.reproduce.figure_types.bench.measured import Measured, messages_shown, rows_of
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel


def _evaluate(figure: ControlPlane, measured: Measured) -> tuple[Outcome, pa.Table]:
    """Compute mean times."""
    times = measured.times
    means = {
        actions: [
            float(times[PROCEDURE.key("Add", entries, actions)].mean()) / NS_PER_US for entries in ENTRIES
        ]
        for actions in ACTIONS
    }
    findings = {f"add_{actions}_actions_us": float(np.mean(line)) for actions, line in means.items()}
    findings["change_over_entries_max_percent"] = max(
        100 * (max(line) - min(line)) / float(np.mean(line)) for line in means.values()
    )
    findings["late_barriers"] = float(measured.left_out)
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
    caption = f"{figure.count(quick=measured.options.quick)} samples a point"
    outcome = Outcome(
        chart=Chart(panels=[panel], caption=caption),
        findings=findings,
        x=AxisLabel(name="number of entries", unit=""),
    )
    return outcome, rows_of(times)


FLOW_ADDS: Final = messages_shown(_evaluate, subjects=flow_adds)
