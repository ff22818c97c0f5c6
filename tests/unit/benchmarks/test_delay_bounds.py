"""The questions of the benchmark of delay bounds, answered by this project alone."""

import shutil

import pytest

from benchmarks import delay_bounds
from benchmarks.delay_bounds import (
    EMULATED,
    MOST,
    QUESTIONS,
    Answer,
    answer_and_time,
    left_out,
    measure,
    table,
)


@pytest.fixture
def answers(monkeypatch) -> dict[str, dict[str, Answer]]:
    """Return the answers on a machine that has none of the other tools."""
    monkeypatch.delenv("LOKO_SAIHU", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    return measure()


def test_every_tool_answers_every_question(answers) -> None:
    assert list(answers) == [
        "ours, Loko's admission",
        "ours, whole frames (packets)",
        EMULATED,
        "ours, total flow analysis",
    ]
    asked = [*(question.name for question in QUESTIONS), MOST]
    assert all(list(given) == asked for given in answers.values())
    assert len(left_out()) == 2


def test_one_switch_is_as_computed_by_hand(answers) -> None:
    """T + 6 b / R, with the paper's T and R of frames of 306 bytes and 17 entries."""
    by_hand_ms = 0.47615 + 6 * 306 * 8 / 11.8486e3
    (first, *_) = QUESTIONS
    assert answers["ours, total flow analysis"][first.name].value == pytest.approx(by_hand_ms, rel=1e-4)


def test_no_bound_is_below_what_frames_take(answers) -> None:
    for question in QUESTIONS:
        longest_ms = answers[EMULATED][question.name].value
        assert longest_ms > 0
        assert all(given[question.name].value >= longest_ms for given in answers.values())


def test_the_most_flows_keep_the_deadline_and_one_more_does_not(answers) -> None:
    given = answers["ours, total flow analysis"][MOST]
    server = delay_bounds.server_of(delay_bounds.ring())
    path = delay_bounds.PATH
    kept = delay_bounds.total_flow(server, (path,) * given.value).value
    missed = delay_bounds.total_flow(server, (path,) * (given.value + 1)).value
    assert kept <= delay_bounds.DEADLINE_MS < missed


def test_a_table_has_values_with_units_and_reasons(answers) -> None:
    lines = table(answers).splitlines()
    assert len(lines) == 2 + len(answers)
    assert all(line.count("|") == len(QUESTIONS) + 3 for line in lines)
    assert answer_and_time(Answer(None, 0.1, "no bound")) == ("none: no bound", "")
    assert answer_and_time(Answer(4, 0.0123)) == ("4 flows", "12 ms")
    assert answer_and_time(Answer(1.5, 2.0)) == ("1.500 ms", "2,000 ms")
