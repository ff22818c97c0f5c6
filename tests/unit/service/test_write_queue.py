"""One transaction at a time, whatever comes when: nothing is lost, and a stuck one is noticed."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from loko.service.disk import NOTES_S, RETRY_S, STALL_TIMEOUT_S, WriteQueue
from loko.service.outcome import Delete, Event, LoggedEvent, Write

QUIET = Event(kind="note", name="x", text="x")


class Interleavings(RuleBasedStateMachine):
    """Effects and notes come, transactions end well or not, and time passes, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = WriteQueue()
        self.now_s = 0.0
        self.count = 0
        self.handed_s: float | None = None
        """When the transaction on its way was handed to the disk."""
        self.on_its_way: list[Write] = []
        self.stored: list[Write] = []
        self.effects: list[Write] = []
        self.notes: list[Write] = []

    @rule(
        duration_s=st.sampled_from([0.01, RETRY_S, STALL_TIMEOUT_S / 2, STALL_TIMEOUT_S, 2 * STALL_TIMEOUT_S])
    )
    def let_time_pass(self, duration_s: float) -> None:
        self.now_s += duration_s

    @rule()
    def add_effect(self) -> None:
        self.count += 1
        self.effects.append(Delete(self.count))
        self.queue.add([Delete(self.count)])

    @rule()
    def add_note(self) -> None:
        self.count += 1
        noted = LoggedEvent(self.count, 0, QUIET)
        self.notes.append(noted)
        self.queue.note(noted)

    @rule(notes_at_once=st.booleans())
    def take(self, *, notes_at_once: bool) -> None:
        writes = self.queue.take(self.now_s, notes_at_once=notes_at_once)
        if writes:
            assert self.handed_s is None, "a second transaction is on its way"
            self.handed_s, self.on_its_way = self.now_s, writes

    @precondition(lambda self: self.handed_s is not None)
    @rule()
    def end_well(self) -> None:
        assert self.queue.written() == self.on_its_way
        self.stored += self.on_its_way
        self.handed_s = None
        assert self.queue.failure is None

    @precondition(lambda self: self.handed_s is not None)
    @rule()
    def fail(self) -> None:
        """The flow manager has all that was no note tried again."""
        again = self.queue.failed(self.now_s, "full")
        assert again == [write for write in self.on_its_way if isinstance(write, Delete)]
        self.queue.put_back(again)
        self.handed_s = None
        assert self.queue.failure == "full"
        assert self.queue.take(self.now_s, notes_at_once=True) == []

    @invariant()
    def a_stuck_transaction_is_noticed_and_no_other(self) -> None:
        is_late = self.handed_s is not None and self.now_s - self.handed_s > STALL_TIMEOUT_S
        assert self.queue.is_stuck(self.now_s) is is_late

    def teardown(self) -> None:
        """In the end all is written, in order."""
        if self.handed_s is not None:
            self.end_well()
        self.now_s += RETRY_S + NOTES_S
        self.take(notes_at_once=False)
        if self.handed_s is not None:
            self.end_well()
        assert [write for write in self.stored if isinstance(write, Delete)] == self.effects
        assert [write for write in self.stored if isinstance(write, LoggedEvent)] == self.notes


TestInterleavings = Interleavings.TestCase
