"""Produce attacks: rows, findings and picture.

This does not use points of `loko_testbed.reproduce.replay`, as each pattern depends on the damage that
earlier ones did. A search is one task; the runner of figures sends each of its patterns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel, Reference
from loko_testbed.reproduce.figure import lab_of
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.attack.document import Attacked, AttackFigure, SearchBudget
from loko_testbed.reproduce.guarantees import guarantee_of_packets
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.replay.tasks import compute_tasks
from loko_testbed.reproduce.result import AxisLabel, GuaranteeResult, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.worst_case.attack import Attack, attack
from loko_testbed.simulation.worst_case.schemes import fill
from loko_testbed.simulation.worst_case.search import SearchResult
from loko_testbed.tasks.progress import Progress

AttackTask = tuple[AttackFigure, Attacked, SearchBudget, int]


def compute(figure: AttackFigure, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Attack every scheme. Raises `InputError` or `RunError`."""
    budget = figure.quick if options.quick else figure.budget
    tasks = [(figure, scheme, budget, options.seed) for scheme in figure.schemes]
    attacks = compute_tasks(run_attack, tasks, options, progress, lambda task: task[1].label, unit="schemes")
    lab = lab_of(figure)
    outcome = Outcome(
        chart=_chart(figure, attacks, budget),
        findings={
            name: value
            for scheme, done in zip(figure.schemes, attacks, strict=True)
            for name, value in _findings(scheme.key, done)
        },
        x=AxisLabel(name="patterns tried", unit=""),
        guarantees=[
            _guarantee(figure, scheme, done) for scheme, done in zip(figure.schemes, attacks, strict=True)
        ],
        profile=next(iter(lab.switches.values())).profile.name,
        table=_table(figure.schemes, attacks),
        assumptions={"flow_rate_kbps": figure.rate_bps / 1e3, "flow_burst_bytes": figure.burst_bytes},
        seconds=budget.seconds,
    )
    return outcome, pa.Table.from_pylist(list(_rows(figure.schemes, attacks)))


def run_attack(task: AttackTask) -> Attack:
    """Attack one scheme."""
    figure, attacked, budget, seed = task
    case = fill(
        attacked.scheme,
        lab_of(figure),
        [(pair.source, pair.destination) for pair in figure.pairs],
        rate_bps=figure.rate_bps,
        burst_bytes=figure.burst_bytes,
        frame_bytes=figure.frame_bytes,
        entries=figure.entries,
    )
    return attack(case, generations=budget.generations, seconds=budget.seconds, seed=seed)


def _findings(key: str, done: Attack) -> Iterator[tuple[str, float]]:
    yield f"{key}_flows", done.flows
    yield f"{key}_guarantee_ms", done.guarantee_ms
    yield f"{key}_worst", done.worst
    yield f"{key}_lost_packets", done.lost
    yield f"{key}_worst_case", done.worst_case.history[-1][1]
    yield f"{key}_chance", max(done.scattered.history[-1][1], *(run.worst for run in done.bursts))


def _guarantee(figure: AttackFigure, attacked: Attacked, done: Attack) -> GuaranteeResult:
    """Judge the guarantee by the worst pattern of each search and all that the paper's generator sent.

    A late flow of the generator counts as one late packet, as the number of late packets is not recorded.
    """
    worst = (done.worst_case.damage, done.scattered.damage)
    return guarantee_of_packets(
        attacked.label,
        [f"{pair.source}->{pair.destination}" for pair in figure.pairs],
        packets=sum(run.packets for run in worst) + sum(run.packets for run in done.bursts),
        lost=sum(run.lost for run in worst) + sum(run.lost for run in done.bursts),
        late=sum(run.late for run in worst)
        + sum(flow.worst > 1 for run in done.bursts for flow in run.flows),
        ours=attacked.ours,
    )


def _table(schemes: Sequence[Attacked], attacks: Sequence[Attack]) -> TableResult:
    rows: list[list[str | float]] = [
        [
            scheme.label,
            done.flows,
            round(done.guarantee_ms, 3),
            round(done.worst_case.history[-1][1], 3),
            round(done.scattered.history[-1][1], 3),
            round(max(run.worst for run in done.bursts), 3),
            done.lost,
        ]
        for scheme, done in zip(schemes, attacks, strict=True)
    ]
    return TableResult(
        columns=["scheme", "flows", "guarantee_ms", "worst_case", "random", "paper_bursts", "lost"], rows=rows
    )


def _chart(figure: AttackFigure, attacks: Sequence[Attack], budget: SearchBudget) -> Chart:
    pictures = (
        ("the search", [done.worst_case for done in attacks]),
        ("bursts at random instants", [done.scattered for done in attacks]),
    )
    highest = max(done.worst for done in attacks)
    return Chart(
        panels=[
            LinePanel(
                title=title,
                x=ChartAxis(label="patterns tried", low=0),
                y=ChartAxis(label="longest delay / guarantee", log=True, low=0.1, high=2 * highest),
                curves=[
                    ChartCurve(
                        label=scheme.label,
                        x=_search_curve(attack),
                        y=_worst(attack),
                        marker=False,
                        steps=True,
                    )
                    for scheme, attack in zip(figure.schemes, searches, strict=True)
                ],
                references=[Reference(label="guarantee", value=1.0)],
            )
            for title, searches in pictures
        ],
        columns=2,
        caption=f"{budget.generations} generations; as many flows of {figure.rate_bps / 1e3:g} kbit/s as fit",
    )


def _search_curve(attack: SearchResult) -> list[float]:
    return [float(tried) for tried, _ in attack.history]


def _worst(attack: SearchResult) -> list[float | None]:
    return [worst for _, worst in attack.history]


def _rows(schemes: Sequence[Attacked], attacks: Sequence[Attack]) -> Iterator[dict[str, object]]:
    for scheme, done in zip(schemes, attacks, strict=True):
        for way, search_result in (("worst_case", done.worst_case), ("random", done.scattered)):
            for tried, worst in search_result.history:
                yield {"scheme": scheme.scheme, "way": way, "tried": tried, "worst": worst}


_S_PER_GENERATION: Final = 0.15


def _estimate_s(figure: AttackFigure) -> dict[str, float]:
    """Estimate the time on one core; each scheme is searched twice."""
    return {"virtual": 2 * _S_PER_GENERATION * figure.budget.generations * len(figure.schemes)}


FIGURE_TYPE: Final = FigureType(
    documents=(AttackFigure,),
    compute=OneByOne(compute),
    estimate_s=_estimate_s,
)
