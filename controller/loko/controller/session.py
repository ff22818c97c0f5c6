"""The controller's side of one switch's session, as a state machine: events and `now` in, requests out.

The order respects what the Zodiac FX bears: its own HELLO offers 1.3 and it takes 1.0 from ours; it
reassembles no messages, so each is a write of its own; and two replies at once can wedge its connection, so
never more than one reply is outstanding. Entries go in one at a time, each confirmed by a barrier; then the
table is read back before the switch counts as ready. From then on echo requests watch that it lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from loko.entries import FlowEntry

REPLY_TIMEOUT_NS: Final = 5_000_000_000
"""A switch that leaves a request unanswered for so long counts as vanished.

The board itself gives up after 6 s. Less would take a controller that is short of CPU time for a dead switch.
"""
ECHO_INTERVAL_NS: Final = 2_000_000_000
"""Time between echo requests. The board itself asks after 2.5 s of silence and closes after 6 s."""
SHOWN_ENTRIES: Final = 20
"""The board's flow statistics stop after so many entries."""


@dataclass(frozen=True, kw_only=True)
class AddEntry:
    """Append an entry to the table. No reply, unless it fails."""

    xid: int
    entry: FlowEntry


@dataclass(frozen=True, kw_only=True)
class Barrier:
    """Ask to confirm that all before is done."""

    xid: int


@dataclass(frozen=True, kw_only=True)
class TableStats:
    """Ask for the number of entries."""

    xid: int


@dataclass(frozen=True, kw_only=True)
class FlowStats:
    """Ask for the entries."""

    xid: int


@dataclass(frozen=True, kw_only=True)
class Echo:
    """Ask for a sign of life."""

    xid: int


Request = AddEntry | Barrier | TableStats | FlowStats | Echo
"""What a session has sent to its switch."""


class Listing(Enum):
    """How a switch lists its table in its flow statistics."""

    OF_THE_BOARD = auto()
    """The first `SHOWN_ENTRIES` in the order of the table, with unrelated numbers as priorities."""
    COMPLETE = auto()
    """All of them with their priorities, in any order."""


class State(Enum):
    """How far a session is."""

    INSTALLING = auto()
    COUNTING = auto()
    READING_BACK = auto()
    READY = auto()
    FAILED = auto()


class Session:
    """Sets up one connected switch and watches it. Every call returns the requests to send, in order.

    It ends in `State.FAILED`, with `failure` in one line, when the switch errs or falls silent; then its
    connection is to be closed. The switch connects again, with an empty table, and gets a new session.
    """

    def __init__(self, entries: Sequence[FlowEntry], listing: Listing = Listing.OF_THE_BOARD) -> None:
        self.state = State.INSTALLING
        self.failure = ""
        self._entries = tuple(entries)
        self._listing = listing
        self._installed = 0
        self._xid = 0
        self._awaited: int | None = None
        self._since_ns = 0

    def start(self, now_ns: int) -> list[Request]:
        """The switch has introduced itself with its features: begin to install."""
        return self._install_next(now_ns)

    def barrier_reply(self, now_ns: int, xid: int) -> list[Request]:
        """The switch has confirmed a barrier."""
        if self.state is not State.INSTALLING or not self._is_awaited(xid):
            return []
        self._installed += 1
        return self._install_next(now_ns)

    def table_stats(self, now_ns: int, xid: int, active_entries: int) -> list[Request]:
        """The switch has counted its entries."""
        if self.state is not State.COUNTING or not self._is_awaited(xid):
            return []
        if active_entries != len(self._entries):
            return self._fail(f"its table has {active_entries} entries instead of {len(self._entries)}")
        self.state = State.READING_BACK
        return [FlowStats(xid=self._ask(now_ns))]

    def flow_stats(self, now_ns: int, xid: int, entries: Sequence[FlowEntry | None]) -> list[Request]:
        """The switch has listed its entries; None stands for one that is no five-tuple with one output."""
        if self.state is not State.READING_BACK or not self._is_awaited(xid):
            return []
        expected, shown = self._comparable(entries)
        if len(shown) != len(expected):
            return self._fail(f"it lists {len(shown)} entries instead of {len(expected)}")
        for place, (is_there, should_be) in enumerate(zip(shown, expected, strict=True)):
            if is_there != should_be:
                return self._fail(f"its entry {place} is {is_there} instead of {should_be}")
        self.state = State.READY
        self._awaited = None
        self._since_ns = now_ns
        return []

    def _comparable(
        self, listed: Sequence[FlowEntry | None]
    ) -> tuple[list[FlowEntry], list[FlowEntry | None]]:
        """The entries that should be listed, and those that are, in one order."""
        if self._listing is Listing.COMPLETE:
            in_order = sorted(listed, key=lambda entry: entry.priority if entry else -1)
            return sorted(self._entries, key=lambda entry: entry.priority), in_order
        expected = [replace(entry, priority=0) for entry in self._entries[:SHOWN_ENTRIES]]
        return expected, [entry and replace(entry, priority=0) for entry in listed]

    def echo_reply(self, now_ns: int, xid: int) -> list[Request]:
        """The switch has given a sign of life."""
        if self.state is State.READY and self._is_awaited(xid):
            self._awaited = None
            self._since_ns = now_ns
        return []

    def error(self, kind: int, code: int) -> list[Request]:
        """The switch has refused something."""
        return self._fail(f"it answered with error {kind}/{code}")

    def tick(self, now_ns: int) -> list[Request]:
        """Let time pass. To be called a few times a second; more does no harm."""
        waited_ns = now_ns - self._since_ns
        if self.state is State.FAILED:
            return []
        if self._awaited is not None:
            if waited_ns > REPLY_TIMEOUT_NS:
                return self._fail(f"it did not answer within {REPLY_TIMEOUT_NS / 1e9:g} s")
            return []
        if self.state is State.READY and waited_ns >= ECHO_INTERVAL_NS:
            return [Echo(xid=self._ask(now_ns))]
        return []

    def _install_next(self, now_ns: int) -> list[Request]:
        if self._installed < len(self._entries):
            entry = AddEntry(xid=self._next_xid(), entry=self._entries[self._installed])
            return [entry, Barrier(xid=self._ask(now_ns))]
        self.state = State.COUNTING
        return [TableStats(xid=self._ask(now_ns))]

    def _ask(self, now_ns: int) -> int:
        self._awaited = self._next_xid()
        self._since_ns = now_ns
        return self._awaited

    def _next_xid(self) -> int:
        self._xid = self._xid % 0xFFFF_FFFF + 1
        return self._xid

    def _is_awaited(self, xid: int) -> bool:
        return self._awaited == xid

    def _fail(self, failure: str) -> list[Request]:
        self.state = State.FAILED
        self.failure = failure
        self._awaited = None
        return []
