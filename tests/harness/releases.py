"""A lab of emulated boards in which the test chooses when each frame is released, to find the worst case."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from switch_emulator import Board

from loko.control.entries import FlowEntry, padding_entries, switch_entries
from loko.control.messages import session_segments
from loko.control.wire import AddEntry, entry_of, segment
from loko.switch_model.flow import Flow
from loko.topology.frame import frame_of
from loko.topology.lab import Lab
from loko.topology.network import on_shortest_paths

SETTLED_NS = 600_000_000
"""All tables are installed by then, and the boards will send nothing to their controllers for a long time."""
_DISCARD = 9
"""UDP port of the padding entries."""
_STEP_NS = 20_000
_BYTE_NS, _PREAMBLE, _GAP, _FCS = 80, 8, 12, 4


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A frame: when its first bit left the sender, and when it left the last switch (None if lost)."""

    flow: int
    sent_ns: int
    departed_ns: int | None


def conforming(flow: Flow, *, first_ns: int, frames: int) -> list[int]:
    """Return the earliest releases that conform to the flow's token bucket, which is full at `first_ns`."""
    spacing_ns = flow.frame_bytes * 8e9 / flow.rate_bps
    free = flow.burst_bytes / flow.frame_bytes
    return [first_ns + max(0, -int(-(k + 1 - free) * spacing_ns // 1)) for k in range(frames)]


def carry(
    lab: Lab,
    flows: Sequence[Flow],
    releases: Mapping[int, Sequence[int]],
    *,
    entries: int,
    seed: int,
    dummies: bool = True,
    padding: int = 0,
    control: Mapping[str, Sequence[tuple[int, bytes]]] = MappingProxyType({}),
) -> list[Seen]:
    """Return what happens to frames released at these instants (flow number -> instants in ns).

    Without padding entries, each table contains the flows' entries and this many padding entries. `control`
    gives what the controller sends to each switch: instants and segments.
    """
    table = padding_entries(lab, padding)
    return _Run(lab, flows, entries, seed, dummies=dummies, padding=table).carry(releases, control)


class _Run:
    def __init__(
        self,
        lab: Lab,
        flows: Sequence[Flow],
        entries: int,
        seed: int,
        *,
        dummies: bool,
        padding: Sequence[FlowEntry],
    ) -> None:
        self._far = {(end.node, end.port): far for end, far in lab.cables()}
        self._hosts = lab.hosts
        tables = switch_entries(lab, on_shortest_paths(lab, flows), entries=entries)
        self._boards: dict[str, Board] = {}
        for number, (name, switch) in enumerate(lab.switches.items()):
            board = Board(profile=switch.profile.name, config=dict(switch.config), seed=seed * 1000 + number)
            board.connected(1_000_000)
            at = 2_000_000
            table = [entry for entry in tables[name] if dummies or entry.match.tp_dst != _DISCARD]
            if not dummies:  # the service's entries all have the same priority, in any order
                table = [replace(entry, priority=100) for entry in table]
            own = [
                segment([AddEntry(number, entry_of(entry, cookie=number))])
                for number, entry in enumerate(padding, start=1)
            ]
            for message in (*session_segments(table), *own):
                board.segment(at, message)
                at += 2_000_000
            board.advance(SETTLED_NS)
            assert len(board.flows()) == len(table) + len(own)
            board.outputs()
            self._boards[name] = board
        self._frames = [frame_of(lab, flow) for flow in flows]
        self._flows = flows
        self._queue: list[tuple[int, int, str, int, bytes]] = []
        self._pushed = 0

    def carry(
        self, releases: Mapping[int, Sequence[int]], control: Mapping[str, Sequence[tuple[int, bytes]]]
    ) -> list[Seen]:
        sent = self._send(releases)
        for name, segments in control.items():
            for at, data in segments:
                self._push(at, name, 0, data)
        departed: dict[int, int] = {}
        now = SETTLED_NS
        quiet_until = max(at for at, *_ in self._queue) + 50_000_000
        while now < quiet_until:
            now += _STEP_NS
            while self._queue and self._queue[0][0] <= now:
                at, _, node, port, data = heapq.heappop(self._queue)
                if port:
                    self._boards[node].frame(at, port, data)
                else:
                    self._boards[node].segment(at, data)
            for name, board in self._boards.items():
                board.advance(now)
                for output in board.outputs():
                    if output.kind == "frame":
                        self._forward(name, output.port, output.at_ns, output.data, departed)
                    assert output.kind != "event", output
        return [
            Seen(flow=flow, sent_ns=at, departed_ns=departed.get(number))
            for number, (flow, at) in enumerate(sent)
        ]

    def _send(self, releases: Mapping[int, Sequence[int]]) -> list[tuple[int, int]]:
        """Serialise each host's frames on its link."""
        order = sorted((at, flow) for flow, instants in releases.items() for at in instants)
        free: dict[str, int] = {}
        sent: list[tuple[int, int]] = []
        for number, (at, flow_number) in enumerate(order):
            flow = self._flows[flow_number]
            begin = max(at, free.get(flow.source, 0))
            sent.append((flow_number, begin))
            end = begin + (_PREAMBLE + flow.frame_bytes) * _BYTE_NS
            free[flow.source] = end + _GAP * _BYTE_NS
            data = bytearray(self._frames[flow_number])
            data[-4:] = number.to_bytes(4, "big")
            far = self._far[(flow.source, 1)]
            self._push(end, far.node, far.port, bytes(data))
        return sent

    def _forward(self, name: str, mask: int, at_ns: int, data: bytes, departed: dict[int, int]) -> None:
        far = self._far[(name, mask.bit_length())]
        if far.node in self._hosts:
            departed[int.from_bytes(data[-4:], "big")] = at_ns
        else:
            self._push(at_ns + (_PREAMBLE + len(data) + _FCS) * _BYTE_NS, far.node, far.port, data)

    def _push(self, at_ns: int, node: str, port: int, data: bytes) -> None:
        self._pushed += 1
        heapq.heappush(self._queue, (at_ns, self._pushed, node, port, data))
