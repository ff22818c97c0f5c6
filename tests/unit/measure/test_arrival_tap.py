"""The arrival tap infers from two listeners when the switch's own turn comes."""

from __future__ import annotations

from typing import ClassVar

import pytest

from loko_testbed.instruments.packet_tap import TappedFrame
from loko_testbed.measure.bench.live import arrival_tap
from loko_testbed.measure.bench.live.arrival_tap import ArrivalTap


class Listener:
    """Stands in for a packet socket. The newest one gets each frame first."""

    opened: ClassVar[list[Listener]] = []

    def __init__(self, interface: str) -> None:
        self.interface = interface
        self.frames: list[TappedFrame] = []
        self.closed = False
        Listener.opened.append(self)

    def read(self, *, timeout_s: float = 0.0) -> list[TappedFrame]:
        del timeout_s
        frames, self.frames = self.frames, []
        return frames

    def purge(self) -> None:
        self.frames = []

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def tap(monkeypatch: pytest.MonkeyPatch) -> ArrivalTap:
    Listener.opened = []
    monkeypatch.setattr(arrival_tap, "PacketTap", Listener)
    return ArrivalTap("port")


def arrives(frame: bytes, *, at_ns: int, turn_ns: int) -> None:
    """Let a frame pass the listeners, the newest one first."""
    for turn, listener in enumerate(reversed(Listener.opened[-2:])):
        listener.frames.append(TappedFrame(at_ns + turn * turn_ns, False, frame))


def test_the_switch_has_its_turn_as_long_after_the_second_as_that_after_the_first(tap: ArrivalTap) -> None:
    arrives(b"request", at_ns=1_000_000, turn_ns=900)
    arrives(b"another", at_ns=2_000_000, turn_ns=1_100)
    assert [sighting.at_ns for sighting in tap.read()] == [1_001_800, 2_002_200]


def test_what_is_stamped_once_has_that_stamp(tap: ArrivalTap) -> None:
    arrives(b"frame", at_ns=5_000, turn_ns=0)
    assert [sighting.at_ns for sighting in tap.read()] == [5_000]


def test_a_frame_that_only_the_first_one_has_seen_waits_for_the_second(tap: ArrivalTap) -> None:
    arrives(b"one", at_ns=0, turn_ns=10)
    second, first = Listener.opened
    first.frames.append(TappedFrame(100, False, b"two"))
    assert [sighting.at_ns for sighting in tap.read()] == [20]
    second.frames.append(TappedFrame(110, False, b"two"))
    assert [sighting.at_ns for sighting in tap.read()] == [120]


def test_both_have_their_turns_before_a_program_that_began_anew(tap: ArrivalTap) -> None:
    before = list(Listener.opened)
    tap.renew()
    assert all(sock.closed for sock in before)
    arrives(b"request", at_ns=0, turn_ns=5)
    assert [sighting.at_ns for sighting in tap.read()] == [10]


def test_what_is_forgotten_is_not_paired(tap: ArrivalTap) -> None:
    arrives(b"same", at_ns=0, turn_ns=5)
    tap.purge()
    arrives(b"same", at_ns=1_000, turn_ns=5)
    assert [sighting.at_ns for sighting in tap.read()] == [1_010]
