"""Figure 4c: how many flows S/PR and S/FR schedule, relative to S/UR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, FindingPlace, LinePanel
from loko_testbed.reproduce.figure_types.schedules.document import ScenarioRanges, ScheduledFlows
from loko_testbed.reproduce.figure_types.schedules.scenario import ScenarioRow, ScheduleScenario, run_scenario
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.replay.tasks import compute_tasks
from loko_testbed.reproduce.result import AxisLabel
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_SCHEMES: Final[dict[str, Callable[[ScenarioRow], int]]] = {
    "pr": lambda row: row.s_pr,
    "fr": lambda row: row.s_fr,
}


def scenarios_of(figure: ScheduledFlows, scale: ScenarioRanges, *, seed: int) -> list[ScheduleScenario]:
    """Return all combinations of topology, number of flows and number of slots."""
    return [
        ScheduleScenario(
            topology=topology,
            hosts=figure.hosts,
            switches=figure.switches,
            flows=flows,
            slots=slots,
            seed=seed,
        )
        for topology in figure.topologies
        for flows in scale.flows
        for slots in scale.slots
    ]


def compute(figure: ScheduledFlows, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Carry out all scenarios. Raises `InputError`."""
    scenarios = scenarios_of(figure, figure.quick if options.quick else figure.scale, seed=options.seed)
    rows = compute_tasks(
        run_scenario,
        scenarios,
        options,
        progress,
        lambda scenario: f"{scenario.flows} flows",
        unit="scenarios",
    )
    columns = pa.table(dict(zip(ScenarioRow._fields, zip(*rows, strict=True), strict=True)))
    outcome = Outcome(
        chart=_chart(rows),
        findings=_findings(rows),
        x=AxisLabel(name="flows over those of S/UR", unit="%"),
    )
    return outcome, columns


def _qualities(rows: Sequence[ScenarioRow], scheme: str) -> list[float]:
    """Return the flows that a scheme schedules in each scenario, in per cent of S/UR's."""
    return [100 * _SCHEMES[scheme](row) / row.s_ur for row in rows]


def _findings(rows: Sequence[ScenarioRow]) -> dict[str, float]:
    findings = {
        "scenarios": float(len(rows)),
        "quality_ur_mean_percent": 100.0,
        "s_ur_optimal_percent": 100 * float(np.mean([row.s_ur == row.s_ur_bound for row in rows])),
        "s_ur_largest_gap_percent": 100 * max(1 - row.s_ur / row.s_ur_bound for row in rows),
    }
    for scheme in _SCHEMES:
        quality = np.array(_qualities(rows, scheme))
        findings |= {
            f"quality_{scheme}_mean_percent": float(quality.mean()),
            f"quality_{scheme}_least_percent": float(quality.min()),
            f"scenarios_{scheme}_at_100_percent": 100 * float((quality >= 100).mean()),
            f"scenarios_{scheme}_from_98_percent": 100 * float((quality >= 98).mean()),
        }
    return findings


def _chart(rows: Sequence[ScenarioRow]) -> Chart:
    curves = []
    for scheme in _SCHEMES:
        quality = sorted(_qualities(rows, scheme))
        share = [100 * (place + 1) / len(quality) for place in range(len(quality))]
        curves.append(
            ChartCurve(label=f"S/{scheme.upper()}", x=quality, y=[*share], marker=False, steps=True)
        )
    panel = LinePanel(
        x=ChartAxis(label="flows over those of S/UR [%]"),
        y=ChartAxis(label="scenarios [%]", low=0, high=100),
        findings=[
            place
            for scheme in _SCHEMES
            for place in (
                FindingPlace(finding=f"quality_{scheme}_mean_percent", of="x", words="in the mean"),
                *(
                    FindingPlace(
                        finding=f"scenarios_{scheme}_{name}_percent", x=at, scale=-1, offset=100, words=words
                    )
                    for name, at, words in (("at_100", 100, "at 100 %"), ("from_98", 98, "from 98 % on"))
                ),
            )
        ],
        curves=curves,
    )
    proven = sum(row.s_ur == row.s_ur_bound for row in rows)
    return Chart(panels=[panel], caption=f"{len(rows)} scenarios; S/UR proven optimal in {proven}")


_SECONDS_A_SCENARIO: Final = 1.0
"""Time on two cores."""


def estimate_s(figure: ScheduledFlows) -> dict[str, float]:
    """Estimate the time in seconds by mode."""
    return {"virtual": _SECONDS_A_SCENARIO * len(scenarios_of(figure, figure.scale, seed=1))}
