"""Produce duels: rows, findings, table and picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

import pyarrow as pa

from evaluation.figure_types import IN_TASKS, FigureType
from evaluation.figure_types.duel.accepted import Promised, accepted, requests
from evaluation.figure_types.duel.document import Arena, Contender, DuelFigure, Effort
from evaluation.figure_types.duel.picture import chart
from evaluation.figure_types.duel.replay import ALONE, Carried, FlowRow, Replay, Scenario, carry_out
from evaluation.figure_types.duel.times import answering_s, one_more_s
from evaluation.guarantees import guarantee_of_packets
from evaluation.options import Options, Progress
from evaluation.outcome import OneByOne, Outcome
from evaluation.replay.tasks import computed
from evaluation.result import AxisLabel, GuaranteeResult, NoteResult, TableResult
from loko.document import InputError
from loko.lab import load_lab

_HEADERS_BYTES: Final = 14 + 20 + 8 + 4
"""Bytes of a UDP frame other than its payload, including the FCS."""


class Question(NamedTuple):
    """The question of how many flows of a rate a system accepts."""

    figure: DuelFigure
    arena: Arena
    contender: Contender
    rate_kbps: float


def answer(question: Question) -> tuple[Promised, ...]:
    """Return the flows that the system accepts. Raises `InputError`."""
    figure, arena, contender, rate_kbps = question
    lab = load_lab(arena.lab)
    return accepted(figure, contender, lab, requests(figure, arena, lab, rate_kbps))


def scenarios_of(figure: DuelFigure, effort: Effort) -> list[Scenario]:
    """Return the scenarios that each system goes through."""
    return [
        Scenario("none"),
        *(Scenario("rogue", times) for times in effort.rogue_times),
        Scenario("drift", figure.drift_ppm),
        *(Scenario("best-effort", kbps) for kbps in effort.best_effort_kbps),
    ]


@dataclass(frozen=True, kw_only=True)
class Duel:
    """All results of a duel."""

    figure: DuelFigure
    effort: Effort
    answers: Mapping[tuple[str, str, float], tuple[Promised, ...]]
    """Accepted flows by keys of arena and system and the rate of the flows in kbit/s."""
    replays: Mapping[tuple[str, str, Scenario], Carried]
    """Results of replays by keys of arena and system and the scenario."""

    def flows(self, arena: Arena, contender: Contender, rate_kbps: float) -> int:
        """Return how many flows of this rate the system accepts."""
        return len(self.answers[arena.key, contender.key, rate_kbps])

    def promised(self, arena: Arena, contender: Contender) -> tuple[Promised, ...]:
        """Return the accepted flows that are replayed."""
        return self.answers[arena.key, contender.key, self.figure.rate_kbps]

    def rows(self, arena: Arena, system: str, scenario: Scenario, role: str = "other") -> list[FlowRow]:
        """Return the results of the flows with this role."""
        return [row for row in self.replays[arena.key, system, scenario].rows if row.role == role]


def compute(figure: DuelFigure, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Request the flows from every system, then replay. Raises `InputError` or `RunError`."""
    effort = figure.quick if options.quick else figure.scale
    rates = sorted({*effort.rates_kbps, figure.rate_kbps})
    fights = [(arena, contender) for arena in figure.arenas for contender in figure.contenders]
    questions = [Question(figure, arena, contender, rate) for arena, contender in fights for rate in rates]
    scenarios = scenarios_of(figure, effort)
    alone = [scenario for scenario in scenarios if scenario.deed == "best-effort"]
    steps = len(questions) + len(fights) * len(scenarios) + len(figure.arenas) * len(alone)
    progress.begin(steps, 0, "steps")
    asked = computed(
        answer,
        questions,
        options,
        lambda question: progress.advance(f"{figure.figure}: asking {question[2].label}"),
    )
    answers = {
        (question.arena.key, question.contender.key, question.rate_kbps): promised
        for question, promised in zip(questions, asked, strict=True)
    }
    tasks: list[Replay] = []
    for arena in figure.arenas:
        systems: dict[str, tuple[Promised, ...]] = {ALONE: ()}
        for contender in figure.contenders:
            systems[contender.key] = answers[arena.key, contender.key, figure.rate_kbps]
            if not systems[contender.key]:
                raise InputError(
                    f"{figure.name}: {contender.label} accepts no flow of {figure.rate_kbps:g} kbit/s on"
                    f" {arena.label}; lower rate_kbps"
                )
        tasks += [
            Replay(
                figure=figure,
                arena=arena,
                system=system,
                promised=promised,
                scenario=scenario,
                seconds=effort.seconds_of(scenario.deed),
                seed=options.seed,
            )
            for system, promised in systems.items()
            for scenario in (scenarios if promised else alone)
        ]
    carried = computed(
        carry_out, tasks, options, lambda task: progress.advance(f"{figure.figure}: {task.system}")
    )
    duel = Duel(
        figure=figure,
        effort=effort,
        answers=answers,
        replays={
            (task.arena.key, task.system, task.scenario): replay
            for task, replay in zip(tasks, carried, strict=True)
        },
    )
    findings = dict(_findings(duel)) | (_times(figure, effort, progress) if options.real_time else {})
    outcome = Outcome(
        chart=chart(
            figure,
            effort,
            findings,
            {
                (arena, system): replay.over_guarantee
                for (arena, system, scenario), replay in duel.replays.items()
                if scenario.deed == "none" and replay.over_guarantee is not None
            },
        ),
        findings=findings,
        x=AxisLabel(name="what somebody does", unit=""),
        guarantees=[_guarantee(duel, arena, contender) for arena, contender in fights],
        profile=next(iter(load_lab(figure.arenas[0].lab).switches.values())).profile.name,
        table=_table(duel, findings),
        assumptions={
            "flow_rate_kbps": figure.rate_kbps,
            "flow_burst_bytes": float(figure.frame_bytes),
            "guard_us": figure.guard_us,
            "drift_seconds": effort.drift_seconds,
        },
        seconds=effort.seconds,
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


def _times(figure: DuelFigure, effort: Effort, progress: Progress) -> dict[str, float]:
    """Measure how long each system takes to answer, on this machine, one after the other."""
    progress.begin(len(figure.arenas) * len(figure.contenders), 0, "systems")
    times_ms: dict[str, float] = {}
    for arena in figure.arenas:
        for contender in figure.contenders:
            of = f"{arena.key}_{contender.key}"
            answering_s(figure, arena, contender, figure.rate_kbps)  # what is loaded once takes no part
            for rate in sorted({*effort.rates_kbps, figure.rate_kbps}):
                taken_s = [answering_s(figure, arena, contender, rate) for _ in range(_RUNS)]
                times_ms[f"{of}_answer_at_{rate:g}_kbps_ms"] = 1e3 * median(taken_s)
            times_ms[f"{of}_one_more_ms"] = 1e3 * median(
                [one_more_s(figure, arena, contender) for _ in range(_RUNS)]
            )
            progress.advance(f"{figure.figure}: times of {contender.label}")
    return times_ms


def late_or_lost_percent(rows: Sequence[FlowRow]) -> float:
    """Return the share of these flows' frames that did not arrive within their guarantees, in per cent."""
    frames = sum(row.frames for row in rows)
    return 100 * sum(row.lost + row.late for row in rows) / frames if frames else 0.0


def _jitter_ms(rows: Sequence[FlowRow]) -> float:
    """Return the largest difference between the delays of two frames of one flow."""
    return max((row.max_delay_ns - row.min_delay_ns for row in rows), default=0) / 1e6


def _findings(duel: Duel) -> Iterator[tuple[str, float]]:
    figure = duel.figure
    for arena in figure.arenas:
        yield f"{arena.key}_requested_flows", float(arena.requests)
        yield from _of_best_effort(duel, arena, ALONE)
        for contender in figure.contenders:
            for name, value in _of_system(duel, arena, contender):
                yield f"{arena.key}_{contender.key}_{name}", value
            yield from _of_best_effort(duel, arena, contender.key)


def _of_system(duel: Duel, arena: Arena, contender: Contender) -> Iterator[tuple[str, float]]:
    figure, effort = duel.figure, duel.effort
    promised = duel.promised(arena, contender)
    kept = duel.rows(arena, contender.key, Scenario("none"))
    payload_bits = 8 * (figure.frame_bytes - _HEADERS_BYTES)
    guard_ns = round(figure.guard_us * 1e3)
    yield "flows", float(len(promised))
    yield from (
        (f"flows_at_{rate:g}_kbps", float(duel.flows(arena, contender, rate))) for rate in effort.rates_kbps
    )
    yield "guarantee_ms", max(flow.guarantee_ns for flow in promised) / 1e6
    yield "unaware_ms", max(flow.unaware_ns(guard_ns) for flow in promised) / 1e6
    yield "worst_ms", max(row.max_delay_ns for row in kept) / 1e6
    yield "jitter_ms", _jitter_ms(kept)
    in_time = sum(row.frames - row.lost - row.late for row in kept)
    yield "goodput_kbps", in_time * payload_bits / effort.seconds_of("none") / 1e3
    yield "late_or_lost_packets", float(sum(row.lost + row.late for row in kept))
    yield "late_or_lost_percent", late_or_lost_percent(kept)
    for times in effort.rogue_times:
        others = duel.rows(arena, contender.key, Scenario("rogue", times))
        yield f"rogue_{times:g}_others_percent", late_or_lost_percent(others)
    drift = duel.rows(arena, contender.key, Scenario("drift", figure.drift_ppm))
    yield "drift_others_percent", late_or_lost_percent(drift)
    yield "drift_others_jitter_ms", _jitter_ms(drift)
    for kbps in effort.best_effort_kbps:
        others = duel.rows(arena, contender.key, Scenario("best-effort", kbps))
        yield f"best_effort_{kbps:g}_others_percent", late_or_lost_percent(others)


def _of_best_effort(duel: Duel, arena: Arena, system: str) -> Iterator[tuple[str, float]]:
    for kbps in duel.effort.best_effort_kbps:
        (row,) = duel.rows(arena, system, Scenario("best-effort", kbps), "best-effort")
        name = f"{arena.key}_{system}_best_effort_{kbps:g}"
        yield f"{name}_lost_percent", 100 * row.lost / row.frames if row.frames else 0.0
        yield f"{name}_mean_ms", row.mean_delay_ns / 1e6


def _guarantee(duel: Duel, arena: Arena, contender: Contender) -> GuaranteeResult:
    """Judge the guarantee where all senders conform; for our buckets, also with a drifting clock.

    Our buckets allow for drift, slots do not.
    """
    rows = duel.rows(arena, contender.key, Scenario("none"))
    flows = [row.flow for row in rows]
    if contender.ours and contender.system == "admission":
        drift = Scenario("drift", duel.figure.drift_ppm)
        rows = [*rows, *duel.replays[arena.key, contender.key, drift].rows]
    return guarantee_of_packets(
        f"{contender.label} on {arena.label}",
        flows,
        packets=sum(row.frames for row in rows),
        lost=sum(row.lost for row in rows),
        late=sum(row.late for row in rows),
        ours=contender.ours,
    )


def _table(duel: Duel, findings: Mapping[str, float]) -> TableResult:
    times, kbps = duel.effort.rogue_times[-1], duel.effort.best_effort_kbps
    columns = {
        "flows": "flows",
        "guarantee_ms": "guarantee_ms",
        "if_unaware_of_slots_ms": "unaware_ms",
        "worst_ms": "worst_ms",
        "jitter_ms": "jitter_ms",
        "goodput_kbit/s": "goodput_kbps",
        "late_or_lost_%": "late_or_lost_percent",
        f"others_with_a_rogue_x{times:g}_%": f"rogue_{times:g}_others_percent",
        f"others_with_a_clock_{duel.figure.drift_ppm:g}_ppm_fast_%": "drift_others_percent",
        "jitter_then_ms": "drift_others_jitter_ms",
        f"others_with_best_effort_{kbps[-1] / 1e3:g}_Mbit/s_%": f"best_effort_{kbps[-1]:g}_others_percent",
        f"best_effort_{kbps[0] / 1e3:g}_Mbit/s_mean_ms": f"best_effort_{kbps[0]:g}_mean_ms",
        f"best_effort_{kbps[-1] / 1e3:g}_Mbit/s_lost_%": f"best_effort_{kbps[-1]:g}_lost_percent",
    }
    times_here = {
        "answer_all_here_ms": f"answer_at_{duel.figure.rate_kbps:g}_kbps_ms",
        "one_more_here_ms": "one_more_ms",
    }
    if any(name.endswith("_one_more_ms") for name in findings):
        columns |= times_here
    rows: list[list[str | float]] = []
    for arena in duel.figure.arenas:
        systems = {contender.key: contender.label for contender in duel.figure.contenders} | {
            ALONE: "best effort alone"
        }
        for key, label in systems.items():
            values = [findings.get(f"{arena.key}_{key}_{name}") for name in columns.values()]
            rows.append([arena.label, label, *("" if value is None else round(value, 3) for value in values)])
    return TableResult(columns=["lab", "system", *columns], rows=rows)


_S_PER_REPLAY: Final = 3.0
_S_PER_ANSWER: Final = 2.0
"""Times for one lab and one system, on two cores."""


def _estimate_s(figure: DuelFigure) -> dict[str, float]:
    replays = len(scenarios_of(figure, figure.scale)) * _S_PER_REPLAY
    answers = len(figure.scale.rates_kbps) * _S_PER_ANSWER
    virtual_s = len(figure.arenas) * len(figure.contenders) * (replays + answers)
    times_s = len(figure.arenas) * len(figure.contenders) * len(figure.scale.rates_kbps) * _S_PER_ANSWER
    return {"virtual": virtual_s, "live": virtual_s + times_s}


FIGURE_TYPE: Final = FigureType(
    document=DuelFigure, compute=OneByOne(compute), estimate_s=_estimate_s, supported_options=IN_TASKS
)
"""Duels in virtual time; in mode live with the times that the systems take on this machine."""
