"""Measure the buffer of section 3.5 at a switch that also loses a frame now and then for no reason."""

from __future__ import annotations

import pytest
from queueing_device import QueueingDevice

from loko_testbed.measure.bench.device import MISSING
from loko_testbed.measure.bench.procedures import buffer

ROOM = 25


class Careless(QueueingDevice):
    """Loses the last frame of the bursts whose numbers are in `careless`."""

    def __init__(self, careless: set[int]) -> None:
        super().__init__(2_000_000, room=ROOM)
        self.careless = careless

    def send(self, gaps_ns, frames):
        passage = super().send(gaps_ns, frames)
        if self.trials in self.careless:
            passage.left_ns[-1] = MISSING
        return passage


@pytest.mark.parametrize("careless", [set(), {1}, {4, 9, 20}])
def test_a_loss_that_does_not_happen_again_is_not_the_buffers(careless) -> None:
    assert buffer.capacity(Careless(careless), 306).frames == ROOM


def test_a_loss_that_happens_again_is() -> None:
    assert buffer.capacity(Careless({4, 5}), 306).frames == 3
