"""A lab's boards, cables and hosts in one virtual time, without an end.

The simulator moves the frames. This module decides what the hosts send: flows, control messages and
connections may come and go while time passes. It does no I/O and knows no clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

import switch_emulator

from loko.service.delays import DelayObservation
from loko.service.faults import RESTART, Fault, FaultKind, cable_named
from loko.switch_model.device import Profile
from loko.switch_model.flow import Flow
from loko.topology.frame import frame_of
from loko.topology.lab import Lab, Switch
from loko.topology.ring import Setting
from loko_testbed.live.emulation.boards import KEPT_SESSION, switch_profiles
from loko_testbed.live.sidecars.senders import (
    UDP_SOURCE_OFFSET,
    ConformingSender,
    FlowSender,
    FlowsInPlace,
    SendSlots,
    SlottedSender,
    with_source_port,
)
from loko_testbed.live.sidecars.taps import Taps
from loko_testbed.simulation.senders import slot_ns
from loko_testbed.simulation.virtual import SEQUENCE_OFFSET, lab_network

_KEPT_FRAMES: Final = 1_000
"""How many of the last frames that belong to no flow are kept for each host."""


class CabledLab:
    """Hosts that send through a network of boards, and what comes of it, in order of time."""

    def __init__(self, lab: Lab, network: switch_emulator.Network) -> None:
        """Take the lab's network, which nobody else advances and whose hosts have no sources."""
        self._lab = lab
        self._network = network
        self._said: dict[str, list[switch_emulator.Output]] = {name: [] for name in lab.switches}
        self._senders: dict[str, FlowSender] = {}
        self._in_place = FlowsInPlace([])
        self._hosts: dict[str, list[FlowSender]] = {name: [] for name in lab.hosts}
        self._line_bps = {name: lab.port_rate_bps(name, 1) for name in lab.hosts}
        self._line_free_ns = dict.fromkeys(lab.hosts, 0)
        self._turns: dict[str, int] = {}
        """When the next frame of any flow may begin on a host's line, for each host with flows."""
        self._numbers: dict[int, Flow] = {}
        self._last_number = 0
        self._taps = Taps()
        self._others = {name: deque[bytes](maxlen=_KEPT_FRAMES) for name in lab.hosts}

    # Time.

    @property
    def now_ns(self) -> int:
        """The virtual time since the boards were powered up."""
        return self._network.now_ns()

    def advance(self, to_ns: int) -> None:
        """Let everything happen up to this instant."""
        while self._turns and (turn := min((at_ns, host) for host, at_ns in self._turns.items()))[0] <= to_ns:
            self._send(*turn)
        self._network.advance(to_ns)
        self._take()

    def _take(self) -> None:
        """Take what boards have said and what has reached hosts."""
        for name, output in self._network.outputs():
            if output.kind == "frame":
                self._received(name, output.data, output.at_ns)
            else:
                self._said[name].append(output)

    # Boards and their controller.

    def connected(self, name: str) -> None:
        """Tell a board that its session with the controller is established."""
        self._network.connected(name)
        self._take()

    def disconnected(self, name: str) -> None:
        """Tell a board that its session is gone."""
        self._network.disconnected(name)
        self._take()

    def segment(self, name: str, data: bytes) -> None:
        """Give a board the payload of one TCP segment from the controller."""
        self._network.segment(name, data)
        self._take()

    def cause(self, fault: Fault) -> None:
        """Pull a cable, plug it in again, or restart a board."""
        if fault.kind is FaultKind.REBOOT:
            self._network.console(fault.place, RESTART)
        else:
            end = cable_named(self._lab, fault.place).a
            self._network.set_link(end.node, end.port, fault.kind is FaultKind.PLUG)
        self._take()

    def drain_outputs(self) -> Iterable[tuple[str, list[switch_emulator.Output]]]:
        """Return all outputs of the boards since the last call, except frames."""
        for name, outputs in self._said.items():
            if outputs:
                self._said[name] = []
                yield name, outputs

    def flows(self, name: str) -> list[switch_emulator.Flow]:
        """Return the flow table of a board, in the board's own order."""
        return self._network.flows(name)

    # Hosts.

    def set_flows(self, in_place: FlowsInPlace) -> None:
        """Let these flows send from now on, and no others. Those that send already go on unchanged.

        Flows with a slot send in it, on this lab's own clock; all others as their buckets allow.
        """
        self._in_place = in_place
        wanted = {flow.id: flow for flow in in_place.flows}
        for name, sender in list(self._senders.items()):
            if wanted.get(name) != sender.flow:
                del self._senders[name], self._numbers[sender.number]
                self._hosts[sender.flow.source].remove(sender)
                self._arm(sender.flow.source)
        self._taps.watch(set(self._senders))  # first drop those that start anew under an old name
        self._taps.watch(set(wanted))
        for name, flow in wanted.items():
            if name not in self._senders:
                self._last_number += 1
                self._add(self._sender(flow, in_place.send_slots.get(name)))

    def _sender(self, flow: Flow, send_slot: SendSlots | None) -> FlowSender:
        frame, number = frame_of(self._lab, flow), self._last_number
        if send_slot is None:
            return ConformingSender(
                flow, frame, number=number, sequence_offset=SEQUENCE_OFFSET, now_ns=self.now_ns
            )
        return SlottedSender(
            flow,
            frame,
            number=number,
            sequence_offset=SEQUENCE_OFFSET,
            send_slot=send_slot,
            now_ns=self.now_ns,
        )

    def next_ns(self, flow_id: str) -> int:
        """Return when the next frame of a flow may begin."""
        return self._senders[flow_id].next_ns

    def send(self, host: str, frame: bytes) -> None:
        """Let a host send a frame that belongs to no flow, as soon as its line is free."""
        self._occupy(host, frame, self.now_ns)
        self._take()

    def take_frames(self, host: str) -> list[bytes]:
        """Take the frames that reached a host and belong to none of its flows."""
        frames = list(self._others[host])
        self._others[host].clear()
        return frames

    def observations(self) -> list[DelayObservation]:
        """Return what the hosts' taps have seen since the last call."""
        return list(self._taps.observations(self.now_ns))

    def _add(self, sender: FlowSender) -> None:
        self._senders[sender.flow.id] = sender
        self._numbers[sender.number] = sender.flow
        self._hosts[sender.flow.source].append(sender)
        self._arm(sender.flow.source)

    def _arm(self, host: str) -> None:
        """Set when a host sends next: as soon as its line is free and the first of its flows may send."""
        self._turns.pop(host, None)
        if senders := self._hosts[host]:
            first_ns = min(sender.next_ns for sender in senders)
            self._turns[host] = max(first_ns, self._line_free_ns[host])

    def _send(self, at_ns: int, host: str) -> None:
        """Let a host's first flow send its next frame."""
        sender = min(self._hosts[host], key=lambda sender: sender.next_ns)
        flow, (sequence, frame) = sender.flow, sender.begin(at_ns)
        for udp_source in self._in_place.source_ports(flow):
            is_second = udp_source != flow.udp_source
            # Also where the first is left out: else this copy would be too close to the one before it.
            begin_ns = at_ns + slot_ns(flow.frame_bytes, self._line_bps[host]) if is_second else at_ns
            self._taps.sent(flow.id, (sender.number, sequence), begin_ns, is_second=is_second)
            self._occupy(host, with_source_port(frame, udp_source), begin_ns)

    def _occupy(self, host: str, frame: bytes, at_ns: int) -> None:
        self._line_free_ns[host] = self._network.send(host, frame, at_ns)
        self._arm(host)

    def _received(self, host: str, frame: bytes, at_ns: int) -> None:
        number = int.from_bytes(frame[SEQUENCE_OFFSET - 4 : SEQUENCE_OFFSET], "big")
        flow = self._numbers.get(number)
        if flow is not None and flow.destination == host:
            sequence = int.from_bytes(frame[SEQUENCE_OFFSET : SEQUENCE_OFFSET + 4], "big")
            udp_source = int.from_bytes(frame[UDP_SOURCE_OFFSET : UDP_SOURCE_OFFSET + 2], "big")
            is_second = udp_source != flow.udp_source
            self._taps.received(flow.id, (number, sequence), at_ns, is_second=is_second)
        else:
            self._others[host].append(frame)


def cabled_network(lab: Lab, *, free_control: bool) -> switch_emulator.Network:
    """Return a lab's network, powered up; the caller keeps the switches' TCP sessions.

    With `free_control`, the boards' control plane takes no time. Raises `InputError` if a switch cannot be
    emulated.
    """
    with switch_profiles(lab, free_control=free_control) as profiles:
        return lab_network(
            lab,
            {},
            seed=0,
            profile_of=profiles,
            settings={name: _settings(switch) for name, switch in lab.switches.items()},
        )


def _settings(switch: Switch) -> Mapping[str, Setting]:
    """Return what a switch needs beside the lab's settings. The MAC address makes the datapath id."""
    if isinstance(switch.profile, Profile):
        return KEPT_SESSION
    return {"mac": ":".join(f"{byte:02x}" for byte in switch.datapath_id.to_bytes(8)[2:])}
