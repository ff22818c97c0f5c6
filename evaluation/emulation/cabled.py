"""A lab's boards, cables and hosts in one virtual time, without an end.

Unlike in a run of `switch_emulator.Network`, flows, control messages and connections may come and go
meanwhile. It does no I/O and knows no clock.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

import switch_emulator

from evaluation.beside.senders import ConformingSender, FlowSender, SlottedSender, Turn
from evaluation.beside.taps import Taps
from evaluation.emulation.boards import profile_of
from evaluation.virtual import SEQUENCE_OFFSET
from loko.flow import Flow
from loko.frame import frame_of
from loko.lab import Endpoint, Lab
from loko.serve.delays import Observation

_FCS_BYTES: Final = 4
_NS_PER_S: Final = 1_000_000_000
_KEPT_FRAMES: Final = 1_000
"""How many of the last frames that belong to no flow are kept for each host."""


class CabledLab:
    """Boards, cables and hosts whose events happen in order of time, never before their cause."""

    def __init__(self, lab: Lab, boards: Mapping[str, switch_emulator.Board]) -> None:
        """Take boards that are powered up, at time 0. Raises `InputError` if a switch is of another kind."""
        self._lab = lab
        self._boards = boards
        self._peer = dict(lab.cables())
        rates = {end: lab.rate_bps(link) for link in lab.links for end in (link.a, link.b)}
        self._byte_ns = {end: 8 * _NS_PER_S // rate for end, rate in rates.items()}
        profiles = [profile_of(switch) for switch in lab.switches.values()]
        self._preamble_bytes = profiles[0].ports.preamble_bytes.value
        self._gap_bytes = profiles[0].ports.interframe_gap_bytes.value
        self._events: list[tuple[int, int, Callable[[int], None]]] = []
        self._count = 0
        self._polls: dict[str, int | None] = {}
        self._said: dict[str, list[switch_emulator.Output]] = {name: [] for name in boards}
        self._senders: dict[str, FlowSender] = {}
        self._hosts: dict[str, list[FlowSender]] = {name: [] for name in lab.hosts}
        self._line_free_ns = dict.fromkeys(lab.hosts, 0)
        self._turn: dict[str, int | None] = dict.fromkeys(lab.hosts)
        self._numbers: dict[int, Flow] = {}
        self._last_number = 0
        self._taps = Taps()
        self._others = {name: deque[bytes](maxlen=_KEPT_FRAMES) for name in lab.hosts}
        self.now_ns = 0
        for name in boards:
            self._touched(name)

    # Time.

    def advance(self, to_ns: int) -> None:
        """Let everything happen up to this instant."""
        while self._events and self._events[0][0] <= to_ns:
            at_ns, _, happen = heapq.heappop(self._events)
            self.now_ns = max(self.now_ns, at_ns)
            happen(self.now_ns)
        self.now_ns = max(self.now_ns, to_ns)

    def next_ns(self) -> int | None:
        """Return when something happens next; None if nothing is planned."""
        return self._events[0][0] if self._events else None

    def _at(self, at_ns: int, happen: Callable[[int], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (at_ns, self._count, happen))

    # Boards and their controller.

    def connected(self, name: str) -> None:
        """Tell a board that its session with the controller is established."""
        self._boards[name].connected(self.now_ns)
        self._touched(name)

    def disconnected(self, name: str) -> None:
        """Tell a board that its session is gone."""
        self._boards[name].disconnected(self.now_ns)
        self._touched(name)

    def segment(self, name: str, data: bytes) -> None:
        """Give a board the payload of one TCP segment from the controller."""
        self._boards[name].segment(self.now_ns, data)
        self._touched(name)

    def said(self) -> Iterable[tuple[str, list[switch_emulator.Output]]]:
        """Return all outputs of the boards since the last call, except frames."""
        for name, outputs in self._said.items():
            if outputs:
                self._said[name] = []
                yield name, outputs

    def _touched(self, name: str) -> None:
        """Take what a board gives out after a call, and plan the next call it wants."""
        board = self._boards[name]
        for output in board.outputs():
            if output.kind == "frame":
                self._leave(name, output)
            else:
                self._said[name].append(output)
        wanted_ns = board.poll_at()
        if wanted_ns is not None and wanted_ns != self._polls.get(name):
            self._at(wanted_ns, lambda now_ns: self._poll(name, wanted_ns, now_ns))
        self._polls[name] = wanted_ns

    def _poll(self, name: str, wanted_ns: int, now_ns: int) -> None:
        if self._polls.get(name) == wanted_ns:
            self._polls[name] = None
            self._boards[name].advance(now_ns)
            self._touched(name)

    # Cables.

    def _leave(self, name: str, output: switch_emulator.Output) -> None:
        for port in range(1, 5):
            if output.port >> (port - 1) & 1:
                self._carry(Endpoint(node=name, port=port), output.data, output.at_ns)

    def _carry(self, end: Endpoint, frame: bytes, begun_ns: int) -> None:
        """Carry a frame along a cable. A host's tap sees it when it starts, a board when it ends."""
        far = self._peer.get(end)
        if far is None:
            return
        if far.node in self._lab.hosts:
            self._at(begun_ns, lambda now_ns: self._received(far.node, frame, now_ns))
            return
        arrived_ns = begun_ns + self._on_wire(len(frame)) * self._byte_ns[end]
        self._at(arrived_ns, lambda now_ns: self._arrive(far, frame, now_ns))

    def _on_wire(self, frame_bytes: int) -> int:
        return self._preamble_bytes + frame_bytes + _FCS_BYTES

    def _arrive(self, end: Endpoint, frame: bytes, now_ns: int) -> None:
        self._boards[end.node].frame(now_ns, end.port, frame)
        self._touched(end.node)

    # Hosts.

    def carry(self, flows: Iterable[Flow], turns: Mapping[str, Turn] = MappingProxyType({})) -> None:
        """From now on let these flows send, and no others. Those that send already go on as they are.

        Who has a turn sends by it, on this lab's own clock; all others as their buckets allow.
        """
        wanted = {flow.id: flow for flow in flows}
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
                self._add(self._sender(flow, turns.get(name)))

    def _sender(self, flow: Flow, turn: Turn | None) -> FlowSender:
        frame, number = frame_of(self._lab, flow), self._last_number
        if turn is None:
            return ConformingSender(
                flow, frame, number=number, sequence_offset=SEQUENCE_OFFSET, now_ns=self.now_ns
            )
        return SlottedSender(
            flow, frame, number=number, sequence_offset=SEQUENCE_OFFSET, turn=turn, now_ns=self.now_ns
        )

    def send(self, host: str, frame: bytes) -> None:
        """Let a host send a frame that belongs to no flow, as soon as its line is free."""
        begun_ns = max(self.now_ns, self._line_free_ns[host])
        self._occupy(host, frame, begun_ns)
        self._at(begun_ns, lambda now_ns: self._carry(Endpoint(node=host, port=1), frame, now_ns))
        self._arm(host)

    def taken(self, host: str) -> list[bytes]:
        """Take the frames that reached a host and belong to none of its flows."""
        frames = list(self._others[host])
        self._others[host].clear()
        return frames

    def observations(self) -> list[Observation]:
        """Return what the hosts' taps have seen since the last call."""
        return list(self._taps.observations(self.now_ns))

    def _add(self, sender: FlowSender) -> None:
        self._senders[sender.flow.id] = sender
        self._numbers[sender.number] = sender.flow
        self._hosts[sender.flow.source].append(sender)
        self._arm(sender.flow.source)

    def _arm(self, host: str) -> None:
        """Plan for the host to send when its first flow may and its line is free."""
        first = min((sender.next_ns for sender in self._hosts[host]), default=None)
        if first is None:
            self._turn[host] = None
            return
        turn_ns = max(first, self._line_free_ns[host])
        if turn_ns != self._turn[host]:
            self._turn[host] = turn_ns
            self._at(turn_ns, lambda now_ns: self._send(host, turn_ns, now_ns))

    def _send(self, host: str, turn_ns: int, now_ns: int) -> None:
        if self._turn[host] != turn_ns:
            return
        self._turn[host] = None
        sender = min(self._hosts[host], key=lambda sender: sender.next_ns)
        sequence, frame = sender.begin(now_ns)
        end = Endpoint(node=host, port=1)
        self._occupy(host, frame, now_ns)
        self._taps.sent(sender.flow.id, (sender.number, sequence), now_ns)
        self._carry(end, frame, now_ns)
        self._arm(host)

    def _occupy(self, host: str, frame: bytes, begun_ns: int) -> None:
        line_bytes = self._on_wire(len(frame)) + self._gap_bytes
        self._line_free_ns[host] = begun_ns + line_bytes * self._byte_ns[Endpoint(node=host, port=1)]

    def _received(self, host: str, frame: bytes, now_ns: int) -> None:
        number = int.from_bytes(frame[SEQUENCE_OFFSET - 4 : SEQUENCE_OFFSET], "big")
        flow = self._numbers.get(number)
        if flow is not None and flow.destination == host:
            sequence = int.from_bytes(frame[SEQUENCE_OFFSET : SEQUENCE_OFFSET + 4], "big")
            self._taps.received(flow.id, (number, sequence), now_ns)
        else:
            self._others[host].append(frame)
