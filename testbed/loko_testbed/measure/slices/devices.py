"""Send through a sliced switch and receive: nothing else is known of it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, Final, Protocol

import numpy as np

from loko.document import InputError
from loko.slicing.document import HtbPort, Port, TrtcmPort, load_slices
from loko.slicing.lengths import Protocol as Transport
from loko.slicing.lengths import on_wire, payload
from loko.switch_model.device import load_device
from loko.units import NS_PER_S
from loko_testbed.instruments.programs import locate
from loko_testbed.live.isolated_request import run_isolated
from loko_testbed.measure.slices import tcp_port
from loko_testbed.measure.slices.document import (
    DpdkSwitch,
    HtbSwitch,
    MeterDevice,
    SlicedSwitch,
    VirtualSwitch,
)
from loko_testbed.measure.slices.injection import InjectionMethod, best_injection_method
from loko_testbed.measure.slices.policed_port import Policer, refuse
from loko_testbed.measure.slices.port import (
    SENDERS,
    SliceTrial,
    Transfer,
    transfer,
    transmit,
    transmit_live,
)
from loko_testbed.measure.slices.release import PacketTimes, Release
from loko_testbed.simulation.runner import LOST, RunError
from loko_testbed.simulation.traffic import Tcp

_PREAMBLE: Final = 8
_LEAST_TCP_S: Final = 1.0
"""iperf3 tells of tenths of a second."""
SENDERS_PPS: Final = 40_000.0
"""Frames per second that one core can send in real time, in Python, for two hosts."""


class SliceDevice(Protocol):
    """A switch under test."""

    several: bool
    """Whether two hosts can send at once, through different queues."""
    real_time: bool
    most_pps: float
    """The most frames a second that a host can send; infinite if only its link limits it."""

    def parameters(self) -> dict[str, Any]:
        """Return what the samples depend on, apart from what was configured."""
        ...

    def send(self, releases: Mapping[int, Release], seed: int, /) -> dict[int, PacketTimes]:
        """Send all releases in one run; return the packets of each. Raises `RunError`."""
        ...

    def tcp(self, queue: int, frame_bytes: int, duration_ns: int, seed: int, /) -> int | None:
        """Return the bytes that one transfer through a queue delivers; None if the bench cannot send TCP."""
        ...


class VirtualSliceDevice:
    """A switch in virtual time."""

    several = True
    real_time = False
    most_pps = math.inf

    def __init__(self, port: Port, profile: str) -> None:
        self._port, self._profile = port, profile

    def parameters(self) -> dict[str, Any]:
        """See `SliceDevice`."""
        return {
            "port": self._port.model_dump(mode="json"),
            "profile": load_device(self._profile).model_dump(mode="json"),
        }

    def send(self, releases: Mapping[int, Release], seed: int) -> dict[int, PacketTimes]:
        """See `SliceDevice`."""
        return transmit(SliceTrial(self._port, self._profile, releases, seed))

    def tcp(self, queue: int, frame_bytes: int, duration_ns: int, seed: int, /) -> int | None:
        """See `SliceDevice`. The queue becomes the port's first, which is the one that a transfer uses."""
        queues = list(self._port.queues)
        first = [queues[queue], *queues[:queue], *queues[queue + 1 :]]
        port = self._port.model_copy(update={"queues": first})
        task = Transfer(port, self._profile, frame_bytes, Tcp(congestion_control="cubic"), duration_ns, seed)
        did = transfer(task)
        # Frames on their way when the transfer ends arrive afterwards, and do not count.
        received_ns = did.segments.received_ns
        in_time = int(((received_ns != LOST) & (received_ns <= duration_ns)).sum())
        return min(did.delivered_bytes, in_time * payload(Transport.TCP, frame_bytes))


class VirtualMeter:
    """A meter in virtual time: its tokens, and the link that brings the frames."""

    several = False
    real_time = False
    most_pps = math.inf

    def __init__(self, meter: MeterDevice, link_rate_bps: int) -> None:
        self._meter, self._link_bps = meter, link_rate_bps

    def parameters(self) -> dict[str, Any]:
        """See `SliceDevice`."""
        return {"meter": self._meter.model_dump(mode="json")}

    def send(self, releases: Mapping[int, Release], _seed: int) -> dict[int, PacketTimes]:
        """See `SliceDevice`."""
        return {number: self._transmit(release) for number, release in releases.items()}

    def _transmit(self, release: Release) -> PacketTimes:
        meter, frame = self._meter, release.frame_bytes
        slot_ns = on_wire(frame) * 8 * NS_PER_S / self._link_bps
        wire_ns = (frame + _PREAMBLE) * 8 * NS_PER_S / self._link_bps
        takes = frame + meter.counts.more_bytes
        tokens, at_ns, free_ns = float(meter.burst_bytes), 0.0, 0.0
        sent_ns, received_ns = [], []
        for instant_ns in np.asarray(release.instants_ns).tolist():
            starts_ns = max(float(instant_ns), free_ns)
            free_ns = starts_ns + slot_ns
            arrives_ns = starts_ns + wire_ns
            refilled = tokens + (arrives_ns - at_ns) * meter.rate_bps / 8 / NS_PER_S
            tokens, at_ns = min(refilled, float(meter.burst_bytes)), arrives_ns
            passes = tokens >= takes
            tokens -= takes if passes else 0
            sent_ns.append(round(starts_ns))
            leaves_ns = arrives_ns + meter.latency_us * 1e3
            received_ns.append(round(leaves_ns) if passes else LOST)
        return PacketTimes(np.array(sent_ns, dtype=np.int64), np.array(received_ns, dtype=np.int64))

    def tcp(self, *_: int) -> None:
        """Return None: a meter has no way back, so it carries no TCP."""


class LiveHtb:
    """Open vSwitch with `tc htb` in a namespace that each run makes and removes."""

    several = True
    real_time = True
    most_pps = SENDERS_PPS

    def __init__(self, port: HtbPort, injection: InjectionMethod | None) -> None:
        self._port, self._injection = port, injection or best_injection_method()

    def parameters(self) -> dict[str, Any]:
        """See `SliceDevice`."""
        return {"kernel": os.uname().release, "injection": self._injection.value}

    def send(self, releases: Mapping[int, Release], _seed: int) -> dict[int, PacketTimes]:
        """See `SliceDevice`."""
        return transmit_live(self._port, releases, injection=self._injection)[0]

    def tcp(self, queue: int, _frame_bytes: int, duration_ns: int, _seed: int, /) -> int | None:
        """See `SliceDevice`."""
        return _iperf3(self._port, queue, duration_ns, injection=self._injection)


class LiveDpdk:
    """Open vSwitch with DPDK and a policer, in a namespace that each run makes and removes."""

    several = True
    real_time = True
    most_pps = SENDERS_PPS

    def __init__(self, port: TrtcmPort, policer: Policer) -> None:
        self._port, self._policer = port, policer

    def parameters(self) -> dict[str, Any]:
        """See `SliceDevice`."""
        return {"kernel": os.uname().release, "policer": self._policer.value}

    def send(self, releases: Mapping[int, Release], _seed: int) -> dict[int, PacketTimes]:
        """See `SliceDevice`."""
        return transmit_live(self._port, releases, policer=self._policer)[0]

    def tcp(self, queue: int, _frame_bytes: int, duration_ns: int, _seed: int, /) -> int | None:
        """See `SliceDevice`."""
        return _iperf3(self._port, queue, duration_ns, policer=self._policer)


def _iperf3(port: Port, queue: int, duration_ns: int, **how: Any) -> int | None:
    """Return the bytes that iperf3 carries in so many ns, from at least a second; None if it is not here.

    `how`: policer or injection, as in the request.
    """
    if locate("iperf3") is None:
        return None
    seconds = max(duration_ns / NS_PER_S, _LEAST_TCP_S)
    request = tcp_port.TransferRequest(
        port=port, congestion_control="cubic", seconds=seconds, queue=queue, **how
    )
    (reply,) = run_isolated(tcp_port.transmit_all, [request])
    bytes_per_s = float(reply.received_bytes.sum() / reply.received_end_s[-1])
    return round(bytes_per_s * duration_ns / NS_PER_S)


def open_device(switch: SlicedSwitch) -> SliceDevice:
    """Return the switch. Raises `InputError` if its file cannot be carried out."""
    port, how = switch.port(), switch.switch
    if isinstance(how, VirtualSwitch):
        return VirtualSliceDevice(port if how.does is None else load_slices(how.does), how.profile)
    if isinstance(how, MeterDevice):
        return VirtualMeter(how, port.link_rate_bps)
    if isinstance(how, DpdkSwitch):
        if not isinstance(port, TrtcmPort):
            raise InputError(
                f"'{switch.configured}' has classes of HTB, which Open vSwitch with DPDK lacks: choose a port"
                " with policers, or the kind 'open-vswitch'"
            )
        try:
            refuse(port, how.policer)
        except RunError as error:
            raise InputError(f"'{switch.configured}': {error}") from None
        return LiveDpdk(port, how.policer)
    assert isinstance(how, HtbSwitch)
    if not isinstance(port, HtbPort):
        raise InputError(
            f"'{switch.configured}' has policers, which Open vSwitch has with DPDK only; choose a port of"
            " HTB, or the kind 'open-vswitch-dpdk' or 'virtual'"
        )
    return LiveHtb(port, how.injection)


def first_sender() -> str:
    """Return the host that sends the measured frames."""
    return SENDERS[0]


def attacker() -> str:
    """Return the host that sends the disturbing frames."""
    return SENDERS[1]
