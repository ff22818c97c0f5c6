"""The tasks of the predictability study, which are independent of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from loko_testbed.measure.predictability import (
    buffers,
    flow_management,
    independent_services,
    priority_queueing,
    processing_time,
    tag_stack,
    throughput,
)
from loko_testbed.measure.predictability.subject import switch_under_test
from loko_testbed.measure.predictability.table_iii import TimingScenario
from loko_testbed.reproduce.replay.tasks import compute_tasks
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.executor import Result
from loko_testbed.tasks.progress import Progress

_StudyTask = TypeVar("_StudyTask", bound="StudyTask")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTask:
    """Base of all tasks."""

    device: str
    packets: int
    seed: int

    @property
    def text(self) -> str:
        """Text for the display of progress."""
        return self.device


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingTask(StudyTask):
    """Measures processing times in one scenario."""

    place: str
    """Name of the scenario's place in the figure."""
    group: str
    scenario: TimingScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class InterferenceTask(StudyTask):
    """Measures processing times of a high-priority flow beside such traffic; `packets` counts bursts."""

    place: str
    """Name of the case."""
    interference: priority_queueing.InterferingTraffic


@dataclass(frozen=True, slots=True, kw_only=True)
class SnakeTestTask(StudyTask):
    """Sends through a snake test at one rate; at 0, searches the highest rate without loss."""

    frame_bytes: int
    rate_mbps: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FillTask(StudyTask):
    """Fills a table with at most `packets` entries."""

    per_s: int = 0
    wait_s: int = 0
    runs: int = 1
    match: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CongestionTask(StudyTask):
    """Measures what a queue holds beside congested ports and queues; `packets` is not used."""

    frame_bytes: int
    ports: int
    queues: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicesTask(StudyTask):
    """Measures what ports forward together; `packets` is not used."""

    ports: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagStackTask(StudyTask):
    """Measures processing times of frames with this number of tags."""

    tags: int


def compute_each(
    function: Callable[[_StudyTask], Result],
    tasks: Sequence[_StudyTask],
    options: Options,
    progress: Progress,
) -> dict[_StudyTask, Result]:
    """Compute all tasks and return the result of each, in order."""
    results = compute_tasks(function, tasks, options, progress, lambda task: task.text)
    return dict(zip(tasks, results, strict=True))


def processing_times(task: TimingTask) -> NDArray[np.int64] | None:
    """Return processing times in ns; None if the switch refuses the entries."""
    subject = switch_under_test(task.device, most_rate_bps=processing_time.MOST_RATE_BPS)
    return processing_time.measure(subject, task.scenario, packets=task.packets, seed=task.seed)


def queueing_times(task: StudyTask) -> priority_queueing.PriorityDelays:
    """Return processing times of the high-priority flow; `packets` counts bursts."""
    subject = switch_under_test(task.device, most_rate_bps=processing_time.MOST_RATE_BPS)
    return priority_queueing.measure(subject, bursts=task.packets, seed=task.seed)


def interference_delays(task: InterferenceTask) -> priority_queueing.InterferenceDelays:
    """Return processing times of the high-priority flow, alone and beside the task's traffic."""
    subject = switch_under_test(task.device, most_rate_bps=processing_time.MOST_RATE_BPS)
    return priority_queueing.measure_beside(subject, task.interference, bursts=task.packets, seed=task.seed)


def received_rate(task: SnakeTestTask) -> throughput.RateResult:
    """Return the rate received at the end of the snake test."""
    subject = switch_under_test(task.device)
    return throughput.measure(subject, task.frame_bytes, task.rate_mbps, packets=task.packets, seed=task.seed)


def lossless_rate(task: SnakeTestTask) -> throughput.LosslessRate:
    """Return the highest rate without loss."""
    return throughput.find(
        switch_under_test(task.device), task.frame_bytes, packets=task.packets, seed=task.seed
    )


def fill_at_rate(task: FillTask) -> tuple[flow_management.Fill, list[int]]:
    """Return what became of the entries, and the numbers of those by which the switch forwards."""
    subject = switch_under_test(task.device)
    return flow_management.fill_at_rate(subject, task.per_s, at_most=task.packets, seed=task.seed)


def age(task: FillTask) -> list[flow_management.Fill]:
    """Return what became of the entries in each run."""
    subject = switch_under_test(task.device)
    return flow_management.age(
        subject, wait_s=task.wait_s, runs=task.runs, at_most=task.packets, seed=task.seed, per_s=task.per_s
    )


def alternate(task: FillTask) -> dict[str, list[int]]:
    """Return the numbers of entries accepted in each run, by action."""
    subject = switch_under_test(task.device)
    return flow_management.alternate(subject, runs=task.runs, at_most=task.packets, seed=task.seed)


def fill_paced(task: FillTask) -> flow_management.PacedFill:
    """Return the number of entries over time."""
    return flow_management.fill_paced(switch_under_test(task.device), at_most=task.packets, seed=task.seed)


def table_sizes(task: FillTask) -> dict[str, int]:
    """Return the table sizes for one match, by action."""
    return flow_management.sizes(
        switch_under_test(task.device), task.match, at_most=task.packets, seed=task.seed
    )


def queue_capacity(task: CongestionTask) -> buffers.QueueCapacity | None:
    """Return what the highest queue of a port holds."""
    subject = switch_under_test(task.device)
    return buffers.measure(subject, task.ports, task.queues, seed=task.seed, frame_bytes=task.frame_bytes)


def tag_stack_times(task: TagStackTask) -> NDArray[np.int64] | None:
    """Return processing times in ns; None if the switch refuses the entry."""
    subject = switch_under_test(task.device, most_rate_bps=processing_time.MOST_RATE_BPS)
    return tag_stack.measure(subject, task.tags, packets=task.packets, seed=task.seed)


def forwarded_together(task: ServicesTask) -> dict[frozenset[int], float]:
    """Return the frames per second that come out while trains enter each set of ports."""
    return independent_services.measure(switch_under_test(task.device), task.ports, seed=task.seed)
