"""Sends the frames of a host by packet sockets, in real time: one by one at its link's pace, or at once."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from loko_testbed.instruments.packet_tap import packet_socket

_IPV4: Final = 0x0800
_EXPERIMENTAL: Final = 0x88B5
"""EtherType for local experiments (IEEE 802): no entry of a sliced switch is for what comes so."""
_NUMBER_BYTES: Final = 4
_KERNELS_NS: Final = 3_000
"""More than the kernel takes to send a frame, and less than a loop in Python.

A burst for a link that needs less time for a frame is handed over by one call.
"""
AT_ONCE: Final = 1024
"""The most frames of one call, sendmmsg(2)."""
_WAKE_AHEAD_NS: Final = (250_000, 50_000)
"""How long before a burst its switch is woken: early enough to be ready, and again lest it falls asleep."""


class HostSender:
    """Sends the frames of one host, no faster than its link."""

    def __init__(
        self, interface: str, frame: bytes, *, sequence_offset: int, slot_ns: float, spins: bool
    ) -> None:
        """`slot_ns`: transmission time of a frame. `spins`: whether to spin until it is due, or to sleep."""
        self._socket = packet_socket(interface, _IPV4, never_waits=True)
        self._frame = bytearray(frame)
        self._place = slice(sequence_offset, sequence_offset + _NUMBER_BYTES)
        self._slot_ns = slot_ns
        self._spins = spins
        self._free_ns = 0.0

    @property
    def together_ns(self) -> float:
        """How soon after another a frame has to be due to leave by the same call; negative for none."""
        return 1.5 * self._slot_ns if self._slot_ns < _KERNELS_NS else -1.0

    def send(self, numbers: Sequence[int], due_ns: float) -> None:
        """Send the frames of these numbers when the first is due and the link is free."""
        at_ns = max(due_ns, self._free_ns)
        frames = [self._numbered(number) for number in numbers]
        burst = FrameBatch(frames) if len(frames) > 1 else None
        while (now_ns := time.monotonic_ns()) < at_ns:
            if not self._spins:
                time.sleep((at_ns - now_ns) / 1e9)
        if burst is None:
            self._socket.send(frames[0])
        else:
            burst.send(self._socket.fileno())
        self._free_ns = now_ns + len(numbers) * self._slot_ns

    def _numbered(self, number: int) -> bytes:
        self._frame[self._place] = number.to_bytes(_NUMBER_BYTES, "big")
        return bytes(self._frame)


def calls(
    departures: Iterable[tuple[int, float, int]], senders: Sequence[HostSender]
) -> Iterator[tuple[list[int], float, int]]:
    """Yield the frames of each call: their numbers, when they are due, and which sender sends them.

    `departures`: number, departure and sender of each frame, in order of departure. On links too fast for a
    loop, frames leave together that follow each other at the link's pace.
    """
    numbers: list[int] = []
    first_ns = last_ns = 0.0
    sender = 0
    for number, departure_ns, which in departures:
        follows = which == sender and departure_ns - last_ns <= senders[which].together_ns
        if numbers and not (follows and len(numbers) < AT_ONCE):
            yield numbers, first_ns, sender
            numbers = []
        if not numbers:
            first_ns, sender = departure_ns, which
        numbers.append(number)
        last_ns = departure_ns
    if numbers:
        yield numbers, first_ns, sender


class Waker:
    """Wakes a switch before a burst, by frames from its other side that it drops.

    Otherwise the first frame of a burst wakes it, within the sender's own call, which tears the burst apart.
    """

    def __init__(self, interface: str, namespace: Path | None = None) -> None:
        """`namespace` is the file of the interface's network namespace, if that is another one."""
        self._socket = packet_socket(interface, _EXPERIMENTAL, namespace=namespace, never_waits=True)
        self._frame = bytes(12) + _EXPERIMENTAL.to_bytes(2, "big") + bytes(46)

    def wake(self, due_ns: float) -> None:
        """Wake the switch, so that it is ready for a burst that is due then."""
        for ahead_ns in _WAKE_AHEAD_NS:
            while time.monotonic_ns() < due_ns - ahead_ns:
                pass
            self._socket.send(self._frame)


class _IoVector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class _Header(ctypes.Structure):
    """`struct msghdr`."""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("vectors", ctypes.POINTER(_IoVector)),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class _Message(ctypes.Structure):
    """`struct mmsghdr`."""

    _fields_ = [("header", _Header), ("sent", ctypes.c_uint)]


_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class FrameBatch:
    """Frames that are ready to leave by one system call."""

    def __init__(self, frames: Sequence[bytes]) -> None:
        self._vectors = (_IoVector * len(frames))(*[_IoVector(frame, len(frame)) for frame in frames])
        self._messages = (_Message * len(frames))()
        for message, vector in zip(self._messages, self._vectors, strict=True):
            message.header.vectors, message.header.vector_count = ctypes.pointer(vector), 1

    def send(self, descriptor: int) -> None:
        """Send all frames. Raises `OSError`."""
        done, count = 0, len(self._messages)
        while done < count:
            from_here = ctypes.byref(self._messages, done * ctypes.sizeof(_Message))
            sent = _LIBC.sendmmsg(descriptor, from_here, count - done, 0)
            if sent < 0:
                if (number := ctypes.get_errno()) == errno.EINTR:
                    continue
                raise OSError(number, os.strerror(number))
            done += sent
