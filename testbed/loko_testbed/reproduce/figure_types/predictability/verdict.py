"""Table I: the marks that the campaign yields, compared with those that the paper prints."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from loko.switch_model.device import load_device
from loko_testbed.measure.predictability.campaign import (
    DIMENSIONS,
    QUICK,
    CampaignSize,
    parts,
    verdicts,
)
from loko_testbed.measure.predictability.marks import WORDS, Mark, thresholds
from loko_testbed.measure.predictability.measurements import measure
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure_types.predictability.document import Predictability, Verdicts
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.replay.tasks import compute_each
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_IDEAL: Final = "ideal-1g"
_STUDY: Final = "predictability"
"""The paper whose table I has marks to compare with."""
_FITNESS: Final = {Mark.NOT_JUDGED: -1.0, Mark.UNFIT: 0.0, Mark.PARTLY: 1.0, Mark.FIT: 2.0}
"""A mark as a finding, for a figure of one device."""


def compute_verdicts(
    figure: Predictability, measures: Verdicts, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Judge every device by its whole campaign."""
    size = (
        QUICK
        if options.quick
        else CampaignSize(
            packets=measures.packets, bursts=measures.bursts, snake_packets=measures.snake_packets
        )
    )
    tasks = {
        (device, name): part
        for device in figure.devices
        for name, part in parts(device, size, options.seed).items()
    }
    results = compute_each(measure, tasks, options, progress)
    judged = {
        device: verdicts(
            {name: result for (of, name), result in results.items() if of == device}, thresholds()
        )
        for device in figure.devices
    }
    findings = {f"differ_{name.lower()}": 0.0 for name in DIMENSIONS}
    findings |= {"ideal_fit": 0.0, "ideal_judged": 0.0, "fit_in_all": 0.0}
    table: list[list[str | float]] = []
    rows: list[dict[str, str]] = []
    for device, marks in judged.items():
        title = load_device(device).title
        table.append([title, *(f"{verdict.mark.value} {WORDS[verdict.mark]}" for verdict in marks.values())])
        judged_marks = [verdict.mark for verdict in marks.values() if verdict.mark is not Mark.NOT_JUDGED]
        for name, verdict in marks.items():
            if len(judged) == 1:
                findings[f"fitness_{name.lower()}"] = _FITNESS[verdict.mark]
            rows.append(
                {
                    "device": device,
                    "dimension": name,
                    "mark": verdict.mark.value,
                    "because": "; ".join(verdict.reasons),
                }
            )
            if figure.paper == _STUDY and device != _IDEAL and verdict.mark is not Mark.NOT_JUDGED:
                printed = str(fact(figure.paper, f"tab1/{title}/{name}").value)[0]
                findings[f"differ_{name.lower()}"] += printed != verdict.mark.value
        if device == _IDEAL:
            findings["ideal_fit"] = float(judged_marks.count(Mark.FIT))
            findings["ideal_judged"] = float(len(judged_marks))
        elif all(mark is Mark.FIT for mark in judged_marks):
            findings["fit_in_all"] += 1
    for name in DIMENSIONS:
        if figure.paper != _STUDY or all(marks[name].mark is Mark.NOT_JUDGED for marks in judged.values()):
            del findings[f"differ_{name.lower()}"]
    outcome = Outcome(
        chart=None,
        findings=findings,
        x=AxisLabel(name="dimension", unit=""),
        table=TableResult(columns=["switch", *DIMENSIONS], rows=table),
    )
    return outcome, pa.Table.from_pylist(rows)
