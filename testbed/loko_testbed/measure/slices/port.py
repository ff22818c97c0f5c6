"""A sliced port, in virtual time or live: senders, the switch with its queues, and one receiver.

This does not use points of `loko_testbed.reproduce.replay`: nothing is admitted, and entries direct frames to
queues of a port, which labs do not have. It does use `loko_testbed.simulation.traffic`, and each sending is a
task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import switch_emulator
from numpy.typing import NDArray

from loko.control.entries import PROTOCOL_TCP, Enqueue, Output, flow_entry
from loko.control.messages import add_entry
from loko.slicing.document import HtbPort, Port
from loko.slicing.lengths import on_wire
from loko.slicing.settings import scheduler_settings
from loko.switch_model.device import profile_file
from loko.switch_model.flow import Flow
from loko.topology.frame import frame_of
from loko.topology.lab import Lab, load_lab
from loko.units import NS_PER_S
from loko_testbed.instruments.virtual_session import install
from loko_testbed.live.datapaths import require_dpdk
from loko_testbed.live.isolated_request import run_isolated
from loko_testbed.measure.slices import htb_port, policed_port, tcp_port
from loko_testbed.measure.slices.htb_port import HtbRequest
from loko_testbed.measure.slices.injection import InjectionMethod, best_injection_method
from loko_testbed.measure.slices.live_port import OTHER, SOURCE, ReleasedFrames
from loko_testbed.measure.slices.policed_port import PolicedRequest, Policer
from loko_testbed.measure.slices.release import PacketTimes, Release
from loko_testbed.simulation.runner import LOST, RunError
from loko_testbed.simulation.traffic import Releases, Sender, Tcp, flow_of
from loko_testbed.simulation.virtual import SEQUENCE_OFFSET, add_sender

LAB: Final = "slicing"
RECEIVER: Final = "destination"
SENDERS: Final = (SOURCE, OTHER)
"""Hosts that can send to `RECEIVER`."""
_SWITCH: Final = "s1"
_SENDERS_PORT: Final = 1
"""Where `SENDERS[0]` is connected."""
_SLICED_PORT: Final = 2
_TO_SEND_NS: Final = 100_000_000
"""Time for the frames released last to leave their hosts, one after the other."""
_DRAIN_NS: Final = 2_000_000_000


class SliceTrial(NamedTuple):
    """Everything that is sent in one run. Its result depends on nothing else."""

    port: Port
    device: str
    releases: Mapping[int, Release]
    """Releases by number, at most one for each host."""
    seed: int


def transmit(trial: SliceTrial) -> dict[int, PacketTimes]:
    """Send in virtual time; return the packets of each release by its number. Raises `RunError`."""
    port, device, releases, seed = trial
    lab = load_lab(LAB)
    try:
        network = _network(lab, port, device, seed)
        install(network, _SWITCH, _entries(lab, releases))
        for number, release in releases.items():
            sends = Releases(instants_ns=release.instants_ns)
            traffic = Sender.of(number, _flow(number, release), sends)
            add_sender(network, lab, traffic, line_rate_bps=port.link_rate_bps)
        last_ns = max(int(release.instants_ns.max()) for release in releases.values())
        result = network.run(duration_ns=last_ns + _TO_SEND_NS, drain_ns=_DRAIN_NS)
    except ValueError as error:
        raise RunError(f"lab '{LAB}': {error}") from None
    return {
        number: PacketTimes(result.sent_ns[result.flow == number], result.received_ns[result.flow == number])
        for number in releases
    }


class Transfer(NamedTuple):
    """A bulk transfer over TCP from `SENDERS[0]` through a port's first queue, alone on it."""

    port: Port
    device: str
    frame_bytes: int
    """Length of a full segment's frame, with FCS."""
    sends: Tcp
    duration_ns: int
    seed: int
    host_delay_ns: int = 0
    """Delay of every frame between a host's tap and its cable, in both directions."""


class TransferResult(NamedTuple):
    """The course of a transfer; times in ns since its beginning."""

    segments: PacketTimes
    retransmitted_ns: NDArray[np.int64]
    window_at_ns: NDArray[np.int64]
    """When the congestion window became `window_segments`."""
    window_segments: NDArray[np.uint64]
    delivered_bytes: int
    """Payload that arrived without gaps."""
    timeouts: int | None
    """None if that is unknown."""


def transfer(task: Transfer) -> TransferResult:
    """Send a transfer in virtual time. Raises `RunError`."""
    port, device, frame_bytes, sends, duration_ns, seed, host_delay_ns = task
    lab = load_lab(LAB)
    flow = flow_of(0, SENDERS[0], RECEIVER, rate_bps=1, burst_bytes=frame_bytes, frame_bytes=frame_bytes)
    entry = flow_entry(lab, flow, _SLICED_PORT)
    there = replace(entry.match, nw_proto=PROTOCOL_TCP)
    back = replace(there, nw_src=there.nw_dst, nw_dst=there.nw_src, tp_src=there.tp_dst, tp_dst=there.tp_src)
    entries = [
        replace(entry, match=there, actions=(Enqueue(_SLICED_PORT, 0),)),
        replace(entry, match=back, actions=(Output(_SENDERS_PORT),)),
    ]
    try:
        network = _network(lab, port, device, seed, host_delay_ns=host_delay_ns)
        install(network, _SWITCH, [add_entry(entry, xid) for xid, entry in enumerate(entries, start=4)])
        add_sender(network, lab, Sender.of(0, flow, sends))
        result = network.run(duration_ns=duration_ns, drain_ns=_DRAIN_NS)
    except ValueError as error:
        raise RunError(f"lab '{LAB}': {error}") from None
    tcp = result.tcp[0]
    return TransferResult(
        segments=PacketTimes(result.sent_ns, result.received_ns),
        retransmitted_ns=tcp.retransmitted_ns,
        window_at_ns=tcp.window_at_ns,
        window_segments=tcp.window_segments,
        delivered_bytes=tcp.delivered_bytes,
        timeouts=tcp.timeouts,
    )


def transfer_of(reply: tcp_port.TransferReply, duration_ns: int) -> TransferResult:
    """Return what became of an iperf3 transfer with taps.

    iperf3 reports by interval: retransmissions are dated to the end of theirs, windows to its beginning.
    """
    assert reply.segments is not None
    sent_ns, received_ns = reply.segments.sent_ns, reply.segments.received_ns
    before_end = sent_ns < duration_ns
    ends_ns = np.rint(reply.end_s * NS_PER_S).astype(np.int64)
    return TransferResult(
        segments=PacketTimes(sent_ns[before_end], received_ns[before_end]),
        retransmitted_ns=np.repeat(ends_ns, reply.retransmissions),
        window_at_ns=np.append(0, ends_ns[:-1]),
        window_segments=np.rint(reply.window_bytes / reply.segment_bytes).astype(np.uint64),
        delivered_bytes=int(reply.received_bytes.sum()),
        timeouts=None,
    )


def transmit_live(
    port: Port,
    releases: Mapping[int, Release],
    *,
    policer: Policer = Policer.TRTCM,
    injection: InjectionMethod | None = None,
) -> tuple[dict[int, PacketTimes], float]:
    """Send in real time; return the packets of each release, and the share of a core that the switch used.

    A port of HTB is Open vSwitch with tc, and `injection` says how frames get there, by default the best way
    that this kernel has; one with policers is Open vSwitch with DPDK. Raises `RunError`, also if this machine
    cannot run the port.
    """
    lab = load_lab(LAB)
    frames = []
    for number, release in releases.items():
        flow, slot_ns = _flow(number, release), on_wire(release.frame_bytes) * 8e9 / port.link_rate_bps
        frame = frame_of(lab, flow)
        frames.append(
            ReleasedFrames(
                release=release, frame=frame, udp_destination=flow.udp_destination, slot_ns=slot_ns
            )
        )
    common: dict[str, Any] = {"port": port, "frames": frames, "sequence_offset": SEQUENCE_OFFSET}
    if isinstance(port, HtbPort):
        reply = run_isolated(
            htb_port.transmit, HtbRequest(injection=injection or best_injection_method(), **common)
        )
    else:
        require_dpdk()
        reply = run_isolated(policed_port.transmit, PolicedRequest(policer=policer, **common))
    if any((sent.sent_ns == LOST).any() for sent in reply.sent):
        raise RunError("the tap at the sender missed frames: the machine is too busy for this traffic")
    return dict(zip(releases, reply.sent, strict=True)), reply.switch_cpu_s / reply.seconds


def _network(
    lab: Lab, port: Port, device: str, seed: int, *, host_delay_ns: int = 0
) -> switch_emulator.Network:
    network = switch_emulator.Network(seed=seed)
    config = {"schedulers": {_SLICED_PORT: scheduler_settings(port)}}
    network.add_board(_SWITCH, profile=str(profile_file(device)), config=config)
    for name in lab.hosts:
        network.add_host(name)
    for link in lab.links:
        ends = (link.a.node, link.a.port, link.b.node, link.b.port)
        network.connect(*ends, rate_bps=port.link_rate_bps, propagation_ns=host_delay_ns)
    return network


def _entries(lab: Lab, releases: Mapping[int, Release]) -> list[bytes]:
    """Return an entry for each release that directs it to its queue."""
    entries = []
    for xid, (number, release) in enumerate(releases.items(), start=4):
        entry = flow_entry(lab, _flow(number, release), _SLICED_PORT)
        queued = replace(entry, actions=(Enqueue(_SLICED_PORT, release.queue),))
        entries.append(add_entry(queued, xid))
    return entries


def _flow(number: int, release: Release) -> Flow:
    return flow_of(
        number,
        release.host,
        RECEIVER,
        rate_bps=1,
        burst_bytes=release.frame_bytes,
        frame_bytes=release.frame_bytes,
        called="release ",
    )
