"""Replay figures of traffic: carry out missing runs, count their packets, and write these as records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.traffic.deployment import DeploymentReplay
from loko_testbed.reproduce.figure_types.traffic.document import Deployment, PathsFigure, Sweep, Versions
from loko_testbed.reproduce.figure_types.traffic.paths import PathsReplay
from loko_testbed.reproduce.figure_types.traffic.replay import TrafficOutcome, TrafficReplay
from loko_testbed.reproduce.figure_types.traffic.sweep import SweepReplay
from loko_testbed.reproduce.figure_types.traffic.versions import VersionsReplay
from loko_testbed.reproduce.flow_figure import SendingFigure
from loko_testbed.reproduce.folder import figure_file
from loko_testbed.reproduce.outcome import ONLY_WORDS, kept_outcome, result_of
from loko_testbed.reproduce.replay.campaign import purge_runs, replay_in_order
from loko_testbed.reproduce.replay.captures import capture_runs, runs_to_capture
from loko_testbed.reproduce.result import FigureResult, TrafficResult
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.records import RecordWriter
from loko_testbed.simulation.runner import RunRecords
from loko_testbed.tasks.files import atomic_replacement
from loko_testbed.tasks.progress import Progress

_REPLAYS: Final[Mapping[str, type[TrafficReplay[Any]]]] = {
    "sweep": SweepReplay,
    "paths": PathsReplay,
    "deployment": DeploymentReplay,
    "versions": VersionsReplay,
}


class ReplayedRun(NamedTuple):
    """A run with its records."""

    figure: str
    place: int
    """Place of its point among the figure's."""
    number: int
    records: RunRecords


def replay_of(figure: SendingFigure, options: Options) -> TrafficReplay[Any]:
    """Combine a figure with the options. Raises `InputError`."""
    return _REPLAYS[figure.shows](figure, options)


def compute(figures: Sequence[SendingFigure], options: Options, progress: Progress) -> Iterator[FigureResult]:
    """Replay the figures, with the points of all in parallel; yield each when its records are written.

    Runs that exist already with the same parameters are not repeated, except those of which captures are
    wanted. Raises `InputError` or `RunError`.
    """
    replays = {figure.name: replay_of(figure, options) for figure in figures}
    captured = runs_to_capture([point for replay in replays.values() for point in replay.points], options)
    done = {
        name: kept_outcome(_records(replay), _fingerprint(replay), TrafficOutcome)
        for name, replay in replays.items()
    }
    places = [
        (name, place)
        for name, replay in replays.items()
        if done[name] is None
        for place in range(len(replay.points))
    ]
    points = [replays[name].points[place] for name, place in places]
    with closing(replay_in_order(points, options, progress)) as replayed:
        runs = (ReplayedRun(*places[index], number, records) for index, number, records in replayed)
        of_figures = groupby(runs, key=lambda run: run.figure)
        for figure in figures:
            outcome, replay = done[figure.name], replays[figure.name]
            if outcome is None and not replay.points:
                outcome = replay.outcome()
            elif outcome is None:
                _, of_figure = next(of_figures)
                outcome = _recorded(replay, of_figure)
            yield _result(figure, outcome, options)
    capture_runs(captured, options, progress)


def _result(figure: SendingFigure, outcome: TrafficOutcome, options: Options) -> TrafficResult:
    return TrafficResult(
        **dict(result_of(figure, outcome, options)),
        series=outcome.series,
        boards=outcome.boards,
    )


def _records(replay: TrafficReplay[Any]) -> Path:
    return figure_file(replay.options.out, replay.figure.name, ".parquet")


def _fingerprint(replay: TrafficReplay[Any]) -> dict[str, Any]:
    """Return everything that the outcome depends on. In virtual time, equal ones mean equal outcomes."""
    return {
        "document": replay.figure.model_dump(mode="json", exclude=ONLY_WORDS),
        "seed": replay.options.seed,
        "points": [
            {
                **point.fingerprint(replay.options),
                "runs": len(point.seeds),
                "guarantees_ns": {str(flow): each for flow, each in point.guarantees_ns.items()},
            }
            for point in replay.points
        ],
    }


def _recorded(replay: TrafficReplay[Any], runs: Iterable[ReplayedRun]) -> TrafficOutcome:
    """Count the packets of a figure's runs and write them to its file.

    The runs come in order, and are no longer kept afterwards.
    """
    with atomic_replacement(_records(replay)) as part, RecordWriter(part) as writer:
        for run in runs:
            most = replay.add(run.place, run.records)
            writer.add(run.records, run=run.number, point=replay.points[run.place].x, most=most)
        outcome = replay.outcome()
        writer.describe({"fingerprint": _fingerprint(replay), "outcome": outcome.model_dump(mode="json")})
    purge_runs(replay.figure.name, replay.options)
    return outcome


def _estimate_s(figure: SendingFigure) -> dict[str, float]:
    times = _REPLAYS[figure.shows].estimate_s(figure)
    return {mode: times[mode] for mode in figure.modes if mode in times}


FIGURE_TYPE: Final = FigureType(
    documents=(Sweep, PathsFigure, Deployment, Versions), compute=compute, estimate_s=_estimate_s
)
