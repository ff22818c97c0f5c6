"""Run trials, here or on a cluster, until enough packets were carried or a guarantee was broken.

This does not use points of `loko_testbed.reproduce.replay`: records of a thousand million packets are too
large to keep, and each trial draws its own lab, flows and senders from its seed. Trials are tasks of
`loko_testbed.tasks.executor`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from itertools import count

from benchmarks.evidence.record import Journal, PortRecord, R, TrialRecord, campaign_seed, up_to
from loko_testbed.simulation.worst_case.port_trial import changing_port_trial, port_trial
from loko_testbed.simulation.worst_case.trial import run_trial
from loko_testbed.tasks.executor import Workers

TrialTask = tuple[int, int, int]
"""A trial's number in the campaign, its own seed, and about how many packets it carries."""
Tell = Callable[[int, int, float], None]
"""Called after each trial with packets so far, packets wanted, and the estimated seconds left."""


class BrokenGuaranteeError(Exception):
    """A guarantee did not hold in a trial."""

    def __init__(self, record: TrialRecord | PortRecord) -> None:
        super().__init__(f"seed {record.seed}: {record.lost} packets lost, {record.broken} flows broken")
        self.record = record


def continue_campaign(
    journal: Journal[R],
    carry_out: Callable[[TrialTask], R],
    *,
    packets: int,
    trial_packets: int,
    seed: int,
    workers: Workers,
    tell: Tell,
) -> list[R]:
    """Carry out missing trials, and return those that together have at least `packets` packets.

    Raises `BrokenGuaranteeError` for the first trial, in order, that fails, and what
    `loko_testbed.tasks.executor.each_done` raises. If the process is killed, only unfinished trials are lost.
    """
    begin_s, begin_packets = time.monotonic(), sum(record.packets for record in journal.records.values())
    there = frozenset(journal.records)
    missing = (
        (number, campaign_seed(seed, number), trial_packets) for number in count() if number not in there
    )
    with closing(workers.each_done(carry_out, missing)) as done:
        while (chosen := up_to(journal.records, packets)) is None:
            _refuse_broken(journal)
            _, record = next(done)
            journal.add(record)
            have = sum(record.packets for record in journal.records.values())
            rate = (have - begin_packets) / (time.monotonic() - begin_s)
            tell(have, packets, max(0.0, packets - have) / rate if rate else 0.0)
    _refuse_broken(journal)
    return chosen


def _refuse_broken(journal: Journal[R]) -> None:
    broken = [record for record in journal.records.values() if record.failed]
    if broken:
        raise BrokenGuaranteeError(min(broken, key=lambda record: record.number))


def trial_of(task: TrialTask) -> TrialRecord:
    """Carry out a trial on boards."""
    number, seed, trial_packets = task
    return TrialRecord.of(number, run_trial(seed, packets=trial_packets))


def port_trial_of(task: TrialTask) -> PortRecord:
    """Carry out a trial on switches with queues for each port."""
    number, seed, trial_packets = task
    return PortRecord.of(number, port_trial(seed, packets=trial_packets))


def changing_port_trial_of(task: TrialTask) -> PortRecord:
    """Carry out a trial on such switches while flows come and go, which sends all that is planned."""
    number, seed, _ = task
    return PortRecord.of(number, changing_port_trial(seed))
