"""The session's state machine and the supervisor, without sockets or clock."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from loko.controller.session import (
    ECHO_INTERVAL_NS,
    REPLY_TIMEOUT_NS,
    AddEntry,
    Barrier,
    Echo,
    FlowStats,
    Listing,
    Request,
    Session,
    State,
    TableStats,
)
from loko.controller.supervisor import Supervisor, Table
from loko.entries import FlowEntry

ENTRIES = tuple(
    FlowEntry(
        priority=100 + number,
        nw_src=IPv4Address(f"10.0.1.{number}"),
        nw_dst=IPv4Address("10.0.0.2"),
        tp_src=5,
        tp_dst=6,
        output_port=3,
    )
    for number in range(1, 25)
)


def answer(
    session: Session, request: Request, now_ns: int = 0, table: list[FlowEntry] | None = None
) -> list[Request]:
    """What a faultless switch with so many entries makes the session do next."""
    installed = ENTRIES if table is None else table
    match request:
        case AddEntry():
            return []
        case Barrier(xid=xid):
            return session.barrier_reply(now_ns, xid)
        case TableStats(xid=xid):
            return session.table_stats(now_ns, xid, len(installed))
        case FlowStats(xid=xid):
            return session.flow_stats(now_ns, xid, [replace(e, priority=0x2000) for e in installed[:20]])
        case Echo(xid=xid):
            return session.echo_reply(now_ns, xid)


def set_up(session: Session, table: list[FlowEntry] | None = None) -> list[list[Request]]:
    """Answer until nothing is asked; returns the requests of each step."""
    steps = [session.start(0)]
    while steps[-1]:
        following: list[Request] = []
        for request in steps[-1]:
            following += answer(session, request, table=table)
        steps.append(following)
    return steps[:-1]


def test_entries_go_in_one_by_one_each_with_a_barrier() -> None:
    session = Session(ENTRIES)
    steps = set_up(session)
    assert session.state is State.READY
    for step, entry in zip(steps, ENTRIES, strict=False):
        assert [type(request) for request in step] == [AddEntry, Barrier]
        assert step[0].entry == entry
    assert [type(request) for step in steps[len(ENTRIES) :] for request in step] == [TableStats, FlowStats]


def test_never_more_than_one_reply_is_outstanding() -> None:
    for step in set_up(Session(ENTRIES)):
        assert sum(not isinstance(request, AddEntry) for request in step) == 1


def test_transaction_numbers_are_never_repeated() -> None:
    numbers = [request.xid for step in set_up(Session(ENTRIES)) for request in step]
    assert len(numbers) == len(set(numbers))


def test_no_entries_are_set_up_too() -> None:
    session = Session([])
    set_up(session, table=[])
    assert session.state is State.READY


@pytest.mark.parametrize(
    ("table", "failure"),
    [
        (list(ENTRIES[:-1]), "its table has 23 entries instead of 24"),
        ([ENTRIES[1], ENTRIES[0], *ENTRIES[2:]], "its entry 0 is"),
        ([*ENTRIES[:19], replace(ENTRIES[19], output_port=1), *ENTRIES[20:]], "its entry 19 is"),
    ],
)
def test_table_that_differs_is_not_ready(table, failure) -> None:
    session = Session(ENTRIES)
    set_up(session, table=table)
    assert session.state is State.FAILED
    assert failure in session.failure


def test_entry_that_is_no_five_tuple_is_not_ready() -> None:
    session = Session(ENTRIES[:1])
    table_stats = answer(session, session.start(0)[1])[0]
    flow_stats = session.table_stats(0, table_stats.xid, 1)[0]
    session.flow_stats(0, flow_stats.xid, [None])
    assert session.state is State.FAILED


def test_error_ends_the_session() -> None:
    session = Session(ENTRIES)
    session.start(0)
    assert session.error(3, 0) == []
    assert (session.state, session.failure) == (State.FAILED, "it answered with error 3/0")
    assert session.tick(10**12) == []


def test_replies_nobody_waits_for_change_nothing() -> None:
    session = Session(ENTRIES)
    session.start(0)
    for reply in (session.barrier_reply, session.echo_reply):
        assert reply(0, 999) == []
    assert session.table_stats(0, 2, 24) == []
    assert session.flow_stats(0, 2, []) == []
    assert session.state is State.INSTALLING


def test_silence_during_set_up_ends_the_session() -> None:
    session = Session(ENTRIES)
    session.start(0)
    assert session.tick(REPLY_TIMEOUT_NS) == []
    assert session.state is State.INSTALLING
    session.tick(REPLY_TIMEOUT_NS + 1)
    assert session.state is State.FAILED


def test_liveness_is_checked_by_echo() -> None:
    session = Session(ENTRIES)
    set_up(session)
    assert session.tick(ECHO_INTERVAL_NS - 1) == []
    (echo,) = session.tick(ECHO_INTERVAL_NS)
    assert isinstance(echo, Echo)
    assert session.tick(ECHO_INTERVAL_NS + 1) == []  # one is outstanding
    answer(session, echo, now_ns=ECHO_INTERVAL_NS + 5)
    (second,) = session.tick(2 * ECHO_INTERVAL_NS + 5)
    session.tick(2 * ECHO_INTERVAL_NS + 6 + REPLY_TIMEOUT_NS)
    assert second.xid != echo.xid
    assert session.state is State.FAILED


class Recorder:
    """A connection that answers at once when it is told to."""

    def __init__(self) -> None:
        self.sent: list[Request] = []
        self.is_closed = False

    def send(self, request: Request) -> None:
        self.sent.append(request)

    def close(self) -> None:
        self.is_closed = True


class Room:
    """A supervisor of two switches and what it told."""

    def __init__(self) -> None:
        self.changes: list[bool] = []
        self.lines: list[str] = []
        tables = {number: Table(switch=f"s{number}", entries=ENTRIES[:number]) for number in (1, 2)}
        self.supervisor: Supervisor[Recorder] = Supervisor(
            tables, changed=self.changes.append, log=self.lines.append
        )

    def join(self, datapath_id: int) -> Recorder:
        connection = Recorder()
        self.supervisor.connected(connection, datapath_id, 0)
        table = list(ENTRIES[:datapath_id])
        while connection.sent:
            request = connection.sent.pop(0)
            self.supervisor.handle(connection, lambda s, r=request: answer(s, r, table=table))
        return connection


def test_ready_when_the_last_switch_is() -> None:
    room = Room()
    room.join(1)
    assert (room.supervisor.ready, room.changes) == (frozenset({"s1"}), [])
    room.join(2)
    assert room.changes == [True]


def test_switch_that_comes_back_is_set_up_again() -> None:
    room = Room()
    first = room.join(1)
    room.join(2)
    room.supervisor.disconnected(first)
    assert room.changes == [True, False]
    room.join(1)
    assert room.changes == [True, False, True]


def test_new_connection_closes_the_old_one_whose_end_is_then_no_news() -> None:
    room = Room()
    first = room.join(1)
    room.join(2)
    room.join(1)
    assert first.is_closed
    room.supervisor.disconnected(first)
    assert room.supervisor.ready == {"s1", "s2"}


def test_unknown_datapath_is_closed_with_a_line() -> None:
    room = Room()
    stranger = Recorder()
    room.supervisor.connected(stranger, 7, 0)
    assert stranger.is_closed
    assert room.lines == ["refused datapath 0x0000000000000007: no switch of the lab has this id"]


def test_failed_session_is_closed_and_forgotten() -> None:
    room = Room()
    first = room.join(1)
    room.supervisor.tick(ECHO_INTERVAL_NS)
    room.supervisor.tick(ECHO_INTERVAL_NS + REPLY_TIMEOUT_NS + 1)
    assert first.is_closed
    assert room.supervisor.ready == frozenset()
    room.supervisor.handle(first, lambda session: pytest.fail("a forgotten session got an event"))


def complete(session: Session, listed: list[FlowEntry | None]) -> Session:
    """A session up to the point at which the switch has listed these entries."""
    requests = session.start(0)
    while not any(isinstance(request, FlowStats) for request in requests):
        requests = [new for request in requests for new in answer(session, request, table=list(ENTRIES))]
    session.flow_stats(0, requests[0].xid, listed)
    return session


def test_a_switch_that_lists_everything_may_do_so_in_any_order() -> None:
    session = complete(Session(ENTRIES, Listing.COMPLETE), list(reversed(ENTRIES)))
    assert session.state is State.READY


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        (list(ENTRIES[:20]), "it lists 20 entries instead of 24"),
        ([*ENTRIES[:-1], ENTRIES[0]], "its entry 1 is"),
        ([*ENTRIES[:-1], replace(ENTRIES[-1], priority=7)], "its entry 0 is"),
        ([*ENTRIES[:-1], None], "its entry 0 is None instead of"),
    ],
)
def test_such_a_switch_must_list_all_entries_with_their_priorities(
    listed: list[FlowEntry | None], says: str
) -> None:
    session = complete(Session(ENTRIES, Listing.COMPLETE), listed)
    assert session.state is State.FAILED
    assert says in session.failure
