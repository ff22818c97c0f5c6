"""The fixed tables of live runs, maintained in emulated boards in virtual time."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from board_end import TRIP_NS, BoardEnd
from mirrored_flows import FLOWS

from loko.control.dialect import REFRESH_NS
from loko.control.entries import switch_entries
from loko.control.fixed_tables import FixedTables
from loko.control.versions import CODECS
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import load_lab
from loko.topology.network import on_shortest_paths

LAB = load_lab("two-switch")
TABLES = switch_entries(LAB, on_shortest_paths(LAB, FLOWS))
S = 1_000_000_000


class Lab:
    """The fixed tables of the lab, connected to its boards."""

    def __init__(self, openflow: OpenFlow = OpenFlow.V1_0) -> None:
        self.tables = FixedTables(LAB, TABLES, openflow)
        self.wire = CODECS[openflow]
        self.boards = {
            name: BoardEnd(dict(switch.config), openflow=openflow) for name, switch in LAB.switches.items()
        }
        self.lines: list[str] = []
        self.renewals: list[int] = []

    @property
    def now_ns(self) -> int:
        return self.boards["s1"].now_ns

    def connect(self, *names: str) -> None:
        for name in names:
            self.boards[name].open()
            self.tables.connected(self.boards[name].now_ns, name)
            self.carry()

    def carry(self) -> None:
        effects = self.tables.effects()
        self.lines += effects.lines
        assert effects.closes == []
        for name, requests in effects.sends:
            if len(requests) > 1:
                self.renewals.append(self.boards[name].now_ns)
            self.boards[name].send(self.wire.segment(requests))

    def step(self, duration_ns: int = TRIP_NS) -> None:
        self.tables.tick(self.now_ns)
        self.carry()
        for name, end in self.boards.items():
            for message in end.wait(duration_ns):
                if (reply := self.wire.decode(message)) is not None:
                    self.tables.reply(end.now_ns, name, reply)
                    self.carry()

    def run(self, duration_ns: int, step_ns: int = 250_000_000) -> None:
        for _ in range(duration_ns // step_ns):
            self.step(step_ns)

    def until_ready(self) -> None:
        for _ in range(200):
            if self.tables.ready:
                return
            self.step()
        raise AssertionError(self.lines)

    def table(self, name: str) -> list[tuple[str, int, int]]:
        board = self.boards[name].board
        if board.openflow_version == 1:
            return [(flow.nw_src, flow.tp_src, flow.priority) for flow in board.flows()]
        return [
            (
                str(IPv4Address(flow.oxms[15:19])),
                int.from_bytes(flow.oxms[31:33], "big"),
                int.from_bytes(flow.head[30:32], "big"),
            )
            for flow in board.flows13()
        ]


def planned(name: str) -> list[tuple[str, int, int]]:
    return [(str(entry.match.nw_src), entry.match.tp_src, entry.priority) for entry in TABLES[name]]


def ready(openflow: OpenFlow = OpenFlow.V1_0) -> Lab:
    lab = Lab(openflow)
    lab.connect("s1", "s2")
    lab.until_ready()
    return lab


@pytest.mark.parametrize("openflow", OpenFlow)
def test_dummies_come_first_and_the_last_entries_are_used(openflow: OpenFlow) -> None:
    lab = ready(openflow)
    for name in LAB.switches:
        assert lab.table(name) == planned(name)
        assert len(lab.table(name)) == 17
    assert "s1: set up and counted" in lab.lines


def test_not_ready_before_every_switch_is() -> None:
    lab = Lab()
    lab.connect("s1")
    for _ in range(100):
        lab.step()
    assert lab.table("s1") == planned("s1")
    assert not lab.tables.ready
    lab.connect("s2")
    lab.until_ready()


@pytest.mark.parametrize("openflow", OpenFlow)
def test_switch_that_begins_anew_gets_its_table_again(openflow: OpenFlow) -> None:
    lab = ready(openflow)
    lab.boards["s1"].close()
    lab.tables.disconnected("s1")
    lab.carry()
    assert not lab.tables.ready
    lab.run(3 * S)
    lab.connect("s1")
    lab.until_ready()
    assert lab.table("s1") == planned("s1")


def test_stays_ready_while_entries_are_renewed() -> None:
    lab = ready()
    lab.renewals.clear()
    for _ in range((REFRESH_NS + 10 * S) // 50_000_000):
        lab.step(50_000_000)
        assert lab.tables.ready
    assert len(lab.renewals) == 2 * 16, "each with the last entry"
    assert lab.table("s1") == planned("s1"), "in the same order, the used entries last"
    assert not [event for end in lab.boards.values() for event in end.events]


def test_in_1_3_nothing_needs_to_be_renewed() -> None:
    lab = ready(OpenFlow.V1_3)
    lab.renewals.clear()
    lab.run(3 * REFRESH_NS)
    assert lab.renewals == []
    assert lab.table("s1") == planned("s1")
    assert lab.tables.ready


def test_nothing_is_renewed_while_something_is_measured() -> None:
    lab = ready()
    lab.renewals.clear()
    lab.tables.set_quiet(quiet=True)
    lab.run(REFRESH_NS + 60 * S)
    assert lab.renewals == []
    lab.tables.set_quiet(quiet=False)
    for _ in range(150):  # the pause between two runs
        lab.step()
    assert len(lab.renewals) == 2 * 16, "each with the last entry"
    lab.renewals.clear()
    lab.tables.set_quiet(quiet=True)
    lab.run(2 * REFRESH_NS - S)
    assert lab.renewals == []
    lab.run(30 * S)
    assert lab.renewals, "before the firmware would let them expire"
