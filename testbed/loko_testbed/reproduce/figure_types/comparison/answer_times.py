"""Answer times of the systems, on the machine that computes them, so in mode live only."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from loko.schedule.incremental_lab_schedule import IncrementalLabSchedule
from loko.schedule.saved_schedule import SavedSchedule
from loko.schedule.values import values_of
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab, load_lab
from loko_testbed.reproduce.figure_types.comparison.admission import (
    admitted_flows,
    requests,
    schedule_of,
    timed_flows,
)
from loko_testbed.reproduce.figure_types.comparison.document import (
    ComparedSystem,
    ComparisonFigure,
    ComparisonLab,
    SlotSystem,
)


def answering_s(
    figure: ComparisonFigure, comparison_lab: ComparisonLab, compared: ComparedSystem, rate_kbps: float
) -> float:
    """Return the time in s to answer all requests, modelling the switches included, the checker not."""
    lab = load_lab(comparison_lab.lab)  # a new one, so that no model of its switches is known
    wanted = requests(figure, comparison_lab, lab, rate_kbps)
    begin_ns = time.monotonic_ns()
    admitted_flows(figure, compared, lab, wanted, is_checked=False)
    return (time.monotonic_ns() - begin_ns) / 1e9


def one_more_s(figure: ComparisonFigure, comparison_lab: ComparisonLab, compared: ComparedSystem) -> float:
    """Return the time in s to decide on one more flow, moving nobody.

    For slots it is measured as `loko serve` adds one, by the scheduler alone. For buckets it is the average
    of all requests.
    """
    if not isinstance(compared, SlotSystem):
        return answering_s(figure, comparison_lab, compared, figure.rate_kbps) / comparison_lab.requests
    lab = load_lab(comparison_lab.lab)
    return _added_s(figure, compared, lab, requests(figure, comparison_lab, lab, figure.rate_kbps))


def _added_s(figure: ComparisonFigure, compared: SlotSystem, lab: Lab, wanted: Sequence[Flow]) -> float:
    """Return the time in s to add the last flow to a schedule of the others."""
    before = schedule_of(figure, compared, lab, wanted[:-1])
    kept = SavedSchedule.model_validate_json(json.dumps(values_of(before, 0.0)))
    incremental = IncrementalLabSchedule(lab, kept, frame_bytes={flow.frame_bytes for flow in wanted})
    for scheduled in before.scheduled:
        incremental.restore(scheduled.timed, scheduled.slot, scheduled.path)
    last = timed_flows(wanted)[-1]
    begin_ns = time.monotonic_ns()
    incremental.add(last)
    return (time.monotonic_ns() - begin_ns) / 1e9
