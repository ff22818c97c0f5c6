"""Run trials, here or on a cluster, until enough packets were carried or a guarantee was broken.

This does not use points of `evaluation.replay`: records of a thousand million packets are too large to keep,
and each trial draws its own lab, flows and senders from its seed. Trials are tasks of `evaluation.executor`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from itertools import count

from benchmarks.evidence.record import Journal, TrialRecord, campaign_seed, up_to
from evaluation.adversary.trial import trial
from evaluation.executor import Workers

Tell = Callable[[int, int, float], None]
"""Called after each trial with packets so far, packets wanted, and the estimated seconds left."""


class BrokenGuaranteeError(Exception):
    """A guarantee did not hold in a trial."""

    def __init__(self, record: TrialRecord) -> None:
        super().__init__(f"seed {record.seed}: {record.lost} packets lost, {record.broken} flows broken")
        self.record = record


def carry_on(
    journal: Journal,
    *,
    packets: int,
    trial_packets: int,
    seed: int,
    workers: Workers,
    tell: Tell,
) -> list[TrialRecord]:
    """Carry out missing trials, and return those that together have at least `packets` packets.

    Raises `BrokenGuaranteeError` for the first trial, in order, that fails, and what
    `evaluation.executor.each_done` raises. If the process is killed, only unfinished trials are lost.
    """
    begin_s, begin_packets = time.monotonic(), sum(record.packets for record in journal.records.values())
    there = frozenset(journal.records)
    missing = (
        (number, campaign_seed(seed, number), trial_packets) for number in count() if number not in there
    )
    with closing(workers.each_done(_one, missing)) as done:
        while (chosen := up_to(journal.records, packets)) is None:
            _refuse_broken(journal)
            _, record = next(done)
            journal.add(record)
            have = sum(record.packets for record in journal.records.values())
            rate = (have - begin_packets) / (time.monotonic() - begin_s)
            tell(have, packets, max(0.0, packets - have) / rate if rate else 0.0)
    _refuse_broken(journal)
    return chosen


def _refuse_broken(journal: Journal) -> None:
    broken = [record for record in journal.records.values() if record.failed]
    if broken:
        raise BrokenGuaranteeError(min(broken, key=lambda record: record.number))


def _one(task: tuple[int, int, int]) -> TrialRecord:
    number, seed, trial_packets = task
    return TrialRecord.of(number, trial(seed, packets=trial_packets))
