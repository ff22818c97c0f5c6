"""A switch with a FIFO queue of limited length, whose maximum rate is known."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from loko_testbed.instruments.numbered_frame import FCS_BYTES
from loko_testbed.measure.bench.device import MISSING, TrainTimes
from loko_testbed.measure.bench.equations import LinkTiming


class QueueingDevice:
    """Serves each frame for `service_ns`; frames that find `room` frames in the switch are lost."""

    def __init__(self, service_ns: int, *, room: int = 25) -> None:
        self.name = "queue"
        self.wire = LinkTiming()
        self.now_ns = 0
        self.trials = 0
        self._service_ns = service_ns
        self._room = room

    lateness_ns = 0

    def begin(self, seed: int) -> None: ...

    def unplugged(self) -> None: ...

    def revive(self) -> bool:
        return False

    def load(self, messages: Sequence[bytes]) -> None: ...

    def send(self, gaps_ns: Sequence[int], frames: Sequence[bytes]) -> TrainTimes:
        self.trials += 1
        begin = np.cumsum(gaps_ns)
        arrived = begin + self.wire.preamble_ns + self.wire.time_ns(len(frames[0]) + FCS_BYTES)
        left = np.full(len(frames), MISSING, dtype=np.int64)
        ends: list[int] = []
        for place, now in enumerate(arrived.tolist()):
            if len(ends) - bisect_right(ends, now) >= self._room:
                continue
            ends.append(max(now, ends[-1] if ends else 0) + self._service_ns)
            left[place] = ends[-1]
        return TrainTimes(begin + self.wire.preamble_ns, left, np.zeros(len(frames), dtype=np.bool_))
