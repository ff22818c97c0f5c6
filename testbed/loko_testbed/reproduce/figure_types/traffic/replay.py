"""Base of the replays of figures of traffic: what is sent at their points, and what is counted of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from loko.topology.lab import Lab
from loko_testbed.reproduce.flow_figure import SendingFigure
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.replay.campaign import PointAccumulator
from loko_testbed.reproduce.replay.point import Point, seed_of
from loko_testbed.reproduce.result import HostResult, NoteResult, Series, merge_counters, runs_of
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import RunRecords

_Figure = TypeVar("_Figure", bound=SendingFigure)


class TrafficOutcome(Outcome):
    """Everything computed of a figure of traffic, apart from its records."""

    series: list[Series]
    """Boxes of counted packets, so that broken guarantees are found."""
    boards: dict[str, dict[str, int]]
    """See `TrafficResult.boards`."""


class TrafficReplay(ABC, Generic[_Figure]):
    """A figure with all that the command line may change about its replay."""

    def __init__(self, figure: _Figure, options: Options) -> None:
        """Compute what is sent. Raises `InputError`."""
        self.figure, self.options = figure, options
        self.runs, self.seconds = figure.scale(options)
        self.senders = options.senders.of(figure.senders)
        self.points = self._points()
        self.accumulators = [PointAccumulator(point.guarantees_ns) for point in self.points]

    @abstractmethod
    def _points(self) -> list[Point]:
        """Return the points, in order of x. Raises `InputError`."""

    def add(self, place: int, records: RunRecords) -> int | None:
        """Count the packets of a run of this point; return how many are kept as rows, None for all."""
        self.accumulators[place].add(records)
        return None

    @abstractmethod
    def outcome(self) -> TrafficOutcome:
        """Return what follows from all runs. Raises `RunError`."""

    @staticmethod
    @abstractmethod
    def estimate_s(figure: _Figure) -> dict[str, float]:
        """Estimate the time in seconds at the paper's scale, by mode."""

    def seeds(self, *words: object) -> list[int]:
        """Return a seed for each run; no other runs of any figure have the same ones."""
        return [seed_of(self.options.seed, self.figure.name, *words, run) for run in range(self.runs)]

    def replayed_on(self, lab: Lab) -> dict[str, Any]:
        """Return the fields of an outcome that say how the figure was replayed on this lab."""
        return {
            "profile": next(iter(lab.switches.values())).profile.name,
            "assumptions": self.senders.described(),
            "runs": self.runs,
            "seconds": self.seconds,
            "boards": merge_counters([accumulator.boards for accumulator in self.accumulators]),
            "host": HostResult.worst([accumulator.host for accumulator in self.accumulators]),
            "backend": self.options.switched_by(lab),
            "real_boards": {
                name: board for each in self.accumulators for name, board in each.real_boards.items()
            },
        }

    def note_if_shorter(self, where: str, text: str) -> list[NoteResult]:
        """Return a note if the replay is shorter than the paper's; `text` says how long that one is."""
        if self.runs * self.seconds >= self.figure.runs * self.figure.seconds:
            return []
        here = f"This replay has {runs_of(self.runs, self.seconds)}"
        return [NoteResult(where=where, text=f"{here}{text}")]
