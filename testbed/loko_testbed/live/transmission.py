"""One run of traffic through the network: shape, tap, send, drain, join."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loko.topology.lab import Lab
from loko_testbed.instruments.programs import run
from loko_testbed.live.boards import BoardsReport
from loko_testbed.live.capture import CapturedFrames, TcpdumpTap, join, received_by, sent_by
from loko_testbed.live.generator import Generator, open_sink, pattern_of
from loko_testbed.live.network import LiveNetwork
from loko_testbed.live.routes import port_rule
from loko_testbed.live.shaping import TbfParameters, shape, unshape
from loko_testbed.live.slot_source import SlotSource, refuse_slots, start_instant_ns
from loko_testbed.simulation.runner import LOST, HostReport, RunError, RunRecords, SlotsKept, Stall
from loko_testbed.simulation.traffic import Sender, TimeTriggered

LONGEST_UNDER_WAY_NS = 100_000_000
"""Stalls count up to this time after the end of sending: far longer than any frame is under way (some ms)."""

DRAIN_S = 1.2
"""From the end of sending to the end of the taps. Tcpdump gets its frames from the kernel in blocks, the last
one up to 1 s late, and does not wait for it when it is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """The taps' frames of a run."""

    traffic: tuple[Sender, ...]
    start_ns: int
    """When all generators were running, in nanoseconds since 1970; the zero of the run's times."""
    seconds: float
    """Length of the run; frames sent before its start or after its end are not part of it."""
    frames: Mapping[str, CapturedFrames]
    """Captured frames by host; only hosts of observed flows have a tap."""
    slots: Mapping[int, SlotsKept] = field(default_factory=dict)
    """How well each flow that sends in slots kept them."""


def transmit(network: LiveNetwork, traffic: Sequence[Sender], *, seconds: float, folder: Path) -> Capture:
    """Send the traffic for so many seconds and capture it. Raises `RunError` if that cannot be done."""
    refuse(traffic, network.lab)
    with ExitStack() as stack:
        for machine, port in sinks(traffic, network.lab):
            stack.enter_context(open_sink(network.namespace(machine), port))
        taps = _taps(network, traffic, folder, stack)
        start_ns, slots = _send(network, traffic, seconds, folder)
        time.sleep(DRAIN_S)
        frames = {host: tap.stop() for host, tap in taps.items()}
    return Capture(traffic=tuple(traffic), start_ns=start_ns, seconds=seconds, frames=frames, slots=slots)


def sinks(traffic: Sequence[Sender], lab: Lab) -> list[tuple[str, int]]:
    """Return the hosts and UDP ports at which a sink must take what arrives, as no mgen does.

    mgen takes what arrives at the ports that it sends from; it could not open them if a sink had.
    """
    taken = {
        (lab.hosts[flow.source].machine, flow.udp_source)
        for flow in traffic
        if not isinstance(flow.sends, TimeTriggered)
    }
    return sorted({(lab.hosts[flow.destination].machine, flow.udp_destination) for flow in traffic} - taken)


def _taps(
    network: LiveNetwork, traffic: Iterable[Sender], folder: Path, stack: ExitStack
) -> dict[str, TcpdumpTap]:
    hosts = sorted({host for flow in traffic if flow.observed for host in (flow.source, flow.destination)})
    taps = {}
    for host in hosts:
        taps[host] = TcpdumpTap(host, network.interface(host), network.inside(host), folder)
        stack.callback(taps[host].cancel)
    for tap in taps.values():
        tap.wait()
    return taps


def _send(
    network: LiveNetwork, traffic: Sequence[Sender], seconds: float, folder: Path
) -> tuple[int, Mapping[int, SlotsKept]]:
    """Send for the given time, then stop at once: frames that still wait in token buckets are dropped."""
    slotted = [flow for flow in traffic if isinstance(flow.sends, TimeTriggered)]
    shaped = [flow for flow in traffic if not isinstance(flow.sends, TimeTriggered)]
    with ExitStack() as stack:
        for host in dict.fromkeys(flow.source for flow in shaped):
            interface, prefix = network.interface(host), network.inside(host)
            mine = {flow.udp_source: TbfParameters.of(flow) for flow in shaped if flow.source == host}
            shape(interface, mine, host=host, prefix=prefix)
            stack.callback(unshape, interface, host=host, prefix=prefix)
        generators = []
        for flow in shaped:
            if rule := port_rule(network.lab, flow.source, flow.udp_source):
                what, prefix = f"{flow.where}: route", network.inside(flow.source)
                run(["ip", "rule", "add", *rule], what=what, prefix=prefix)
                stack.callback(run, ["ip", "rule", "delete", *rule], what=what, prefix=prefix)
            address = network.lab.hosts[flow.destination].ip.ip
            generators.append(Generator(flow, address, network.inside(flow.source), folder))
            stack.callback(generators[-1].cancel)
        for generator in generators:
            generator.wait()
        source: SlotSource | None = None
        start_ns = time.time_ns()
        if slotted:
            start_ns = start_instant_ns()
            source = SlotSource(network, slotted, start_ns=start_ns, seconds=seconds, folder=folder)
            stack.callback(source.cancel)
            time.sleep((start_ns - time.time_ns()) / 1e9)
        time.sleep(seconds)
        for generator in generators:
            generator.stop()
        return start_ns, source.wait() if source else {}


def records(capture: Capture, lab: Lab, before: BoardsReport, after: BoardsReport) -> RunRecords:
    """Combine what the taps saw with the emulator's reports from before and after the run."""
    start_ns = capture.start_ns
    end_ns = start_ns + round(capture.seconds * 1e9)
    address = {name: host.ip.ip for name, host in lab.hosts.items()}
    sent = {host: sent_by(address[host], frames) for host, frames in capture.frames.items()}
    columns: list[tuple[NDArray[np.int64], ...]] = []
    for flow in (flow for flow in capture.traffic if flow.observed):
        arrived = received_by(address[flow.destination], capture.frames[flow.destination])
        numbers, sent_ns, received_ns = join(flow, sent[flow.source], arrived)
        inside = (sent_ns >= start_ns) & (sent_ns < end_ns)
        numbers, sent_ns, received_ns = numbers[inside], sent_ns[inside] - start_ns, received_ns[inside]
        received_ns = np.where(received_ns == LOST, LOST, received_ns - start_ns)
        columns.append(
            (
                np.full(len(numbers), flow.flow),
                numbers,
                sent_ns,
                received_ns,
                np.full(len(numbers), flow.frame_bytes),
            )
        )
    flows, numbers, sent_ns, received_ns, sizes = (
        np.concatenate(column) if columns else np.zeros(0, dtype=np.int64)
        for column in (zip(*columns, strict=True) if columns else [[]] * 5)
    )
    stalls = tuple(
        Stall(start_ns=stall.start_ns - start_ns, duration_ns=stall.duration_ns)
        for stall in after.stalls
        if start_ns <= stall.start_ns + stall.duration_ns and stall.start_ns < end_ns + LONGEST_UNDER_WAY_NS
    )
    return RunRecords(
        flow=flows.astype(np.int32),
        sequence=numbers,
        sent_ns=sent_ns,
        received_ns=received_ns,
        size=sizes.astype(np.int32),
        host=HostReport(stalls=stalls, lateness_ns=after.lateness_ns),
        boards=after.counters_since(before),
        slots=capture.slots,
    )


def refuse(traffic: Sequence[Sender], lab: Lab) -> None:
    """Raise `RunError` if hosts, shapers or generators cannot do what the traffic asks for."""
    refuse_slots(traffic)
    ports: dict[tuple[str, int], int] = {}
    for flow in traffic:
        for host in (flow.source, flow.destination):
            if question := lab.which_interface(host):
                raise RunError(f"flow {flow.flow}: {lab.path}: {question}")
            if host not in lab.hosts:
                known = ", ".join(lab.hosts)
                raise RunError(f"flow {flow.flow}: {lab.path} has no host '{host}' (hosts: {known})")
        machine = lab.hosts[flow.source].machine
        end = machine, flow.udp_source
        if end in ports:
            raise RunError(
                f"flows {ports[end]} and {flow.flow} both leave {machine} by UDP port {flow.udp_source}:"
                " in live runs a host tells its flows apart by it; give each a port of its own"
            )
        ports[end] = flow.flow
        if not isinstance(flow.sends, TimeTriggered):
            pattern_of(flow)
            TbfParameters.of(flow)
