"""The service is killed at random steps, hundreds of times: no promise is lost or half kept."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from scheduling import served_schedule
from served_boards import HOSTS, LAB, KilledError, ServedBoards, ServedSlots, flow

from loko.service.outcome import Disposition, FlowState, Granted, Interrupted, Released
from loko.switch_model.scenario import OpenFlow

RUNS, KILLS_A_RUN = 6, 20
"""Each mix of safe and unsafe entries, with and without padding."""
SLOT_RUNS = 2


class Customer:
    """Asks for flows and remembers what it was told."""

    def __init__(self, served: ServedBoards, choice: random.Random) -> None:
        self.served, self.choice = served, choice
        self.granted: set[str] = set()
        self.unsure: set[str] = set()
        self.pending: dict[int, tuple[str, bool]] = {}
        self.count = 0

    def ask(self) -> None:
        served = self.served
        if self.granted and self.choice.random() < 0.45:
            name = self.choice.choice(sorted(self.granted))
            self.granted.discard(name)
            self.unsure.add(name)
            self.pending[served.manager.release(served.now_ns, name)] = (name, False)
            return
        self.count += 1
        source, destination = self.choice.sample(HOSTS, 2)
        wanted = flow(self.count, source, destination)
        self.unsure.add(wanted.id)
        self.pending[served.begin(wanted)] = (wanted.id, True)

    def listen(self) -> None:
        """Record the answers."""
        for ticket in [ticket for ticket in self.pending if ticket in self.served.answers]:
            name, wants = self.pending.pop(ticket)
            match self.served.answers[ticket]:
                case Granted():
                    self.unsure.discard(name)
                    self.granted.add(name)
                case Released() as gone if not gone.waiting_for:
                    self.unsure.discard(name)
                case _ if wants:
                    self.unsure.discard(name)


def live_until_killed(served: ServedBoards, customer: Customer, choice: random.Random) -> None:
    served.fuse = choice.randrange(80)
    try:
        for _ in range(2000):
            if choice.random() < 0.3:
                customer.ask()
            if choice.random() < 0.002:
                served.reboot(choice.choice(sorted(served.boards)))
            served.carry()
            served.step(choice.choice((100_000, 1_000_000, 3_000_000)))
            customer.listen()
    except KilledError:
        customer.listen()


def backlogs(served: ServedBoards) -> dict[str, float]:
    """Return the backlog that released flows may have left at each switch."""
    return {name: served.admission.residual_backlog(name) or 0.0 for name in served.boards}


def bursts(served: ServedBoards, names: set[str]) -> dict[str, float]:
    """Return the sum of the flows' bursts at each switch."""
    bursts = dict.fromkeys(served.boards, 0.0)
    for name in names:
        for hop in served.admission.admitted[name].hops:
            bursts[hop.switch] += hop.arrival.burst_bytes
    return bursts


@pytest.mark.parametrize("openflow", OpenFlow)
@pytest.mark.parametrize("seed", range(RUNS))
def test_random_kills(tmp_path: Path, seed: int, openflow: OpenFlow) -> None:
    choice = random.Random(seed)
    served = ServedBoards(
        tmp_path / "flows.sqlite",
        safe=bool(seed % 2),
        entries=20,
        padding=3 if seed % 3 == 0 else 0,
        openflow=openflow,
    )
    served.settle()
    customer = Customer(served, choice)
    for _ in range(KILLS_A_RUN):
        live_until_killed(served, customer, choice)
        known, backlogged = set(served.manager.flows), backlogs(served)
        served.kill()
        served.start()
        back = bursts(served, set(served.manager.flows) - known)
        owes = backlogs(served)
        assert all(backlogged[name] <= owes[name] + back[name] for name in backlogged)  # nothing is forgotten
        served.settle()
        installed = {
            name for name, promise in served.manager.flows.items() if promise.state is FlowState.INSTALLED
        }
        assert customer.granted <= installed <= customer.granted | customer.unsure
        assert served.tables() == served.promised()
        assert set(served.admission.admitted) == installed == set(served.manager.flows)
        assert not [event for event in served.events() if "stalled" in event or "DELETE has left" in event]
        customer.granted, customer.unsure, customer.pending = installed, set(), {}


@pytest.mark.parametrize("seed", range(SLOT_RUNS))
def test_random_kills_with_slots(tmp_path: Path, seed: int) -> None:
    """Slots are kept like admitted flows: no flow ever moves, and no two flows meet."""
    choice = random.Random(seed)
    first = [flow(1000 + number, *ends) for number, ends in enumerate((("H1", "H3"), ("H4", "H2")))]
    schedule = served_schedule(LAB, first, slots=6)
    served = ServedSlots(tmp_path / "flows.sqlite", schedule)
    customer = Customer(served, choice)
    customer.granted = {scheduled.id for scheduled in first}
    served.settle()
    assert served.tables() == served.promised()
    gone: set[str] = set()
    for _ in range(KILLS_A_RUN):
        before = set(customer.granted)
        live_until_killed(served, customer, choice)
        had = served.send_slots()
        served.kill()
        served.start()
        served.settle()
        there = {
            name for name, promise in served.manager.flows.items() if promise.state is FlowState.INSTALLED
        }
        assert customer.granted <= there <= customer.granted | customer.unsure
        assert there == set(served.manager.flows)
        assert served.tables() == served.promised()
        send_slots = served.send_slots()
        assert {name: send_slots[name] for name in send_slots.keys() & had.keys()} == {
            name: had[name] for name in send_slots.keys() & had.keys()
        }
        used = [(slot, hop) for slot, path in send_slots.values() for hop in path]
        used += [
            (slot, promise.flow.source)
            for promise in served.manager.flows.values()
            for slot in [send_slots[promise.flow.id][0]]
        ]
        assert len(set(used)) == len(used)
        gone |= before - there
        assert not gone & there
        customer.granted, customer.unsure, customer.pending = there, set(), {}
    assert gone & {scheduled.id for scheduled in first}, (
        "flows that the schedule brought were released, and stayed so"
    )


def test_what_is_said_at_the_end_of_the_service_holds_after_it(tmp_path: Path) -> None:
    """End the service at each step while one flow is installed and another one removed."""
    said: set[tuple[str, Disposition]] = set()
    for steps in range(12):
        served = ServedBoards(tmp_path / f"{steps}.sqlite")
        served.settle()
        served.request(flow(1))
        asked = served.begin(flow(2))
        released = served.manager.release(served.now_ns, "f1")
        served.carry()
        served.run(steps)
        served.manager.interrupt(served.now_ns, "the service ends")
        served.carry()
        served.kill()
        answers = [served.answers[ticket] for ticket in (asked, released)]  # both were answered
        served.start()
        served.settle()
        there = set(served.manager.flows)
        for name, answer in zip(("f2", "f1"), answers, strict=True):
            match answer:
                case Interrupted(flow_id=flow_id, disposition=became):
                    assert flow_id == name
                    said.add((name, became))
                    assert name not in there
                case Granted():
                    assert name in there
                case _:
                    assert answer == Released("f1")
                    assert name not in there
        assert served.tables() == served.promised()
    assert said == {("f2", Disposition.TAKEN_BACK), ("f1", Disposition.CONTINUES)}


@pytest.mark.parametrize("openflow", OpenFlow)
@pytest.mark.parametrize("safe", [False, True])
def test_every_step_of_one_cycle(tmp_path: Path, safe: bool, openflow: OpenFlow) -> None:
    """Kill the service at each step of an installation and a removal."""
    kill_at_every_step(lambda fuse: ServedBoards(tmp_path / f"{fuse}.sqlite", safe=safe, openflow=openflow))


def test_every_step_of_one_cycle_with_slots(tmp_path: Path) -> None:
    """Likewise with slots. The flows of the schedule are there from the first step on."""
    schedule = served_schedule(LAB, [flow(9, "H2", "H4")], slots=3)
    kept = kill_at_every_step(lambda fuse: ServedSlots(tmp_path / f"{fuse}.sqlite", schedule))
    assert all("f9" in there for there in kept)


def kill_at_every_step(make: Callable[[int], ServedBoards]) -> list[set[str]]:
    """Kill the service at each step, and return the flows that are there after each kill."""
    after_each = []
    for fuse in range(40):
        served = make(fuse)
        served.settle()
        served.request(flow(1))
        served.fuse = fuse
        granted, gone = False, False
        try:
            granted = isinstance(served.request(flow(2)), Granted)
            gone = isinstance(served.release("f1"), Released)
        except KilledError:
            pass
        served.kill()
        served.start()
        served.settle()
        there = set(served.manager.flows)
        after_each.append(there)
        assert "f2" in there or not granted
        assert "f1" in there or granted
        assert not (gone and "f1" in there)
        assert served.tables() == served.promised()
        if gone:
            return after_each
    raise AssertionError("the cycle has more steps than were tried")
