"""What the service logs, and that it logs rarely."""

from __future__ import annotations

import io
import json
import logging

import pytest

from loko.controller.seldom import MOST_EXAMPLES, PAUSE_S, Seldom
from loko.serve.journal import REQUEST, JsonLines, TextLines, fields, request_id


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def log_into(stream: io.StringIO, formatter: logging.Formatter) -> logging.Logger:
    log = logging.Logger("loko.test")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    log.addHandler(handler)
    return log


def test_what_happens_often_is_said_once_and_then_summed_up() -> None:
    stream, clock = io.StringIO(), Clock()
    seldom = Seldom(log_into(stream, logging.Formatter("%(message)s")).warning, clock)
    for _ in range(9000):
        seldom.warning("they left")
    seldom.warning("they came")
    seldom.sum_up()
    assert stream.getvalue().splitlines() == ["they left", "they came"]
    clock.now_s += PAUSE_S
    seldom.sum_up()
    assert stream.getvalue().splitlines()[2:] == ["they left (8999 more times since this was last said)"]
    clock.now_s += PAUSE_S
    seldom.sum_up()
    assert len(stream.getvalue().splitlines()) == 3
    seldom.warning("they left")
    assert stream.getvalue().splitlines()[3:] == ["they left"]


def test_each_example_is_said_once_but_not_without_end() -> None:
    lines: list[str] = []
    clock = Clock()
    seldom = Seldom(lines.append, clock)
    for _ in range(3):
        seldom.warning(" knocks", "10.0.0.1")
        seldom.warning(" knocks", "10.0.0.2")
    assert lines == ["10.0.0.1 knocks", "10.0.0.2 knocks"]
    for number in range(3 * MOST_EXAMPLES):
        seldom.warning(" knocks", f"10.0.1.{number}")
    assert len(lines) == MOST_EXAMPLES + 1
    assert lines[-1] == " knocks"
    clock.now_s += PAUSE_S
    seldom.warning(" knocks", "10.0.2.1")
    assert lines[-1] == "10.0.2.1 knocks"


def test_lines_in_json_have_the_request_the_fields_and_the_exception() -> None:
    stream = io.StringIO()
    log = log_into(stream, JsonLines())
    log.warning('a "quoted"\nline', extra=fields(switch="s1"))
    before = REQUEST.set("r1")
    try:
        raise ValueError("bad")
    except ValueError:
        log.exception("failed")
    finally:
        REQUEST.reset(before)
    plain, failed = map(json.loads, stream.getvalue().splitlines())
    assert (plain["text"], plain["switch"], plain["level"]) == ('a "quoted"\nline', "s1", "warning")
    assert "request" not in plain
    assert failed["request"] == "r1"
    assert "ValueError: bad" in failed["exception"]


def test_lines_for_people_end_with_the_request() -> None:
    stream = io.StringIO()
    log = log_into(stream, TextLines())
    before = REQUEST.set("r1")
    log.warning("seen")
    REQUEST.reset(before)
    log.warning("unseen")
    assert [line.partition(": ")[2] for line in stream.getvalue().splitlines()] == ["seen [r1]", "unseen"]


@pytest.mark.parametrize("given", [b"", b"a b", b"a\nb", b"x" * 65, b"\xff", None])
def test_a_request_is_named_anew_if_its_name_cannot_stand_in_a_log(given: bytes | None) -> None:
    first, second = request_id(given), request_id(given)
    assert first != second
    assert first.isalnum()


def test_a_request_keeps_a_good_name() -> None:
    assert request_id(b"My-request_1.2") == "My-request_1.2"
