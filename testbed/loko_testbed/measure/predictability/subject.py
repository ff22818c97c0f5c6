"""The switch that is measured, seen from outside: entries and frames go in, and frames come out or not.

Only what an operator knows is known beforehand: how many ports it has, their rate, and how many queues.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
import switch_emulator
from numpy.typing import NDArray

from loko.document import InputError
from loko.switch_model.device import Profile, load_device, profile_file
from loko.switch_model.generic_switch import GenericSwitch
from loko_testbed.instruments.virtual_session import install
from loko_testbed.simulation.runner import LOST, RunError

PREAMBLE_BYTES: Final = 8
FRAMING_BYTES: Final = 20
"""Preamble and gap, which a frame takes on the wire besides its length."""
SEQUENCE_OFFSET: Final = 52
"""Offset of the sequence number, behind the headers of the frames with or without a tag."""
CARD_RATE_BPS: Final = 1_000_000_000
"""The rate of the measurement card's ports, at which the study measures times of faster switches, too."""
SWITCH: Final = "switch"
"""Name of the switch in the network."""
SAFE_SPACING_NS: Final = 1_000_000_000
"""Gap between entries. At one per second none was lost in any of the switches (section III-A.2)."""
SETTLED_NS: Final = 120_000_000_000
"""The longer of the two waits of figure 9a. What is not in the chip by then will never be."""
_BURST_BYTES: Final = 10**9
"""Bucket of a sender's shaper: so large that frames leave on time, or one right after the other."""
_OTHER_QUEUES: Final = 8
"""Assumed if a switch does not state its queues: usually the most that an OpenFlow switch has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long a campaign waits and sends. The defaults are for virtual time, where waiting costs nothing."""

    entry_gap_ns: int = SAFE_SPACING_NS
    """Gap between entries wherever it should not matter."""
    settles_ns: int = SETTLED_NS
    """Wait until what the switch says of its table is true."""
    fill_s: float = math.inf
    """Longest time for which entries are added at a rate."""
    probe_gap_ns: int = 20_000
    """Gap between the frames that show which entries there are."""
    slow_probe_gap_ns: int = 500_000_000
    """Likewise for switches, or entries, that may be slow."""
    software_mbps: float = 0.1
    """The rate at which switches that forward on a CPU get frames for PT. Figure 3 has 0.1 Mbit/s."""
    pauses: float = 1
    """How many times longer the pauses of PQ are than on ports of 100 Mbit/s or more."""
    shortest_slots: int = 8_000
    longest_slots: int = 512_000
    """Length of the shortest and longest run of BM, in frames at line rate."""
    drain_slots: int = 100_000
    rate_resolution: float = 1e-3
    """Resolution of the highest rate without loss, as a share of it."""


class OpenSwitch(Protocol):
    """A fresh switch with its controller's session open."""

    def now_ns(self) -> int:
        """Return the current time."""

    def control(
        self, board: str, segments: Sequence[bytes], *, spacing_ns: int = ..., await_reply: bool = ...
    ) -> list[bytes]:
        """Send segments, and return what the switch answers: see `switch_emulator.Network.control`."""

    def send(self, streams: Sequence[FrameStream], *, drain_ns: int) -> list[StreamTimes]:
        """Send streams, and wait at the end at most `drain_ns` for frames that have not come out yet."""


class LiveSwitch(Protocol):
    """A switch in real time."""

    def fresh(self, cables: Mapping[int, int]) -> OpenSwitch:
        """Empty its table, and connect ports of it with each other. Raises `RunError`."""

    def longest_pause_ns(self) -> int:
        """Return the longest pause of this machine that may go unseen while the switch is measured."""

    @property
    def remark(self) -> str:
        """A remark on how the switch runs on this machine; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchUnderTest:
    """The switch that is measured, and the rate of its links."""

    device: str
    """Name or path of a profile, or the name of a live switch."""
    ports: int
    queues: int
    """Queues of each port; the first has the lowest priority."""
    link_rate_bps: int
    is_board: bool = False
    """Whether it is a board whose only CPU forwards, which has settings, and links of one rate."""
    is_software: bool = False
    """Whether it is a program of this machine, which has no profile and is measured in real time."""
    live: LiveSwitch | None = None
    """The running program; None before it runs, and for a profile."""
    pace: Pace = Pace()

    @property
    def on_cpu(self) -> bool:
        """Whether no chip forwards: so it gets frames only as fast as a CPU can handle them."""
        return self.is_board or self.is_software

    def at_card_rate(self) -> SwitchUnderTest:
        """Return the switch with links no faster than the study's measurement card."""
        return replace(self, link_rate_bps=min(self.link_rate_bps, CARD_RATE_BPS))

    def wire_ns(self, frame_bytes: int) -> int:
        """Return the time from the first bit of a frame's preamble to the frame's last bit."""
        return -(-(PREAMBLE_BYTES + frame_bytes) * 8_000_000_000 // self.link_rate_bps)

    def slot_ns(self, frame_bytes: int) -> float:
        """Return the time from the start of a frame to that of the next at line rate."""
        return (FRAMING_BYTES + frame_bytes) * 8e9 / self.link_rate_bps


def switch_under_test(device: str) -> SwitchUnderTest:
    """Return a device at the rate of its ports. Raises `InputError`."""
    profile = load_device(device)
    if not isinstance(profile, GenericSwitch | Profile):
        raise InputError(
            f"device '{device}': only profiles of the Zodiac FX's kind and of the kind generic-switch are"
            " measured: choose such a one"
        )
    is_board = isinstance(profile, Profile)
    known = profile.priorities if isinstance(profile, GenericSwitch) else None
    return SwitchUnderTest(
        device=str(profile_file(device)),
        ports=profile.ports.count.value,
        queues=_OTHER_QUEUES if known is None else known.queues.value,
        link_rate_bps=profile.ports.link_rate_bps.value,
        is_board=is_board,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameStream:
    """Frames of one length that enter one port at these instants and should leave by another."""

    enters: int
    leaves: int
    frame: bytes
    """The frame without FCS."""
    instants_ns: NDArray[np.int64]
    sequence_offset: int = SEQUENCE_OFFSET
    """Where the frame has room for a sequence number, and before it for a flow number."""


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """All frames of a stream, in order: when the first bit left the sender, and reached the receiver."""

    sent_ns: NDArray[np.int64]
    received_ns: NDArray[np.int64]
    """`LOST` if the frame never came."""
    disturbed: NDArray[np.bool_] | None = None
    """In real time, which frames met a stall of the host. They tell nothing of the switch."""

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Mask of the frames that no stall of the host disturbed; only these count."""
        return np.ones(len(self.sent_ns), np.bool_) if self.disturbed is None else ~self.disturbed

    @property
    def lost(self) -> int:
        """Frames that never came, apart from those that met a stall of the host."""
        return int(((self.received_ns == LOST) & self.kept).sum())

    def processing_ns(self, subject: SwitchUnderTest, frame_bytes: int) -> NDArray[np.int64]:
        """Return the time from last bit in to first bit out (equation 1) of the frames that came."""
        came = (self.received_ns != LOST) & self.kept
        times_ns: NDArray[np.int64] = self.received_ns[came] - self.sent_ns[came]
        return times_ns - subject.wire_ns(frame_bytes)


def transmit(
    subject: SwitchUnderTest,
    entries: Sequence[bytes],
    streams: Sequence[FrameStream],
    *,
    seed: int,
    cables: Mapping[int, int] | None = None,
    drain_ns: int = 10_000_000,
) -> list[StreamTimes]:
    """Send streams through a fresh switch, and return what became of their frames.

    `entries` are FLOW_MODs; `cables` connect ports of the switch with each other. Raises `RefusedError` if
    the switch refuses an entry, `RunError` if something else goes wrong.
    """
    switch = fresh(subject, seed, cables=cables)
    pace = subject.pace
    install(switch, SWITCH, entries, spacing_ns=pace.entry_gap_ns, settles_ns=pace.settles_ns)
    return switch.send(streams, drain_ns=drain_ns)


def fresh(subject: SwitchUnderTest, seed: int, *, cables: Mapping[int, int] | None = None) -> OpenSwitch:
    """Return the switch with an empty table, in real time or a new one in virtual time. Raises `RunError`."""
    if subject.live is not None:
        return subject.live.fresh(cables or {})
    network = open_network(subject, seed)
    for a, b in (cables or {}).items():
        network.connect(SWITCH, a, SWITCH, b, rate_bps=subject.link_rate_bps)
    return _Virtual(network, subject)


@dataclass(frozen=True, slots=True)
class _Virtual:
    """A switch in virtual time. Nothing else can be done with it after `send`."""

    network: switch_emulator.Network
    subject: SwitchUnderTest

    def now_ns(self) -> int:
        return self.network.now_ns()

    def control(
        self,
        board: str,
        segments: Sequence[bytes],
        *,
        spacing_ns: int = 10_000_000,
        await_reply: bool = False,
    ) -> list[bytes]:
        return self.network.control(board, segments, spacing_ns=spacing_ns, await_reply=await_reply)

    def send(self, streams: Sequence[FrameStream], *, drain_ns: int) -> list[StreamTimes]:
        return run(self.network, self.subject, streams, drain_ns=drain_ns)


def open_network(subject: SwitchUnderTest, seed: int) -> switch_emulator.Network:
    """Create a network with only a fresh switch. Raises `RunError`."""
    network = switch_emulator.Network(seed=seed)
    try:
        network.add_board(SWITCH, profile=subject.device, config=_settings(subject))
    except ValueError as error:
        raise RunError(f"{subject.device}: {error}") from None
    return network


def _settings(subject: SwitchUnderTest) -> dict[str, Any]:
    """Return the settings of the switch. Those of a board are the Loko paper's: its three jobs are off.

    The controller's session takes no port in virtual time, so a board forwards on all of them.
    """
    if not subject.is_board:
        return {"link_rate_bps": subject.link_rate_bps}
    ports = list(range(1, subject.ports + 1))
    return {"openflow_ports": ports, "native_ports": [], "ofchecks": False}


def run(
    network: switch_emulator.Network,
    subject: SwitchUnderTest,
    streams: Sequence[FrameStream],
    *,
    drain_ns: int,
) -> list[StreamTimes]:
    """Send streams through the switch of a network that has no hosts yet. Raises `RunError`."""
    try:
        for port in sorted({port for stream in streams for port in (stream.enters, stream.leaves)}):
            network.add_host(_host(port))
            network.connect(_host(port), 1, SWITCH, port, rate_bps=subject.link_rate_bps)
        for number, stream in enumerate(streams):
            network.add_pattern(
                _host(stream.enters),
                flow=number,
                frame=stream.frame,
                sequence_offset=stream.sequence_offset,
                shaper_rate_bps=subject.link_rate_bps,
                shaper_burst_bytes=_BURST_BYTES,
                instants_ns=stream.instants_ns,
                destination=_host(stream.leaves),
            )
        last_ns = max(int(stream.instants_ns[-1]) for stream in streams)
        result = network.run(duration_ns=last_ns + drain_ns, drain_ns=drain_ns)
    except ValueError as error:
        raise RunError(f"{subject.device}: {error}") from None
    order = np.argsort(result.flow, kind="stable")
    ends = np.searchsorted(result.flow[order], np.arange(len(streams) + 1))
    chosen = [order[begin:end] for begin, end in pairwise(ends)]
    return [StreamTimes(result.sent_ns[of], result.received_ns[of]) for of in chosen]


def evenly(count: int, gap_ns: float, *, begin_ns: int = 0) -> NDArray[np.int64]:
    """Return instants at equal distances."""
    instants_ns: NDArray[np.int64] = np.floor(np.arange(count) * gap_ns).astype(np.int64)
    return instants_ns + begin_ns


def _host(port: int) -> str:
    return f"host{port}"
