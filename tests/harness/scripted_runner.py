"""A runner that returns packets made up by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Self

import numpy as np

from loko_testbed.simulation.runner import LOST, HostReport, RunRecords
from loko_testbed.simulation.traffic import Sender
from loko_testbed.simulation.virtual import VirtualRunner

DelaysOf = Callable[[Sender, np.random.Generator], Iterable[int]]
"""Returns the delays in ns of a flow's packets; `LOST` marks a lost one."""


def records(
    delays_ns: Sequence[int], *, flow: int = 0, gap_ns: int = 1_000_000, host: HostReport | None = None
) -> RunRecords:
    """Return the records of one flow whose packets were sent at equal intervals and had these delays."""
    count = len(delays_ns)
    sent = np.arange(count, dtype=np.int64) * gap_ns
    delays = np.array(delays_ns, dtype=np.int64)
    return RunRecords(
        flow=np.full(count, flow, dtype=np.int32),
        sequence=np.arange(count, dtype=np.int64),
        sent_ns=sent,
        received_ns=np.where(delays == LOST, LOST, sent + delays),
        size=np.full(count, 306, dtype=np.int32),
        host=host or HostReport(),
    )


class ScriptedRunner:
    """Answers every run with delays from a function, and counts the runs."""

    carries = VirtualRunner.carries

    def __init__(self, delays_of: DelaysOf) -> None:
        self._delays_of = delays_of
        self.runs = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(
        self, traffic: Sequence[Sender], *, seconds: float, seed: int, echoes_per_s: float = 0
    ) -> RunRecords:
        self.runs += 1
        random = np.random.default_rng(seed)
        parts = [
            records(list(self._delays_of(flow, random)), flow=flow.flow) for flow in traffic if flow.observed
        ]
        columns = ("flow", "sequence", "sent_ns", "received_ns", "size")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
        return RunRecords(**joined, boards={"s1": {"received": 1, "ring_units_peak": self.runs}})
