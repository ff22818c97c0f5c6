"""Compute comparisons: rows, findings, table and picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

import pyarrow as pa

from loko.document import InputError
from loko.topology.lab import load_lab
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.comparison.admission import GuaranteedFlow, admitted_flows, requests
from loko_testbed.reproduce.figure_types.comparison.answer_times import answering_s, one_more_s
from loko_testbed.reproduce.figure_types.comparison.chart import chart
from loko_testbed.reproduce.figure_types.comparison.document import (
    ComparedSystem,
    ComparisonBudget,
    ComparisonFigure,
    ComparisonLab,
)
from loko_testbed.reproduce.figure_types.comparison.replay import (
    ALONE,
    ComparisonReplay,
    Disturbance,
    FlowRow,
    ReplayResult,
    run_replay,
)
from loko_testbed.reproduce.guarantees import guarantee_of_packets
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.replay.tasks import compute_tasks
from loko_testbed.reproduce.result import AxisLabel, GuaranteeResult, NoteResult, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_HEADERS_BYTES: Final = 14 + 20 + 8 + 4
"""Bytes of a UDP frame other than its payload, including the FCS."""


class AdmissionQuery(NamedTuple):
    """The question of how many flows of a rate a system accepts."""

    figure: ComparisonFigure
    comparison_lab: ComparisonLab
    compared: ComparedSystem
    rate_kbps: float


def answer_query(question: AdmissionQuery) -> tuple[GuaranteedFlow, ...]:
    """Return the flows that the system accepts. Raises `InputError`."""
    figure, comparison_lab, compared, rate_kbps = question
    lab = load_lab(comparison_lab.lab)
    return admitted_flows(figure, compared, lab, requests(figure, comparison_lab, lab, rate_kbps))


def disturbances_of(figure: ComparisonFigure, budget: ComparisonBudget) -> list[Disturbance]:
    """Return the disturbances that each system goes through."""
    return [
        Disturbance("none"),
        *(Disturbance("misbehaving", times) for times in budget.excess_factors),
        Disturbance("drift", figure.drift_ppm),
        *(Disturbance("best-effort", kbps) for kbps in budget.best_effort_kbps),
    ]


@dataclass(frozen=True, kw_only=True)
class ComparisonResults:
    """All results of a comparison."""

    figure: ComparisonFigure
    budget: ComparisonBudget
    answers: Mapping[tuple[str, str, float], tuple[GuaranteedFlow, ...]]
    """Accepted flows by keys of lab and system and the rate of the flows in kbit/s."""
    replays: Mapping[tuple[str, str, Disturbance], ReplayResult]
    """Results of replays by keys of lab and system and the disturbance."""

    def flows(self, comparison_lab: ComparisonLab, compared: ComparedSystem, rate_kbps: float) -> int:
        """Return how many flows of this rate the system accepts."""
        return len(self.answers[comparison_lab.key, compared.key, rate_kbps])

    def promised(self, comparison_lab: ComparisonLab, compared: ComparedSystem) -> tuple[GuaranteedFlow, ...]:
        """Return the accepted flows that are replayed."""
        return self.answers[comparison_lab.key, compared.key, self.figure.rate_kbps]

    def rows(
        self, comparison_lab: ComparisonLab, system: str, disturbance: Disturbance, role: str = "other"
    ) -> list[FlowRow]:
        """Return the results of the flows with this role."""
        return [row for row in self.replays[comparison_lab.key, system, disturbance].rows if row.role == role]


def compute(figure: ComparisonFigure, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Request the flows from every system, then replay. Raises `InputError` or `RunError`."""
    budget = figure.quick if options.quick else figure.scale
    rates = sorted({*budget.rates_kbps, figure.rate_kbps})
    cases = [(comparison_lab, compared) for comparison_lab in figure.labs for compared in figure.systems]
    questions = [
        AdmissionQuery(figure, comparison_lab, compared, rate)
        for comparison_lab, compared in cases
        for rate in rates
    ]
    disturbances = disturbances_of(figure, budget)
    alone = [disturbance for disturbance in disturbances if disturbance.kind == "best-effort"]
    asked = compute_tasks(
        answer_query, questions, options, progress, lambda question: question.compared.label, unit="answers"
    )
    answers = {
        (question.comparison_lab.key, question.compared.key, question.rate_kbps): promised
        for question, promised in zip(questions, asked, strict=True)
    }
    tasks: list[ComparisonReplay] = []
    for comparison_lab in figure.labs:
        systems: dict[str, tuple[GuaranteedFlow, ...]] = {ALONE: ()}
        for compared in figure.systems:
            systems[compared.key] = answers[comparison_lab.key, compared.key, figure.rate_kbps]
            if not systems[compared.key]:
                raise InputError(
                    f"{figure.name}: {compared.label} accepts no flow of {figure.rate_kbps:g} kbit/s on"
                    f" {comparison_lab.label}; lower rate_kbps"
                )
        tasks += [
            ComparisonReplay(
                figure=figure,
                comparison_lab=comparison_lab,
                system=system,
                flows=promised,
                disturbance=disturbance,
                seconds=budget.seconds_of(disturbance.kind),
                seed=options.seed,
            )
            for system, promised in systems.items()
            for disturbance in (disturbances if promised else alone)
        ]
    carried = compute_tasks(run_replay, tasks, options, progress, lambda task: task.system, unit="replays")
    results = ComparisonResults(
        figure=figure,
        budget=budget,
        answers=answers,
        replays={
            (task.comparison_lab.key, task.system, task.disturbance): replay
            for task, replay in zip(tasks, carried, strict=True)
        },
    )
    findings = dict(_findings(results)) | (_times(figure, budget, progress) if options.real_time else {})
    outcome = Outcome(
        chart=chart(
            figure,
            budget,
            findings,
            {
                (comparison_lab, system): replay.over_guarantee
                for (comparison_lab, system, disturbance), replay in results.replays.items()
                if disturbance.kind == "none" and replay.over_guarantee is not None
            },
        ),
        findings=findings,
        x=AxisLabel(name="what somebody does", unit=""),
        guarantees=[_guarantee(results, comparison_lab, compared) for comparison_lab, compared in cases],
        profile=next(iter(load_lab(figure.labs[0].lab).switches.values())).profile.name,
        table=_table(results, findings),
        assumptions={
            "flow_rate_kbps": figure.rate_kbps,
            "flow_burst_bytes": float(figure.frame_bytes),
            "guard_us": figure.guard_us,
            "drift_seconds": budget.drift_seconds,
        },
        seconds=budget.seconds,
        notes=[NoteResult(where="this machine", text=_OF_THIS_MACHINE)] if options.real_time else [],
    )
    rows = [row for replay in carried for row in replay.rows]
    return outcome, pa.table(dict(zip(FlowRow._fields, zip(*rows, strict=True), strict=True)))


_RUNS: Final = 3
_OF_THIS_MACHINE: Final = (
    f"Times to answer and to decide on one more flow are of this machine, medians of {_RUNS}, and differ from"
    " run to run; everything else is of virtual time. Slots are found for all requests together. For systems"
    " with buckets, one more flow takes the average of a request."
)


def _times(figure: ComparisonFigure, budget: ComparisonBudget, progress: Progress) -> dict[str, float]:
    """Measure how long each system takes to answer, on this machine, one after the other."""
    progress.begin(len(figure.labs) * len(figure.systems), 0, "systems")
    times_ms: dict[str, float] = {}
    for comparison_lab in figure.labs:
        for compared in figure.systems:
            of = f"{comparison_lab.key}_{compared.key}"
            # The first answer also loads modules, so it is not measured.
            answering_s(figure, comparison_lab, compared, figure.rate_kbps)
            for rate in sorted({*budget.rates_kbps, figure.rate_kbps}):
                taken_s = [answering_s(figure, comparison_lab, compared, rate) for _ in range(_RUNS)]
                times_ms[f"{of}_answer_at_{rate:g}_kbps_ms"] = 1e3 * median(taken_s)
            times_ms[f"{of}_one_more_ms"] = 1e3 * median(
                [one_more_s(figure, comparison_lab, compared) for _ in range(_RUNS)]
            )
            progress.advance(f"{figure.figure}: times of {compared.label}")
    return times_ms


def late_or_lost_percent(rows: Sequence[FlowRow]) -> float:
    """Return the share of these flows' frames that did not arrive within their guarantees, in per cent."""
    frames = sum(row.frames for row in rows)
    return 100 * sum(row.lost + row.late for row in rows) / frames if frames else 0.0


def _jitter_ms(rows: Sequence[FlowRow]) -> float:
    """Return the largest difference between the delays of two frames of one flow."""
    return max((row.max_delay_ns - row.min_delay_ns for row in rows), default=0) / 1e6


def _findings(results: ComparisonResults) -> Iterator[tuple[str, float]]:
    figure = results.figure
    for comparison_lab in figure.labs:
        yield f"{comparison_lab.key}_requested_flows", float(comparison_lab.requests)
        yield from _of_best_effort(results, comparison_lab, ALONE)
        for compared in figure.systems:
            for name, value in _of_system(results, comparison_lab, compared):
                yield f"{comparison_lab.key}_{compared.key}_{name}", value
            yield from _of_best_effort(results, comparison_lab, compared.key)


def _of_system(
    results: ComparisonResults, comparison_lab: ComparisonLab, compared: ComparedSystem
) -> Iterator[tuple[str, float]]:
    figure, budget = results.figure, results.budget
    promised = results.promised(comparison_lab, compared)
    kept = results.rows(comparison_lab, compared.key, Disturbance("none"))
    payload_bits = 8 * (figure.frame_bytes - _HEADERS_BYTES)
    guard_ns = round(figure.guard_us * 1e3)
    yield "flows", float(len(promised))
    yield from (
        (f"flows_at_{rate:g}_kbps", float(results.flows(comparison_lab, compared, rate)))
        for rate in budget.rates_kbps
    )
    yield "guarantee_ms", max(flow.guarantee_ns for flow in promised) / 1e6
    yield "unaware_ms", max(flow.unaware_ns(guard_ns) for flow in promised) / 1e6
    yield "worst_ms", max(row.max_delay_ns for row in kept) / 1e6
    yield "jitter_ms", _jitter_ms(kept)
    in_time = sum(row.frames - row.lost - row.late for row in kept)
    yield "goodput_kbps", in_time * payload_bits / budget.seconds_of("none") / 1e3
    yield "late_or_lost_packets", float(sum(row.lost + row.late for row in kept))
    yield "late_or_lost_percent", late_or_lost_percent(kept)
    for times in budget.excess_factors:
        others = results.rows(comparison_lab, compared.key, Disturbance("misbehaving", times))
        yield f"misbehaving_{times:g}_others_percent", late_or_lost_percent(others)
    drift = results.rows(comparison_lab, compared.key, Disturbance("drift", figure.drift_ppm))
    yield "drift_others_percent", late_or_lost_percent(drift)
    yield "drift_others_jitter_ms", _jitter_ms(drift)
    for kbps in budget.best_effort_kbps:
        others = results.rows(comparison_lab, compared.key, Disturbance("best-effort", kbps))
        yield f"best_effort_{kbps:g}_others_percent", late_or_lost_percent(others)


def _of_best_effort(
    results: ComparisonResults, comparison_lab: ComparisonLab, system: str
) -> Iterator[tuple[str, float]]:
    for kbps in results.budget.best_effort_kbps:
        (row,) = results.rows(comparison_lab, system, Disturbance("best-effort", kbps), "best-effort")
        name = f"{comparison_lab.key}_{system}_best_effort_{kbps:g}"
        yield f"{name}_lost_percent", 100 * row.lost / row.frames if row.frames else 0.0
        yield f"{name}_mean_ms", row.mean_delay_ns / 1e6


def _guarantee(
    results: ComparisonResults, comparison_lab: ComparisonLab, compared: ComparedSystem
) -> GuaranteeResult:
    """Judge the guarantee where all senders conform; for our buckets, also with a drifting clock.

    Our buckets allow for drift, slots do not.
    """
    rows = results.rows(comparison_lab, compared.key, Disturbance("none"))
    flows = [row.flow for row in rows]
    if compared.ours and compared.system == "admission":
        drift = Disturbance("drift", results.figure.drift_ppm)
        rows = [*rows, *results.replays[comparison_lab.key, compared.key, drift].rows]
    return guarantee_of_packets(
        f"{compared.label} on {comparison_lab.label}",
        flows,
        packets=sum(row.frames for row in rows),
        lost=sum(row.lost for row in rows),
        late=sum(row.late for row in rows),
        ours=compared.ours,
    )


def _table(results: ComparisonResults, findings: Mapping[str, float]) -> TableResult:
    times, kbps = results.budget.excess_factors[-1], results.budget.best_effort_kbps
    columns = {
        "flows": "flows",
        "guarantee_ms": "guarantee_ms",
        "if_unaware_of_slots_ms": "unaware_ms",
        "worst_ms": "worst_ms",
        "jitter_ms": "jitter_ms",
        "goodput_kbit/s": "goodput_kbps",
        "late_or_lost_%": "late_or_lost_percent",
        f"others_with_a_misbehaving_sender_x{times:g}_%": f"misbehaving_{times:g}_others_percent",
        f"others_with_a_clock_{results.figure.drift_ppm:g}_ppm_fast_%": "drift_others_percent",
        "jitter_then_ms": "drift_others_jitter_ms",
        f"others_with_best_effort_{kbps[-1] / 1e3:g}_Mbit/s_%": f"best_effort_{kbps[-1]:g}_others_percent",
        f"best_effort_{kbps[0] / 1e3:g}_Mbit/s_mean_ms": f"best_effort_{kbps[0]:g}_mean_ms",
        f"best_effort_{kbps[-1] / 1e3:g}_Mbit/s_lost_%": f"best_effort_{kbps[-1]:g}_lost_percent",
    }
    times_here = {
        "answer_all_here_ms": f"answer_at_{results.figure.rate_kbps:g}_kbps_ms",
        "one_more_here_ms": "one_more_ms",
    }
    if any(name.endswith("_one_more_ms") for name in findings):
        columns |= times_here
    rows: list[list[str | float]] = []
    for comparison_lab in results.figure.labs:
        systems = {compared.key: compared.label for compared in results.figure.systems} | {
            ALONE: "best effort alone"
        }
        for key, label in systems.items():
            values = [findings.get(f"{comparison_lab.key}_{key}_{name}") for name in columns.values()]
            rows.append(
                [comparison_lab.label, label, *("" if value is None else round(value, 3) for value in values)]
            )
    return TableResult(columns=["lab", "system", *columns], rows=rows)


_S_PER_REPLAY: Final = 3.0
_S_PER_ANSWER: Final = 2.0
"""Times for one lab and one system, on two cores."""


def _estimate_s(figure: ComparisonFigure) -> dict[str, float]:
    replays = len(disturbances_of(figure, figure.scale)) * _S_PER_REPLAY
    answers = len(figure.scale.rates_kbps) * _S_PER_ANSWER
    virtual_s = len(figure.labs) * len(figure.systems) * (replays + answers)
    times_s = len(figure.labs) * len(figure.systems) * len(figure.scale.rates_kbps) * _S_PER_ANSWER
    return {"virtual": virtual_s, "live": virtual_s + times_s}


FIGURE_TYPE: Final = FigureType(
    documents=(ComparisonFigure,),
    compute=OneByOne(compute),
    estimate_s=_estimate_s,
)
"""Comparisons in virtual time; in mode live with the times that the systems take on this machine."""
