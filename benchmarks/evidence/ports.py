"""``python -m benchmarks.evidence --ports``: the same for switches with queues for each port."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final

from evaluation.adversary.port_trial import PortTrial, port_trial
from evaluation.executor import Workers
from evaluation.files import write_atomically

RESULT: Final = "ports.json"
_TELL_EVERY_S: Final = 30.0
_SEEDS: Final = 1_000_000
"""Trials of one campaign have seeds of their own: no two campaigns share any."""


def ports(packets: int, trial_packets: int, seed: int, workers: Workers, out: Path) -> bool:
    """Judge about this many packets and write the result; return False as soon as a bound is broken.

    The result depends on the seed and the numbers alone: trials count in their order.
    """
    begin_s = told_s = time.monotonic()
    trials: dict[int, PortTrial] = {}
    tasks = ((seed * _SEEDS + number, trial_packets) for number in count())
    with closing(workers.each_done(_one, tasks)) as done:
        while (chosen := _up_to(trials, seed, packets)) is None:
            _, one = next(done)
            trials[one.seed] = one
            if one.verdict.broken or one.verdict.events:
                print(f"BROKEN: ports, seed {one.seed}: {one.verdict.broken or one.verdict.events}")
                return False
            if time.monotonic() - told_s > _TELL_EVERY_S:
                told_s = time.monotonic()
                have = sum(trial.verdict.packets for trial in trials.values())
                print(f"{have / 1e6:.1f} of {packets / 1e6:.1f} million packets", file=sys.stderr)
    result = _summary(chosen, seed, trial_packets)
    write_atomically(out / RESULT, (json.dumps(result, indent=1) + "\n").encode())
    print(
        f"{result['packets']} packets of {result['flows']} flows in {len(chosen)} trials:"
        f" {result['lost']} lost,"
        f" worst delay {result['worst']:.3f} of its bound; {time.monotonic() - begin_s:.0f} s"
    )
    return True


def _one(task: tuple[int, int]) -> PortTrial:
    seed, packets = task
    return port_trial(seed, packets=packets)


def _up_to(trials: dict[int, PortTrial], seed: int, packets: int) -> list[PortTrial] | None:
    """Return the first trials in order that have enough packets together; None if some are missing."""
    chosen: list[PortTrial] = []
    total = 0
    for one in _in_order(trials, seed):
        chosen.append(one)
        total += one.verdict.packets
        if total >= packets:
            return chosen
    return None


def _in_order(trials: dict[int, PortTrial], seed: int) -> Iterator[PortTrial]:
    for number in count(seed * _SEEDS):
        if number not in trials:
            return
        yield trials[number]


def _summary(trials: list[PortTrial], seed: int, trial_packets: int) -> dict[str, Any]:
    def of(some: list[PortTrial]) -> dict[str, Any]:
        return {
            "trials": len(some),
            "flows": sum(one.flows for one in some),
            "packets": sum(one.verdict.packets for one in some),
            "lost": sum(one.verdict.lost for one in some),
            "worst": max(one.verdict.worst for one in some),
        }

    groups = sorted({(one.profile, one.shape) for one in trials})
    return {
        "seed": seed,
        "trial_packets": trial_packets,
        **of(trials),
        "groups": [
            {"device": device, "shape": shape}
            | of([one for one in trials if (one.profile, one.shape) == (device, shape)])
            for device, shape in groups
        ],
    }
