"""Connections to the service: limits, who loses a place, and deadlines."""

from __future__ import annotations

import pytest

from loko.document import InputError
from loko.service.connections import (
    CLIENT_TIMEOUT_S,
    OWN_FILES,
    READING_S,
    AddressCounter,
    ClientLimits,
    ConnectionLimiter,
    ConnectionPhase,
    ConnectionSlot,
    Limit,
    client_of,
)


def places(in_all: int = 6, by_address: int = 3) -> ConnectionLimiter:
    return ConnectionLimiter(Limit(in_all=in_all, by_address=by_address))


def enter(
    all_places: ConnectionLimiter, address: str, now_s: float, phase: ConnectionPhase = ConnectionPhase.OPEN
) -> ConnectionSlot:
    place, loser = all_places.take(address, now_s)
    assert place is not None
    assert loser is None
    place.enter(phase, now_s)
    return place


@pytest.mark.parametrize(
    "phase", [ConnectionPhase.OPEN, ConnectionPhase.HEADERS, ConnectionPhase.BODY, ConnectionPhase.IDLE]
)
def test_a_newcomer_gets_the_place_of_the_oldest_of_its_address_that_waits(phase: ConnectionPhase) -> None:
    crowd = places()
    working = enter(crowd, "a", 1.0, ConnectionPhase.WORKING)
    oldest = enter(crowd, "a", 2.0, phase)
    enter(crowd, "a", 3.0, phase)
    enter(crowd, "b", 0.0)
    place, loser = crowd.take("a", 4.0)
    assert place is not None
    assert loser is oldest
    assert len(crowd) == 4
    crowd.free(working)
    assert len(crowd) == 3


def test_with_all_places_taken_the_address_with_most_loses_one() -> None:
    crowd = places()
    modest = enter(crowd, "b", 0.0)
    first = enter(crowd, "a", 1.0)
    for number in range(4):
        enter(crowd, "a" if number < 2 else f"c{number}", 2.0 + number)
    _, loser = crowd.take("new", 10.0)
    assert loser is first
    crowd.free(modest)
    assert len(crowd) == 5


def test_whoever_is_worked_for_keeps_the_place() -> None:
    crowd = places()
    held = [enter(crowd, "a", 1.0, ConnectionPhase.WORKING) for _ in range(3)]
    assert crowd.take("a", 2.0) == (None, None)
    enter(crowd, "b", 1.0, ConnectionPhase.WORKING)
    held[1].stuck_s = 1.5  # the client reads none of its answer
    _, loser = crowd.take("a", 2.0)
    assert loser is held[1]


def test_no_newcomer_takes_more_places_than_there_are() -> None:
    crowd = places()
    for number in range(1000):
        crowd.take(f"a{number % 7}", float(number))
        assert len(crowd) <= 6


def test_leaving_twice_counts_once() -> None:
    crowd = places(in_all=1, by_address=1)
    place = enter(crowd, "a", 0.0)
    crowd.free(place)
    crowd.free(place)
    enter(crowd, "a", 1.0)
    assert crowd.take("a", 2.0)[1] is not None


@pytest.mark.parametrize("phase", [ConnectionPhase.OPEN, ConnectionPhase.HEADERS, ConnectionPhase.BODY])
def test_each_part_of_a_request_has_a_deadline(phase: ConnectionPhase) -> None:
    crowd = places()
    place = enter(crowd, "a", 100.0, phase)
    assert list(crowd.overdue(100.0 + CLIENT_TIMEOUT_S[phase] - 0.001)) == []
    assert list(crowd.overdue(100.0 + CLIENT_TIMEOUT_S[phase])) == [place]


def test_the_service_itself_may_take_its_time_unless_its_answer_is_not_taken() -> None:
    place = ConnectionSlot("a", 0.0)
    place.enter(ConnectionPhase.WORKING, 1.0)
    assert not place.is_overdue(1e9)
    place.stuck_s = 50.0
    assert not place.is_overdue(50.0 + READING_S - 0.001)
    assert place.is_overdue(50.0 + READING_S)


def test_headers_that_trickle_have_the_time_of_the_first_request_once() -> None:
    place = ConnectionSlot("a", 0.0)
    place.enter(ConnectionPhase.HEADERS, 9.0)
    assert place.is_overdue(10.0)
    place.enter(ConnectionPhase.IDLE, 10.0)
    place.enter(ConnectionPhase.HEADERS, 25.0)
    assert not place.is_overdue(34.9)
    assert place.is_overdue(35.0)


@pytest.mark.parametrize("files", [256, 1024, 1_000_000])
def test_streams_and_changes_leave_room_for_other_requests(files: int) -> None:
    limits = ClientLimits.of(512, files=files)
    assert limits.connections.in_all + OWN_FILES <= files
    assert limits.connections.in_all <= 512
    assert limits.streams.in_all + limits.changes.in_all <= limits.connections.in_all / 2
    for limit in (limits.connections, limits.streams, limits.changes):
        assert 1 <= limit.by_address < limit.in_all
    assert limits.streams.by_address + limits.changes.by_address < limits.connections.by_address


def test_too_few_files_are_one_line() -> None:
    with pytest.raises(InputError, match=r"may open 200 files, .* raise the limit to 704 \(ulimit -n\)"):
        ClientLimits.of(512, files=200)


def test_counts_hold_both_limits() -> None:
    counts = AddressCounter(Limit(in_all=3, by_address=2))
    counts.add("a")
    counts.add("a")
    assert not counts.has_room("a")
    assert counts.has_room("b")
    counts.add("b")
    assert not counts.has_room("c")
    counts.remove("a")
    assert counts.has_room("c")
    assert (counts.of("a"), counts.of("c")) == (1, 0)


def test_a_client_of_ipv6_has_its_whole_network() -> None:
    assert client_of("2001:db8:1:2:3::4") == client_of("2001:db8:1:2:ffff::1")
    assert client_of("2001:db8:1:2::1") != client_of("2001:db8:1:3::1")
    assert client_of("::ffff:192.0.2.1") == client_of("192.0.2.1") == "192.0.2.1"
    assert client_of("192.0.2.1") != client_of("192.0.2.2")
    assert client_of("fe80::1%eth0") == client_of("fe80::2")
    assert client_of("") == ""
