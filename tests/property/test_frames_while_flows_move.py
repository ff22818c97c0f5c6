"""The flow manager and its boards in one virtual time: what moves and returns do to every frame."""

from __future__ import annotations

import random
from pathlib import Path
from struct import unpack

import pytest
from cabled_service import CabledService, S, pull_beside_copies, pull_cables
from triangle import DIRECT, triangle

from loko.admission.protection import Protection


@pytest.mark.parametrize("seed", range(3))
def test_no_frame_is_late_whatever_moves_and_none_is_lost_by_a_return(seed: int, tmp_path: Path) -> None:
    choice = random.Random(seed)
    lab = triangle(tmp_path)
    service = CabledService(lab)
    service.run(4 * S)
    service.request_random(choice, 40)
    assert len(service.granted) > 3
    service.run(S)
    assert service.lost.total() == 0
    across = {flow.id for flow in service.granted if {flow.source, flow.destination} == {"H1", "H2"}}
    assert across
    service.pull(DIRECT)
    service.run(3 * S)
    assert across <= set(service.manager.on_backup)
    assert not any(service.manager.flows[name].breaks for name in across)
    service.plug(DIRECT)
    service.run(3 * S)
    lost = service.lost.total()
    assert lost > 0
    assert service.late.total() == 0
    assert set(service.manager.return_flows(service.now_ns)) >= across
    service.run(5 * S)
    assert service.manager.on_backup == ()
    assert service.manager.uncovered() == ()
    assert service.lost.total() == lost, "a return loses nothing"
    assert service.late.total() == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_pulled_cable_costs_no_more_than_stated_and_makes_no_frame_late(seed: int) -> None:
    found = pull_cables(seed)
    assert found.broken == []
    assert found.late == 0
    assert 0 < found.worst <= 1
    assert found.moves >= found.pulls > 0
    assert 0 < found.lost <= found.most_lost


@pytest.mark.parametrize("seed", range(3))
def test_a_pulled_cable_costs_a_duplicated_flow_nothing(seed: int) -> None:
    found = pull_beside_copies(seed)
    assert found.broken == []
    assert (found.lost, found.late) == (0, 0)
    assert found.pulls > 0
    assert 0 < found.worst <= 1


def test_without_the_second_copies_pulled_cables_cost_frames() -> None:
    assert pull_beside_copies(0, has_second_copies=False).lost > 0


@pytest.mark.parametrize("seed", range(2))
def test_flows_that_move_cost_duplicated_flows_nothing(seed: int) -> None:
    found = pull_cables(seed, protections=list(Protection))
    assert found.broken == []
    assert found.late == 0
    assert found.moves > 0
    assert found.lost <= found.most_lost


@pytest.mark.parametrize("chips", [3, 2])
def test_flows_of_every_class_move_in_their_class(chips: int, tmp_path: Path) -> None:
    service = CabledService(triangle(tmp_path, chips=chips), classes=2)
    service.run(4 * S)
    service.request_random(random.Random(1), 24, protections=list(Protection))
    moving = [flow.id for flow in service.granted if DIRECT in service.manager.flows[flow.id].cables]
    classes = {flow.id: flow.traffic_class for flow in service.granted}
    assert {classes[name] for name in moving} == {1, 2}
    service.run(S)
    service.pull(DIRECT)
    service.run(3 * S)
    assert service.manager.on_backup
    assert service.late.total() == 0
    for managed in service.manager.flows.values():
        queues = {
            unpack("!HHH6xI", entry.actions)[3]
            for switch, entry in managed.entries
            if switch != f"s{chips + 1}"
        }
        assert queues <= {8 - classes[managed.flow.id]}
    service.plug(DIRECT)
    service.run(3 * S)
    service.manager.return_flows(service.now_ns)
    service.run(3 * S)
    assert service.manager.on_backup == ()
    assert service.late.total() == 0
