"""Sends in real time: which frames leave together, and what a call carries."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import cast

import pytest

from loko_testbed.measure.slices.live_sender import AT_ONCE, FrameBatch, HostSender, calls


class Paced:
    def __init__(self, together_ns: float) -> None:
        self.together_ns = together_ns


def steps(
    departures: Sequence[tuple[int, float, int]], *paces_ns: float
) -> list[tuple[list[int], float, int]]:
    return list(calls(departures, cast("Sequence[HostSender]", [Paced(pace_ns) for pace_ns in paces_ns])))


def test_only_frames_that_follow_each_other_on_a_fast_link_leave_together() -> None:
    frames = [(0, 0.0, 0), (1, 10.0, 0), (2, 20.0, 0), (3, 50.0, 0)]
    assert steps(frames, 15.0) == [([0, 1, 2], 0.0, 0), ([3], 50.0, 0)]
    assert steps(frames, -1.0) == [([0], 0.0, 0), ([1], 10.0, 0), ([2], 20.0, 0), ([3], 50.0, 0)]
    assert steps([], 15.0) == []


def test_frames_of_two_hosts_keep_their_order() -> None:
    frames = [(0, 0.0, 0), (7, 5.0, 1), (8, 12.0, 1), (1, 20.0, 0)]
    assert steps(frames, 15.0, 15.0) == [([0], 0.0, 0), ([7, 8], 5.0, 1), ([1], 20.0, 0)]


def test_a_call_has_room_for_so_many_frames_only() -> None:
    lengths = [len(numbers) for numbers, *_ in steps([(n, float(n), 0) for n in range(2 * AT_ONCE + 1)], 2.0)]
    assert lengths == [AT_ONCE, AT_ONCE, 1]


def test_a_burst_sends_each_frame_once_and_in_order() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        frames = [bytes([number]) * (60 + number) for number in range(40)]
        FrameBatch(frames).send(ours.fileno())
        assert [theirs.recv(2048) for _ in frames] == frames


def test_a_burst_that_cannot_be_sent_says_why() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.close()
        with pytest.raises(BrokenPipeError):
            FrameBatch([bytes(60)] * 2).send(ours.fileno())
