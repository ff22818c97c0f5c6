"""Flow management of the predictability study: entries, what a switch reports and forwards, and the mark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from predictable_switches import mutated

from loko.document import InputError
from loko.switch_model.device import profile_text
from loko_testbed.measure.predictability import tag_stack
from loko_testbed.measure.predictability.flow_management import (
    Controlled,
    Fill,
    FlowResults,
    PacedFill,
    age,
    alternate,
    fill_at_rate,
    fill_paced,
    judge,
    size,
)
from loko_testbed.measure.predictability.marks import Mark, thresholds
from loko_testbed.measure.predictability.numbered_entries import (
    MATCHES,
    MatchAction,
    add_message,
    max_entries,
    probe,
)
from loko_testbed.measure.predictability.subject import (
    FrameStream,
    evenly,
    switch_under_test,
    transmit,
)
from loko_testbed.simulation.runner import RunError


@pytest.mark.parametrize("match", MATCHES)
@pytest.mark.parametrize("action", ["output", "strip-vlan", "push-vlan"])
def test_each_frame_matches_its_own_entry_and_no_other(match: str, action: str) -> None:
    subject, combination = switch_under_test("ideal-1g"), MatchAction(match=match, action=action)
    numbers = [0, 1, 9, min(300, max_entries(combination, subject.ports) - 1)]
    streams = []
    for number in numbers:
        enters, data = probe(combination, number)
        streams.append(FrameStream(enters=enters, leaves=2, frame=data, instants_ns=evenly(1, 1)))
    for left_out in range(len(numbers)):
        entries = [
            add_message(combination, number) for place, number in enumerate(numbers) if place != left_out
        ]
        lost = [passed.lost for passed in transmit(subject, entries, streams, seed=1)]
        assert lost == [int(place == left_out) for place in range(len(numbers))]


def test_what_is_reported_is_told_from_what_is_forwarded() -> None:
    """Section III-A.2a: at any rate as many flows as fit are forwarded, but different ones each time."""
    subject = switch_under_test("pica8-p3290")
    slow, _ = fill_at_rate(subject, 1, at_most=5_000, seed=1)
    assert slow == Fill(sent=2046, listed=2046, forwarded=2046, full=True)
    fast, there = fill_at_rate(subject, 4, at_most=5_000, seed=1)
    assert fast.forwarded == 2046 < fast.listed < fast.sent
    _, others = fill_at_rate(subject, 4, at_most=5_000, seed=2)
    assert there != others


def test_a_board_uses_entries_that_it_does_not_report_and_loses_deleted_ones() -> None:
    first, second, third = age(switch_under_test("zodiac-fx"), wait_s=0, runs=3, at_most=5_000, seed=1)
    assert (first.room, first.listed, first.unreported) == (128, 20, 108)
    assert (second.room, third.room) == (64, 0)


def test_a_switch_that_stops_answering_ends_the_part(monkeypatch: pytest.MonkeyPatch) -> None:
    switch = Controlled(switch_under_test("ideal-1g"), seed=1)
    monkeypatch.setattr(switch, "_messages", lambda *_, **__: [])
    with pytest.raises(RunError, match="stopped answering after 0 entries or more"):
        switch.add_paced(MatchAction(), pause_ns=1, at_most=10)


def test_a_table_ages_as_the_paper_found() -> None:
    """Sections III-A.2b and III-A.2c."""
    at_once = age(switch_under_test("hp-e3800"), wait_s=0, runs=2, at_most=5_000, seed=1)
    assert at_once[0].listed == pytest.approx(3_000, rel=0.02)
    assert at_once[0].forwarded == pytest.approx(2_100, rel=0.02)
    assert at_once[1].sent == 0
    [_, later] = age(switch_under_test("hp-e3800"), wait_s=120, runs=2, at_most=5_000, seed=1)
    assert later.listed == later.forwarded == at_once[0].listed
    taken = alternate(switch_under_test("dell-s3048-on"), runs=140, at_most=5_000, seed=1)
    assert set(taken["set-dl-src"]) == {1_000}
    assert taken["set-dl-dst"][0] == 1_000
    assert taken["set-dl-dst"][-1] == pytest.approx(739, abs=2)


def test_an_agent_that_reads_no_faster_than_it_works() -> None:
    """Section III-A.2d."""
    subject = switch_under_test("nec-pf5240")
    fill, _ = fill_at_rate(subject, 85, at_most=5_000, seed=1)
    assert fill.throttled
    assert not fill.full
    filling = fill_paced(subject, at_most=5_000, seed=1)
    assert (filling.fill.forwarded, filling.fill.full) == (2809, True)
    at_1000 = min(at_s for at_s, count in zip(filling.at_s, filling.entries, strict=True) if count >= 1_000)
    assert at_1000 / 60 == pytest.approx(16, abs=1)


@pytest.mark.parametrize(
    ("match", "action", "entries"),
    [
        ("five-tuple", "output", 4_085),
        ("port", "output", 46),
        ("five-tuple", "enqueue", 0),  # refused
        ("dl-vlan", "output", 0),  # never matches
        ("dl-dst", "output", 0),  # in software
    ],
)
def test_the_size_of_a_table_is_that_of_the_chip(match: str, action: str, entries: int) -> None:
    combination = MatchAction(match=match, action=action)
    assert size(switch_under_test("hp-e3800"), combination, at_most=5_000, seed=1) == entries


def test_the_switch_lists_what_was_not_deleted() -> None:
    switch = Controlled(switch_under_test("ideal-1g"), seed=1)
    assert switch.add_at_rate(MatchAction(), per_s=85, at_most=900) == (900, False, False)
    assert switch.listed() == set(range(900))
    switch.clear()
    assert switch.listed() == set()


FINE = Fill(sent=3_000, listed=3_000, forwarded=3_000, full=True)


@pytest.mark.parametrize(
    ("fill", "mark"),
    [
        (FINE, Mark.FIT),
        (replace(FINE, forwarded=2_999), Mark.UNFIT),
        (replace(FINE, sent=3_001), Mark.PARTLY),
        (replace(FINE, sent=2_000, listed=2_000, forwarded=2_000), Mark.PARTLY),  # full early
        (replace(FINE, sent=200, listed=200, forwarded=200, full=False, throttled=True), Mark.FIT),
    ],
)
def test_the_mark_follows_from_what_is_reported_and_forwarded(fill: Fill, mark: Mark) -> None:
    paced = PacedFill(fill=FINE, at_s=[0, 30], entries=[0, 3_000], slowest_s=0.01)
    results = FlowResults(
        rates={1: FINE, 85: fill}, paced=paced, aging={0: [FINE, FINE]}, alternating={"a": [9, 9]}
    )
    assert judge(results, thresholds()).mark is mark
    aged = replace(FINE, sent=2_900, listed=2_900, forwarded=2_900)
    assert judge(replace(results, aging={0: [FINE, aged]}), thresholds()).mark is Mark.UNFIT
    assert judge(replace(results, alternating={"a": [100, 98]}), thresholds()).mark is Mark.UNFIT
    assert judge(replace(results, paced=replace(paced, slowest_s=1.1)), thresholds()).mark is Mark.UNFIT


@pytest.mark.parametrize("tags", [1, 6])
def test_the_outermost_of_many_tags_is_taken_off(tags: int) -> None:
    times_ns = tag_stack.measure(switch_under_test("ideal-1g"), tags, packets=100, seed=1)
    assert times_ns is not None
    assert len(times_ns) == 100
    assert 3_000 <= times_ns.min() <= times_ns.max() <= 3_100
    assert tag_stack.measure(switch_under_test("hp-2920"), tags, packets=100, seed=1) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[agent.throttle]\nfirst_ns = 0\neach_ns = 200000000000\n", "agent.throttle: choose at most 100 s"),
        ("[agent.writer]\nwrite_ns = 0\nwaiting_entries = 1\n", "agent.writer: choose 1 ns to 100 s"),
        (
            "[agent.settling]\nleast_ns = 2\nmost_ns = 1\nlost_percent = 1\nlisted_percent = 1\n",
            "agent.settling: choose least_ns up to most_ns",
        ),
    ],
)
def test_an_agent_that_cannot_be_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    lines = [
        f'{line.split(" = ")[0]} = {{ value = {line.split(" = ")[1]}, source = "assumption" }}'
        if " = " in line
        else line
        for line in text.splitlines()
    ]
    with pytest.raises(InputError, match=told) as refused:
        switch_under_test(mutated(tmp_path, append="\n".join(["", *lines, ""])))
    assert len(refused.value.lines) == 1


def test_only_a_switch_with_a_chip_hands_entries_over(tmp_path: Path) -> None:
    path = tmp_path / "without_chip.toml"
    path.write_text(profile_text("open-vswitch-1g") + '\n[agent]\nbarrier = "chip"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"agent: only a switch with a \[pipeline\] has a chip"):
        switch_under_test(str(path))
