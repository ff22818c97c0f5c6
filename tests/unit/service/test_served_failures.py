"""Flows of a service with `--survive`: reserved, moved at a failure, returned, and right across kills."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from failing_triangle import CUT, MS, disturbed_step, kept, set_link, state
from served_boards import KilledError, ServedBoards, flow
from test_migration import migrated, slower, two_ways, without

from loko.admission.protection import ProtectedAdmission
from loko.control.port_links import PortsReply
from loko.control.wire import AddEntry, BarrierRequest, DeleteEntry, TableStatsRequest
from loko.document import InputError
from loko.service.breaks import ViolationCause
from loko.service.flow_manager import SWITCH_FAILED_NS, WAIT_TO_RESTORE_NS
from loko.service.migration import MigrationResult
from loko.service.outcome import (
    Conflict,
    DryRun,
    FlowState,
    Granted,
    Refused,
    Released,
    ReturnMode,
    Unavailable,
)
from loko.service.protected_admitter import ProtectedAdmitter
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Endpoint, Lab, Link, ring_lab
from loko.topology.network import Hop
from loko.topology.ring import Ring

RETURNED_MS = WAIT_TO_RESTORE_NS // MS + 1_000
"""Milliseconds after which flows have returned."""


def begun(path: Path, *, flows: int = 2, **options: Any) -> ServedBoards:
    """Return boards in a triangle that survive the failure of a cable, with flows from a to b."""
    served = ServedBoards(path, **{"lab": two_ways(), "survive": ["cables=1"], **options})
    served.settle()
    for number in range(1, flows + 1):
        assert isinstance(served.request(flow(number, "a", "b")), Granted)
    return served


def until_kept(served: ServedBoards, *names: str, most: int = 2_000) -> int:
    """Go on until the promises to flows are kept. Return the milliseconds that it took."""
    for steps in range(most):
        if not any(served.manager.flows[name].breaks for name in names):
            return steps
        served.step()
    raise AssertionError(served.log[-5:])


def protected(served: ServedBoards) -> ProtectedAdmission:
    assert isinstance(served.admitter, ProtectedAdmitter)
    return served.admitter._protected


def reserved(served: ServedBoards) -> list[list[tuple[str, tuple[str, ...]]]]:
    """Return the flows and paths that each state counts."""
    return [
        sorted((name, tuple(hop.switch for hop in found.path)) for name, found in state.admitted.items())
        for state in protected(served).admissions
    ]


def test_a_granted_flow_has_a_path_for_each_failure_and_a_promise_for_all_paths(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    managed = served.manager.flows["f1"]
    paths = served.admitter.reserved_paths("f1")
    assert paths is not None
    assert [hop.switch for hop in paths.working] == ["s1", "s2"]
    assert {name: [hop.switch for hop in path] for name, path in paths.backups.items()} == {
        "cable s1:2-s2:3": ["s1", "s3", "s2"]
    }
    assert managed.promised.guarantee_ns > managed.grant.guarantee_ns
    assert [len(table) for table in served.tables().values()] == [2, 2, 2], "also at s3, beforehand"
    assert served.tables() == served.promised()
    assert served.manager.uncovered() == ()


def test_a_new_flow_avoids_a_switch_that_counts_as_failed(tmp_path: Path) -> None:
    ring = ring_lab(Ring(switches=4, hosts_per_switch=1, one_way=False))
    for survive in (["switches=1"], []):
        served = ServedBoards(tmp_path / f"{survive}", lab=ring, survive=survive)
        served.settle()
        served.unplug("s2")
        assert isinstance(served.request(flow(1, "h1", "h3")), Unavailable), "it may be back in a moment"
        served.run(SWITCH_FAILED_NS // MS)
        assert isinstance(served.request(flow(1, "h1", "h3")), Granted)
        assert state(served, "f1") == kept("s1", "s4", "s3")
        assert isinstance(served.request(flow(2, "h1", "h2")), Unavailable), "its destination is there"


def test_a_flow_is_refused_if_its_backup_path_has_no_room_or_is_too_slow(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    longest_ns = served.manager.flows["f1"].promised.guarantee_ns
    refused = served.request(flow(3, "a", "b"), deadline_ns=longest_ns - 1)
    assert isinstance(refused, Refused)
    assert "after a failure of cable s1:2-s2:3" in str(refused.refusal)
    assert isinstance(served.request(flow(3, "a", "b"), deadline_ns=longest_ns), Granted)
    assert isinstance(served.request(flow(4, "a", "b")), Granted)
    before = reserved(served)
    refused = served.request(flow(5, "a", "b", burst_bytes=300.0))
    assert isinstance(refused, Refused)
    assert "after a failure of cable s1:2-s2:3" in str(refused.refusal)
    assert reserved(served) == before, "a refusal reserves nothing"


def test_flows_move_to_their_backup_paths_at_once_and_return_when_the_cable_is_back(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    promised = {name: served.manager.flows[name].promised for name in ("f1", "f2")}
    set_link(served, is_up=False)
    moving = [served.manager.flows[name] for name in ("f1", "f2")]
    assert all(managed.breaks and served.manager.may_send(managed) for managed in moving)
    took_ms = until_kept(served, "f1", "f2")
    assert state(served, "f1") == state(served, "f2") == kept("s1", "s3", "s2")
    assert took_ms < 50, "no tick is waited for"
    assert {name: served.manager.flows[name].promised for name in promised} == promised
    assert served.manager.on_backup == ("f1", "f2")
    assert served.manager.uncovered()[0] == "cable s1:2-s2:3 has no link at s1:2"
    served.settle()
    served.run(100)
    assert served.tables() == served.promised()
    assert ("f1 again", ("s1", "s2")) in reserved(served)[0], "the working path stays reserved"
    set_link(served, is_up=True)
    heard = len(served.log)
    served.run(1_000)
    assert state(served, "f1") == kept("s1", "s3", "s2"), "it waits whether the cable stays"
    served.run(RETURNED_MS)
    assert state(served, "f1") == state(served, "f2") == kept("s1", "s2")
    assert served.manager.uncovered() == ()
    assert set(served.admission.admitted) == {"f1", "f2"}
    assert served.tables() == served.promised()
    assert not any("is broken" in event.text for event in served.log[heard:]), "a return breaks no promise"


def test_a_move_is_one_round_trip_with_one_switch(tmp_path: Path) -> None:
    """The switch where the paths part exchanges one entry of each flow, and no other changes anything."""
    served = begun(tmp_path / "s")
    for is_up in (False, True):
        served.sent.clear()
        set_link(served, is_up=is_up)
        served.run(RETURNED_MS)
        changes = [
            (switch, [type(request) for request in requests])
            for switch, requests in served.sent
            if not isinstance(requests[0], BarrierRequest) or len(requests) > 1
        ]
        exchange = "s1", [BarrierRequest, DeleteEntry, AddEntry]
        assert [change for change in changes if change[1] != [TableStatsRequest]] == [exchange, exchange]
        assert state(served, "f1") == state(served, "f2") == kept(*("s1 s2" if is_up else "s1 s3 s2").split())
        assert served.tables() == served.promised()


def test_entries_that_are_there_beforehand_give_way_and_moves_take_two_round_trips(tmp_path: Path) -> None:
    """With four flows every table of the ring is full after any failure, and never longer than planned."""
    lab = ring_lab(Ring(switches=4, hosts_per_switch=1, one_way=False))
    served = ServedBoards(tmp_path / "s", lab=lab, entries=3, survive=["cables=1"])

    def run(steps: int) -> None:
        for _ in range(steps):
            served.step()
            assert max(map(len, served.tables().values())) <= 3

    served.settle()
    for number, ends in enumerate((("h1", "h2"), ("h2", "h3"), ("h4", "h3")), 1):
        assert isinstance(served.request(flow(number, *ends)), Granted)
    assert served.manager.in_two_rounds == ()
    assert [len(table) for table in served.tables().values()] == [3, 3, 3, 3]
    ticket = served.begin(flow(4, "h4", "h1"))
    served.carry()
    run(200)
    assert served.answers[ticket] == Granted("f4", is_new=True)
    assert set(served.manager.in_two_rounds) == {"f1", "f2", "f3", "f4"}
    assert [len(table) for table in served.tables().values()] == [2, 2, 2, 2]
    assert served.tables() == served.promised()
    (cut,) = (hop.output_port for hop in served.manager.flows["f1"].path if hop.switch == "s1")
    before = reserved(served)
    set_link(served, ("s1", cut), is_up=False)
    run(500)
    assert state(served, "f1") == kept("s1", "s4", "s3", "s2")
    assert served.tables() == served.promised()
    set_link(served, ("s1", cut), is_up=True)
    run(RETURNED_MS)
    assert state(served, "f1") == kept("s1", "s2")
    assert served.tables() == served.promised(), "what was added for the move is gone"
    assert reserved(served) == before
    assert served.release("f4") == Released("f4")
    run(200)
    assert served.manager.in_two_rounds == ()
    assert served.tables() == served.promised()
    assert served.manager.uncovered() == ()


def output_ports(served: ServedBoards, name: str) -> dict[str, int | None]:
    """Return by which port each switch sends out a flow's frames, until one has no entry or they arrive."""
    managed, ports = served.manager.flows[name], dict[str, int | None]()
    far = served.lab.far_end(managed.flow.source, 1)
    while far is not None and far.node in served.lab.switches:
        entries = {cookie & 0xFFFF_FFFF: actions for cookie, actions in served.tables()[far.node]}
        actions = entries.get(managed.number)
        ports[far.node] = port = None if actions is None else int.from_bytes(actions[4:6], "big")
        far = None if port is None else served.lab.far_end(far.node, port)
    return ports


@pytest.mark.parametrize("rebooted", ["s1", "s2", "s3"])
def test_no_host_sends_to_a_switch_that_loses_its_entry_during_a_move(tmp_path: Path, rebooted: str) -> None:
    for returns in (False, True):
        for steps in range(3):
            served = begun(tmp_path / f"{returns}-{steps}", returns=ReturnMode.BY_CALL)
            set_link(served, is_up=False)
            managed = served.manager.flows["f1"]
            if returns:
                served.run(1_000)
                set_link(served, is_up=True)
                assert served.manager.return_flows(served.now_ns) == ("f1", "f2")
                served.carry()
            assert managed.former is not None
            served.run(steps)
            served.reboot(rebooted)
            sends = []
            for _ in range(3_000):
                sends.append(served.manager.may_send(managed))
                assert not sends[-1] or None not in output_ports(served, "f1").values()
                served.step()
            assert sends[-1]


def test_a_former_path_has_its_entries_until_no_restart_uses_it(tmp_path: Path) -> None:
    """With the end of a move not on disk, a restart has frames take the former path again."""
    lab = ring_lab(Ring(switches=4, hosts_per_switch=1, one_way=False))
    served = ServedBoards(
        tmp_path / "s", lab=lab, entries=3, survive=["cables=1"], returns=ReturnMode.BY_CALL, safe=True
    )
    served.settle()
    for number, ends in enumerate((("h1", "h2"), ("h2", "h3"), ("h4", "h3"), ("h4", "h1")), 1):
        assert isinstance(served.request(flow(number, *ends)), Granted)
    assert "f1" in served.manager.in_two_rounds
    working = output_ports(served, "f1")
    (cut,) = (hop.output_port for hop in served.manager.flows["f1"].path if hop.switch == "s1")
    set_link(served, ("s1", cut), is_up=False)
    served.run(500)
    backup = output_ports(served, "f1")
    assert list(backup) == ["s1", "s4", "s3", "s2"]
    set_link(served, ("s1", cut), is_up=True)
    assert served.manager.return_flows(served.now_ns) == ("f1",)
    served.carry()
    served.full = True
    served.run(500)
    assert output_ports(served, "f1") == working
    served.kill()
    served.full = False
    served.unplug("s4")  # on the backup path only, and the last to connect
    served.start()
    for step in range(6_000):
        if step == 3_000:
            served.unplug("s4", plugged=True)
        served.step()
        assert output_ports(served, "f1") in (working, backup)
    assert state(served, "f1") == kept("s1", "s2")
    assert served.tables() == served.promised()


def test_a_flow_is_granted_while_a_switch_of_its_backup_path_is_away(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    served.unplug("s3")
    assert isinstance(served.request(flow(3, "a", "b")), Granted)
    assert served.manager.uncovered() == ("s3 is away",)
    served.unplug("s3", plugged=True)
    served.run(3_000)
    served.settle()
    assert len(served.tables()["s3"]) == 3
    assert served.tables() == served.promised()
    assert served.manager.uncovered() == ()
    set_link(served, is_up=False)
    assert until_kept(served, "f1", "f2", "f3") < 50


@pytest.mark.parametrize("openflow", list(OpenFlow))
def test_a_flow_that_is_released_while_it_moves_leaves_nothing(tmp_path: Path, openflow: OpenFlow) -> None:
    """At whichever step it is released, and whether the service is killed then or not."""
    for steps in (0, 2, 5, 10, 20, 40):
        for is_killed in (False, True):
            served = begun(tmp_path / f"{steps} {is_killed}", openflow=openflow)
            set_link(served, is_up=False)
            served.run(steps)
            ticket = served.manager.release(served.now_ns, "f1")
            served.carry()
            served.run(1)
            if is_killed:
                served.kill()
                served.start()
            else:
                outcome = served.ask(ticket)
                if isinstance(outcome, Conflict):
                    outcome = served.release("f1")
                assert outcome == Released("f1")
            served.settle()
            served.run(3_000)
            assert set(served.manager.flows) == {"f2"}, (steps, is_killed)
            assert served.tables() == served.promised()
            counted = {name.removesuffix(" again") for of_state in reserved(served) for name, _ in of_state}
            assert counted == {"f2"}


def test_a_promise_that_a_migration_broke_stays_broken_whatever_path_is_taken(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    served.kill()
    served.migration = migrated(served, slower(two_ways(), names=("s1", "s2", "s3")))
    assert len(served.migration.breaking) == 2
    served.start()
    served.settle()
    raised = list(served.manager.flows["f1"].breaks)
    assert raised[0].text.endswith("the profile of s1, s2, s3 has changed"), "also off its present path"
    assert [found.cause for found in raised] == [ViolationCause.GUARANTEE_RAISED]
    promised = served.manager.flows["f1"].promised
    for is_up, path in ((False, ["s1", "s3", "s2"]), (True, ["s1", "s2"])):
        set_link(served, is_up=is_up)
        served.run(RETURNED_MS)
        for _ in range(2):
            assert served.manager.flows["f1"].promised == promised
            assert list(served.manager.flows["f1"].breaks) == raised
            assert [hop.switch for hop in served.manager.flows["f1"].path] == path
            served.kill()
            served.start()
            served.settle()
            set_link(served, is_up=is_up)


@pytest.mark.parametrize("why", ["cable-removed", "no-room"])
def test_a_lost_flow_gets_its_entries_beforehand_again(tmp_path: Path, why: str) -> None:
    """In full tables: those of others give way."""
    ring = ring_lab(Ring(switches=4, hosts_per_switch=1, one_way=False))
    served = ServedBoards(tmp_path / "s", lab=ring, entries=3, survive=["cables=1"])
    served.settle()
    for number, ends in enumerate((("h1", "h2"), ("h2", "h3"), ("h4", "h3"), ("h4", "h1")), 1):
        assert isinstance(served.request(flow(number, *ends)), Granted)
    before, tables = reserved(served), served.tables()
    served.kill()
    if why == "no-room":
        served.entries = 2
        served.migration = migrated(served, ring)
        served.start()
        served.settle()
        served.kill()
        served.entries = 3
    else:
        (far,) = (f"{link.a}-{link.b}" for link in ring.links if {link.a.node, link.b.node} == {"s4", "s1"})
        served.lab, served.survive = without(ring, far), []
        served.start()
        served.settle()
        served.kill()
        served.lab, served.survive = ring, ["cables=1"]
    served.start()
    served.settle()
    lost = [found.flow for found in served.manager.flows.values() if found.state is FlowState.LOST]
    assert bool(lost) is (why == "no-room"), "with the cable they are granted at the start"
    for wanted in lost:
        assert isinstance(served.manager.dry_run(served.now_ns, wanted, served.decision(wanted)), DryRun)
        ticket = served.begin(wanted)
        served.carry()
        for _ in range(200):
            served.step()
            assert max(map(len, served.tables().values())) <= 3
        assert isinstance(served.answers[ticket], Granted)
    served.settle()
    assert reserved(served) == before
    assert served.tables() == served.promised() == tables


def test_flows_return_by_call_if_that_is_chosen(tmp_path: Path) -> None:
    served = begun(tmp_path / "s", returns=ReturnMode.BY_CALL)
    set_link(served, is_up=False)
    until_kept(served, "f1", "f2")
    assert served.manager.return_flows(served.now_ns) == (), "their cable is still dead"
    set_link(served, is_up=True)
    served.run(RETURNED_MS)
    assert served.manager.on_backup == ("f1", "f2")
    assert served.manager.return_flows(served.now_ns) == ("f1", "f2")
    served.run(500)
    assert served.manager.on_backup == ()


@pytest.mark.parametrize("after_ms", [0, 5, 30, 100])
def test_flows_move_at_once_if_their_cable_dies_while_or_just_after_they_return(
    tmp_path: Path, after_ms: int
) -> None:
    served = begun(tmp_path / "s", returns=ReturnMode.BY_CALL)
    set_link(served, is_up=False)
    until_kept(served, "f1", "f2")
    served.run(300)
    set_link(served, is_up=True)
    served.manager.return_flows(served.now_ns)
    served.carry()
    served.run(after_ms)
    set_link(served, is_up=False)
    assert until_kept(served, "f1", "f2") < 50, "no tick is waited for"
    assert state(served, "f1") == state(served, "f2") == kept("s1", "s3", "s2")


def test_a_switch_without_a_session_counts_as_failed_after_some_time(tmp_path: Path) -> None:
    survive = ["cables=1", "switches=1"]
    served = begun(tmp_path / "s", flows=1, survive=survive, returns=ReturnMode.BY_CALL)
    set_link(served, is_up=False)
    until_kept(served, "f1")
    set_link(served, is_up=True)
    served.unplug("s3")
    served.run(SWITCH_FAILED_NS // MS - 500)
    assert state(served, "f1") == (FlowState.INSTALLED, [ViolationCause.SWITCH_AWAY], ["s1", "s3", "s2"])
    served.run(1_000)
    served.settle()
    assert state(served, "f1")[2] == ["s1", "s2"], "it left the switch that is away"
    assert not served.manager.flows["f1"].breaks
    served.unplug("s3", plugged=True)
    served.run(3_000)
    served.settle()
    assert served.tables() == served.promised()


def test_what_is_requested_and_released_meanwhile_is_right(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    set_link(served, is_up=False)
    until_kept(served, "f1", "f2")
    assert served.request(flow(3, "a", "b")) == Granted("f3", is_new=True)
    assert state(served, "f3") == kept("s1", "s3", "s2"), "its working path avoids the dead cable"
    assert served.release("f1") == Released("f1")
    served.run(200)
    served.settle()
    assert {name.removesuffix(" again") for counted in reserved(served) for name, _ in counted} == {
        "f2",
        "f3",
    }
    assert served.tables() == served.promised()
    set_link(served, is_up=True)
    served.run(RETURNED_MS)
    assert state(served, "f2") == kept("s1", "s2")
    assert state(served, "f3") == kept("s1", "s3", "s2")
    assert served.release("f2") == Released("f2")
    assert served.release("f3") == Released("f3")
    assert reserved(served) == [[], [], [], []]


def test_a_flow_whose_working_path_is_gone_at_a_restart_leaves_no_entries(tmp_path: Path) -> None:
    served = begun(tmp_path / "s", safe=True)
    assert all(len(table) == 2 for table in served.tables().values())
    served.kill()
    served.lab = without(two_ways(), "s1:2-s2:3")
    served.start()
    served.settle()
    assert {managed.state for managed in served.manager.flows.values()} == {FlowState.LOST}
    assert served.tables() == {"s1": [], "s2": [], "s3": []}
    assert all(not managed.unconfirmed for managed in served.manager.flows.values())


def three_ways() -> Lab:
    """Return the triangle with a fourth switch: another path from a to b."""
    lab = two_ways()
    switch = replace(lab.switches["s3"], name="s4", datapath_id=0x70B3D56C0004)
    links = tuple(
        Link(a=Endpoint(node="s4", port=port), b=Endpoint(node=node, port=4))
        for port, node in ((2, "s1"), (3, "s2"))
    )
    return replace(lab, switches={**lab.switches, "s4": switch}, links=(*lab.links, *links))


@pytest.mark.parametrize("change", ["the dead cable is gone from the lab", "more is to be survived"])
def test_a_flow_on_its_backup_path_stays_there_if_its_reserved_paths_do_not_hold_any_more(
    tmp_path: Path, change: str
) -> None:
    served = ServedBoards(
        tmp_path / "s", lab=three_ways(), survive=["cables=1"], safe=True, returns=ReturnMode.BY_CALL
    )
    served.settle()
    ports = {"s1": 3, "s3": 3, "s2": 1}
    working = tuple(Hop(switch=switch, output_port=port) for switch, port in ports.items())
    assert isinstance(served.request(flow(1, "a", "b"), working), Granted)
    set_link(served, ("s1", 3), is_up=False)
    until_kept(served, "f1")
    present = state(served, "f1")
    assert "s3" not in present[2]
    served.run(200)
    served.kill()
    if change == "more is to be survived":
        served.survive = ["cables=1", "switches=1"]
    else:
        served.lab = without(three_ways(), "s3:2-s1:3")
    served.start()
    served.settle()
    assert state(served, "f1") == present
    paths = served.admitter.reserved_paths("f1")
    assert paths is not None
    assert [hop.switch for hop in paths.working] == present[2]
    assert paths.backups
    assert served.tables() == served.promised()
    assert set(served.admission.admitted) == {"f1"}


def test_a_second_failure_breaks_promises_until_one_is_repaired(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    set_link(served, is_up=False)
    until_kept(served, "f1", "f2")
    served.run(200)
    set_link(served, ("s3", 2), is_up=True)
    served.manager.reply(served.now_ns, "s3", PortsReply(0, {3: False}))
    served.run(500)
    assert state(served, "f1")[1] == [ViolationCause.LINK_DOWN]
    served.manager.reply(served.now_ns, "s1", PortsReply(0, {CUT[1]: True}))
    served.carry()
    until_kept(served, "f1", "f2")
    assert state(served, "f1") == state(served, "f2") == kept("s1", "s2")


def test_no_frame_misses_a_table_while_flows_move_and_return(tmp_path: Path) -> None:
    """The first switch has an entry for each flow all the time, and all before it are confirmed."""
    served = begun(tmp_path / "s")
    set_link(served, is_up=False)
    for _ in range(300):
        served.step()
        assert len(served.tables()["s1"]) == 2
    set_link(served, is_up=True)
    for _ in range(RETURNED_MS):
        served.step()
        assert len(served.tables()["s1"]) == 2
    assert served.manager.on_backup == ()


@pytest.mark.parametrize("returning", [False, True], ids=["at the failure", "at the return"])
def test_a_move_between_reserved_paths_survives_a_kill_at_each_of_its_steps(
    tmp_path: Path, *, returning: bool
) -> None:
    """Until no step is left, the service is killed after one more of them."""
    for fuse in range(100):
        served = begun(tmp_path / f"{fuse}")
        if returning:
            set_link(served, is_up=False)
            until_kept(served, "f1", "f2")
            served.run(200)
            set_link(served, is_up=True)
            served.run(WAIT_TO_RESTORE_NS // MS - 100)
        served.fuse = fuse
        is_killed = False
        try:
            if not returning:
                set_link(served, is_up=False)
            served.run(500)
        except KilledError:
            is_killed = True
            served.kill()
            served.start()
            served.settle()
            if not returning:
                set_link(served, is_up=False)
            until_kept(served, "f1", "f2")
        else:
            served.fuse = None
        served.run(RETURNED_MS + 2_000)
        served.settle()
        expected = kept("s1", "s2") if returning else kept("s1", "s3", "s2")
        assert state(served, "f1") == state(served, "f2") == expected, fuse
        assert served.tables() == served.promised()
        again = {"f1", "f2"} if returning else {"f1", "f2", "f1 again", "f2 again"}
        assert set(served.admission.admitted) == again
        paths = served.admitter.reserved_paths("f1")
        assert paths is not None
        assert [hop.switch for hop in paths.working] == ["s1", "s2"]
        if not is_killed:
            assert fuse >= 4, "a transaction, and each flow's segment to the switch where the paths part"
            return
    raise AssertionError("a move has fewer steps")


@pytest.mark.parametrize(("returning", "away"), [(False, "s3"), (True, "s1")])
def test_a_migration_during_a_move_keeps_the_former_path_until_the_change_is_confirmed(
    tmp_path: Path, *, returning: bool, away: str
) -> None:
    survive = ["cables=1", "switches=1"]
    served = begun(tmp_path / "s", flows=1, survive=survive, returns=ReturnMode.BY_CALL, safe=True)
    if returning:
        set_link(served, is_up=False)
        until_kept(served, "f1")
        served.run(200)
        set_link(served, is_up=True)
    before = served.tables()["s1"]
    served.fuse = 1  # the transaction is written, and the exchange not sent
    begin = partial(set_link, served, is_up=False)
    if returning:
        assert served.manager.return_flows(served.now_ns) == ("f1",)
        begin = served.carry
    with pytest.raises(KilledError):
        begin()
    served.kill()
    served.migration = migrated(served, slower(two_ways(), percent=1))
    assert served.admission.admitted == {}
    served.unplug(away)
    served.start()
    served.run(2 * SWITCH_FAILED_NS // MS)
    assert served.tables()["s1"] == before, "so frames take the former path"
    (former,) = (name for name in served.admission.admitted if name.startswith("f1:"))
    paths = {tuple(hop.switch for hop in served.admission.admitted[name].path) for name in ("f1", former)}
    assert paths == {("s1", "s2"), ("s1", "s3", "s2")}, "both paths count"
    served.unplug(away, plugged=True)
    served.run(4_000)
    served.settle()
    assert state(served, "f1")[2] == (["s1", "s2"] if returning else ["s1", "s3", "s2"])
    assert former not in served.admission.admitted
    assert served.tables() == served.promised()


def test_a_migration_during_a_move_ends_a_former_path_that_is_gone(tmp_path: Path) -> None:
    served = begun(tmp_path / "s", safe=True)
    served.fuse = 1
    with pytest.raises(KilledError):
        set_link(served, is_up=False)
    served.kill()
    served.migration = migrated(served, without(two_ways(), "s1:2-s2:3"))
    fates = {fate.before.flow.id: fate.result for fate in served.migration.flows}
    assert fates.keys() == {"f1", "f2", "f1:3", "f2:4"}
    assert fates["f1:3"] is fates["f2:4"] is MigrationResult.ENDED
    assert served.admission.admitted == {}
    assert not served.admitter._second_paths  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_released", [False, True])
def test_after_a_kill_during_a_move_a_flow_keeps_its_former_path_until_all_others_are_back(
    tmp_path: Path, *, is_released: bool
) -> None:
    survive = ["cables=1", "switches=1"]
    served = begun(tmp_path / "s", flows=1, survive=survive, returns=ReturnMode.BY_CALL, safe=True)
    on_working = served.tables()["s1"]
    served.fuse = 1  # the transaction is written, and the exchange not sent
    with pytest.raises(KilledError):
        set_link(served, is_up=False)
    served.kill()
    served.unplug("s3")
    served.start()
    served.run(2 * SWITCH_FAILED_NS // MS)
    assert state(served, "f1") == (FlowState.INSTALLED, [ViolationCause.SWITCH_AWAY], ["s1", "s3", "s2"])
    assert served.tables()["s1"] == on_working
    assert set(served.admission.admitted) >= {"f1", "f1:2"}, "both paths count"
    if is_released:
        assert served.release("f1") == Released("f1", ("s3",))
    served.unplug("s3", plugged=True)
    served.run(4_000)
    served.settle()
    if is_released:
        assert served.manager.flows == {}
    else:
        assert state(served, "f1") == kept("s1", "s3", "s2")
    assert served.tables() == served.promised()


@pytest.mark.parametrize("seed", range(6))
def test_whatever_fails_meanwhile_flows_keep_their_reserved_paths(tmp_path: Path, seed: int) -> None:
    """Cables, boards and disk come and go, and the service is killed; afterwards all is as at first."""
    choice = random.Random(seed)
    served = begun(tmp_path / "s")
    before = reserved(served)
    is_up = True
    for _ in range(5):
        for _ in range(400):
            is_up = disturbed_step(served, choice, is_up=is_up)
        served.full = False
        if choice.random() < 0.5:
            served.kill()
            served.start()
        served.run(1_000)
        served.settle()
        assert set(served.manager.flows) == {"f1", "f2"}
        assert served.tables() == served.promised()
    set_link(served, is_up=True)
    served.run(RETURNED_MS + 2_000)
    served.settle()
    assert state(served, "f1") == state(served, "f2") == kept("s1", "s2")
    assert reserved(served) == before


@pytest.mark.parametrize(("seed", "entries"), [(0, 3), (1, 3), (2, 4)])
def test_no_table_is_longer_than_planned_whatever_comes_and_goes(
    tmp_path: Path, seed: int, entries: int
) -> None:
    """Flows, cables, boards and disk come and go on full tables, and the service is killed."""
    choice = random.Random(seed)
    lab = ring_lab(Ring(switches=4, hosts_per_switch=1, one_way=False))
    served = ServedBoards(tmp_path / "s", lab=lab, entries=entries, survive=["cables=1"])
    ends = (("h1", "h2"), ("h2", "h3"), ("h4", "h3"), ("h4", "h1"), ("h1", "h3"))
    cables = [
        (link.a.node, link.a.port) for link in lab.links if {link.a.node, link.b.node} <= set(lab.switches)
    ]
    served.settle()
    for number, pair in enumerate(ends[:4], 1):
        assert isinstance(served.request(flow(number, *pair)), Granted)

    def disturb(number: int) -> None:
        nonlocal cut
        match choice.choices(("cable", "request", "release", "disk", "reboot", ""), (20, 10, 2, 10, 3, 955))[
            0
        ]:
            case "cable":
                cut, is_up = (choice.choice(cables), False) if cut is None else (cut, True)
                set_link(served, cut, is_up=is_up)
                cut = None if is_up else cut
            case "request":
                served.begin(flow(number, *choice.choice(ends)))
            case "release" if served.manager.flows:
                served.manager.release(served.now_ns, choice.choice(list(served.manager.flows)))
            case "disk":
                served.full = not served.full
            case "reboot":
                served.reboot(choice.choice(sorted(served.boards)))
                if cut is not None:
                    set_link(served, cut, is_up=False)

    cut: tuple[str, int] | None = None
    for number in range(1, 5):
        for step in range(250):
            disturb(1_000 * number + step)
            served.step(choice.choice((1, 5)) * MS)
            assert max(map(len, served.tables().values())) <= entries
        served.full = False
        if number % 2:
            served.kill()
            served.start()
        for _ in range(2_000):
            served.step()
            assert max(map(len, served.tables().values())) <= entries
    if cut is not None:
        set_link(served, cut, is_up=True)
    served.run(RETURNED_MS + 3_000)
    served.settle()
    assert served.manager.uncovered() == ()
    assert served.tables() == served.promised()
    counted = {name.removesuffix(" again") for of_state in reserved(served) for name, _ in of_state}
    assert counted == set(served.manager.flows)


def test_a_move_that_the_disk_does_not_take_is_tried_again(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    served.full = True
    set_link(served, is_up=False)
    served.run(500)
    assert state(served, "f1")[1] == [ViolationCause.LINK_DOWN]
    served.full = False
    until_kept(served, "f1", "f2")
    assert state(served, "f1") == kept("s1", "s3", "s2")


def test_flows_with_different_reserved_paths_do_not_wait_for_each_other(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    for number in (3, 4):
        assert isinstance(served.request(flow(number, "a", "b")), Granted)
    set_link(served, is_up=False)
    assert until_kept(served, *served.manager.flows) < 50, "no tick is waited for"
    assert served.manager.on_backup == ("f1", "f2", "f3", "f4")


@pytest.mark.parametrize("fuse", range(1, 6))
def test_a_start_without_the_new_path_of_a_move_names_the_flow_as_its_user_did(
    fuse: int, tmp_path: Path
) -> None:
    served = begun(tmp_path / "s")

    def begin_to_move() -> None:
        set_link(served, is_up=False)
        served.run(60)

    served.fuse = fuse
    with pytest.raises(KilledError):
        begin_to_move()
    served.kill()
    served.lab = without(two_ways(), "s2:2-s3:3")
    with pytest.raises(InputError, match=r"stored flow 'f[12]' does not fit any more: .* serve as before"):
        served.start()
