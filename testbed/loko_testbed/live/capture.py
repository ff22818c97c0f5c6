"""Taps: tcpdump at the hosts' interfaces with nanosecond kernel time stamps, joined by flow and sequence.

A host's tap sees what it sends after its token bucket and what it receives before its protocol stack. A veth
has no line rate: frames of a burst pass the tap microseconds apart. `line_times` gives the instants at which
the sender's 100 Mbit/s line would have carried them, and these are the records' `sent_ns`.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loko.topology.frame import HEADERS_BYTES
from loko_testbed.instruments.arrivals import arrivals
from loko_testbed.instruments.programs import require, tail, wait_for_words
from loko_testbed.instruments.timeouts import scaled_timeout
from loko_testbed.live.generator import FLOW_OFFSET_BYTES, SEQUENCE_OFFSET_BYTES, message_flow
from loko_testbed.live.shaping import FCS_BYTES
from loko_testbed.simulation.runner import RunError
from loko_testbed.simulation.traffic import Sender

SNAP_BYTES = HEADERS_BYTES + SEQUENCE_OFFSET_BYTES + 4
"""How much of a frame is kept: up to the sequence number. Every UDP frame of mgen is longer."""

BYTE_NS = 80
"""One byte on a 100 Mbit/s line."""

PREAMBLE_AND_GAP_BYTES = 20

_NANOSECOND_MAGIC = 0xA1B23C4D
_FILE_HEADER_BYTES = 24
_BUFFER_KIB = 16 * 1024
_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 10.0

_FRAME = np.dtype(
    {
        "names": ["seconds", "nanoseconds", "kept", "length", "source", "destination", "flow", "sequence"],
        "formats": ["=u4", "=u4", "=u4", "=u4", ">u4", ">u4", ">u4", ">u4"],
        "offsets": [
            *(0, 4, 8, 12),
            *(16 + 14 + 12, 16 + 14 + 16),
            *(16 + HEADERS_BYTES + FLOW_OFFSET_BYTES, 16 + HEADERS_BYTES + SEQUENCE_OFFSET_BYTES),
        ],
        "itemsize": 16 + SNAP_BYTES,
    }
)
"""A record of a capture file (libpcap, nanoseconds) that keeps exactly `SNAP_BYTES` of an mgen datagram."""

CapturedFrames = NDArray[np.void]
"""Captured frames, fields as in `_FRAME`."""


class TcpdumpTap:
    """A running tcpdump at a host's interface."""

    def __init__(self, host: str, interface: str, prefix: Sequence[str], folder: Path) -> None:
        """Start capturing; `wait` says when it does."""
        self._host = host
        self._file = folder / f"{host}.pcap"
        self._log = folder / f"{host}.tcpdump.log"
        command = [require("tcpdump"), "-i", interface, "-w", str(self._file), "-Z", "root", "-n", "-p"]
        command += ["--time-stamp-precision=nano", "-s", str(SNAP_BYTES), "-B", str(_BUFFER_KIB), "udp"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*prefix, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log
            )

    def wait(self) -> None:
        """Wait until the tap captures. Raises `RunError` if it does not begin."""
        complaint = f"{self._host}: tcpdump does not start"
        wait_for_words("listening on", self._process, self._log, _START_TIMEOUT_S, complaint)

    def stop(self) -> CapturedFrames:
        """End capturing and return the frames. Raises `RunError` if the kernel had to drop some."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(timeout=scaled_timeout(_STOP_TIMEOUT_S))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise RunError(f"{self._host}: tcpdump does not end: {tail(self._log)}") from None
        refuse_incomplete(self._host, self._log.read_text(encoding="utf-8", errors="replace"))
        return read_frames(self._file)

    def cancel(self) -> None:
        """End capturing, whatever it has seen."""
        self._process.kill()
        self._process.wait()


def refuse_incomplete(host: str, log: str) -> None:
    """Raise `RunError` unless tcpdump's log says that it wrote every frame that it should."""
    counts = [
        re.search(rf"(\d+) packets? {what}", log)
        for what in ("captured", "received by filter", "dropped by kernel")
    ]
    if not all(counts):
        said = " | ".join(log.strip().splitlines()) or "empty log"
        raise RunError(f"{host}: tcpdump failed: {said}")
    captured, received, dropped = (int(count[1]) for count in counts if count)
    missed = dropped + received - captured
    if missed:
        raise RunError(f"{host}: the tap missed {missed} frames: the machine is too busy for this traffic")


def read_frames(path: Path) -> CapturedFrames:
    """Read a tap's capture file. Raises `RunError` if it is not one."""
    data = path.read_bytes()
    if len(data) < _FILE_HEADER_BYTES or int(np.frombuffer(data, "=u4", 1)[0]) != _NANOSECOND_MAGIC:
        raise RunError(f"{path}: not a capture file with nanosecond stamps")
    body = memoryview(data)[_FILE_HEADER_BYTES:]
    whole = len(body) // _FRAME.itemsize * _FRAME.itemsize
    frames = np.frombuffer(body[:whole], _FRAME)
    if whole != len(body) or np.any(frames["kept"] != SNAP_BYTES):
        raise RunError(f"{path}: holds frames that mgen did not send: is something else using the lab?")
    return frames


def stamps_ns(frames: CapturedFrames) -> NDArray[np.int64]:
    """Return the frames' time stamps, in ns since 1970."""
    seconds: NDArray[np.int64] = frames["seconds"].astype(np.int64)
    return seconds * 1_000_000_000 + frames["nanoseconds"].astype(np.int64)


def line_times(stamps: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return when a 100 Mbit/s line that sends in the order of `stamps` begins each frame.

    sent'_i = max(stamp_i, sent'_{i-1} + (l_{i-1} + 20 bytes) x 80 ns); sizes are l, with FCS.
    """
    if not len(stamps):
        return stamps
    busy = np.concatenate(([0], np.cumsum((sizes[:-1] + PREAMBLE_AND_GAP_BYTES) * BYTE_NS)))
    times: NDArray[np.int64] = np.maximum.accumulate(stamps - busy) + busy
    return times


def sent_by(host: IPv4Address, frames: CapturedFrames) -> tuple[CapturedFrames, NDArray[np.int64]]:
    """Return the frames that a host sent, in order, with the instants on its line."""
    sent = frames[frames["source"] == int(host)]
    return sent, line_times(stamps_ns(sent), sent["length"].astype(np.int64) + FCS_BYTES)


def join(
    flow: Sender, sent: tuple[CapturedFrames, NDArray[np.int64]], received: CapturedFrames
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Match both taps' frames of a flow: (sequence, sent, received or `LOST`), in order of the sequence.

    Raises `RunError` if the sender's tap saw a number twice.
    """
    frames, times = sent
    mine = frames["flow"] == message_flow(flow.flow)
    numbers = frames["sequence"][mine].astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    numbers, times = numbers[order], times[mine][order]
    if np.any(numbers[1:] == numbers[:-1]):
        raise RunError(f"flow {flow.flow} ({flow.label}): mgen used a sequence number twice in one run")
    arrived = received[received["flow"] == message_flow(flow.flow)]
    return numbers, times, arrivals(numbers, arrived["sequence"].astype(np.int64), stamps_ns(arrived))


def received_by(host: IPv4Address, frames: CapturedFrames) -> CapturedFrames:
    """Return the frames that arrived for a host."""
    arrived: CapturedFrames = frames[frames["destination"] == int(host)]
    return arrived
