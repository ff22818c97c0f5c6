"""Flows, promises and switches together, on emulated boards in virtual time: every request is answered."""

from __future__ import annotations

from pathlib import Path

import pytest
from board_end import BoardEnd
from served_boards import LAB, OPTIONS, ServedBoards, flow, renamed

from loko.admission import LokoAdmission
from loko.control.dialect import REFRESH_NS
from loko.control.driver import SessionPhase
from loko.control.entries import flow_entry
from loko.control.wire import AddEntry, encode, entry_of
from loko.document import InputError
from loko.service.outcome import (
    Conflict,
    Disposition,
    EntryRejected,
    FlowState,
    Granted,
    InvalidRequest,
    Refused,
    Released,
    Unavailable,
    UnknownFlow,
    WriteBacklogs,
)
from loko.service.store import Store
from loko.topology.frame import frame_of

S = 1_000_000_000


@pytest.fixture
def served(tmp_path: Path) -> ServedBoards:
    boards = ServedBoards(tmp_path / "flows.sqlite")
    boards.settle()
    return boards


def said(served: ServedBoards, name: str, text: str) -> bool:
    return any(event.name == name and text in event.text for event in served.log)


def test_granted_flow_stands_in_every_switch_of_its_path(served: ServedBoards) -> None:
    assert served.request(flow(1)) == Granted("f1", is_new=True)
    assert [len(table) for table in served.tables().values()] == [1, 1]
    assert served.tables() == served.promised()
    assert served.store is not None
    assert [(grant.flow.id, grant.state) for grant in served.store.load()] == [("f1", FlowState.INSTALLED)]


def test_released_flow_is_gone_everywhere(served: ServedBoards) -> None:
    served.request(flow(1))
    served.request(flow(2, "H3", "H1"))
    assert served.release("f1") == Released("f1")
    assert served.tables() == served.promised()
    assert [len(table) for table in served.tables().values()] == [1, 1]
    assert list(served.admission.admitted) == ["f2"]
    assert served.release("f1") == UnknownFlow("f1")


WIRE_NS = 26_080
"""A frame of 306 bytes on a cable, with preamble and gap."""


def cross(served: ServedBoards, frame: bytes) -> int:
    """Carry frames from s1 to s2. Return how many frames s2 has sent on."""
    first, second = served.boards["s1"], served.boards["s2"]
    while first.frames and first.frames[0].at_ns + WIRE_NS <= second.now_ns:
        first.frames.pop(0)
        second.board.frame(second.now_ns, 3, frame)
    left, second.frames = len(second.frames), []
    return left


def frames_of(served: ServedBoards, number: int, count: int) -> int:
    """Release a flow whose last burst still waits for its host's link. Return how many frames pass s2."""
    sent = frame_of(LAB, flow(number, frame_bytes=306, burst_bytes=306.0 * count))
    ticket = served.manager.release(served.now_ns, f"f{number}")
    served.carry()
    arrived = 0
    while ticket not in served.answers or count:
        if count:
            served.boards["s1"].board.frame(served.boards["s1"].now_ns, 1, sent)
            count -= 1
        served.step(300_000)
        arrived += cross(served, sent)
    return arrived


def test_frames_on_their_way_are_delivered_and_nothing_misses_a_table(served: ServedBoards) -> None:
    served.request(flow(1, frame_bytes=306, burst_bytes=306.0 * 3))
    assert frames_of(served, 1, 3) == 3
    assert [end.packet_ins for end in served.boards.values()] == [0, 0]


def test_entries_that_go_at_once_lose_frames(served: ServedBoards) -> None:
    """Shows that the test above can fail."""
    served.request(flow(1, frame_bytes=306, burst_bytes=306.0 * 3))
    served.manager.flows["f1"].may_have_sent = False
    assert frames_of(served, 1, 3) < 3
    assert sum(end.packet_ins for end in served.boards.values()) > 0


def test_a_host_that_goes_on_sending_misses_one_table_only(served: ServedBoards) -> None:
    """Entries go upstream first, so what the host sends after the release only disturbs its own switch."""
    wanted = flow(1, frame_bytes=306, burst_bytes=306.0 * 3)
    served.request(wanted)
    sent = frame_of(LAB, wanted)
    ticket = served.manager.release(served.now_ns, "f1")
    while ticket not in served.answers:
        served.carry()
        served.boards["s1"].board.frame(served.boards["s1"].now_ns, 1, sent)
        served.step(500_000)
        cross(served, sent)
    assert served.boards["s1"].packet_ins > 0
    assert served.boards["s2"].packet_ins == 0


def test_a_released_flow_counts_until_it_is_gone_and_its_backlog_survives_a_kill(
    served: ServedBoards,
) -> None:
    """Nearly all of the rate is in use, so the backlog of the brief flows drains slowly."""
    admission = served.admission
    assert isinstance(admission, LokoAdmission)
    most_bps = admission.allocations["s1"].max_rate_bps
    assert isinstance(served.request(flow(90, "H1", "H2", rate_bps=0.97 * most_bps)), Granted)
    brief = []
    while isinstance(served.request(flow(len(brief), "H2", "H1", rate_bps=1e3, burst_bytes=306.0)), Granted):
        brief.append(f"f{len(brief)}")
    tickets = [served.manager.release(served.now_ns, name) for name in brief]
    assert set(brief) <= set(served.admission.admitted)
    for ticket in tickets:
        assert isinstance(served.ask(ticket), Released)
    again = served.request(flow(200, "H2", "H1", rate_bps=1e3, burst_bytes=600.0))
    assert isinstance(again, Refused)
    assert "ask again in" in again.refusal.suggestion_text
    assert isinstance(served.request(flow(201, "H3", "H4")), Granted)  # with that, all is on disk
    assert served.store is not None
    before = served.store.backlogs()
    assert before.keys() == {"s1"}
    served.kill()
    served.now_ns += 3600 * S  # nobody knows how long it was away
    served.start()
    assert served.admission.residual_backlog("s1") == before["s1"]
    served.settle()
    served.run(1000)
    assert served.admission.residual_backlog("s1") is None
    assert isinstance(served.request(flow(202, "H3", "H4")), Granted)
    assert served.store.backlogs() == {}


def test_request_is_idempotent(served: ServedBoards) -> None:
    served.request(flow(1))
    assert served.request(flow(1)) == Granted("f1", is_new=False)
    assert served.request(flow(1, rate_bps=1.0)) == Conflict(
        "f1", "this id belongs to another flow; choose another id, or delete it"
    )


def test_two_requests_at_once_for_one_flow_get_one_answer(served: ServedBoards) -> None:
    first = served.begin(flow(1))
    second = served.begin(flow(1))
    assert served.ask(first) == served.ask(second) == Granted("f1", is_new=True)


def test_flow_that_does_not_fit_is_denied_with_the_switch(served: ServedBoards) -> None:
    answer = served.request(flow(1, rate_bps=1e9))
    assert isinstance(answer, Refused)
    assert (answer.refusal.switch, answer.refusal.quantity) == ("s1", "rate")
    assert served.manager.flows == {}


def test_nonsense_is_answered(served: ServedBoards) -> None:
    assert isinstance(served.request(flow(1, destination="H9")), InvalidRequest)
    assert isinstance(served.request(flow(1, frame_bytes=100)), InvalidRequest)


def test_switch_that_is_away_refuses_at_once(served: ServedBoards) -> None:
    served.unplug("s2")
    assert served.request(flow(1)) == Unavailable(
        "f1", "s2", "the switch is not connected, or its table is not known yet"
    )
    assert served.manager.flows == {}
    assert isinstance(served.request(flow(2, "H1", "H2")), Granted)  # s1 alone


def test_switch_that_vanishes_during_installation_takes_the_flow_back(served: ServedBoards) -> None:
    ticket = served.begin(flow(1))
    served.carry()
    served.unplug("s2")
    reason = "the switch has disconnected"
    assert served.ask(ticket) == Unavailable("f1", "s2", reason, Disposition.TAKEN_BACK)
    served.run(20)
    assert served.tables()["s1"] == []
    served.unplug("s2", plugged=True)
    served.settle()
    assert served.manager.flows == {}
    assert served.tables() == {"s1": [], "s2": []}


def test_reboot_is_followed_by_the_whole_table(served: ServedBoards) -> None:
    for number in range(4):
        served.request(flow(number))
    served.reboot("s1")
    served.settle()
    assert served.tables() == served.promised()
    assert said(served, "f1", "is broken at s1")
    assert said(served, "f1", "is kept again")


def test_switch_that_stays_away_keeps_what_it_had(served: ServedBoards) -> None:
    """Its flows stay promised. A flow deleted meanwhile goes and frees its share once the switch returns."""
    served.request(flow(1))
    served.request(flow(2))
    served.unplug("s2")
    assert served.release("f1") == Released("f1", waiting_for=("s2",))
    assert set(served.admission.admitted) == {"f1", "f2"}
    assert served.request(flow(1)) == Conflict("f1", "it is being removed; try again when that is done")
    served.unplug("s2", plugged=True)
    served.settle()
    assert set(served.admission.admitted) == {"f2"}
    assert served.tables() == served.promised()


def test_removal_that_waits_for_a_switch_survives_a_restart(served: ServedBoards) -> None:
    served.request(flow(1))
    served.unplug("s2")
    assert served.release("f1") == Released("f1", waiting_for=("s2",))
    served.kill()
    served.start()
    assert served.manager.flows["f1"].state is FlowState.REMOVING
    served.unplug("s2", plugged=True)
    served.settle()
    assert served.manager.flows == {}
    assert served.tables() == {"s1": [], "s2": []}


def test_full_table_of_128(tmp_path: Path) -> None:
    served = ServedBoards(tmp_path / "flows.sqlite", entries=128)
    served.settle()
    tickets = [served.begin(flow(n, rate_bps=10.0, burst_bytes=64.0)) for n in range(129)]
    answers = [served.ask(ticket) for ticket in tickets]
    granted = [answer for answer in answers if isinstance(answer, Granted)]
    assert {len(table) for table in served.tables().values()} == {len(granted)}
    assert isinstance(answers[-1], Refused)
    assert served.tables() == served.promised()


def test_switch_that_refuses_an_entry(tmp_path: Path) -> None:
    """Unknown entries fill its memory. The flow is taken back everywhere."""
    served = ServedBoards(tmp_path / "flows.sqlite", capacity=300)
    served.settle()
    host = BoardEnd(dict(served.config["s2"]), start_ns=served.boards["s2"].now_ns)
    for number in range(128):
        entry = entry_of(flow_entry(LAB, flow(1000 + number), 3), cookie=number)
        served.boards["s2"].send(encode(AddEntry(number, entry)))
        served.step(100_000)
    assert host.events == []
    answer = served.request(flow(1))
    assert answer == EntryRejected("f1", "s2", "its table or its memory is full")
    served.run(20)
    assert served.tables()["s1"] == []
    assert not [event for event in served.events() if "stalled" in event]


def test_strangers_are_reported_and_count(tmp_path: Path) -> None:
    served = ServedBoards(tmp_path / "flows.sqlite", safe=True, entries=2)
    served.settle()
    stranger = entry_of(flow_entry(LAB, flow(1000), 3), cookie=7)
    served.boards["s1"].send(encode(AddEntry(1, stranger)))
    for _ in range(60):
        served.step(50_000_000)
    served.settle()
    assert served.manager.drivers["s1"].foreign_entries == (str(stranger),)
    assert said(served, "s1", "foreign entry in its table")
    assert isinstance(served.request(flow(1)), Granted)
    answer = served.request(flow(2))
    assert isinstance(answer, Refused)
    assert answer.refusal.suggestion_text == "remove entries of others, 1 at s1"


def test_restart_restores_in_safe_and_secure_mode(tmp_path: Path) -> None:
    for safe in (False, True):
        served = ServedBoards(tmp_path / f"{safe}.sqlite", safe=safe)
        served.settle()
        for number in range(5):
            served.request(flow(number))
        before = served.promised()
        served.kill()
        assert all((table == before[name]) is safe for name, table in served.tables().items())
        served.start()
        served.settle()
        assert served.tables() == served.promised() == before


def test_numbers_are_never_used_twice(served: ServedBoards) -> None:
    served.request(flow(1))
    served.release("f1")
    served.kill()
    served.start()
    served.settle()
    served.request(flow(2))
    assert served.manager.flows["f2"].number == 2


def test_store_belongs_to_its_lab_and_options(tmp_path: Path) -> None:
    served = ServedBoards(tmp_path / "flows.sqlite")
    served.settle()
    served.request(flow(1))
    with pytest.raises(InputError, match="another service uses it"):
        Store(served.path, lab=LAB.name, options=OPTIONS)
    served.kill()
    with pytest.raises(InputError, match="granted with entries 17, not 18"):
        Store(served.path, lab=LAB.name, options={"entries": "18"})
    with pytest.raises(InputError, match="granted with lab two-switch, not other"):
        Store(served.path, lab=renamed(LAB, "other").name, options=OPTIONS)


def test_backlogs_keep_a_store_to_its_options(tmp_path: Path) -> None:
    path = tmp_path / "flows.sqlite"
    with Store(path, lab=LAB.name, options=OPTIONS) as store:
        store.write([WriteBacklogs({"s1": 17.5, "s2": 3.0}), WriteBacklogs({"s2": None})])
        assert store.backlogs() == {"s1": 17.5}
    with pytest.raises(InputError, match="what flows have left that were granted with entries 17, not 18"):
        Store(path, lab=LAB.name, options={"entries": "18"})
    with Store(path, lab=LAB.name, options=OPTIONS) as store:
        store.write([WriteBacklogs({"s1": None})])
    with Store(path, lab=LAB.name, options={"entries": "18"}) as store:
        assert store.backlogs() == {}


def test_a_removal_says_when_it_has_next_something_to_do(served: ServedBoards) -> None:
    served.request(flow(1))
    assert served.manager.due_ns is None
    passage_ns = served.admission.drain_time_ns("f1")
    ticket = served.manager.release(served.now_ns, "f1")
    served.carry()
    assert served.manager.due_ns == served.now_ns + passage_ns
    before_ns = served.now_ns
    assert served.ask(ticket) == Released("f1")
    assert served.now_ns - before_ns >= 2 * passage_ns
    assert served.manager.due_ns is None


def test_file_that_is_no_store_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("nothing of the kind, but long enough to be taken for a file of pages" * 99)
    with pytest.raises(InputError, match="is no store of flows"):
        Store(tmp_path / "x", lab="l", options={})


@pytest.mark.parametrize("safe", [False, True])
def test_padding_entries_stand_in_every_table_and_stay(tmp_path: Path, safe: bool) -> None:
    served = ServedBoards(tmp_path / "flows.sqlite", safe=safe, padding=15)
    served.settle()
    assert [len(table) for table in served.tables().values()] == [15, 15]
    granted = [served.request(flow(number)) for number in range(3)]
    assert [isinstance(answer, Granted) for answer in granted] == [True, True, False]
    assert isinstance(granted[2], Refused)
    refusal = granted[2].refusal
    assert (refusal.quantity, refusal.used, refusal.allowed) == ("entries", 2, 2)
    served.kill()
    served.start()
    served.settle()
    assert served.tables() == served.promised()
    assert [len(table) for table in served.tables().values()] == [17, 17]
    for number in range(2):
        served.release(f"f{number}")
    assert [len(table) for table in served.tables().values()] == [15, 15]


def test_flow_waits_for_the_padding_entries(tmp_path: Path) -> None:
    """Admission counts on the padding entries, so nothing is admitted where one is missing."""
    served = ServedBoards(tmp_path / "flows.sqlite", padding=5)
    served.settle()
    served.reboot("s1")
    while served.manager.drivers["s1"].phase is not SessionPhase.KEEPING:
        served.step()
    answer = served.request(flow(1, "H1", "H2"))
    assert answer == Unavailable("f1", "s1", "5 of its 5 padding entries are missing")
    served.settle()
    assert isinstance(served.request(flow(1)), Granted)
    assert served.tables() == served.promised()


def test_no_frame_finds_fewer_entries_than_the_padding_entries_and_its_own(tmp_path: Path) -> None:
    """Even after all entries have been renewed and moved, the search compares all of them."""
    delays = {}
    for padding in (0, 10):
        served = ServedBoards(tmp_path / f"{padding}.sqlite", padding=padding)
        served.settle()
        for number in range(3):
            served.request(flow(number, frame_bytes=306, burst_bytes=306.0))
        for _ in range(2 * REFRESH_NS // S):
            served.step(S)
        served.settle()
        delays[padding] = [frame_delay_ns(served, number) for number in range(3)]
    entry_ns = 8_000  # an entry that is compared costs more than this, a skipped one less
    assert min(delays[10]) - min(delays[0]) > 10 * entry_ns


def frame_delay_ns(served: ServedBoards, number: int) -> int:
    """Return how long s1 needs for a frame of a flow."""
    served.step()
    end, began_ns = served.boards["s1"], served.now_ns
    end.board.frame(began_ns, 1, frame_of(LAB, flow(number, frame_bytes=306, burst_bytes=306.0)))
    end.now_ns = served.now_ns = began_ns + 5_000_000
    end.board.advance(end.now_ns)
    (left,) = [output for output in end.board.outputs() if output.kind == "frame"]
    return int(left.at_ns) - began_ns
