"""The driver in OpenFlow 1.3 against the emulated board: each unsafe sequence that docs/driver.md names.

The board has the firmware's quirks. Tests with a parameter `quirks` also use one that follows the standard.
"""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from board_end import BoardEnd
from driver_and_board import MS, V1_3, S, Setting, assert_unharmed, expected, table

from loko.control.dialect import LEAK_LIMIT, LISTABLE_13
from loko.control.driver import RETRY_NS
from loko.control.notices import Diagnostic, Failed, Installed, Rejected
from loko.control.wire import BarrierReply, TableStatsReply
from loko.control.wire13 import AddEntry, DeleteEntry, FlowStatsReply, WireEntry13, decode, encode
from loko.switch_model.control_traffic import HEARTBEAT_NS
from loko.switch_model.scenario import OpenFlow

QUIRKS = ("firmware", "spec")
BARRIER, FLOW_MOD, MULTIPART = 20, 14, 18


def long_entry(number: int) -> WireEntry13:
    """Return a foreign entry with the longest match and instructions that a board accepts: 96 bytes each."""
    entry = V1_3.entry(number, mark=0)
    source, destination = entry.match[11:19], entry.match[19:27]
    match = (source + destination) * 6
    actions = struct.pack("!HH4x", 4, 96) + entry.actions[8:] * 5 + struct.pack("!HHI", 24, 8, 0)
    assert len(match) == len(actions) == 96
    return replace(entry, match=match, actions=actions)


def kinds(data: bytes) -> list[int]:
    """Return the types of the messages in a segment."""
    kinds, at = [], 0
    while at < len(data):
        assert data[at] == 4
        kinds.append(data[at + 1])
        at += struct.unpack_from("!H", data, at + 2)[0]
    assert at == len(data)
    return kinds


@pytest.mark.parametrize("quirks", QUIRKS)
def test_every_write_fits_a_segment_and_gets_one_reply(quirks: str) -> None:
    """Quirks 10, 86, 87, 89, 90: a write is a barrier followed by FLOW_MODs, or one multipart request."""
    both = Setting(OpenFlow.V1_3, quirks).pair()
    for number in range(40):
        both.driver.ensure(V1_3.entry(number))
    both.connect()
    both.settle()
    for number in range(20):
        both.driver.remove(V1_3.entry(number))
    both.settle()
    both.run(5 * S)
    assert table(both) == expected(*(V1_3.entry(number) for number in range(20, 40)))
    seen = set()
    for data in both.end.sent:
        assert len(data) <= 536
        first, *others = kinds(data)
        seen.add(first)
        assert first == BARRIER or not others
        assert set(others) <= {FLOW_MOD}
    assert seen == {BARRIER, MULTIPART}
    assert_unharmed(both)


def test_multipart_in_a_segment_with_a_barrier_would_be_overtaken() -> None:
    """Quirk 87, on which the test above relies."""
    end = BoardEnd(openflow=OpenFlow.V1_3)
    end.open()
    end.wait(MS)
    end.send(bytes.fromhex("0412001000000005 0003000000000000") + bytes.fromhex("0414000800000006"))
    assert [message[1] for message in end.wait(5 * MS)] == [21, 19]


def test_entries_of_others_with_the_same_match_and_priority_stay_away() -> None:
    """Quirks 132 and 135: the board compares the whole cookie, so a deletion hits no other entry."""
    end = BoardEnd(openflow=OpenFlow.V1_3)
    end.open()
    for request in (AddEntry(1, V1_3.entry(1, mark=0)), DeleteEntry(2, V1_3.entry(1))):
        end.send(encode(request))
        end.wait(MS)
    assert len(end.board.flows13()) == 1


def test_a_match_that_begins_with_another_would_replace_it() -> None:
    """Quirk 124 is why all matches have the same fields in the same order."""
    end = BoardEnd(openflow=OpenFlow.V1_3)
    end.open()
    shorter = replace(V1_3.entry(1), match=V1_3.entry(1).match[:27])
    for request in (AddEntry(1, shorter), AddEntry(2, V1_3.entry(1)), AddEntry(3, V1_3.entry(2))):
        end.send(encode(request))
        end.wait(MS)
    assert [flow.oxms for flow in end.board.flows13()] == [V1_3.entry(1).match, V1_3.entry(2).match]
    assert len({len(V1_3.entry(number).match) for number in range(300)}) == 1


@pytest.mark.parametrize("quirks", QUIRKS)
def test_refusals_of_the_switch_stall_nothing(quirks: str) -> None:
    """Quirks 14, 121: refusals follow their barrier's reply. 298 entries fit."""
    both = Setting(OpenFlow.V1_3, quirks).pair(capacity=301)
    for number in range(301):
        both.driver.ensure(V1_3.entry(number))
    both.connect()
    both.settle(lambda: sum(isinstance(note, Rejected) for note in both.notices) == 3)
    reasons = {note.reason for note in both.notices if isinstance(note, Rejected)}
    assert reasons == {"its table or its memory is full"}
    assert len(table(both)) == 298
    assert_unharmed(both)


def test_refusals_that_leak_memory_end_in_a_new_connection_which_frees_it() -> None:
    """Quirk 123: each refused ADD may leak the memory of an entry, until the board connects again."""
    both = V1_3.pair(capacity=301)
    for number in range(300):
        both.driver.ensure(V1_3.entry(number))
    both.connect()
    failed = [Failed("its memory may run out: so many entries were refused (quirk 123)")]
    for _ in range(20):
        both.run(RETRY_NS + S)
        if failures := [note for note in both.notices if isinstance(note, Failed)]:
            break
    assert failures == failed
    assert LEAK_LIMIT < sum(isinstance(note, Rejected) for note in both.notices) <= LEAK_LIMIT + 3
    for number in range(100, 300):
        both.driver.remove(V1_3.entry(number))
    both.reconnect()
    both.settle()
    assert table(both) == expected(*(V1_3.entry(number) for number in range(100)))


def test_no_entry_expires_in_hours_and_none_is_renewed() -> None:
    """Entries without timeouts stay (unlike quirk 51), so the driver only asks for the count."""
    both = V1_3.pair()
    entries = [V1_3.entry(number) for number in range(20)]
    for entry in entries:
        both.driver.ensure(entry)
    both.connect()
    both.settle()
    both.step()
    before = len(both.end.sent)
    both.run(2 * 3600 * S, step_ns=100 * MS)
    assert table(both) == expected(*entries)
    assert {tuple(kinds(data)) for data in both.end.sent[before:]} == {(MULTIPART,)}
    assert not [note for note in both.notices if isinstance(note, Diagnostic)]
    assert_unharmed(both)


def test_entry_that_sends_elsewhere_than_it_should_is_mended() -> None:
    """Another service's entry has the same number. The listing shows it, and the driver writes it anew."""
    both = V1_3.pair({"fail_state": "safe"})
    both.driver.ensure(V1_3.entry(1, port=2))
    both.connect()
    both.settle()
    both.driver = V1_3.driver()
    both.driver.ensure(V1_3.entry(1, port=3))
    both.reconnect()
    both.settle()
    assert table(both) == expected(V1_3.entry(1, port=3))


@pytest.mark.parametrize("quirks", QUIRKS)
def test_foreign_entries_are_deleted_on_request_however_long_they_are(quirks: str) -> None:
    """Three of the longest deletions fit a segment. One stranger is in another table."""
    both = V1_3.pair({"fail_state": "safe", "quirks": quirks}, delete_foreign_entries=True)
    both.connect()
    strangers = [V1_3.entry(70, mark=0), replace(V1_3.entry(71, mark=0), table=3)]
    if quirks == "firmware":  # the standard forbids a match that names a field twice
        strangers += [replace(long_entry(number), priority=number) for number in range(4)]
    for number, stranger in enumerate(strangers):
        both.end.send(encode(AddEntry(number, stranger)))
        both.end.wait(MS)
    assert len(table(both)) == len(strangers)
    both.driver.ensure(V1_3.entry(1))
    both.reconnect()
    both.settle()
    assert table(both) == expected(V1_3.entry(1))
    assert max(map(len, both.end.sent)) <= 536


def test_listing_is_whole_as_long_as_it_is_asked_for() -> None:
    """Quirk 103: a listing holds `LISTABLE_13` of the longest entries, and silently leaves out the others."""
    end = BoardEnd(openflow=OpenFlow.V1_3)
    end.open()
    request = encode(_listing())
    for number in range(LISTABLE_13 + 1):
        end.send(encode(AddEntry(number, replace(long_entry(number), priority=number))))
        end.wait(MS)
        end.send(request)
        listed = [decode(message) for message in end.wait(10 * MS) if message[1] == 19]
        told = sum(len(part.entries) for part in listed if isinstance(part, FlowStatsReply))
        assert told == min(number + 1, LISTABLE_13)


def _listing():
    """Return the driver's listing request."""
    both = V1_3.pair({"fail_state": "safe"})
    both.connect()
    both.end.send(encode(AddEntry(1, V1_3.entry(1))))
    both.end.wait(MS)
    both.driver = V1_3.driver()
    both.end.close()
    both.end.open()
    (count,) = both.driver.connected(both.end.now_ns)
    both.end.send(both.wire.segment(count))
    (answer,) = both.end.wait(5 * MS)
    ((request,),) = both.driver.reply(both.end.now_ns, both.wire.decode(answer))
    return request


def test_entry_that_is_added_twice_stands_there_once() -> None:
    """Unlike in 1.0 (quirk 37), there are no duplicates to delete."""
    both = V1_3.pair()
    both.driver.ensure(V1_3.entry(1))
    both.connect()
    both.settle()
    both.end.send(encode(AddEntry(999, V1_3.entry(1))))
    both.end.wait(MS)
    assert table(both) == expected(V1_3.entry(1))


def test_entries_that_the_board_counts_and_does_not_list_are_foreign() -> None:
    """Quirk 85: entries of a session of 1.0. The driver neither asks for ever nor takes them for its own."""
    driver = V1_3.driver()
    driver.ensure(V1_3.entry(1))
    ((count,),) = driver.connected(S)
    ((listing,),) = driver.reply(S, TableStatsReply(count.xid, 3))
    ((barrier, add),) = driver.reply(S, FlowStatsReply(listing.xid, (), more=False))
    assert add.entry == V1_3.entry(1)
    ((confirmation,),) = driver.reply(S, BarrierReply(barrier.xid))
    assert driver.reply(S, BarrierReply(confirmation.xid)) == []
    ((again,),) = driver.poll(S + HEARTBEAT_NS)
    assert driver.reply(S + HEARTBEAT_NS, TableStatsReply(again.xid, 4)) == []
    assert driver.complete
    assert driver.foreign_entries == ("an entry that it does not list",) * 3
    assert driver.notices() == [Installed(V1_3.entry(1).cookie)]
