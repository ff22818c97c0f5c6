"""The tasks of these figures: each depends on nothing but itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evaluation.executor import Result
from evaluation.options import Options, Progress
from evaluation.predictability import campaign, priority_queueing, processing_time, throughput
from evaluation.predictability.subject import subject_of
from evaluation.predictability.table_iii import Scenario
from evaluation.replay.tasks import computed

_Task = TypeVar("_Task", bound="Task")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What all have."""

    device: str
    packets: int
    seed: int

    @property
    def text(self) -> str:
        """For who waits."""
        return self.device


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed(Task):
    """Processing times of one scenario."""

    place: str
    """Its name in the figure."""
    group: str
    scenario: Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Laced(Task):
    """One rate through a shoelace; without one, the highest that loses nothing."""

    frame_bytes: int
    rate_mbps: float = 0


def each(
    function: Callable[[_Task], Result], tasks: Sequence[_Task], options: Options, progress: Progress
) -> list[Result]:
    """The results of all tasks, in their order."""
    progress.begin(len(tasks), 0, "measurements")
    return computed(function, tasks, options, lambda task: progress.advance(task.text))


def times(task: Timed) -> NDArray[np.int64] | None:
    """Processing times in ns; None if the switch refuses the entries."""
    subject = subject_of(task.device, most_rate_bps=processing_time.MOST_RATE_BPS)
    return processing_time.measure(subject, task.scenario, packets=task.packets, seed=task.seed)


def queueing(task: Task) -> priority_queueing.Delays:
    """Times of high priority; `packets` are bursts."""
    subject = subject_of(task.device, most_rate_bps=processing_time.MOST_RATE_BPS)
    return priority_queueing.measure(subject, bursts=task.packets, seed=task.seed)


def passage(task: Laced) -> throughput.Passage:
    """What comes back."""
    subject = subject_of(task.device)
    return throughput.measure(subject, task.frame_bytes, task.rate_mbps, packets=task.packets, seed=task.seed)


def highest(task: Laced) -> throughput.Throughput:
    """The highest rate without loss."""
    return throughput.find(subject_of(task.device), task.frame_bytes, packets=task.packets, seed=task.seed)


def part(task: campaign.Part) -> dict[str, Any]:
    """A part of the campaign."""
    return campaign.measure(task)
