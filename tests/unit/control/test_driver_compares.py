"""Tables that somebody else changes, on the emulated board: the driver compares them again and again."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from board_end import Pair
from driver_and_board import MARK, MS, SETTINGS, V1_0, V1_3, S, Setting, assert_unharmed, expected, table

from loko.control import wire, wire13
from loko.control.dialect import OPEN_VSWITCH, REFRESH_NS
from loko.control.driver import Driver, Segment
from loko.control.notices import Diagnostic
from loko.control.wire import (
    FlowStatsReply,
    FlowStatsRequest,
    TableStatsReply,
    TableStatsRequest,
    WireEntry,
    WireRequest,
)
from loko.switch_model.control_traffic import COMPARED_ENTRIES, COMPARISON_S, HEARTBEAT_NS
from loko.switch_model.scenario import OpenFlow

COMPARE_NS = round(COMPARISON_S * S)
PACE_NS = 25 * MS
in_each = pytest.mark.parametrize("version", SETTINGS, ids=str)


def kept(version: Setting, count: int, **options: object) -> tuple[Pair, list[WireEntry]]:
    """Return a driver that keeps a table of `count` entries, compared every `COMPARE_NS`."""
    both = version.pair(**{"compare_ns": COMPARE_NS, "pace_ns": PACE_NS, "batch": 2, **options})
    entries = [version.entry(number) for number in range(count)]
    for entry in entries:
        both.driver.ensure(entry)
    both.connect()
    both.settle(most=5000)
    both.run(2 * S)
    both.notices.clear()
    return both, entries


def behind_the_drivers_back(both: Pair, *requests: WireRequest) -> None:
    """Change the board's table as somebody else's session would."""
    module = wire13 if both.end.openflow is OpenFlow.V1_3 else wire
    for request in requests:
        both.end.send(module.encode(request))  # type: ignore[attr-defined]
        both.end.wait(MS)


def warnings(both: Pair) -> list[str]:
    return [note.text for note in both.notices if isinstance(note, Diagnostic) and note.warning]


@in_each
def test_an_entry_that_leads_elsewhere_is_restored_and_reported(version: Setting) -> None:
    both, entries = kept(version, 5)
    changed = version.entry(2, port=1)
    behind_the_drivers_back(both, wire.DeleteEntry(900, entries[2]), wire.AddEntry(901, changed))
    assert table(both) != expected(*entries)
    both.run(COMPARE_NS + HEARTBEAT_NS)
    assert table(both) == expected(*entries)
    assert warnings(both) == [f"an entry is not as it was made, restoring it: {changed}"]
    assert both.driver.complete
    assert_unharmed(both)


@in_each
def test_an_entry_that_was_replaced_by_a_stranger_is_restored_and_both_are_reported(version: Setting) -> None:
    """The number of entries stays the same, so counting does not reveal it."""
    both, entries = kept(version, 5)
    stranger = version.entry(77, mark=0)
    behind_the_drivers_back(both, wire.DeleteEntry(900, entries[2]), wire.AddEntry(901, stranger))
    both.run(COMPARE_NS + HEARTBEAT_NS)
    assert table(both) == expected(*entries, stranger)
    assert f"foreign entry in its table: {stranger}" in warnings(both)
    assert any("vanished, restoring it" in text for text in warnings(both))
    assert both.driver.foreign_entries == (str(stranger),)
    assert_unharmed(both)


@in_each
def test_an_entry_with_the_services_mark_that_it_never_made_is_deleted(version: Setting) -> None:
    both, entries = kept(version, 5)
    forged = version.entry(88)
    behind_the_drivers_back(both, wire.DeleteEntry(900, entries[4]), wire.AddEntry(901, forged))
    both.run(COMPARE_NS + HEARTBEAT_NS)
    assert table(both) == expected(*entries)
    assert_unharmed(both)


@in_each
def test_a_table_that_is_as_it_should_be_is_read_in_peace(version: Setting) -> None:
    both, entries = kept(version, COMPARED_ENTRIES)
    both.run(10 * COMPARE_NS)
    assert table(both) == expected(*entries)
    assert warnings(both) == []
    assert listings(both) >= 9
    assert_unharmed(both)


@pytest.mark.parametrize("version", [V1_0, V1_3], ids=str)
def test_a_table_too_long_to_be_compared_is_renewed_entry_by_entry(version: Setting) -> None:
    both, entries = kept(version, COMPARED_ENTRIES + 4)
    before = listings(both)
    behind_the_drivers_back(
        both, wire.DeleteEntry(900, entries[2]), wire.AddEntry(901, version.entry(2, port=1))
    )
    both.run(REFRESH_NS + 10 * S)
    assert table(both) == expected(*entries)
    assert listings(both) == before
    assert_unharmed(both)


@pytest.mark.parametrize("version", [V1_0, V1_3], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_it_never_sends_more_than_is_reserved(version: Setting, seed: int) -> None:
    """Comparisons are `COMPARE_NS` apart, also while the table changes; segments are a pace apart.

    A listing has at most `COMPARED_ENTRIES` entries, all of them the driver's own.
    """
    chance = Random(seed)
    both, _ = kept(version, 4)
    times: list[tuple[int, bool]] = []
    since = len(both.end.sent)
    end_ns = both.end.now_ns + 10 * COMPARE_NS
    while both.end.now_ns < end_ns:
        if chance.random() < 0.3:
            number = chance.randrange(COMPARED_ENTRIES)
            chance.choice((both.driver.ensure, both.driver.remove))(version.entry(number))
        both.step(chance.randint(MS, 20 * MS))
        assert len(both.end.sent) <= since + 1
        if len(both.end.sent) > since:
            sent = both.end.sent[-1]
            times.append((both.end.now_ns, is_listing(sent, version), asks_for_links(sent, version)))
            since = len(both.end.sent)
    looks = [at_ns for at_ns, listing, links in times if listing or links]
    assert sum(listing for _, listing, _ in times) >= 9
    assert sum(links for _, _, links in times) >= 9
    assert min(b - a for a, b in pairwise(looks)) >= COMPARE_NS // 2 - 20 * MS
    assert min(b[0] - a[0] for a, b in pairwise(times)) >= PACE_NS - 20 * MS
    assert warnings(both) == []
    assert_unharmed(both)


@pytest.mark.parametrize("version", [V1_0, V1_3], ids=str)
def test_without_a_pace_a_comparison_takes_the_turn_of_a_count(version: Setting) -> None:
    both, _ = kept(version, 4, pace_ns=0)
    times: list[int] = []
    since = len(both.end.sent)
    for _step in range(5 * COMPARE_NS // (50 * MS)):
        both.step(50 * MS)
        if len(both.end.sent) > since:
            times.append(both.end.now_ns)
            since = len(both.end.sent)
    if version is V1_0:  # renewals are not reserved for
        times = [at_ns for at_ns in times if at_ns < REFRESH_NS]
    assert listings(both) >= 3
    assert min(b - a for a, b in pairwise(times)) >= HEARTBEAT_NS


def is_listing(data: bytes, version: Setting) -> bool:
    kind = 18 if version.openflow is OpenFlow.V1_3 else 16
    return data[1] == kind and data[8:10] == b"\0\1"


def asks_for_links(data: bytes, version: Setting) -> bool:
    """FEATURES_REQUEST, or a request for PORT_DESC."""
    return data[1] == 5 if version.openflow is OpenFlow.V1_0 else data[1] == 18 and data[8:10] == b"\0\x0d"


def listings(both: Pair) -> int:
    return sum(data[1] in {16, 18} and data[8:10] == b"\0\1" for data in both.end.sent)


def test_open_vswitch_is_asked_however_long_its_table_is() -> None:
    driver = Driver(capacity=128, own_mark=MARK, dialect=OPEN_VSWITCH, compare_ns=COMPARE_NS)
    entries = [V1_0.entry(number) for number in range(100)]
    held: dict[int, WireEntry] = {}
    for entry in entries:
        driver.ensure(entry)
    now_ns = exchange(driver, held, driver.connected(S), S)
    for _ in range(100):
        now_ns = exchange(driver, held, driver.poll(now_ns), now_ns + 100 * MS)
    assert driver.complete
    lower = WireEntry(entries[7].cookie, entries[7].priority - 1, entries[7].match, entries[7].actions)
    held[lower.cookie] = lower
    for _ in range(700):
        now_ns = exchange(driver, held, driver.poll(now_ns), now_ns + 100 * MS)
    assert held == {entry.cookie: entry for entry in entries}


def exchange(driver: Driver, held: dict[int, WireEntry], segments: list[Segment], now_ns: int) -> int:
    """Answer a driver's segments as a switch does that holds these entries, each by its cookie."""
    while segments:
        [requests] = segments
        segments = []
        for request in requests:
            match request:
                case wire.AddEntry(entry=entry):
                    held[entry.cookie] = entry
                case wire.DeleteEntry(entry=entry):
                    if held.get(entry.cookie) == entry:
                        del held[entry.cookie]
                case wire.BarrierRequest(xid=xid):
                    segments += driver.reply(now_ns, wire.BarrierReply(xid))
                case TableStatsRequest(xid=xid):
                    segments += driver.reply(now_ns, TableStatsReply(xid, len(held)))
                case FlowStatsRequest(xid=xid):
                    segments += driver.reply(now_ns, FlowStatsReply(xid, tuple(held.values()), more=False))
        driver.notices()
    return now_ns
