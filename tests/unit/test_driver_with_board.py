"""The driver against the emulated board with all its quirks: each hazard that docs/driver.md names."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address

import pytest
from board_end import BoardEnd, Pair

from loko.control_traffic import HEARTBEAT_NS
from loko.controller.driver import Driver, Phase
from loko.controller.manners import LISTABLE, REFRESH_NS
from loko.controller.notices import Failed, Installed, Note, Rejected, Removed
from loko.controller.wire import Add, DeleteStrict, Entry, encode, entry_of
from loko.entries import five_tuple_entry

MARK = 0x4C6F
S = 1_000_000_000
CRIPPLING = ("wedged", "hangs", "was split", "longer than", "a DELETE has left", "is lost")


def entry(number: int, *, mark: int = MARK, port: int = 3) -> Entry:
    flow = five_tuple_entry(
        priority=100,
        nw_src=IPv4Address("10.0.0.1"),
        nw_dst=IPv4Address("10.0.0.2"),
        tp_src=1 + number % 60_000,
        tp_dst=7000,
        output_port=port,
    )
    return entry_of(flow, cookie=mark << 48 | number)


def pair(config: dict[str, object] | None = None, **options: object) -> Pair:
    values: dict[str, object] = {"capacity": 128, "own_mark": MARK, **options}
    return Pair(Driver(**values), BoardEnd(config))  # type: ignore[arg-type]


def table(pair: Pair) -> list[tuple[int, list[bytes]]]:
    return sorted((flow.cookie, flow.actions) for flow in pair.end.board.flows())


def expected(*entries: Entry) -> list[tuple[int, list[bytes]]]:
    return sorted((one.cookie, [one.actions]) for one in entries)


def assert_unharmed(pair: Pair) -> None:
    assert not [event for event in pair.end.events if any(word in event for word in CRIPPLING)]
    assert pair.end.is_open


@pytest.mark.parametrize("count", [0, 1, 5, 6, 17, 128])
def test_table_is_installed_and_confirmed(count: int) -> None:
    both = pair()
    entries = [entry(number) for number in range(count)]
    for one in entries:
        both.driver.want(one)
    both.connect()
    both.settle()
    assert table(both) == expected(*entries)
    both.step()
    assert [note.cookie for note in both.notices if isinstance(note, Installed)] == [
        e.cookie for e in entries
    ]
    assert_unharmed(both)


def test_every_write_fits_a_segment_and_gets_one_reply() -> None:
    """Quirks 10, 11, 14: at most 536 bytes a write; a reply that others can follow comes first."""
    both = pair()
    for number in range(40):
        both.driver.want(entry(number))
    both.connect()
    both.settle()
    for number in range(20):
        both.driver.unwant(entry(number))
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


def test_removal_leaves_other_entries_alone() -> None:
    """Quirks 46, 48, 49: whichever entry goes, the others keep their actions and their frames."""
    both = pair()
    entries = [entry(number) for number in range(17)]
    for one in entries:
        both.driver.want(one)
    both.connect()
    both.settle()
    for index in (0, 8, 14, 3):
        gone = entries.pop(index)
        both.driver.unwant(gone)
        both.settle()
        both.step()
        assert Removed(gone.cookie) in both.notices
        assert table(both) == expected(*entries)
    assert_unharmed(both)


def test_memory_does_not_leak() -> None:
    """Quirk 47: a thousand entries come and go on one connection."""
    both = pair()
    both.connect()
    for number in range(1000):
        both.driver.want(entry(number))
        if number >= 3:
            both.driver.unwant(entry(number - 3))
        both.settle()
    assert table(both) == expected(*(entry(number) for number in (997, 998, 999)))
    assert not [note for note in both.notices if isinstance(note, Rejected)]
    assert_unharmed(both)


def test_full_table_is_told_without_asking() -> None:
    both = pair()
    for number in range(129):
        both.driver.want(entry(number))
    both.connect()
    both.settle(lambda: any(isinstance(note, Rejected) for note in both.notices))
    assert Rejected(entry(128).cookie, "its table is full (128 entries)") in both.notices
    assert_unharmed(both)


def test_refusals_of_the_switch_wedge_nothing() -> None:
    """Quirk 14: five refusals in one segment come behind its barrier's reply; the connection lives on."""
    both = pair(capacity=140)  # as if entries that nobody knows took its memory
    for number in range(133):
        both.driver.want(entry(number))
    both.connect()
    both.settle(lambda: sum(isinstance(note, Rejected) for note in both.notices) == 5)
    reasons = {note.reason for note in both.notices if isinstance(note, Rejected)}
    assert reasons == {"its table or its memory is full"}
    both.driver.unwant(entry(0))
    both.run(12 * S)
    assert sum(isinstance(note, Installed) for note in both.notices) == 129  # one of them was tried again
    assert_unharmed(both)


def test_connection_lives_while_nothing_changes() -> None:
    """Quirks 7, 8: a minute without changes."""
    both = pair()
    both.driver.want(entry(1))
    both.connect()
    both.run(60 * S)
    assert both.driver.complete
    assert table(both) == expected(entry(1))
    assert_unharmed(both)


@pytest.mark.parametrize("address", [0x2000_DA0C, 0x2000_DA08, 0x2000_DA00, 0x2000_D304])
def test_no_entry_expires_in_hours(address: int) -> None:
    """Quirks 51, 52: with any memory layout whose least threshold is above the time between renewals."""
    both = pair({"flow_memory_address": address})
    entries = [entry(number) for number in range(60)]
    for one in entries:
        both.driver.want(one)
    both.connect()
    both.settle()
    both.run(2 * 3600 * S, step_ns=100_000_000)
    assert table(both) == expected(*entries)
    assert not [note for note in both.notices if isinstance(note, Note)]
    assert_unharmed(both)


def test_entries_expire_without_the_driver() -> None:
    """What the test above would catch."""
    both = pair()
    for number in range(60):
        both.driver.want(entry(number))
    both.connect()
    both.settle()
    for _ in range(3000):
        both.end.wait(2 * S)
        both.end.board.segment(both.end.now_ns, bytes.fromhex("0112000800000063"))
    assert len(table(both)) < 60


def test_renewal_never_leaves_a_gap() -> None:
    """An entry goes and comes within one segment, so no frame finds the table without it."""
    both = pair()
    both.driver.want(entry(1))
    both.driver.want(entry(2))
    both.connect()
    both.settle()
    before = len(both.end.sent)
    for _ in range((REFRESH_NS + 10 * S) // 100_000_000):
        both.step(100_000_000)
        assert len(both.end.board.flows()) == 2
    renewals = [data for data in both.end.sent[before:] if len(data) > 12 and data[1] == 18]
    assert [len(data) for data in renewals] == [8 + 72 + 80] * 2


def test_reboot_is_answered_with_the_whole_table() -> None:
    both = pair()
    for number in range(20):
        both.driver.want(entry(number))
    both.connect()
    both.settle()
    both.end = BoardEnd(start_ns=both.end.now_ns)
    both.driver.disconnected()
    both.connect()
    both.settle()
    assert table(both) == expected(*(entry(number) for number in range(20)))


def test_table_that_was_cleared_is_filled_again() -> None:
    """Somebody types `clear flows` at the console."""
    both = pair()
    for number in range(5):
        both.driver.want(entry(number))
    both.connect()
    both.settle()
    both.end.board.console(both.end.now_ns, b"\ropenflow\rclear flows\r")
    both.step(100_000_000)
    assert table(both) == []
    both.run(HEARTBEAT_NS + S)
    both.settle()
    assert table(both) == expected(*(entry(number) for number in range(5)))
    assert Note("its table has 0 entries instead of 5; comparing", warning=True) in both.notices


def test_safe_mode_keeps_what_is_wanted_and_reports_strangers() -> None:
    both = pair({"fail_state": "safe"})
    for number in range(6):
        both.driver.want(entry(number))
    both.connect()
    both.settle()
    stranger = entry(77, mark=0)
    both.end.send(encode(Add(999, stranger)))
    both.driver = Driver(capacity=128, own_mark=MARK)  # a new service, which knows less
    for number in range(3, 8):
        both.driver.want(entry(number))
    both.driver.unwant(entry(1))
    both.notices.clear()
    both.reconnect()
    both.settle()
    both.step()
    assert table(both) == expected(*(entry(number) for number in range(3, 8)), stranger)
    assert Removed(entry(1).cookie) in both.notices
    assert both.driver.strangers == (str(stranger),)
    assert any(isinstance(note, Note) and "stranger" in note.text for note in both.notices)
    assert_unharmed(both)


def test_strangers_are_deleted_on_request() -> None:
    both = pair({"fail_state": "safe"}, delete_strangers=True)
    both.connect()
    both.end.send(encode(Add(999, entry(77, mark=0))))
    both.driver.want(entry(1))
    both.reconnect()
    both.settle()
    assert table(both) == expected(entry(1))


def test_long_table_of_unknown_entries_is_not_listed() -> None:
    """Quirk 28: 20 entries with two actions each would hang the board; they are not asked for."""
    both = pair({"fail_state": "safe"})
    both.connect()
    both.settle()
    output = entry(0).actions
    for number in range(20):
        one = entry(1000 + number, mark=0)
        both.end.send(encode(Add(number, Entry(one.cookie, one.priority, one.match, output * 2))))
        both.end.wait(1_000_000)
    both.driver = Driver(capacity=128, own_mark=MARK)
    for number in range(30):
        both.driver.want(entry(number))
    both.reconnect()
    both.settle()
    assert len(table(both)) == 50
    assert len(both.driver.strangers) == 20
    assert_unharmed(both)


def test_long_table_of_its_own_is_written_anew_without_a_gap() -> None:
    both = pair({"fail_state": "safe"})
    entries = [entry(number) for number in range(LISTABLE + 20)]
    for one in entries:
        both.driver.want(one)
    both.connect()
    both.settle()
    both.driver = Driver(capacity=128, own_mark=MARK)
    for one in entries[3:]:
        both.driver.want(one)
    for one in entries[:3]:
        both.driver.unwant(one)
    both.reconnect()
    while both.driver.phase is not Phase.KEEPING:
        both.step(100_000)
        assert len(table(both)) >= len(entries) - 3
    both.settle()
    assert table(both) == expected(*entries[3:])
    assert both.driver.strangers == ()


def test_stale_actions_are_found() -> None:
    """Quirk 55: another controller's second action in the memory would copy every frame."""
    both = pair()
    both.connect()
    both.settle()
    one = entry(5, mark=0)
    both.end.send(encode(Add(1, Entry(one.cookie, one.priority, one.match, one.actions * 2))))
    both.end.wait(1_000_000)
    both.driver.want(entry(1))
    both.reconnect()
    both.settle(lambda: any(isinstance(note, Rejected) for note in both.notices))
    assert "quirk 55" in str([note for note in both.notices if isinstance(note, Rejected)])
    both.run(3 * S)
    assert table(both) == []
    assert_unharmed(both)


def test_double_entries_are_removed_whole() -> None:
    """Quirks 37 and 49: an entry that stands there twice, and which a strict DELETE finds once."""
    both = pair({"fail_state": "safe"})
    both.driver.want(entry(1))
    both.driver.want(entry(2))
    both.connect()
    both.settle()
    both.end.send(encode(Add(999, entry(1))))
    both.end.wait(1_000_000)
    both.reconnect()
    both.settle()
    assert table(both) == expected(entry(1), entry(2))


def test_silence_ends_the_connection() -> None:
    both = pair()
    both.connect()
    both.settle()
    both.end.wait(HEARTBEAT_NS)
    both.driver.poll(both.end.now_ns)
    assert both.driver.poll(both.end.now_ns + 6 * S) == []
    assert both.driver.notices() == [Failed("it did not answer within 5 s")]
    assert both.driver.phase is Phase.AWAY


def test_lone_entry_that_expired_is_repaired_by_a_new_connection() -> None:
    """Quirk 52: the count becomes -1, and the board drops everything."""
    both = pair({"flow_memory_address": 0x2000_01C4})  # the first entry lives for two seconds
    both.driver.want(entry(1))
    both.connect()
    both.settle()
    both.run(10 * S)
    failures = [note for note in both.notices if isinstance(note, Failed)]
    assert len(failures) == 1
    assert "quirk 52" in failures[0].reason
    both.reconnect()
    both.settle()
    assert table(both) == expected(entry(1))


def test_pace_is_kept() -> None:
    both = pair(pace_ns=500_000_000)
    for number in range(18):
        both.driver.want(entry(number))
    both.connect()
    began_ns = both.end.now_ns
    both.settle(most=3000)
    assert both.end.now_ns - began_ns >= 2 * 500_000_000


def test_delete_without_cookie_would_fail() -> None:
    """Quirk 48, which the removal tests stand on: the cookie is compared, not the priority."""
    end = BoardEnd()
    end.open()
    end.send(encode(Add(1, entry(1))))
    end.wait(1_000_000)
    one = entry(1)
    end.send(encode(DeleteStrict(2, Entry(0, one.priority, one.match, b""))))
    end.wait(1_000_000)
    assert len(end.board.flows()) == 1
