"""Slots given by the service: what remains as promised, and one-line messages about invalid input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scheduling import served_schedule
from served_boards import LAB, OPTIONS, ServedBoards, ServedSlots, flow, renamed, timed

from loko.document import InputError
from loko.schedule.incremental_lab_schedule import IncrementalLabSchedule, NoFreeSlot
from loko.schedule.lab_schedule import ScheduledFlow
from loko.schedule.problem import SchedulingScheme
from loko.schedule.timed_flow import TimedFlow
from loko.service.outcome import Delete, Granted, Refused, Released, SendSlot
from loko.service.slots import ServedSchedule, SlotAdmitter, SlottedFlow, load_served
from loko.service.store import Store
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import load_lab
from loko_testbed.reproduce.schedule_check.document import ScheduleDocument
from loko_testbed.reproduce.schedule_check.incremental import IncrementalCheck

F1, F2 = flow(1), flow(2, "H4", "H2")


@pytest.fixture(scope="module")
def schedule() -> ServedSchedule:
    return served_schedule(LAB, [F1, F2], slots=2)


def test_a_released_slot_is_free_only_when_nothing_is_on_its_way(
    tmp_path: Path, schedule: ServedSchedule
) -> None:
    served = ServedSlots(tmp_path / "flows.sqlite", schedule)
    served.settle()
    assert served.request(flow(3, "H1", "H4")) == Granted("f3", is_new=True)
    ticket = served.manager.release(served.now_ns, "f3")
    begun_ns = served.now_ns
    assert isinstance(served.request(flow(4, "H1", "H2")), Refused), "it counts until it is gone"
    assert served.ask(ticket) == Released("f3")
    assert served.now_ns - begun_ns >= 2 * schedule.timing.slot_ns
    assert served.request(flow(4, "H1", "H2")) == Granted("f4", is_new=True)
    assert served.tables() == served.promised()


def test_released_flows_of_the_schedule_stay_released(tmp_path: Path, schedule: ServedSchedule) -> None:
    """This holds even if no flow is left, so that other options would be accepted."""
    served = ServedSlots(tmp_path / "flows.sqlite", schedule)
    served.settle()
    assert set(served.manager.flows) == {"f1", "f2"}
    for name in ("f1", "f2"):
        assert served.release(name) == Released(name)
    served.kill()
    served.start()
    served.settle()
    assert served.manager.flows == {}


def test_another_schedule_brings_its_own_flows(tmp_path: Path, schedule: ServedSchedule) -> None:
    with Store(tmp_path / "s", lab=LAB.name, options={}) as store:
        first = SlotAdmitter(LAB, schedule).initial_flows
        assert store.begin("one", first)
        assert [grant.number for grant in store.load()] == [1, 2]
        store.write([Delete(1), Delete(2)])
        assert not store.begin("one", first)
        assert store.load() == []
        assert store.begin("another", first)
        assert [(grant.number, grant.send_slot) for grant in store.load()] == [
            (number, SendSlot(planned.slot, schedule.timing.base_period_ns))
            for number, planned in enumerate(schedule.scheduled, 3)
        ]


def test_a_store_of_admitted_flows_is_not_taken_for_one_of_slots(
    tmp_path: Path, schedule: ServedSchedule
) -> None:
    admitting = ServedBoards(tmp_path / "flows.sqlite")
    admitting.settle()
    admitting.request(flow(7))
    admitting.kill()
    with pytest.raises(InputError, match=r"flow 'f7' does not fit .* it was admitted, and has no slot"):
        ServedSlots(tmp_path / "flows.sqlite", schedule)
    options = {**OPTIONS, "schedule": schedule.digest}
    with Store(tmp_path / "new.sqlite", lab=LAB.name, options=options) as store:
        store.begin(schedule.digest, SlotAdmitter(LAB, schedule).initial_flows)
    other = {**OPTIONS, "schedule": served_schedule(LAB, [F1], slots=2).digest}
    with pytest.raises(InputError, match=r"granted with schedule \w+, not \w+; delete them first"):
        Store(tmp_path / "new.sqlite", lab=LAB.name, options=other)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"slots": 2, "changes_per_s": 0}, "leave no time for changes of tables; make it with"),
        ({"lab": "ring"}, "is for the lab 'ring', not for 'two-switch'; serve that lab"),
        ({"scheduled": []}, "has no flow with a slot; schedule at least one"),
        ({"base_period_us": "long"}, "base_period_us"),
        ({"scheduled": [{"id": "a", "slot": 0, "path": ["s1"], "ports": [2]}]}, "source"),
    ],
)
def test_a_file_that_cannot_be_served_is_told(
    tmp_path: Path, schedule: ServedSchedule, changes: dict[str, object], told: str
) -> None:
    file = tmp_path / "schedule.json"
    file.write_text(json.dumps(json.loads(schedule.model_dump_json()) | changes))
    with pytest.raises(InputError) as refused:
        load_served(file, LAB)
    assert told in refused.value.lines[0]
    assert str(file) in refused.value.lines[0]


def test_what_is_printed_is_what_is_served(tmp_path: Path, schedule: ServedSchedule) -> None:
    file = tmp_path / "schedule.json"
    file.write_text(schedule.model_dump_json())
    assert load_served(file, LAB) == schedule
    with pytest.raises(InputError, match="is for the lab 'two-switch', not for 'other'"):
        load_served(file, renamed(LAB, "other"))


def changed(schedule: ServedSchedule, **values: object) -> ServedSchedule:
    first = schedule.scheduled[0].model_copy(update=values)
    return schedule.model_copy(update={"scheduled": [first, *schedule.scheduled[1:]]})


def test_flows_that_cannot_stand_beside_each_other_are_told_before_the_store_has_them(
    tmp_path: Path, schedule: ServedSchedule
) -> None:
    for values, told in (
        ({"ports": [3, 2]}, "its path does not lead from H1 to H3"),
        ({"slot": 7}, "there is no slot 7 of 2"),
        ({"id": "f2"}, "flow id 'f2' is used twice"),
    ):
        wrong = changed(schedule, **values)
        with (
            Store(tmp_path / "s", lab=LAB.name, options={}) as store,
            pytest.raises(InputError, match=told),
        ):
            store.begin(wrong.digest, SlotAdmitter(LAB, wrong).initial_flows)
        with Store(tmp_path / "s", lab=LAB.name, options={}) as store:
            assert store.load() == []


def test_slots_that_are_too_short_for_what_is_served_are_told() -> None:
    """Messages cost more in OpenFlow 1.3, and too many of them leave no time for frames."""
    long = flow(1, frame_bytes=306, burst_bytes=306.0)
    schedule = served_schedule(LAB, [long], slots=2)
    message = r"slots of [\d.]+ us are needed for the path of flow 'f1', those of the schedule have"
    with pytest.raises(InputError, match=message):
        SlotAdmitter(LAB, schedule, openflow=OpenFlow.V1_3).initial_flows(0)
    busy = schedule.model_copy(update={"changes_per_s": 1500.0})
    with pytest.raises(InputError, match="s1: changes of its table leave no time for the frames of every"):
        SlotAdmitter(LAB, busy)
    anywhere = served_schedule(LAB, [long], slots=2, scheme=SchedulingScheme.UNCONSTRAINED)
    with pytest.raises(InputError, match="are needed for the longest path"):
        SlotAdmitter(LAB, anywhere, openflow=OpenFlow.V1_3)


@pytest.mark.parametrize("scheme", SchedulingScheme)
def test_what_a_refused_flow_is_told(scheme: SchedulingScheme) -> None:
    """On a ring of five, the other direction may help; no schedule helps if a table is full."""
    ring = load_lab("labs/ring/five.yml")
    kept = served_schedule(ring, [flow(1, "h1", "h3")], slots=1, scheme=scheme)
    incremental = IncrementalLabSchedule(ring, kept, frame_bytes=[64])
    assert not isinstance(incremental.add(timed(flow(1, "h1", "h2"))), NoFreeSlot)
    refused = incremental.add(timed(flow(2, "h1", "h3")))
    assert refused == NoFreeSlot(switch="s1", quantity="slots", allowed=1, optimality_gap=0)
    assert not isinstance(incremental.add(timed(flow(2, "h3", "h4"))), NoFreeSlot), "nothing of it was left"
    small = IncrementalLabSchedule(ring, kept.model_copy(update={"table_entries": 1}), frame_bytes=[64])
    assert not isinstance(small.add(timed(flow(1, "h1", "h2"))), NoFreeSlot)
    assert small.add(timed(flow(2, "h2", "h1"))) == NoFreeSlot(switch="s2", quantity="entries", allowed=1)
    small.remove("f1")
    assert not isinstance(small.add(timed(flow(2, "h2", "h1"))), NoFreeSlot)


def test_a_slot_that_the_checker_refutes_is_not_given(schedule: ServedSchedule) -> None:
    class Never:
        def refutations(self, flow: Mapping[str, Any]) -> list[str]:
            return [f"{flow['id']}: is wrong"]

        def refutations_by_replay(self, flow_id: str) -> list[str]:
            raise AssertionError(flow_id)

        def remove(self, flow_id: str) -> None:
            raise AssertionError(flow_id)

    slots = SlotAdmitter(LAB, schedule, checker=Never())
    for _ in range(2):
        with pytest.raises(InputError, match="the checker refutes slot 0: f3: is wrong; please report it"):
            slots.decision(timed(flow(3, "H1", "H4")))()


def test_a_slot_that_a_replay_refutes_is_not_given(
    schedule: ServedSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler promises too much, which arithmetic alone cannot detect."""
    cycle = {**schedule.model_dump(mode="json"), "scheduled": [], "unscheduled": [], "entries": {}}
    document = ScheduleDocument.model_validate({**cycle, "bound": 0, "optimal": True})
    slots = SlotAdmitter(LAB, schedule, checker=IncrementalCheck(LAB, document))
    for stored in slots.initial_flows(0):
        slots.restore_flow(stored)
    right = IncrementalLabSchedule.add

    def hasty(incremental: IncrementalLabSchedule, wanted: TimedFlow) -> ScheduledFlow | NoFreeSlot:
        scheduled = right(incremental, wanted)
        assert isinstance(scheduled, ScheduledFlow)
        return replace(scheduled, link_bounds_ns=(scheduled.bound_ns / 10,))

    one_more = slots.decision(timed(flow(3, "H1", "H4")))
    with monkeypatch.context() as mutated:
        mutated.setattr(IncrementalLabSchedule, "add", hasty)
        with pytest.raises(InputError, match=r"the checker refutes slot \d+: f3: \d+ frames took longer"):
            one_more()
    assert isinstance(one_more(), SlottedFlow), "nothing of it was left"


def test_a_slot_that_cannot_be_replayed_is_not_given(
    schedule: ServedSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycle = {**schedule.model_dump(mode="json"), "scheduled": [], "unscheduled": [], "entries": {}}
    document = ScheduleDocument.model_validate({**cycle, "bound": 0, "optimal": True})
    slots = SlotAdmitter(LAB, schedule, checker=IncrementalCheck(LAB, document))
    one_more = slots.decision(timed(flow(3, "H1", "H4")))

    def no_such_board(*_args: object, **_more: object) -> None:
        raise ValueError("no such board")

    with monkeypatch.context() as mutated:
        mutated.setattr("loko_testbed.reproduce.schedule_check.replay.lab_network", no_such_board)
        with pytest.raises(InputError, match="the emulator does not accept the schedule: no such board"):
            one_more()
    assert isinstance(one_more(), SlottedFlow), "nothing of it was left"
