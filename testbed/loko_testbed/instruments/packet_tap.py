"""A tap: stamps what passes an interface, by the network card's clock if it has one, else the kernel's."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

from loko.units import NS_PER_S
from loko_testbed.instruments.network_namespace import inside
from loko_testbed.simulation.runner import RunError

_ETH_P_ALL: Final = 3
_SOL_PACKET: Final = 263
_PACKET_STATISTICS: Final = 6
_PACKET_IGNORE_OUTGOING: Final = 23
_PACKET_OUTGOING: Final = 4
_SO_SNDBUFFORCE: Final = 32
_SO_RCVBUFFORCE: Final = 33
_RECEIVE_QUEUE_BYTES: Final = 1 << 28
"""Holds a train of the longest frames, with their bookkeeping, until the train has passed."""
_SEND_QUEUE_BYTES: Final = 1 << 26
"""Frames count for their sender's socket until they leave the queues of tc, if all is in the kernel."""
_SNAP_BYTES: Final = 2048
_CONTROL_BYTES: Final = 256

_SO_TIMESTAMPNS: Final = 35
_SO_TIMESTAMPING: Final = 37
_RX_HARDWARE: Final = 1 << 2
_RX_SOFTWARE: Final = 1 << 3
_SOFTWARE: Final = 1 << 4
_RAW_HARDWARE: Final = 1 << 6
_STAMP: Final = struct.Struct("=2q")
"""`struct timespec`."""
_HARDWARE_STAMP_AT: Final = 2 * _STAMP.size
"""In `struct scm_timestamping`, which begins with the kernel's stamp."""

_SIOCSHWTSTAMP: Final = 0x89B0
_SIOCETHTOOL: Final = 0x8946
_ETHTOOL_GET_TS_INFO: Final = 0x41
_FILTER_ALL: Final = 1
_NAME_BYTES: Final = 16


class TappedFrame(NamedTuple):
    """A frame that a tap saw, without FCS."""

    at_ns: int
    """When it started, by the clock of the tap."""
    outgoing: bool
    """Whether this machine sent the frame."""
    data: bytes


@dataclass(frozen=True, slots=True)
class TapClock:
    """The clock that a tap could stamp with."""

    hardware_index: int | None
    """Number of the network card's clock; None if the card does not stamp every frame that it receives."""
    passive: bool
    """Whether the tap only receives. A card does not stamp, for a tap, what it sends itself."""


def stamps_in_hardware(clocks: list[TapClock]) -> bool:
    """Return whether one card's clock can stamp for all taps. Never compare stamps of two clocks."""
    indices = {clock.hardware_index for clock in clocks}
    return len(indices) == 1 and None not in indices and all(clock.passive for clock in clocks)


def clock_of(interface: str, *, passive: bool) -> TapClock:
    """Ask the kernel for an interface's clock."""
    # struct ethtool_ts_info: cmd, so_timestamping, phc_index, tx_types, 3 reserved, rx_filters, 3 reserved
    request = bytearray(struct.pack("=IIiI3II3I", _ETHTOOL_GET_TS_INFO, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0))
    try:
        _interface_control(interface, _SIOCETHTOOL, request)
    except OSError:
        return TapClock(None, passive)
    _, offered, index, _, _, _, _, filters, *_ = struct.unpack("=IIiI3II3I", request)
    needed = _RX_HARDWARE | _RAW_HARDWARE
    able = offered & needed == needed and filters & (1 << _FILTER_ALL) and index >= 0
    return TapClock(index if able else None, passive)


class PacketTap:
    """A packet socket that sees every frame of an interface in both directions."""

    def __init__(
        self,
        interface: str,
        *,
        hardware: bool = False,
        needs_stamps: bool = True,
        is_inbound_only: bool = False,
        namespace: Path | None = None,
        kept_bytes: int = _SNAP_BYTES,
        room_bytes: int = _RECEIVE_QUEUE_BYTES,
    ) -> None:
        """Start watching, with stamps of the card or the kernel. Raises `RunError`.

        The kernel begins to stamp a while after it was asked to. A tap with `needs_stamps` refuses a frame
        without a stamp; for others, such a frame has the time at which it is read. `namespace` is the file of
        the interface's network namespace, if that is another one. `kept_bytes` of each frame are kept, and
        `room_bytes` hold frames that nobody has read. A tap that `is_inbound_only` does not see what this
        machine sends.
        """
        self.interface = interface
        self._kept_bytes = kept_bytes
        self._stamps = _SO_TIMESTAMPING if needs_stamps else _SO_TIMESTAMPNS
        self._stamp_at = _HARDWARE_STAMP_AT if hardware else 0
        self._socket = packet_socket(interface, 0, namespace=namespace)
        options = _RX_SOFTWARE | _SOFTWARE
        if hardware:
            self._switch_stamps_on()
            options |= _RX_HARDWARE | _RAW_HARDWARE
        self._socket.setsockopt(socket.SOL_SOCKET, self._stamps, options if needs_stamps else 1)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, room_bytes)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, int(is_inbound_only))
        self._socket.bind((interface, _ETH_P_ALL))
        self._socket.setblocking(False)

    def _switch_stamps_on(self) -> None:
        try:
            _interface_control(
                self.interface, _SIOCSHWTSTAMP, bytearray(struct.pack("=3i", 0, 0, _FILTER_ALL))
            )
        except OSError as error:
            raise RunError(
                f"tap {self.interface}: its card refuses to stamp every frame:"
                f" {os.strerror(error.errno or 0).lower()}"
            ) from None

    def read(self, *, timeout_s: float = 0.0) -> list[TappedFrame]:
        """Return new frames; wait up to `timeout_s` for the first. Raises `RunError` if any were missed."""
        frames = self.drain(timeout_s=timeout_s)
        if missed := self.missed():
            raise RunError(f"tap {self.interface}: missed {missed} frames: the machine is too busy for this")
        return frames

    def drain(self, *, timeout_s: float = 0.0, most: int | None = None) -> list[TappedFrame]:
        """Return new frames as `read` does, at most so many; only `missed` says whether any were missed."""
        frames: list[TappedFrame] = []
        if timeout_s and not select.select([self._socket], [], [], timeout_s)[0]:
            return frames
        receive, kept_bytes, stamps, at = self._socket.recvmsg, self._kept_bytes, self._stamps, self._stamp_at
        while len(frames) != most:
            try:
                data, control, _, address = receive(kept_bytes, _CONTROL_BYTES)
            except BlockingIOError:
                return frames
            except OSError as error:
                if error.errno != errno.ENETDOWN:
                    raise
                continue  # told once when the interface goes down; the socket sees frames when it is up again
            for _, kind, stamp in control:
                if kind == stamps:
                    seconds, nanoseconds = _STAMP.unpack_from(stamp, at)
                    break
            else:
                raise RunError(f"tap {self.interface}: the kernel gives a frame without a stamp")
            frames.append(TappedFrame(seconds * NS_PER_S + nanoseconds, address[2] == _PACKET_OUTGOING, data))
        return frames

    def missed(self) -> int:
        """Return how many frames the tap had no room for since the last call."""
        return missed_frames(self._socket)

    def purge(self) -> None:
        """Drop all frames seen until now."""
        while True:
            try:
                self._socket.recvmsg(1, 0)
            except BlockingIOError:
                return

    def close(self) -> None:
        """Stop watching."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def packet_socket(
    interface: str, protocol: int, *, namespace: Path | None = None, never_waits: bool = False
) -> socket.socket:
    """Open a raw socket bound to an interface. With protocol 0 it only sends. Raises `RunError`.

    `namespace` is the file of the interface's network namespace, if that is another one. A sender that
    `never_waits` has room for all frames that wait in the kernel.
    """
    try:
        with contextlib.nullcontext() if namespace is None else inside(namespace):
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError:
        raise RunError("no permission to open raw sockets: run it as root") from None
    try:
        if never_waits:
            opened.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _SEND_QUEUE_BYTES)
        opened.bind((interface, protocol))
    except OSError as error:
        opened.close()
        raise RunError(f"interface {interface}: {os.strerror(error.errno or 0).lower()}") from None
    return opened


def stamping_socket() -> socket.socket:
    """Return a socket that keeps the kernel stamping every frame: it begins a while after it was asked to."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _RX_SOFTWARE | _SOFTWARE)
    return opened


def missed_frames(opened: socket.socket) -> int:
    """Return how many frames a packet socket had no room for since the last call."""
    _, missed = struct.unpack("=II", opened.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
    return int(missed)


def _interface_control(interface: str, request: int, data: bytearray) -> None:
    """Make an ioctl with a `struct ifreq` that points to `data`, which the kernel may change."""
    memory = (ctypes.c_char * len(data)).from_buffer(data)
    name = interface.encode()[: _NAME_BYTES - 1].ljust(_NAME_BYTES, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        fcntl.ioctl(opened, request, name + struct.pack("@P16x", ctypes.addressof(memory)))
