"""Infer senders, and predict other figures with them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko.document import InputError
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, HeatPanel, LinePanel, Panel, Reference
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.senders.bands import bands
from loko_testbed.reproduce.figure_types.senders.document import CountSource, SenderGrid, SendersFigure
from loko_testbed.reproduce.figure_types.senders.grid import (
    READINGS,
    BoxCell,
    GridCell,
    run_box,
    run_cell,
    source_of,
    sweep_of,
)
from loko_testbed.reproduce.figure_types.senders.likelihood import (
    PrintedCount,
    PrintedShares,
    SenderTrial,
    count_log_likelihood,
    deviances,
    log_likelihood,
)
from loko_testbed.reproduce.figure_types.senders.predictions import FOLDER, Prediction, predict
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.replay.tasks import compute_tasks
from loko_testbed.reproduce.result import LOSS_PERCENT, AxisLabel, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.senders import NAMED, SIMPLE, SenderSettings
from loko_testbed.tasks.progress import Progress

_EXCLUDED_DEVIANCE: Final = 30.0
"""Deviance from which on a sender is not considered any more; the colour scale ends there."""
_COLUMNS: Final = 3
_ROOM_FOR_LEGEND: Final = 1.5
"""Upper end of an axis of losses, relative to the highest value."""


def compute(figure: SendersFigure, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Infer senders, then predict. Raises `InputError` or `RunError`."""
    grid = figure.quick.grid if options.quick else figure.grid
    runs, seconds = options.scale(figure.quick if options.quick else figure.budget)
    if runs < 2:
        raise InputError(
            f"--runs: {figure.figure} needs at least 2 runs of each sender; their spread is the error"
        )
    tried = _tried(figure, options, progress, [*grid.senders, SIMPLE], runs=runs, seconds=seconds)
    inference = infer(figure, options, progress, tried)
    *cells, simple = tried
    region = [
        cell for cell, value in zip(cells, inference.of_senders, strict=False) if value <= figure.deviance
    ]
    best = cells[int(np.argmin(inference.of_senders[:-1]))]
    predictions = _predictions(figure, options, progress, best, region)
    outcome = Outcome(
        chart=Chart(
            panels=[
                *_heat(grid, cells, inference.of_senders),
                *_numbers_panel(figure, predictions),
                *loss_panels(figure, predictions),
            ],
            columns=_COLUMNS,
            caption=f"{len(cells)} senders, {runs} runs of {seconds:g} s each;"
            f" {len(region)} of them within {figure.deviance:g} of the best"
            " in -2 log L, which the cells show; bars: what these predict",
        ),
        findings={
            **_findings(figure, best, simple, region, predictions),
            **_inferred_findings(figure, best, tried, inference),
        },
        x=AxisLabel(name="frames in a burst", unit=""),
        profile="zodiac-fx",
        table=claims_table(predictions),
        bands=bands(figure, predictions),
        runs=runs,
        seconds=seconds,
    )
    shutil.rmtree(options.out / FOLDER, ignore_errors=True)
    return outcome, _rows(tried, inference.of_senders)


def _tried(
    figure: SendersFigure,
    options: Options,
    progress: Progress,
    senders: Sequence[SenderSettings],
    *,
    runs: int,
    seconds: float,
) -> list[SenderTrial]:
    """Replay the figure from whose shares senders are inferred with each of these senders."""
    source = f"{figure.paper}/{figure.inferred_from.figure}"
    trials = [
        GridCell(
            figure=source,
            scheme=figure.inferred_from.scheme,
            senders=each,
            runs=runs,
            seconds=seconds,
            seed=options.seed,
            capacity_factor=options.capacity_factor,
        )
        for each in senders
    ]
    counts = compute_tasks(
        run_cell,
        trials,
        options,
        progress,
        lambda trial: f"bursts of {trial.senders.burst_frames} frames",
        unit="senders",
    )
    return [
        SenderTrial(senders=trial.senders, seconds=trial.seconds, counts=np.array(each))
        for trial, each in zip(trials, counts, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """How much worse than the best pair of a sender and a reading of the counts each explains the numbers."""

    joint: NDArray[np.float64]
    """Deviance of each sender (row) with each of the `READINGS` (column). Of senders that the shares alone
    exclude, a lower bound."""
    packets: Mapping[SenderSettings, Sequence[NDArray[np.float64]]]
    """For each sender that the shares do not exclude, its packets of each printed count by `READINGS`, in as
    long a measurement as the paper's."""

    @property
    def of_senders(self) -> NDArray[np.float64]:
        """Deviance of each sender with the reading that suits it best."""
        return np.asarray(self.joint.min(axis=1))

    @property
    def of_readings(self) -> NDArray[np.float64]:
        """Deviance of each reading with the sender that suits it best."""
        return np.asarray(self.joint.min(axis=0))


def infer(
    figure: SendersFigure, options: Options, progress: Progress, tried: Sequence[SenderTrial]
) -> Inference:
    """Return how well the senders explain the printed shares and counts together.

    Senders that the shares alone exclude are not replayed for the counts.
    """
    deployment, _ = source_of(f"{figure.paper}/{figure.inferred_from.figure}", figure.inferred_from.scheme)
    shares = PrintedShares(
        percent=tuple(
            fact(figure.paper, name).number for name in (figure.inferred_from.lost, figure.inferred_from.late)
        ),
        seconds=deployment.runs * deployment.seconds,
        decimals=figure.inferred_from.decimals,
    )
    of_shares = np.array([log_likelihood(cell, shares) for cell in tried])
    kept = [place for place, value in enumerate(deviances(of_shares)) if value <= _EXCLUDED_DEVIANCE]
    boxes = [
        BoxCell(
            figure=f"{figure.paper}/{box.figure}",
            x=box.x,
            senders=tried[place].senders,
            runs=min(source.runs, options.runs or source.runs),
            seconds=tried[place].seconds,
            seed=options.seed,
            capacity_factor=options.capacity_factor,
        )
        for place in kept
        for source in figure.counts
        for box in source.largest_of
    ]
    counted = compute_tasks(
        run_box, boxes, options, progress, lambda box: f"packets of {box.figure} at {box.x:g}", unit="boxes"
    )
    rows = map(np.array, counted)
    of_counts = np.zeros((len(tried), len(READINGS)))
    packets: dict[SenderSettings, list[NDArray[np.float64]]] = {}
    for place in kept:
        packets[tried[place].senders] = []
        for source in figure.counts:
            logs, means = _count(
                figure, source, [next(rows) for _ in source.largest_of], tried[place].seconds
            )
            of_counts[place] += logs
            packets[tried[place].senders].append(means)
    excluded = [place for place in range(len(tried)) if place not in kept]
    of_counts[excluded] = of_counts[kept].max(axis=0)
    return Inference(joint=deviances(of_shares[:, np.newaxis] + of_counts), packets=packets)


def _count(
    figure: SendersFigure, source: CountSource, rows: Sequence[NDArray[np.int64]], seconds: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each of the `READINGS` the log likelihood of a printed count, and the packets of its box.

    `rows` has the runs of each box that may be meant.
    """
    sweeps = [sweep_of(f"{figure.paper}/{box.figure}") for box in source.largest_of]
    paper_s = [sweep.runs * sweep.seconds for sweep in sweeps]
    means = np.array([row.mean(axis=0) * s / seconds for row, s in zip(rows, paper_s, strict=True)])
    largest = means.argmax(axis=0)
    printed = fact(figure.paper, source.fact).number
    logs = [
        count_log_likelihood(
            rows[box][:, reading],
            seconds,
            PrintedCount(packets=printed, seconds=paper_s[box], rounded_to=source.rounded_to),
        )
        for reading, box in enumerate(largest)
    ]
    return np.array(logs), means.max(axis=0)


def _inferred_findings(
    figure: SendersFigure, best: SenderTrial, tried: Sequence[SenderTrial], inference: Inference
) -> dict[str, float]:
    """Return findings on the readings of the counts, and on the named senders."""
    findings = {
        f"counting_{reading}_deviance": float(value)
        for reading, value in zip(READINGS, inference.of_readings, strict=True)
    }
    for source, counted in zip(figure.counts, inference.packets[best.senders], strict=True):
        name = source.fact.rpartition("/")[2].rpartition("_")[2]
        for reading, count in zip(READINGS, counted, strict=True):
            findings[f"best_{name}_{reading}_packets"] = float(count)
    for name, senders in NAMED.items():
        for cell, value in zip(tried, inference.of_senders, strict=True):
            if cell.senders == senders:
                findings[f"{name}_deviance"] = float(value)
    return findings


def _predictions(
    figure: SendersFigure,
    options: Options,
    progress: Progress,
    best: SenderTrial,
    region: Sequence[SenderTrial],
) -> list[Prediction]:
    """Return predictions of the simple sender, the best one, others of the region, and variants of the best.

    The variants have other capacities and later timers.
    """
    figures = figure.predicted[: figure.quick.figures] if options.quick else figure.predicted
    if not figures:
        return []
    others = [cell.senders for cell in _spanning(region) if cell is not best]
    wanted = [(senders, options.capacity_factor) for senders in (SIMPLE, best.senders, *others)]
    wanted += [(best.senders, factor) for factor in figure.capacity_factors]
    wanted += [
        (best.senders.model_copy(update={"shaper_latency_ns": latency}), options.capacity_factor)
        for latency in figure.shaper_latencies_ns
    ]
    progress.begin(len(wanted), 0, "predictions")
    predictions = []
    for senders, factor in wanted:
        predictions.append(predict(figures, figure.paper, senders, options, factor))
        progress.advance(f"{figure.figure}: predictions")
    return predictions


def _spanning(region: Sequence[SenderTrial]) -> list[SenderTrial]:
    """Return a few senders that span the region: for each queue size its extremes in burst and load."""
    ends = []
    for room in sorted({cell.senders.queue_frames for cell in region}):
        here = [cell for cell in region if cell.senders.queue_frames == room]
        for key in (lambda cell: cell.senders.burst_frames, lambda cell: cell.senders.offered_load):
            ends += [min(here, key=key), max(here, key=key)]
    return list({cell.senders: cell for cell in ends}.values())


def _heat(grid: SenderGrid, cells: Sequence[SenderTrial], deviations: NDArray[np.float64]) -> list[Panel]:
    """Return a heatmap of the deviance by burst and load for each queue size; unlikely cells stay white."""
    value_of = {
        (cell.senders.queue_frames, cell.senders.offered_load, cell.senders.burst_frames): float(value)
        for cell, value in zip(cells, deviations, strict=False)
        if value <= _EXCLUDED_DEVIANCE
    }
    return [
        HeatPanel(
            x=ChartAxis(label="frames in a burst"),
            y=ChartAxis(label="load offered to the shaper"),
            value=ChartAxis(label=f"deviance, room for {room} frames", low=0, high=_EXCLUDED_DEVIANCE),
            x_values=[float(burst) for burst in grid.burst_frames],
            y_values=list(grid.offered_load),
            cells=[
                [value_of.get((room, load, burst)) for burst in grid.burst_frames]
                for load in grid.offered_load
            ],
        )
        for room in grid.queue_frames
    ]


def _numbers_panel(figure: SendersFigure, predictions: Sequence[Prediction]) -> list[Panel]:
    """Return a panel with the paper's percentages, the simple sender's, and those of the inferred ones."""
    shown = [
        (fact(figure.paper, number.fact).number, reach_of(number.figure, number.finding, predictions))
        for number in figure.numbers
        if number.finding.endswith("_percent")
    ]
    rows = [(paper, reach) for paper, reach in shown if reach is not None]
    if not rows:
        return []
    numbers = [number for number in figure.numbers if number.finding.endswith("_percent")]
    names = (f"{place}: {number.figure}" for place, number in enumerate(numbers, start=1))

    def apart(values: Sequence[float]) -> list[float | None]:
        """Separate values by None, so that no line joins them."""
        return [copy for value in values for copy in (value, None)]

    def doubled(values: Sequence[float]) -> list[float]:
        return [copy for value in values for copy in (value, value)]

    x = [place / 2 for place in range(2, 2 * len(rows) + 2)]
    return [
        LinePanel(
            title="lost",
            x=ChartAxis(label=", ".join(names), low=0.5, high=len(rows) + 0.5),
            y=ChartAxis(label="lost [%]", low=0, high=100 * _ROOM_FOR_LEGEND),
            curves=[
                ChartCurve(label="paper", x=x, y=apart([paper for paper, _ in rows])),
                ChartCurve(label="simple", x=x, y=apart([reach[0] for _, reach in rows])),
                ChartCurve(
                    label="inferred",
                    x=x,
                    y=apart([reach[1] for _, reach in rows]),
                    low=doubled([reach[2] for _, reach in rows]),
                    high=doubled([reach[3] for _, reach in rows]),
                ),
            ],
        )
    ]


def loss_panels(figure: SendersFigure, predictions: Sequence[Prediction]) -> list[Panel]:
    """Return a panel for each sweep: losses of the simple and inferred senders, and the paper's values."""
    if not predictions:
        return []
    simple, *inferred = predictions
    reaches = {band.figure: band for band in bands(figure, predictions) if band.finding == LOSS_PERCENT}
    panels: list[Panel] = []
    for name, losses in simple.loss_percent.items():
        x = list(losses)
        best = inferred[0].loss_percent[name]
        ends = {value: (loss, loss) for value, loss in best.items()}
        if (reach := reaches.get(f"{figure.paper}/{name}")) is not None:
            ends |= zip(reach.x, zip(reach.least, reach.most, strict=True), strict=True)
        printed = [number for number in figure.numbers if number.figure == name]
        at = {
            float(number.finding.split("_")[2]): fact(figure.paper, number.fact).number
            for number in printed
            if number.finding.startswith("loss_at_")
        }
        curves = [
            ChartCurve(label="simple", x=x, y=list(losses.values()), dashed=True),
            ChartCurve(
                label="inferred",
                x=x,
                y=[best[value] for value in x],
                low=[ends[value][0] for value in x],
                high=[ends[value][1] for value in x],
            ),
        ]
        highest = max([*losses.values(), *(curves[1].high or []), *at.values()]) or 1.0
        if at:
            curves.append(ChartCurve(label="paper", x=list(at), y=list(at.values())))
        panels.append(
            LinePanel(
                title=name,
                x=ChartAxis(label=simple.x_label[name]),
                y=ChartAxis(label="loss [%]", low=0, high=_ROOM_FOR_LEGEND * highest),
                curves=curves,
                references=[
                    Reference(
                        label=f"paper: {'lost' if number.finding == 'loss_starts' else 'late'} from here",
                        value=fact(figure.paper, number.fact).number,
                        axis="x",
                    )
                    for number in printed
                    if number.finding in {"loss_starts", "late_starts"}
                ],
            )
        )
    return panels


Reach = tuple[float, float, float, float]
"""Values of a finding: simple sender, best sender, least and greatest of all inferred ones."""


def reach_of(figure: str, finding: str, predictions: Sequence[Prediction]) -> Reach | None:
    """Return the reach of a finding; None if the simple or the best sender lacks it."""
    values = [prediction.findings.get(figure, {}).get(finding) for prediction in predictions]
    inferred = [value for value in values[1:] if value is not None]
    if not inferred or values[0] is None or values[1] is None:
        return None
    return values[0], values[1], min(inferred), max(inferred)


def _findings(
    figure: SendersFigure,
    best: SenderTrial,
    simple: SenderTrial,
    region: Sequence[SenderTrial],
    predictions: Sequence[Prediction],
) -> dict[str, float]:
    lost, late = best.percent
    findings = {
        "best_burst_frames": float(best.senders.burst_frames),
        "best_load_percent": 100 * best.senders.offered_load,
        "best_room_frames": float(best.senders.queue_frames),
        "best_lost_percent": float(lost),
        "best_late_percent": float(late),
        "simple_lost_percent": float(simple.percent[0]),
        "simple_late_percent": float(simple.percent[1]),
        "region_senders": float(len(region)),
        "region_shortest_burst_frames": float(min(cell.senders.burst_frames for cell in region)),
        "region_longest_burst_frames": float(max(cell.senders.burst_frames for cell in region)),
        "region_least_load_percent": 100 * min(cell.senders.offered_load for cell in region),
        "region_most_load_percent": 100 * max(cell.senders.offered_load for cell in region),
    }
    for number in figure.numbers:
        reach = reach_of(number.figure, number.finding, predictions)
        if reach is not None:
            stem, percent, _ = number.finding.partition("_percent")
            for name, value in zip(("simple", "best", "least", "most"), reach, strict=True):
                findings[f"{number.figure}_{stem}_{name}{percent}"] = value
        for prediction in predictions:
            found = prediction.findings.get(number.figure, {}).get(number.finding)
            if prediction.capacity_factor is not None and found is not None:
                stem, percent, _ = number.finding.partition("_percent")
                capacity = f"capacity_{1000 * prediction.capacity_factor:g}"
                findings[f"{number.figure}_{stem}_{capacity}{percent}"] = found
    for name, place in (("simple", 0), ("best", 1)):
        if len(predictions) > place:
            judged = [claim for claims in predictions[place].claims.values() for claim in claims]
            findings[f"{name}_kept_claims"] = float(sum(claim.holds is True for claim in judged))
            findings["judged_claims"] = float(sum(claim.holds is not None for claim in judged))
    return findings


def claims_table(predictions: Sequence[Prediction]) -> TableResult | None:
    """Return a table of all claims of the predicted figures with the simple and the inferred senders."""
    if not predictions:
        return None
    simple, best, *others = predictions
    rows: list[list[str | float]] = []
    for name, claims in simple.claims.items():
        inferred = [prediction.claims[name] for prediction in (best, *others) if name in prediction.claims]
        for place, claim in enumerate(claims):
            mine = best.claims[name][place]
            holding = sum(inferred_claims[place].holds is True for inferred_claims in inferred)
            rows.append(
                [
                    name,
                    claim.claim,
                    claim.paper,
                    claim.here,
                    _word(claim.holds),
                    mine.here,
                    _word(mine.holds),
                    f"{holding} of {len(inferred)}",
                ]
            )
    return TableResult(
        columns=[
            "figure",
            "claim",
            "paper",
            "simple",
            "simple_holds",
            "best",
            "best_holds",
            "inferred_hold",
        ],
        rows=rows,
    )


def _word(holds: bool | None) -> str:
    if holds is None:
        return "not testable"
    return "holds" if holds else "does not hold"


def _rows(cells: Sequence[SenderTrial], deviations: NDArray[np.float64]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                **cell.senders.model_dump(),
                "deviance": float(value),
                "run": run,
                "packets": int(counts[0]),
                "lost": int(counts[1]),
                "late": int(counts[2]),
            }
            for cell, value in zip(cells, deviations, strict=True)
            for run, counts in enumerate(cell.counts)
        ]
    )


_S_PER_S: Final = 0.01
"""CPU seconds per second of a sender of the grid; measured on an x86-64 VM."""
_S_PER_PREDICTION: Final = 12.0
_REGION: Final = 12
"""Approximate number of senders that predict."""


def _parameters(_figure: SendersFigure, options: Options) -> dict[str, Any]:
    return {"capacity_factor": options.capacity_factor}


def _estimate_s(figure: SendersFigure) -> dict[str, float]:
    cells = len(figure.grid.senders)
    inferring = cells * figure.budget.runs * figure.budget.seconds * _S_PER_S
    return {"virtual": inferring / 2 + _REGION * _S_PER_PREDICTION / 2}


FIGURE_TYPE: Final = FigureType(
    documents=(SendersFigure,),
    compute=OneByOne(compute, _parameters),
    estimate_s=_estimate_s,
)
