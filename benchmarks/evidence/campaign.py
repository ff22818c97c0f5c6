"""Trial after trial on all cores, until enough packets were carried or a guarantee was broken."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Final

from benchmarks.evidence.record import Journal, TrialRecord, campaign_seed, up_to
from evaluation.adversary.trial import trial

_AHEAD: Final = 4
"""Trials that each process has been given."""

Tell = Callable[[int, int, float], None]
"""Told after each trial: packets so far, packets wanted, seconds left by estimate."""


class BrokenGuaranteeError(Exception):
    """A trial in which a guarantee did not hold."""

    def __init__(self, record: TrialRecord) -> None:
        super().__init__(f"seed {record.seed}: {record.lost} packets lost, {record.broken} flows broken")
        self.record = record


def carry_on(
    journal: Journal, *, packets: int, trial_packets: int, seed: int, jobs: int, tell: Tell
) -> list[TrialRecord]:
    """Carry out what is missing and return the trials that have so many packets together.

    Raises `BrokenGuaranteeError` for the first trial, in order, that fails. A kill loses only the trials
    under way.
    """
    begin_s, begin_packets = time.monotonic(), sum(record.packets for record in journal.records.values())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_leave_interrupts_to_the_parent) as pool:
        running: set[Future[TrialRecord]] = set()
        following = 0
        while (chosen := up_to(journal.records, packets)) is None:
            _refuse_broken(journal)
            while len(running) < _AHEAD * jobs:
                if following not in journal.records:
                    running.add(pool.submit(_one, following, campaign_seed(seed, following), trial_packets))
                following += 1
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                journal.add(future.result())
            have = sum(record.packets for record in journal.records.values())
            rate = (have - begin_packets) / (time.monotonic() - begin_s)
            tell(have, packets, max(0.0, packets - have) / rate if rate else 0.0)
        for future in running:
            future.cancel()
    _refuse_broken(journal)
    return chosen


def _refuse_broken(journal: Journal) -> None:
    broken = [record for record in journal.records.values() if record.failed]
    if broken:
        raise BrokenGuaranteeError(min(broken, key=lambda record: record.number))


def _one(number: int, seed: int, trial_packets: int) -> TrialRecord:
    return TrialRecord.of(number, trial(seed, packets=trial_packets))


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
