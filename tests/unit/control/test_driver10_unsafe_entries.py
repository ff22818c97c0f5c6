"""The driver in OpenFlow 1.0 against the emulated board: each unsafe sequence that docs/driver.md names."""

from __future__ import annotations

import struct

import pytest
from board_end import BoardEnd
from driver_and_board import V1_0, S, assert_unharmed, expected, table

from loko.control.dialect import REFRESH_NS
from loko.control.notices import Diagnostic, Failed, Installed, Rejected
from loko.control.wire import DeleteEntry, WireEntry, encode


def test_every_write_fits_a_segment_and_gets_one_reply() -> None:
    """Quirks 10, 11, 14: a write has at most 536 bytes, and only its first message asks for a reply."""
    both = V1_0.pair()
    for number in range(40):
        both.driver.ensure(V1_0.entry(number))
    both.connect()
    both.settle()
    for number in range(20):
        both.driver.remove(V1_0.entry(number))
    both.settle()
    for data in both.end.sent:
        assert len(data) <= 536
        kinds, at = [], 0
        while at < len(data):
            kinds.append(data[at + 1])
            at += struct.unpack_from("!H", data, at + 2)[0]
        assert kinds[0] in (16, 18)
        assert set(kinds[1:]) <= {14}
    assert_unharmed(both)


def test_refusals_of_the_switch_stall_nothing() -> None:
    """Quirk 14: five refusals of one segment follow its barrier's reply, and the connection survives."""
    both = V1_0.pair(capacity=140)  # more than the board holds, as if unknown entries took its memory
    for number in range(133):
        both.driver.ensure(V1_0.entry(number))
    both.connect()
    both.settle(lambda: sum(isinstance(note, Rejected) for note in both.notices) == 5)
    reasons = {note.reason for note in both.notices if isinstance(note, Rejected)}
    assert reasons == {"its table or its memory is full"}
    both.driver.remove(V1_0.entry(0))
    both.run(12 * S)
    assert sum(isinstance(note, Installed) for note in both.notices) == 129  # one entry was tried again
    assert_unharmed(both)


@pytest.mark.parametrize("address", [0x2000_DA0C, 0x2000_DA08, 0x2000_DA00, 0x2000_D304])
def test_no_entry_expires_in_hours(address: int) -> None:
    """Quirks 51, 52: for any memory layout whose lowest threshold exceeds the time between renewals."""
    both = V1_0.pair({"flow_memory_address": address})
    entries = [V1_0.entry(number) for number in range(60)]
    for entry in entries:
        both.driver.ensure(entry)
    both.connect()
    both.settle()
    both.run(2 * 3600 * S, step_ns=100_000_000)
    assert table(both) == expected(*entries)
    assert not [note for note in both.notices if isinstance(note, Diagnostic)]
    assert_unharmed(both)


def test_entries_expire_without_the_driver() -> None:
    """Shows that the test above can fail."""
    both = V1_0.pair()
    for number in range(60):
        both.driver.ensure(V1_0.entry(number))
    both.connect()
    both.settle()
    for _ in range(3000):
        both.end.wait(2 * S)
        both.end.board.segment(both.end.now_ns, bytes.fromhex("0112000800000063"))
    assert len(table(both)) < 60


def test_renewal_never_leaves_a_gap() -> None:
    """An entry is deleted and added within one segment, so no frame finds the table without it."""
    both = V1_0.pair()
    both.driver.ensure(V1_0.entry(1))
    both.driver.ensure(V1_0.entry(2))
    both.connect()
    both.settle()
    before = len(both.end.sent)
    for _ in range((REFRESH_NS + 10 * S) // 100_000_000):
        both.step(100_000_000)
        assert len(both.end.board.flows()) == 2
    renewals = [data for data in both.end.sent[before:] if len(data) > 12 and data[1] == 18]
    assert [len(data) for data in renewals] == [8 + 72 + 80] * 2


def test_foreign_entries_are_deleted_on_request() -> None:
    both = V1_0.pair({"fail_state": "safe"}, delete_foreign_entries=True)
    both.connect()
    both.end.send(V1_0.added(999, V1_0.entry(77, mark=0)))
    both.driver.ensure(V1_0.entry(1))
    both.reconnect()
    both.settle()
    assert table(both) == expected(V1_0.entry(1))


def test_long_table_of_unknown_entries_is_not_listed() -> None:
    """Quirk 28: listing 20 entries with two actions each would hang the board, so the driver does not."""
    both = V1_0.pair({"fail_state": "safe"})
    both.connect()
    both.settle()
    output = V1_0.entry(0).actions
    for number in range(20):
        entry = V1_0.entry(1000 + number, mark=0)
        both.end.send(V1_0.added(number, WireEntry(entry.cookie, entry.priority, entry.match, output * 2)))
        both.end.wait(1_000_000)
    both.driver = V1_0.driver()
    for number in range(30):
        both.driver.ensure(V1_0.entry(number))
    both.reconnect()
    both.settle()
    assert len(table(both)) == 50
    assert len(both.driver.foreign_entries) == 20
    assert_unharmed(both)


def test_stale_actions_are_found() -> None:
    """Quirk 55: another controller's second action, left in the memory, would duplicate every frame."""
    both = V1_0.pair()
    both.connect()
    both.settle()
    entry = V1_0.entry(5, mark=0)
    both.end.send(V1_0.added(1, WireEntry(entry.cookie, entry.priority, entry.match, entry.actions * 2)))
    both.end.wait(1_000_000)
    both.driver.ensure(V1_0.entry(1))
    both.reconnect()
    both.settle(lambda: any(isinstance(note, Rejected) for note in both.notices))
    assert "quirk 55" in str([note for note in both.notices if isinstance(note, Rejected)])
    both.run(3 * S)
    assert table(both) == []
    assert_unharmed(both)


def test_double_entries_are_removed_whole() -> None:
    """Quirks 37 and 49: an entry can be in the table twice, and a strict DELETE leaves one of the two."""
    both = V1_0.pair({"fail_state": "safe"})
    both.driver.ensure(V1_0.entry(1))
    both.driver.ensure(V1_0.entry(2))
    both.connect()
    both.settle()
    both.end.send(V1_0.added(999, V1_0.entry(1)))
    both.end.wait(1_000_000)
    both.reconnect()
    both.settle()
    assert table(both) == expected(V1_0.entry(1), V1_0.entry(2))


def test_lone_entry_that_expired_is_repaired_by_a_new_connection() -> None:
    """Quirk 52: the count becomes -1, and the board drops everything."""
    both = V1_0.pair({"flow_memory_address": 0x2000_01C4})  # the first entry lives for two seconds
    both.driver.ensure(V1_0.entry(1))
    both.connect()
    both.settle()
    both.run(10 * S)
    failures = [note for note in both.notices if isinstance(note, Failed)]
    assert len(failures) == 1
    assert "quirk 52" in failures[0].reason
    both.reconnect()
    both.settle()
    assert table(both) == expected(V1_0.entry(1))


def test_pace_is_kept() -> None:
    both = V1_0.pair(pace_ns=500_000_000)
    for number in range(18):
        both.driver.ensure(V1_0.entry(number))
    both.connect()
    began_ns = both.end.now_ns
    both.settle(most=3000)
    assert both.end.now_ns - began_ns >= 2 * 500_000_000


def test_delete_without_cookie_would_fail() -> None:
    """Quirk 48, on which the removal tests rely: the board compares the cookie, not the priority."""
    end = BoardEnd()
    end.open()
    end.send(V1_0.added(1, V1_0.entry(1)))
    end.wait(1_000_000)
    entry = V1_0.entry(1)
    end.send(encode(DeleteEntry(2, WireEntry(0, entry.priority, entry.match, b""))))
    end.wait(1_000_000)
    assert len(end.board.flows()) == 1
