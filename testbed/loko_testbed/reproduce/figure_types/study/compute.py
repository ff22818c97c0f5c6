"""Produce studies: carry out their tasks, here or on a cluster, and show what they found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.study.document import StudyFigure
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.replay.tasks import compute_tasks
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress


def compute(figure: StudyFigure, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Carry out all tasks of a study. Raises `InputError` or `RunError`."""
    study = figure.study
    tasks = study.tasks(figure.size(quick=options.quick, runs=options.runs), options.seed)
    measured = compute_tasks(study.measure, tasks, options, progress)
    rows = [row for of_task in measured for row in of_task]
    return study.show(rows), pa.Table.from_pylist(rows)


def parameters(figure: StudyFigure, options: Options) -> Mapping[str, Any]:
    """Return the tasks, which may depend on the machine: on the peers that are installed there."""
    tasks = figure.study.tasks(figure.size(quick=options.quick, runs=options.runs), options.seed)
    return {"tasks": [repr(task) for task in tasks]}


FIGURE_TYPE: Final = FigureType(
    documents=(StudyFigure,),
    compute=OneByOne(compute, parameters),
    estimate_s=lambda figure: {
        mode: seconds for mode, seconds in figure.study.estimate_s.items() if mode in figure.modes
    },
)
