"""Flows whose cable is gone from the lab, or dead for long: shown, granted again, moved, never forgotten."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from failing_triangle import MS, S, disturbed_step, kept, set_link, state
from served_boards import FULL, KilledError, ServedBoards, flow
from test_migration import two_ways, without

from loko.admission import Refusal
from loko.admission.protection.replacement import may_replace
from loko.control.dialect import LISTABLE
from loko.control.port_links import PortsReply
from loko.service.admitter import AdmittedFlow
from loko.service.breaks import ViolationCause
from loko.service.outcome import Conflict, Disposition, FlowState, Granted, NotStored, Released
from loko.service.views import flow_values, health_values
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow
from loko.topology.network import Hop

DIRECT = "s1:2-s2:3"
"""The cable on the shortest path from host a to host b."""


def begun(path: Path, **options: Any) -> ServedBoards:
    """Return boards in a triangle, with two flows from a to b, the first with a deadline, and one from c."""
    served = ServedBoards(path, lab=two_ways(), **options)
    served.settle()
    for number, source, deadline_ns in ((1, "a", 16 * MS), (2, "a", None), (3, "c", None)):
        assert isinstance(served.request(flow(number, source, "b"), deadline_ns=deadline_ns), Granted)
    return served


def restart(served: ServedBoards, *, removed: bool) -> None:
    served.kill()
    served.lab = without(two_ways(), DIRECT) if removed else two_ways()
    served.start()
    served.settle()


LOST = FlowState.LOST, [ViolationCause.CABLE_REMOVED], []


# A cable that is gone from the lab.


def test_a_cable_removed_from_the_lab_breaks_its_flows_and_stops_nothing(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    for _ in range(2):
        restart(served, removed=True)
        assert state(served, "f1") == state(served, "f2") == LOST
        assert state(served, "f3") == kept("s3", "s2")
        (found,) = flow_values(served.manager, "f1")["broken"]
        assert (found["place"], found["text"]) == ("s1:2", "the lab has no cable from s1:2 to s2")
        assert health_values(served.manager)["broken"] == {"cable-removed": 2}
        assert served.tables() == served.promised()
        assert set(served.admission.admitted) == {"f3"}
    restart(served, removed=False)
    assert state(served, "f1") == state(served, "f2") == kept("s1", "s2")
    assert served.tables() == served.promised()
    assert health_values(served.manager)["healthy"]


def test_a_long_table_loses_the_entries_of_a_removed_cable_too(tmp_path: Path) -> None:
    """A board in safe mode keeps its table; so many entries cannot be listed, nor told apart."""
    served = begun(tmp_path / "s", padding=12, safe=True)
    assert len(served.tables()["s1"]) > LISTABLE
    restart(served, removed=True)
    assert served.tables() == served.promised()
    assert not any(driver.foreign_entries for driver in served.manager.drivers.values())


def test_a_lost_flow_is_granted_again_when_it_is_asked_for_again(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    restart(served, removed=True)
    assert served.request(flow(1, "a", "b"), deadline_ns=16 * MS) == Granted("f1", is_new=False)
    served.settle()
    assert state(served, "f1") == kept("s1", "s3", "s2")
    assert served.release("f2") == Released("f2")
    assert served.tables() == served.promised()
    restart(served, removed=True)
    assert state(served, "f1") == kept("s1", "s3", "s2")
    assert "f2" not in served.manager.flows


def test_a_lost_flow_is_not_granted_again_without_the_disk(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    restart(served, removed=True)
    served.full = True
    assert served.request(flow(1, "a", "b")) == NotStored("f1", FULL, Disposition.NOTHING)
    assert served.release("f2") == NotStored("f2", FULL, Disposition.NOTHING)
    assert state(served, "f1") == state(served, "f2") == LOST
    assert set(served.admission.admitted) == {"f3"}
    served.full = False
    assert served.request(flow(1, "a", "b")) == Granted("f1", is_new=False)


def test_with_rerouting_a_flow_of_a_removed_cable_gets_another_path_by_itself(tmp_path: Path) -> None:
    served = begun(tmp_path / "s", reroute_ns=S)
    restart(served, removed=True)
    served.run(500)
    served.settle()
    assert state(served, "f1") == kept("s1", "s3", "s2")
    assert state(served, "f2") == LOST, "the longer path would take longer than it was promised"
    assert served.tables() == served.promised()


def test_a_flow_that_is_being_granted_again_cannot_be_released_meanwhile(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    restart(served, removed=True)
    asked = served.begin(flow(1, "a", "b"))
    released = served.manager.release(served.now_ns, "f1")
    assert served.ask(asked) == Granted("f1", is_new=False)
    assert isinstance(served.ask(released), Conflict)
    assert served.release("f1") == Released("f1")


# A cable that is dead for long.


def test_a_flow_moves_to_another_path_if_that_keeps_its_deadline(tmp_path: Path) -> None:
    served = begun(tmp_path / "s", reroute_ns=S)
    before_ns = served.manager.flows["f1"].grant.guarantee_ns
    room = served.admission.admitted["f2"]
    set_link(served, is_up=False)
    served.run(900)
    assert state(served, "f1") == (FlowState.INSTALLED, [ViolationCause.LINK_DOWN], ["s1", "s2"])
    served.run(1_000)
    assert state(served, "f1") == kept("s1", "s3", "s2")
    assert before_ns < served.manager.flows["f1"].promised.guarantee_ns <= 16 * MS
    assert state(served, "f2") == (FlowState.INSTALLED, [ViolationCause.LINK_DOWN], ["s1", "s2"])
    assert served.admission.admitted["f2"] is room, "it never gave up its room, which it might not get back"
    assert set(served.admission.admitted) == {"f1", "f2", "f3"}
    assert served.tables() == served.promised()
    set_link(served, is_up=True)
    assert state(served, "f2") == kept("s1", "s2")
    restart(served, removed=False)
    assert state(served, "f1") == kept("s1", "s3", "s2")


def test_a_move_that_the_disk_does_not_take_is_tried_again(tmp_path: Path) -> None:
    served = begun(tmp_path / "s", reroute_ns=S)
    set_link(served, is_up=False)
    served.full = True
    served.run(1_500)
    assert state(served, "f1") == (FlowState.INSTALLED, [ViolationCause.LINK_DOWN], ["s1", "s2"])
    served.full = False
    served.run(11_000)
    assert state(served, "f1") == kept("s1", "s3", "s2")


def test_a_flow_does_not_move_while_a_switch_of_its_path_is_away(tmp_path: Path) -> None:
    """It could not be made to lose the entry there, and would have no path in the meantime."""
    served = begun(tmp_path / "s", reroute_ns=S)
    served.unplug("s2")
    set_link(served, is_up=False)
    served.run(3_000)
    assert state(served, "f1")[0] is FlowState.INSTALLED
    served.unplug("s2", plugged=True)
    served.settle()
    served.run(12_000)
    assert state(served, "f1") == kept("s1", "s3", "s2")


def test_without_rerouting_a_flow_waits_for_its_cable(tmp_path: Path) -> None:
    served = begun(tmp_path / "s")
    set_link(served, is_up=False)
    served.run(5_000)
    assert state(served, "f1") == (FlowState.INSTALLED, [ViolationCause.LINK_DOWN], ["s1", "s2"])


def moving(served: ServedBoards) -> None:
    """Cut the cable, and go on until the new path of the first flow is being installed."""
    set_link(served, is_up=False)
    for _ in range(2_000):
        if len(served.manager.flows) > 3:
            return
        served.step()
    raise AssertionError("it does not move")


def test_no_frame_of_a_moving_flow_misses_the_table_of_its_first_switch(tmp_path: Path) -> None:
    """A frame that misses becomes a message to the controller, for which no CPU time is reserved."""
    served = begun(tmp_path / "s", reroute_ns=S)
    assert len(served.tables()["s1"]) == 2, "of the two flows from a"
    moving(served)
    for _ in range(1_000):
        served.step()
        assert len(served.tables()["s1"]) == 2
    assert state(served, "f1") == kept("s1", "s3", "s2")


def test_both_paths_of_a_moving_flow_count_until_the_former_is_empty(tmp_path: Path) -> None:
    served = begun(tmp_path / "s", reroute_ns=S)
    moving(served)
    assert set(served.manager.flows) == set(served.admission.admitted) == {"f1", "f1:4", "f2", "f3"}
    while state(served, "f1")[2] == ["s1", "s2"]:
        served.step()
    assert served.manager.flows["f1:4"].state is FlowState.REMOVING
    passage_ns, began_ns = served.admission.drain_time_ns("f1:4"), served.now_ns
    while "f1:4" in served.admission.admitted:
        assert served.admission.admitted["f1:4"].path != served.admission.admitted["f1"].path
        served.step()
    assert served.now_ns - began_ns >= passage_ns
    assert set(served.manager.flows) == set(served.admission.admitted) == {"f1", "f2", "f3"}
    assert served.admission.admitted["f1"].flow == flow(1, "a", "b")


def test_a_flow_whose_cable_comes_back_before_it_has_moved_stays_as_it_was(tmp_path: Path) -> None:
    served = begun(tmp_path / "s", reroute_ns=S)
    before, promised = served.admission.admitted["f1"], served.manager.flows["f1"].promised
    moving(served)
    set_link(served, is_up=True)
    served.run(1_500)
    served.settle()
    assert state(served, "f1") == kept("s1", "s2")
    assert served.admission.admitted["f1"] is before
    assert served.manager.flows["f1"].promised is promised
    assert served.tables() == served.promised()
    assert set(served.manager.flows) == set(served.admission.admitted) == {"f1", "f2", "f3"}


def test_lost_flows_that_find_no_path_keep_none_from_moving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One flow is tried at each tick, and those that are lost are due again before all had their turn."""
    served = begun(tmp_path / "s", reroute_ns=S)
    for number in range(4, 9):
        assert isinstance(served.request(flow(number, "a", "b")), Granted)
    restart(served, removed=True)
    served.run(500)
    assert state(served, "f1") == kept("s1", "s3", "s2")
    assert sum(promise.needs_path for promise in served.manager.flows.values()) == 6
    tried: list[str] = []
    move = served.admitter.move

    def spied(wanted: Flow, within_ns: float | None) -> AdmittedFlow | Refusal:
        tried.append(wanted.id)
        return move(wanted, within_ns)

    monkeypatch.setattr(served.admitter, "move", spied)
    served.boards["s1"].board.link(served.boards["s1"].now_ns, 3, False)
    served.manager.reply(served.now_ns, "s1", PortsReply(0, {3: False}))
    for _ in range(60):
        served.step(50 * MS)
    assert {"f2", "f4", "f5", "f6", "f7", "f8"} < set(tried)
    assert any(name.startswith("f1:") for name in tried)


@pytest.mark.parametrize("number", range(1, 6))
def test_no_client_gets_the_id_of_a_moving_flows_other_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A client asks for such an id while it is being written that the flow has moved."""
    served = begun(tmp_path / "s", reroute_ns=S)
    moving(served)
    others, write = flow(9, "c", "b")._replace(id=f"f1:{number}"), served._write
    tickets: list[int] = []

    def ask_and_write() -> None:
        if not tickets and served.manager.flows["f1"].flow_after_swap is not None:
            tickets.append(served.manager.request(served.now_ns, others, served.decision(others)))
        write()

    monkeypatch.setattr(served, "_write", ask_and_write)
    served.run(1_500)
    served.settle()
    assert isinstance(served.answers[tickets[0]], Conflict if number == 4 else Granted)
    assert state(served, "f1") == kept("s1", "s3", "s2")
    expected = {"f1", "f2", "f3"} | ({others.id} if number != 4 else set())
    assert set(served.manager.flows) == set(served.admission.admitted) == expected
    assert served.tables() == served.promised()
    served.kill()
    served.start()
    served.settle()
    served.run(100)
    assert set(served.manager.flows) == expected


def test_nobody_waits_for_a_moving_flows_other_path(tmp_path: Path) -> None:
    served = begun(tmp_path / "s", reroute_ns=S)
    moving(served)
    assert isinstance(served.request(served.manager.flows["f1:4"].flow), Conflict)
    assert isinstance(served.release("f1:4"), Conflict)


@pytest.mark.parametrize("steps", [0, 2, 4, 8, 16, 32, 64])
def test_a_flow_that_is_released_while_it_moves_is_gone(tmp_path: Path, steps: int) -> None:
    served = begun(tmp_path / "s", reroute_ns=S)
    moving(served)
    served.run(steps)
    assert served.release("f1") == Released("f1")
    served.run(200)
    served.settle()
    assert set(served.manager.flows) == set(served.admission.admitted) == {"f2", "f3"}
    assert served.tables() == served.promised()


def test_a_new_path_must_not_cross_what_the_former_may_still_hold() -> None:
    def path(*names: str) -> tuple[Hop, ...]:
        return tuple(Hop(switch=name[:-1], output_port=int(name[-1])) for name in names)

    former, dead = path("s2", "t2", "u2"), frozenset({("t", 2)})
    assert may_replace(former, path("s2", "t3", "v2"), dead)
    assert may_replace(former, path("s3", "v2", "u2"), dead)
    assert not may_replace(former, path("s3", "t3", "v2"), dead)
    assert not may_replace(former, path("s3", "v2", "s4"), dead)


@pytest.mark.parametrize(
    "options",
    [{}, {"openflow": OpenFlow.V1_3}, {"padding": 12, "safe": True}],
    ids=["1.0", "1.3", "tables that cannot be listed"],
)
def test_a_move_survives_a_kill_at_each_of_its_steps(tmp_path: Path, options: dict[str, Any]) -> None:
    """Until no step is left, the service is killed after one more of them."""
    for fuse in range(100):
        served = begun(tmp_path / f"{fuse}", reroute_ns=S, **options)
        set_link(served, is_up=False)
        served.run(990)
        served.fuse = fuse
        try:
            served.run(300)
        except KilledError:
            served.kill()
            served.start()
            served.settle()
            served.run(2_500)
            served.settle()
            assert state(served, "f1") == kept("s1", "s3", "s2"), fuse
            assert served.tables() == served.promised()
            assert set(served.admission.admitted) == {"f1", "f2", "f3"}
            continue
        assert state(served, "f1") == kept("s1", "s3", "s2")
        assert fuse > 6
        return
    raise AssertionError("a move has fewer steps")


@pytest.mark.parametrize("seed", range(8))
def test_whatever_fails_meanwhile_no_flow_is_forgotten(tmp_path: Path, seed: int) -> None:
    """Cable, disk and boards come and go, the lab's cable, too, and the service is killed."""
    choice = random.Random(seed)
    served = begun(tmp_path / "s", reroute_ns=S // 5)
    is_up, removed = True, False
    for _ in range(6):
        for _ in range(300):
            is_up = disturbed_step(served, choice, is_up=is_up)
            served.carry()
        served.full = False
        if choice.random() < 0.5:
            removed = choice.random() < 0.4
            restart(served, removed=removed)
        served.run(1_000)
        served.settle()
        assert set(served.manager.flows) == {"f1", "f2", "f3"}
        states = {name: promise.state for name, promise in served.manager.flows.items()}
        assert set(states.values()) <= {FlowState.INSTALLED, FlowState.LOST}
        installed = {name for name, held in states.items() if held is FlowState.INSTALLED}
        assert set(served.admission.admitted) == installed
        assert served.tables() == served.promised()
    is_up = True
    set_link(served, is_up=True)
    restart(served, removed=False)
    served.run(1_000)
    served.settle()
    assert all(state(served, name)[:2] == (FlowState.INSTALLED, []) for name in ("f1", "f2", "f3"))
