"""Bursts by mgen, the generator that the paper used (section 6.1), and the sockets that take them.

mgen sends ``BURST [RANDOM s PERIODIC [rate size] FIXED s]``: bursts whose beginnings are exponentially
separated, each of a fixed number of datagrams at the line's rate. It numbers the datagrams of a flow in their
payload, at fixed offsets. mgen takes no seed: in live runs the bursts' instants differ from run to run.

Frames that wait for the shaper fill the send buffer of mgen's socket, whose largest size is a setting of the
whole machine. What finds no room there waits in mgen itself (``QUEUE``), so that a long burst is sent in full
whatever the machine allows.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from loko.topology.frame import HEADERS_BYTES
from loko_testbed.instruments.network_namespace import inside
from loko_testbed.instruments.programs import require, tail, wait_for_words
from loko_testbed.live.shaping import FCS_BYTES
from loko_testbed.simulation.runner import RunError, refuse_others
from loko_testbed.simulation.senders import SOCKET_FRAMES
from loko_testbed.simulation.traffic import Greedy, RandomBursts, Sender, Sends, TimeTriggered

FLOW_OFFSET_BYTES = 4
SEQUENCE_OFFSET_BYTES = 8
"""Places of mgen's flow and sequence numbers (32 bits, big endian) in the UDP payload (mgen 5, version 2)."""

SMALLEST_PAYLOAD_BYTES = 28
"""An mgen message without any optional part."""

LINE_RATE_BPS = 100_000_000
"""Rate of the lines of a lab's hosts."""

_BY_MGEN: frozenset[type[Sends]] = frozenset({RandomBursts, Greedy})

CARRIES: frozenset[type[Sends]] = _BY_MGEN | {TimeTriggered}
"""Ways of sending in real time: mgen takes no list of instants; `slot_source.SlotSource` sends slots."""

_GREED = 2.0
"""How many times the rate of its bucket a greedy sender offers."""

_PREAMBLE_AND_GAP_BYTES = 20
_START_TIMEOUT_S = 30.0


def message_flow(flow: int) -> int:
    """Number of a flow in mgen, which counts from 1."""
    return flow + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MgenStream:
    """A flow that offers more than its bucket passes, for mgen: frames at equal distances."""

    payload_bytes: int
    rate_pps: float

    def text(self) -> str:
        """Return the stream in mgen's syntax."""
        return f"PERIODIC [{self.rate_pps:.3f} {self.payload_bytes}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class MgenPattern:
    """A flow that sends bursts, for mgen."""

    payload_bytes: int
    frames_per_burst: int
    mean_interval_s: float
    line_rate_pps: float

    def text(self) -> str:
        """Return the pattern in mgen's syntax. A burst ends half a frame before another frame would begin."""
        duration_s = (self.frames_per_burst - 0.5) / self.line_rate_pps
        periodic = f"PERIODIC [{self.line_rate_pps:.3f} {self.payload_bytes}]"
        return f"BURST [RANDOM {self.mean_interval_s:.9f} {periodic} FIXED {duration_s:.9f}]"


def pattern_of(flow: Sender, line_rate_bps: int = LINE_RATE_BPS) -> MgenPattern | MgenStream:
    """Return what mgen has to send for a flow. Raises `RunError` if mgen cannot send that."""
    refuse_others([flow], _BY_MGEN, "live")
    payload = flow.frame_bytes - FCS_BYTES - HEADERS_BYTES
    if payload < SMALLEST_PAYLOAD_BYTES:
        least = SMALLEST_PAYLOAD_BYTES + HEADERS_BYTES + FCS_BYTES
        raise RunError(f"{flow.where}: mgen's frames have at least {least} bytes, not {flow.frame_bytes}")
    line_rate_pps = line_rate_bps / (8 * (flow.frame_bytes + _PREAMBLE_AND_GAP_BYTES))
    sends = flow.sends
    if not isinstance(sends, RandomBursts):
        passing_pps = flow.bucket.rate_bps / (8 * flow.frame_bytes)
        return MgenStream(payload_bytes=payload, rate_pps=min(_GREED * passing_pps, line_rate_pps))
    frames = int(sends.burst_bytes // flow.frame_bytes)
    if frames < 1 or sends.offered_rate_bps < 1:
        raise RunError(
            f"{flow.where}: bursts of {sends.burst_bytes} bytes at {sends.offered_rate_bps} bit/s "
            f"hold no frame of {flow.frame_bytes} bytes: raise the offered burst or rate"
        )
    return MgenPattern(
        payload_bytes=payload,
        frames_per_burst=frames,
        mean_interval_s=frames * flow.frame_bytes * 8 / sends.offered_rate_bps,
        line_rate_pps=line_rate_pps,
    )


def script(flow: Sender, destination: IPv4Address, line_rate_bps: int = LINE_RATE_BPS) -> str:
    """Return the mgen script that sends a flow until mgen is ended. Raises `RunError` if mgen cannot."""
    ports = f"UDP SRC {flow.udp_source} DST {destination}/{flow.udp_destination}"
    pattern = f"{pattern_of(flow, line_rate_bps).text()}{_queue(flow)}"
    return f"0.0 ON {message_flow(flow.flow)} {ports} {pattern}\n"


def _queue(flow: Sender) -> str:
    """Return mgen's option for the frames that its socket has no room for; empty if there are none."""
    if not isinstance(flow.sends, RandomBursts):
        return ""
    frames = int(flow.sends.queue_bytes // flow.frame_bytes) - SOCKET_FRAMES
    return f" QUEUE {frames}" if frames > 0 else ""


class Generator:
    """A running mgen that sends one flow."""

    def __init__(
        self,
        flow: Sender,
        destination: IPv4Address,
        prefix: Sequence[str],
        folder: Path,
        *,
        line_rate_bps: int = LINE_RATE_BPS,
    ) -> None:
        """Start sending; `wait` says when it does. Raises `RunError` if mgen cannot send the flow."""
        source = folder / f"{flow.source}-{flow.flow}.mgn"
        source.write_text(script(flow, destination, line_rate_bps), encoding="ascii")
        self._log = folder / f"{flow.source}-{flow.flow}.mgen.log"
        self._host = flow.source
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*prefix, require("mgen"), "input", str(source), "nolog"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def wait(self) -> None:
        """Wait until mgen sends. Raises `RunError` if it does not start."""
        complaint = f"{self._host}: mgen does not start"
        wait_for_words("starting now", self._process, self._log, _START_TIMEOUT_S, complaint)

    def cancel(self) -> None:
        """End sending, whatever has happened."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End sending. Raises `RunError` if mgen had already ended by itself."""
        status = self._process.poll()
        self.cancel()
        if status is not None:
            raise RunError(f"{self._host}: mgen ended by itself (exit status {status}): {tail(self._log)}")


def open_sink(namespace: Path, port: int) -> socket.socket:
    """Open a UDP socket in a network namespace, which nobody reads.

    With it, the host does not answer datagrams with ICMP errors.
    """
    with inside(namespace):
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sink.bind(("", port))
    return sink
