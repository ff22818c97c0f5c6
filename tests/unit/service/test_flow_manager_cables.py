"""A pulled data cable ends no session and changes no table; promises across it are broken, and shown so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from board_end import BoardEnd
from served_boards import ServedBoards, flow

from loko.control.port_links import PortsReply
from loko.service.breaks import ViolationCause
from loko.service.outcome import Disposition, Granted, Unavailable
from loko.service.views import flow_values, health_values, switch_values
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import load_lab

PORT_STATUS = 12
TRUNK, TRUNK_NAME = 3, "s1:3-s2:3"
STEPS = 4_000
"""Four seconds. Boards check their links every second and a half."""


class Watched(BoardEnd):
    """A board that reports its links. `changes` counts its PORT_STATUS messages."""

    changes = 0

    def __init__(self, config: dict[str, object], *, start_ns: int, openflow: OpenFlow) -> None:
        super().__init__({**config, "ofchecks": True}, start_ns=start_ns, openflow=openflow)

    def wait(self, duration_ns: int) -> list[bytes]:
        messages = super().wait(duration_ns)
        self.changes += sum(message[1] == PORT_STATUS for message in messages)
        return messages


@pytest.fixture(params=list(OpenFlow))
def served(tmp_path: Path, request: pytest.FixtureRequest) -> ServedBoards:
    boards = ServedBoards(tmp_path / "flows.sqlite", openflow=request.param)
    for name in boards.boards:
        boards.reboot(name)
        boards.boards[name] = Watched(
            dict(boards.config[name]), start_ns=boards.now_ns, openflow=request.param
        )
    boards.settle()
    return boards


def set_cable(served: ServedBoards, *, is_in: bool, port: int = TRUNK, only: str = "") -> None:
    for name, end in served.boards.items():
        if only in ("", name):
            end.board.link(end.now_ns, port, is_in)
    served.run(STEPS)


def broken(served: ServedBoards, flow_id: str = "f1") -> list[tuple[ViolationCause, str]]:
    return [(found.cause, found.place) for found in served.manager.flows[flow_id].breaks]


def said(served: ServedBoards, name: str) -> list[str]:
    return [event.text for event in served.log if event.name == name]


def test_a_pulled_cable_breaks_the_promises_across_it_until_it_is_back(served: ServedBoards) -> None:
    assert served.request(flow(1)) == Granted("f1", is_new=True)
    assert served.request(flow(2, "H1", "H2")) == Granted("f2", is_new=True)
    assert health_values(served.manager)["healthy"]
    set_cable(served, is_in=False)
    assert broken(served) == [(ViolationCause.LINK_DOWN, TRUNK_NAME)]
    assert broken(served, "f2") == [], "it does not cross the cable"
    (found,) = flow_values(served.manager, "f1")["broken"]
    assert found["text"] == f"cable {TRUNK_NAME} has no link at s1:3"
    assert 0 < served.now_ns / 1e6 - found["since_ms"] < STEPS
    health = health_values(served.manager)
    assert (health["healthy"], health["broken"]) == (False, {"link-down": 1})
    assert switch_values(served.manager, "s1")["down_ports"] == [TRUNK]
    assert said(served, "f1")[-1] == f"is broken at {TRUNK_NAME}: cable {TRUNK_NAME} has no link at s1:3"
    set_cable(served, is_in=True)
    assert broken(served) == []
    assert said(served, "f1")[-1] == "is kept again"
    assert health_values(served.manager)["healthy"]
    for end in served.boards.values():
        assert isinstance(end, Watched)
        assert (end.changes, end.is_open) == (2, True)
    assert served.tables() == served.promised()
    assert served.events() == []


def test_one_end_without_a_link_is_enough(served: ServedBoards) -> None:
    served.request(flow(1))
    set_cable(served, is_in=False)
    set_cable(served, is_in=True, only="s1")
    assert broken(served) == [(ViolationCause.LINK_DOWN, TRUNK_NAME)]
    set_cable(served, is_in=True, only="s2")
    assert broken(served) == []


@pytest.mark.parametrize("port", [1, 2])
def test_the_cable_of_a_host_counts_at_either_end_of_a_path(served: ServedBoards, port: int) -> None:
    """H1 and H2 are at ports 1 and 2 of s1."""
    served.request(flow(1, "H1", "H2"))
    set_cable(served, is_in=False, port=port, only="s1")
    assert broken(served) == [(ViolationCause.LINK_DOWN, f"H{port}:1-s1:{port}")]


def test_nothing_is_granted_across_a_dead_cable(served: ServedBoards) -> None:
    """The lab has no other path, so it is a matter of time, not of room."""
    set_cable(served, is_in=False)
    outcome = served.request(flow(2))
    assert isinstance(outcome, Unavailable)
    assert outcome.reason == f"cable {TRUNK_NAME} has no link at s1:3 and s2:3"
    assert served.request(flow(3, "H1", "H2")) == Granted("f3", is_new=True)
    set_cable(served, is_in=True)
    assert served.request(flow(2)) == Granted("f2", is_new=True)


def test_a_cable_that_dies_while_a_flow_is_installed_takes_the_flow_back(served: ServedBoards) -> None:
    ticket = served.begin(flow(1))
    served.carry()
    served.manager.reply(served.now_ns, "s1", PortsReply(0, {TRUNK: False}))
    outcome = served.ask(ticket)
    assert isinstance(outcome, Unavailable)
    assert (outcome.disposition, outcome.switch) == (Disposition.TAKEN_BACK, "s1")


def test_what_a_switch_says_as_it_connects_counts(served: ServedBoards) -> None:
    """A board says nothing of a link that changed while it had no session, but how its ports are then."""
    served.request(flow(1))
    served.unplug("s1")
    set_cable(served, is_in=False, only="s1")
    assert broken(served) == [(ViolationCause.SWITCH_AWAY, "s1")]
    served.unplug("s1", plugged=True)
    served.settle()
    assert broken(served) == [(ViolationCause.LINK_DOWN, TRUNK_NAME)]
    served.kill()
    served.start()
    assert broken(served) == [(ViolationCause.SWITCH_AWAY, "s1"), (ViolationCause.SWITCH_AWAY, "s2")]
    served.settle()
    assert broken(served) == [(ViolationCause.LINK_DOWN, TRUNK_NAME)]


def test_a_cable_where_the_lab_has_none_is_noticed(tmp_path: Path) -> None:
    """The port of H4's cable, in a lab without that host."""
    lab = load_lab("two-switch")
    hosts = {name: host for name, host in lab.hosts.items() if name != "H4"}
    links = tuple(link for link in lab.links if link.a.node != "H4")
    served = ServedBoards(tmp_path / "flows.sqlite", lab=replace(lab, hosts=hosts, links=links))
    served.settle()
    assert switch_values(served.manager, "s2")["unexpected_ports"] == [2]
    assert switch_values(served.manager, "s1")["unexpected_ports"] == []
    assert "port 2 has a link, but the lab has no cable there" in said(served, "s2")


def test_links_are_asked_for_where_boards_do_not_look_by_themselves(tmp_path: Path) -> None:
    """OFCHECKS are off, as in the paper's firmware: no PORT_STATUS ever comes."""
    for openflow in OpenFlow:
        path = tmp_path / f"{openflow.value}.sqlite"
        served = ServedBoards(path, openflow=openflow, compare_ns=3_000_000_000)
        served.settle()
        served.request(flow(1))
        set_cable(served, is_in=False)
        served.run(4_000)
        assert broken(served) == [(ViolationCause.LINK_DOWN, TRUNK_NAME)]
        set_cable(served, is_in=True)
        served.run(4_000)
        assert broken(served) == []
        assert served.events() == []


def test_an_unasked_report_does_not_put_off_the_next_sign_of_life(served: ServedBoards) -> None:
    """A board asks if it has not heard of the controller for 2.5 s, for which nothing is reserved."""
    for _ in range(8):
        served.run(1_000)
        for name in served.boards:
            served.manager.reply(served.now_ns, name, PortsReply(0, {TRUNK: True}))
            served.carry()
    assert [end.asked for end in served.boards.values()] == [0, 0]
