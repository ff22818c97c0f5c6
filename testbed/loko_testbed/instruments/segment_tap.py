"""A tap for a transfer over TCP: the kernel notes headers and times of what passes an interface, in a ring.

Nothing reads while the transfer runs, which would take its time from the switch. The ring has room for all.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from loko_testbed.instruments.packet_tap import missed_frames, packet_socket
from loko_testbed.simulation.runner import RunError

_ALL_PROTOCOLS: Final = 0x0003
_SOL_PACKET: Final = 263
_PACKET_RX_RING, _PACKET_VERSION, _VERSION_2 = 5, 10, 1
_OUTGOING: Final = 4
_TCP: Final = 6
_SLOT_BYTES: Final = 128
_BLOCK_BYTES: Final = 1 << 16
_MAC_AT: Final = 66
"""Offset of an Ethernet frame in its slot, after the kernel's description of it."""
_SLOT: Final = np.dtype(
    {
        "names": ["status", "mac", "s", "ns", "kind", "bytes", "id", "protocol", "port", "sequence"],
        "formats": ["=u4", "=u2", "=u4", "=u4", "u1", ">u2", ">u2", "u1", ">u2", ">u4"],
        "offsets": [0, 12, 16, 20, 42, *(_MAC_AT + offset for offset in (16, 18, 23, 34, 38))],
        "itemsize": _SLOT_BYTES,
    }
)
"""Fields that are read from a slot: `struct tpacket2_hdr`, `struct sockaddr_ll`, IPv4 and TCP headers."""


class Segments(NamedTuple):
    """Full segments that passed a tap, in order."""

    at_ns: NDArray[np.int64]
    """Time stamps of the machine's clock."""
    key: NDArray[np.int64]
    """IP identification and TCP sequence number of each segment: a retransmission has another key."""


class SegmentTap:
    """A packet socket with a ring, at an interface of a network namespace."""

    def __init__(self, interface: str, namespace: Path, *, room: int) -> None:
        """Begin to note; `room` is the number of frames, in both directions. Raises `RunError`."""
        slots_of_block = _BLOCK_BYTES // _SLOT_BYTES
        blocks = -(-room // slots_of_block)
        self._socket = packet_socket(interface, 0, namespace=namespace)
        self._interface = interface
        try:
            self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _VERSION_2)
            ring = struct.pack("=4I", _BLOCK_BYTES, blocks, _SLOT_BYTES, blocks * slots_of_block)
            self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, ring)
            self._ring = mmap.mmap(self._socket.fileno(), blocks * _BLOCK_BYTES)
            self._socket.bind((interface, _ALL_PROTOCOLS))
        except OSError as error:
            self._socket.close()
            raise RunError(f"tap {interface}: no ring for {room} frames ({error.strerror})") from None

    def segments(self, *, outgoing: bool, ip_bytes: int) -> Segments:
        """Return the segments of this length that passed in one direction.

        Raises `RunError` if the ring had no room for some.
        """
        if missed := missed_frames(self._socket):
            raise RunError(f"tap {self._interface}: missed {missed} frames: make seconds shorter")
        slots = np.frombuffer(self._ring, _SLOT).copy()
        slots = slots[(slots["status"] != 0) & (slots["mac"] == _MAC_AT)]
        its_way = (slots["kind"] == _OUTGOING) == outgoing
        slots = slots[its_way & (slots["protocol"] == _TCP) & (slots["bytes"] == ip_bytes)]
        at_ns = slots["s"].astype(np.int64) * 1_000_000_000 + slots["ns"]
        return Segments(at_ns, slots["id"].astype(np.int64) << 32 | slots["sequence"])

    def close(self) -> None:
        """End noting."""
        self._ring.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()
