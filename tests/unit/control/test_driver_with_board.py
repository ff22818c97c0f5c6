"""The driver against the emulated board, in every version of OpenFlow (docs/driver.md)."""

from __future__ import annotations

import pytest
from driver_and_board import MS, SETTINGS, S, Setting, assert_unharmed, expected, table

from loko.control.dialect import DIALECTS
from loko.control.driver import SessionPhase
from loko.control.notices import Diagnostic, Failed, Installed, Rejected, Removed
from loko.switch_model.control_traffic import HEARTBEAT_NS

in_each = pytest.mark.parametrize("version", SETTINGS, ids=str)


@in_each
@pytest.mark.parametrize("count", [0, 1, 3, 5, 6, 17, 128])
def test_table_is_installed_and_confirmed(count: int, version: Setting) -> None:
    both = version.pair()
    entries = [version.entry(number) for number in range(count)]
    for entry in entries:
        both.driver.ensure(entry)
    both.connect()
    both.settle()
    assert table(both) == expected(*entries)
    both.step()
    assert [note.cookie for note in both.notices if isinstance(note, Installed)] == [
        e.cookie for e in entries
    ]
    assert_unharmed(both)


@in_each
def test_removal_leaves_other_entries_alone(version: Setting) -> None:
    """Quirks 46, 48, 49 and, in 1.3, 128, 129, 133, 135: whichever entry goes, the others stay unchanged."""
    both = version.pair()
    entries = [version.entry(number) for number in range(17)]
    for entry in entries:
        both.driver.ensure(entry)
    both.connect()
    both.settle()
    for index in (0, 8, 14, 3):
        gone = entries.pop(index)
        both.driver.remove(gone)
        both.settle()
        both.step()
        assert Removed(gone.cookie) in both.notices
        assert table(both) == expected(*entries)
    assert_unharmed(both)


@in_each
def test_memory_does_not_leak(version: Setting) -> None:
    """Quirks 47 and 123: a thousand entries come and go on one connection."""
    both = version.pair()
    both.connect()
    for number in range(1000):
        both.driver.ensure(version.entry(number))
        if number >= 3:
            both.driver.remove(version.entry(number - 3))
        both.settle()
    assert table(both) == expected(*(version.entry(number) for number in (997, 998, 999)))
    assert not [note for note in both.notices if isinstance(note, Rejected)]
    assert_unharmed(both)


@in_each
def test_full_table_is_told_without_asking(version: Setting) -> None:
    both = version.pair()
    for number in range(129):
        both.driver.ensure(version.entry(number))
    both.connect()
    both.settle(lambda: any(isinstance(note, Rejected) for note in both.notices))
    assert Rejected(version.entry(128).cookie, "its table is full (128 entries)") in both.notices
    assert_unharmed(both)


@in_each
def test_connection_lives_while_nothing_changes(version: Setting) -> None:
    """Quirks 7, 8: a minute without changes."""
    both = version.pair()
    both.driver.ensure(version.entry(1))
    both.connect()
    both.run(60 * S)
    assert both.driver.complete
    assert table(both) == expected(version.entry(1))
    assert_unharmed(both)


@in_each
def test_reboot_is_answered_with_the_whole_table(version: Setting) -> None:
    both = version.pair()
    for number in range(20):
        both.driver.ensure(version.entry(number))
    both.connect()
    both.settle()
    both.end = version.end(start_ns=both.end.now_ns)
    both.driver.disconnected()
    both.connect()
    both.settle()
    assert table(both) == expected(*(version.entry(number) for number in range(20)))


@in_each
def test_table_that_was_cleared_is_filled_again(version: Setting) -> None:
    """Somebody types `clear flows` at the console."""
    both = version.pair()
    for number in range(5):
        both.driver.ensure(version.entry(number))
    both.connect()
    both.settle()
    both.end.board.console(both.end.now_ns, b"\ropenflow\rclear flows\r")
    both.step(100 * MS)
    assert table(both) == []
    both.run(HEARTBEAT_NS + S)
    both.settle()
    assert table(both) == expected(*(version.entry(number) for number in range(5)))
    assert Diagnostic("its table has 0 entries instead of 5; comparing", warning=True) in both.notices


@in_each
def test_safe_mode_keeps_what_is_wanted_and_reports_strangers(version: Setting) -> None:
    both = version.pair({"fail_state": "safe"})
    for number in range(6):
        both.driver.ensure(version.entry(number))
    both.connect()
    both.settle()
    stranger = version.entry(77, mark=0)
    both.end.send(version.added(999, stranger))
    both.driver = version.driver()  # a new service, which knows less
    for number in range(3, 8):
        both.driver.ensure(version.entry(number))
    both.driver.remove(version.entry(1))
    both.notices.clear()
    both.reconnect()
    both.settle()
    both.step()
    assert table(both) == expected(*(version.entry(number) for number in range(3, 8)), stranger)
    assert Removed(version.entry(1).cookie) in both.notices
    assert both.driver.foreign_entries == (str(stranger),)
    assert any(isinstance(note, Diagnostic) and "foreign entry" in note.text for note in both.notices)
    assert_unharmed(both)


@in_each
def test_long_table_of_its_own_is_written_anew_without_a_gap(version: Setting) -> None:
    both = version.pair({"fail_state": "safe"})
    entries = [version.entry(number) for number in range(DIALECTS[version.openflow].max_listed + 20)]
    for entry in entries:
        both.driver.ensure(entry)
    both.connect()
    both.settle()
    both.driver = version.driver()
    for entry in entries[3:]:
        both.driver.ensure(entry)
    for entry in entries[:3]:
        both.driver.remove(entry)
    both.reconnect()
    while both.driver.phase is not SessionPhase.KEEPING:
        both.step(100_000)
        assert len(table(both)) >= len(entries) - 3
    both.settle()
    assert table(both) == expected(*entries[3:])
    assert both.driver.foreign_entries == ()


@in_each
def test_silence_ends_the_connection(version: Setting) -> None:
    both = version.pair()
    both.connect()
    both.settle()
    both.end.wait(HEARTBEAT_NS)
    both.driver.poll(both.end.now_ns)
    assert both.driver.poll(both.end.now_ns + 6 * S) == []
    assert both.driver.notices() == [Failed("it did not answer within 5 s")]
    assert both.driver.phase is SessionPhase.AWAY


@in_each
def test_an_entry_is_exchanged_under_its_cookie_whatever_the_driver_does_meanwhile(version: Setting) -> None:
    """Whenever it is exchanged, the table never lacks it, and only the new one is confirmed at last."""
    first, second = version.entry(1), version.entry(1, port=2)
    other = version.entry(2)
    for steps in range(12):
        both = version.pair()
        both.driver.ensure(first)
        both.connect()
        for _ in range(steps):
            both.step()
        was_there = bool(table(both))
        both.driver.replace(first, second)
        both.driver.ensure(other)
        told = len(both.notices)
        for _ in range(40):
            both.step()
            assert len(table(both)) >= was_there
            if Installed(second.cookie) in both.notices[told:]:
                assert set(expected(second)) <= set(table(both)), "no confirmation of the former entry"
                told = len(both.notices)
        both.settle()
        assert table(both) == expected(second, other), steps
        assert not any(isinstance(note, Diagnostic | Rejected) for note in both.notices)
        assert_unharmed(both)


@in_each
def test_an_entry_that_was_exchanged_while_the_switch_was_away_is_so_at_its_return(version: Setting) -> None:
    first, second = version.entry(1), version.entry(1, port=2)
    both = version.pair({"fail_state": "safe"})
    both.driver.ensure(first)
    both.connect()
    both.settle()
    both.end.close()
    both.driver.disconnected()
    both.driver.replace(first, second)
    both.reconnect()
    while table(both) != expected(second):
        both.step()
        assert table(both) in (expected(first), expected(second)), "between two frames"
    both.settle()
    assert table(both) == expected(second)
    assert_unharmed(both)
