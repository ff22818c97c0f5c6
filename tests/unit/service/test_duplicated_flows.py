"""Flows of a service with `--survive` that are sent twice: both paths or none, right across kills."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from failing_triangle import CUT, disturbed_step, kept, set_link, state
from served_boards import KilledError, ServedBoards, flow
from test_migration import migrated, two_ways, without
from test_served_failures import RETURNED_MS, begun, reserved

from loko.admission.protection import Protection
from loko.control.wire import AddEntry, DeleteEntry
from loko.document import InputError
from loko.service.breaks import ViolationCause
from loko.service.migration import MigrationResult
from loko.service.outcome import Conflict, FlowState, Granted, Refused, Released, Unavailable
from loko.service.protected_admitter import ProtectedAdmitter
from loko.service.views import flow_values, health_values
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab, ring_lab
from loko.topology.ring import Ring

OTHER = ("s1", 3)
"""The end at s1 of the cable that the second copies cross."""
RING = ring_lab(Ring(switches=4, hosts_per_switch=1, one_way=False))
BOTH = [("f1", ("s1", "s2")), ("f1 again", ("s1", "s3", "s2"))]


def duplicated(path: Path, **options: Any) -> ServedBoards:
    """Return boards in a triangle with two duplicated flows from a to b."""
    return begun(path, protection=Protection.DUPLICATE, **options)


def test_a_flow_is_installed_on_two_paths_and_promised_the_worse_bound(tmp_path: Path) -> None:
    served = duplicated(tmp_path / "s")
    managed = served.manager.flows["f1"]
    assert [[hop.switch for hop in path] for path in managed.paths] == [["s1", "s2"], ["s1", "s3", "s2"]]
    assert [len(table) for table in served.tables().values()] == [4, 4, 2]
    assert served.tables() == served.promised()
    assert all(BOTH[0] in counted and BOTH[1] in counted for counted in reserved(served)), "in every state"
    worst_ns = served.admission.admitted["f1 again"].guarantee_ns
    assert worst_ns > managed.grant.guarantee_ns
    values = flow_values(served.manager, "f1")
    assert values["promised_ns"] == values["guarantee_ns"] == worst_ns
    assert values["reserved"]["second_copies"]["udp_source"] == 65535
    assert values["reserved"]["second_copies"]["remembered_frames"] >= 2
    assert served.manager.uncovered() == ()


def test_a_dead_cable_moves_nothing_and_the_promise_is_kept_on_one_path(tmp_path: Path) -> None:
    for end in (CUT, OTHER):
        served = duplicated(tmp_path / str(end[1]))
        served.run(10)
        served.sent.clear()
        heard = len(served.log)
        set_link(served, end, is_up=False)
        managed = served.manager.flows["f1"]
        assert state(served, "f1") == (FlowState.INSTALLED, [], ["s1", "s2"])
        assert served.manager.on_one_path == ("f1", "f2")
        assert health_values(served.manager)["healthy"]
        (fault,) = flow_values(served.manager, "f1")["reserved"]["on_one_path"]
        assert fault["cause"] == ViolationCause.LINK_DOWN
        assert served.manager.may_send(managed)
        assert managed.sent_ports == (2, 65535), "the cable may come back at any time"
        served.run(2_000)
        set_link(served, end, is_up=True)
        served.run(7_000)
        assert served.manager.on_one_path == ()
        assert [event.text for event in served.log[heard:] if event.name == "f1"] == [
            f"is on one path: {fault['text']}",
            "is on both paths again",
        ]
        changes = [request for _, requests in served.sent for request in requests]
        assert not any(isinstance(request, AddEntry | DeleteEntry) for request in changes)
        assert served.tables() == served.promised()


def test_faults_on_both_paths_break_the_promise(tmp_path: Path) -> None:
    served = duplicated(tmp_path / "s")
    set_link(served, CUT, is_up=False)
    set_link(served, OTHER, is_up=False)
    causes = [ViolationCause.LINK_DOWN] * 2
    assert state(served, "f1")[1] == causes
    assert served.manager.on_one_path == ()
    assert served.manager.broken()[ViolationCause.LINK_DOWN] == 2
    set_link(served, CUT, is_up=True)
    assert state(served, "f1")[1] == []
    assert served.manager.on_one_path == ("f1", "f2")
    texts = [event.text for event in served.log if event.name == "f1"]
    assert "is kept again, on one path" in texts


def test_a_rebooted_switch_of_one_path_gets_no_frame_until_it_has_its_entries(tmp_path: Path) -> None:
    served = ServedBoards(
        tmp_path / "s",
        lab=RING,
        survive=["switches=1"],
        protection=Protection.DUPLICATE,
    )
    served.settle()
    assert isinstance(served.request(flow(1, "h1", "h3")), Granted)
    managed = served.manager.flows["f1"]
    paths = sorted([hop.switch for hop in path] for path in managed.paths)
    assert paths == [["s1", "s2", "s3"], ["s1", "s4", "s3"]]
    ports = managed.sent_ports
    assert len(ports) == 2
    served.reboot(managed.paths[1][1].switch)
    assert not managed.breaks
    assert managed.sent_ports == ports[:1]
    served.settle()
    served.run(100)
    assert managed.sent_ports == ports
    assert served.manager.on_one_path == ()
    served.reboot("s1")
    assert managed.breaks, "both paths begin there"
    assert not served.manager.may_send(managed)
    served.settle()
    assert not managed.breaks
    assert served.tables() == served.promised()


def test_a_release_frees_both_paths_upstream_first(tmp_path: Path) -> None:
    served = duplicated(tmp_path / "s")
    managed = served.manager.flows["f1"]
    number = managed.number
    assert set(served.admitter.servers(managed.grant)) == {"s1", "s2", "s3"}, "all have residual backlogs"
    drain_ns = served.admitter.drain_time_ns("f1")
    assert drain_ns == served.admission.drain_time_ns("f1 again") > served.admission.drain_time_ns("f1")
    served.sent.clear()
    assert served.release("f1") == Released("f1")
    deleted = [
        (switch, request.entry.cookie >> 46 & 1)
        for switch, requests in served.sent
        for request in requests
        if isinstance(request, DeleteEntry) and request.entry.cookie & 0xFFFF_FFFF == number
    ]
    assert sorted(deleted[:2]) == [("s1", 0), ("s1", 1)]
    assert sorted(deleted[2:]) == [("s2", 0), ("s2", 1), ("s3", 1)]
    assert set(served.admission.admitted) == {"f2", "f2 again"}
    assert all(len(counted) == 2 for counted in reserved(served))
    assert served.tables() == served.promised()
    assert isinstance(served.request(flow(1, "a", "b")), Granted)


def test_the_second_copies_have_a_port_of_their_own(tmp_path: Path) -> None:
    served = duplicated(tmp_path / "s")
    taken = served.request(flow(3, "a", "b")._replace(udp_source=65534))
    assert isinstance(taken, Conflict)
    assert "'f2 again'" in taken.reason
    mine = flow(4, "a", "b")._replace(udp_source=65533)
    assert isinstance(served.request(mine), Granted)
    copies = served.manager.flows["f4"].second_copies
    assert copies is not None
    assert copies.udp_source == 65532


def test_a_flow_without_room_on_a_second_path_is_refused_as_a_whole(tmp_path: Path) -> None:
    served = duplicated(tmp_path / "s", entries=4)
    before = reserved(served)
    refused = served.request(flow(3, "a", "b"))
    assert isinstance(refused, Refused)
    assert reserved(served) == before
    assert served.tables() == served.promised()


def test_a_request_chooses_its_protection(tmp_path: Path) -> None:
    served = begun(tmp_path / "s", entries=30)
    assert isinstance(served.admitter, ProtectedAdmitter)
    wanted = flow(3, "a", "b")
    decide = served.admitter.decision(wanted, protection=Protection.DUPLICATE)
    assert isinstance(served.ask(served.manager.request(served.now_ns, wanted, decide)), Granted)
    assert [len(served.manager.flows[name].paths) for name in ("f1", "f3")] == [1, 2]
    for known, chosen, is_same in (
        (wanted, None, True),
        (wanted, Protection.DUPLICATE, True),
        (wanted, Protection.BACKUP, False),
        (flow(1, "a", "b"), Protection.DUPLICATE, False),
    ):
        answer = served.ask(served.manager.request(served.now_ns, known, decide, None, chosen))
        assert (answer == Granted(known.id, is_new=False)) is is_same
        assert isinstance(answer, Conflict) is not is_same
    set_link(served, CUT, is_up=False)
    served.run(200)
    assert state(served, "f1") == state(served, "f2") == kept("s1", "s3", "s2")
    assert state(served, "f3") == kept("s1", "s2")
    assert served.manager.on_one_path == ("f3",)
    set_link(served, CUT, is_up=True)
    served.run(RETURNED_MS)
    assert served.manager.uncovered() == ()
    assert served.tables() == served.promised()


def test_a_flow_is_granted_while_a_cable_of_its_second_path_is_dead(tmp_path: Path) -> None:
    served = ServedBoards(
        tmp_path / "s", lab=two_ways(), survive=["cables=1"], protection=Protection.DUPLICATE
    )
    served.settle()
    set_link(served, CUT, is_up=False)
    assert isinstance(served.request(flow(1, "a", "b")), Granted)
    assert state(served, "f1") == kept("s1", "s3", "s2")
    assert served.manager.on_one_path == ("f1",)
    set_link(served, CUT, is_up=True)
    assert served.manager.on_one_path == ()


def test_a_cable_that_dies_during_the_installation_takes_both_paths_back(tmp_path: Path) -> None:
    served = duplicated(tmp_path / "s")
    before = reserved(served)
    ticket = served.begin(flow(3, "a", "b"))
    set_link(served, OTHER, is_up=False)
    assert isinstance(served.ask(ticket), Unavailable)
    served.run(500)
    assert reserved(served) == before
    assert served.tables() == served.promised()


def test_a_flow_that_no_failure_hits_is_sent_once(tmp_path: Path) -> None:
    served = ServedBoards(
        tmp_path / "s",
        lab=ring_lab(Ring(switches=3, hosts_per_switch=2, one_way=False)),
        survive=["cables=1"],
        protection=Protection.DUPLICATE,
    )
    served.settle()
    near, far = (name for name in served.lab.hosts if served.lab.far_end(name, 1).node == "s1")
    assert isinstance(served.request(flow(1, near, far)), Granted)
    assert len(served.manager.flows["f1"].paths) == 1
    values = flow_values(served.manager, "f1")["reserved"]
    assert (values["protection"], values["second_copies"]) == ("duplicate", None)
    served.kill()
    served.start()
    assert flow_values(served.manager, "f1")["reserved"] == values


def rarely_hit(path: Path, lab: Lab, protection: Protection = Protection.DUPLICATE) -> ServedBoards:
    """Return boards in a ring of four that survive only a failure far from the path from h1 to h3."""
    (far,) = (link.name for link in lab.links if {link.a.node, link.b.node} == {"s3", "s4"})
    groups = path.with_suffix(".yml")
    groups.write_text(f"- {{name: far, cables: [{far}]}}\n")
    served = ServedBoards(path, lab=lab, protection=protection, survive=[str(groups)])
    served.settle()
    return served


def test_second_copies_that_a_start_adds_are_told(tmp_path: Path) -> None:
    served = rarely_hit(tmp_path / "s", RING)
    assert isinstance(served.request(flow(1, "h1", "h3")), Granted)
    assert [hop.switch for hop in served.manager.flows["f1"].path] == ["s1", "s2", "s3"]
    assert len(served.manager.flows["f1"].paths) == 1
    served.kill()
    served.survive = ["cables=1"]
    served.start()
    assert len(served.manager.flows["f1"].paths) == 2
    assert any("must send second copies from UDP port 65535" in event.text for event in served.log)
    served.settle()
    assert served.tables() == served.promised()


def test_second_copies_that_a_start_adds_leave_stored_flows_their_ports(tmp_path: Path) -> None:
    for is_migrated in (False, True):
        served = rarely_hit(tmp_path / str(is_migrated), RING)
        assert isinstance(served.request(flow(1, "h1", "h3")), Granted)
        assert isinstance(served.request(flow(2, "h1", "h3")._replace(udp_source=65535)), Granted)
        served.kill()
        served.survive = ["cables=1"]
        if is_migrated:
            served.migration = migrated(served, RING)
            assert [found.result for found in served.migration.flows] == [MigrationResult.KEPT] * 2
            assert "f1: kept, guarantee 15.010 ms; its host must send second copies from UDP port 65534" in (
                served.migration.lines()
            )
        served.start()
        served.settle()
        ports = [managed.sent_ports for managed in served.manager.flows.values()]
        assert ports == [(2, 65534), (65535, 65533)]
        assert served.tables() == served.promised()


def test_a_migration_to_another_path_keeps_the_protection(tmp_path: Path) -> None:
    """Whatever protection flows get whose requests name none."""
    lines = {link.name: link for link in RING.links if {link.a.node, link.b.node} == {"s1", "s2"}}
    (moved,) = lines.values()
    links = [link for link in RING.links if link is not moved]
    end = replace(moved.a, port=4) if moved.a.node == "s1" else replace(moved.b, port=4)
    other = replace(moved, a=end) if moved.a.node == "s1" else replace(moved, b=end)
    lab = replace(RING, links=(*links, other))
    for asked, default in ((one, other) for one in Protection for other in Protection):
        served = rarely_hit(tmp_path / f"{asked}-{default}", RING, asked)
        assert isinstance(served.request(flow(1, "h1", "h3")), Granted)
        served.kill()
        served.protection, served.survive = default, ["cables=1"]
        (found,) = migrated(served, lab).flows
        assert found.after is not None
        assert [hop.switch for hop in found.path] == ["s1", "s4", "s3"]
        assert found.after.protection is asked
        assert (found.after.second_copies is not None) is (asked is Protection.DUPLICATE)


@pytest.mark.parametrize("openflow", list(OpenFlow))
def test_whenever_the_service_is_killed_both_paths_are_there_or_none(
    tmp_path: Path, openflow: OpenFlow
) -> None:
    """At each step of a request and of a release, with boards that keep their tables."""
    outcomes = set()
    for fuse in range(40):
        served = ServedBoards(
            tmp_path / f"{openflow}-{fuse}",
            lab=two_ways(),
            survive=["cables=1"],
            protection=Protection.DUPLICATE,
            openflow=openflow,
            safe=True,
        )
        served.settle()
        assert isinstance(served.request(flow(1, "a", "b")), Granted)
        before = served.manager.flows["f1"].paths, served.manager.flows["f1"].promised
        served.fuse = fuse
        try:
            served.request(flow(2, "a", "b"))
            served.release("f2")
        except KilledError:
            served.kill()
            served.start()
        else:
            break
        served.settle()
        assert (served.manager.flows["f1"].paths, served.manager.flows["f1"].promised) == before
        assert served.tables() == served.promised()
        assert reserved(served)[0] == sorted(
            (name, tuple(hop.switch for hop in path))
            for managed in served.manager.flows.values()
            for name, path in zip((managed.flow.id, f"{managed.flow.id} again"), managed.paths, strict=True)
        )
        outcomes.add(len(served.manager.flows))
        set_link(served, CUT, is_up=False)
        assert served.manager.on_one_path[0] == "f1"
    else:
        raise AssertionError("more steps")
    assert outcomes == {1, 2}


def test_whatever_fails_the_flows_keep_their_paths_and_tables(tmp_path: Path) -> None:
    for seed in range(4):
        choice = random.Random(seed)
        served = duplicated(tmp_path / str(seed), safe=True)
        before = {name: managed.paths for name, managed in served.manager.flows.items()}
        is_up = True
        for _ in range(1_500):
            is_up = disturbed_step(served, choice, is_up=is_up)
            if choice.random() < 0.002:
                served.full = False
                served.kill()
                served.start()
                set_link(served, is_up=is_up) if served.boards["s1"].is_open else None
        served.full = False
        set_link(served, is_up=True)
        served.settle()
        served.run(500)
        assert {name: managed.paths for name, managed in served.manager.flows.items()} == before
        assert served.tables() == served.promised()


def test_without_a_cable_of_the_second_path_the_service_does_not_start(tmp_path: Path) -> None:
    """The host sends second copies, whose path nobody may change behind its back."""
    served = duplicated(tmp_path / "s")
    served.kill()
    served.lab = without(two_ways(), "s3:2-s1:3")
    with pytest.raises(InputError, match=r"stored flow 'f1' does not fit this lab any more: .*s1:3"):
        served.start()


def test_entries_that_are_there_beforehand_give_way_to_both_paths(tmp_path: Path) -> None:
    """Where the paths begin and end, one entry takes the place of another, and one a free place."""
    served = ServedBoards(tmp_path / "s", lab=RING, entries=4, survive=["cables=1"])
    served.settle()
    for number, ends in enumerate((("h1", "h2"), ("h2", "h3"), ("h4", "h3")), 1):
        assert isinstance(served.request(flow(number, *ends)), Granted)
    assert [len(table) for table in served.tables().values()] == [3, 3, 3, 3]
    assert isinstance(served.admitter, ProtectedAdmitter)
    wanted = flow(4, "h4", "h1")
    decide = served.admitter.decision(wanted, protection=Protection.DUPLICATE)
    ticket = served.manager.request(served.now_ns, wanted, decide)
    served.carry()
    for _ in range(200):
        served.step()
        assert max(map(len, served.tables().values())) <= 4
    assert served.answers[ticket] == Granted("f4", is_new=True)
    assert served.manager.in_two_rounds, "some entries have given way"
    assert served.tables() == served.promised()
    for _ in range(2):
        assert served.release("f4") == Released("f4")
        served.run(200)
        assert served.manager.in_two_rounds == ()
        assert served.tables() == served.promised()
        decide = served.admitter.decision(wanted, protection=Protection.DUPLICATE)
        assert isinstance(served.ask(served.manager.request(served.now_ns, wanted, decide)), Granted)


def test_a_lost_flow_gets_both_paths_again_unless_its_port_is_taken(tmp_path: Path) -> None:
    for is_taken in (False, True):
        served = duplicated(tmp_path / str(is_taken))
        before = flow_values(served.manager, "f1")["reserved"]
        served.kill()
        served.lab = without(two_ways(), "s1:2-s2:3")
        served.survive = []
        served.start()
        served.settle()
        assert {managed.state for managed in served.manager.flows.values()} == {FlowState.LOST}
        assert not any(served.tables().values())
        if is_taken:
            port = before["second_copies"]["udp_source"]
            assert isinstance(served.request(flow(3, "a", "b")._replace(udp_source=port)), Granted)
        served.kill()
        served.lab, served.survive = two_ways(), ["cables=1"]
        served.start()
        served.settle()
        assert served.manager.flows["f2"].state is FlowState.INSTALLED
        if is_taken:
            assert served.manager.flows["f1"].state is FlowState.LOST
            assert "f1" not in dict(reserved(served)[1])
        else:
            assert flow_values(served.manager, "f1")["reserved"] == before
        assert served.tables() == served.promised()


def test_a_migration_keeps_both_paths_or_the_flow_is_lost(tmp_path: Path) -> None:
    served = duplicated(tmp_path / "s")
    served.kill()
    for lab, survive, result in (
        (two_ways(), ["cables=1"], MigrationResult.KEPT),
        (two_ways(), ["cables=1", "switches=1"], MigrationResult.KEPT),
        (two_ways(), [], MigrationResult.LOST),
        (without(two_ways(), "s3:2-s1:3"), ["cables=1"], MigrationResult.LOST),
    ):
        served.survive = survive
        found = migrated(served, lab)
        assert [migrated_flow.result for migrated_flow in found.flows] == [result, result]
        if survive:
            assert all(not state.admitted for state in (served.admission,))
