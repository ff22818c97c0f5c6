"""The service's log: its lines, and that it logs rarely."""

from __future__ import annotations

import io
import json
import logging

import pytest

from loko.control.rate_limited_logger import MOST_EXAMPLES, PAUSE_S, RateLimitedLogger
from loko.service.journal import EQUAL_LINES, REQUEST, CountedLines, JsonLines, TextLines, fields, request_id


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
    seldom = RateLimitedLogger(log_into(stream, logging.Formatter("%(message)s")).warning, clock)
    for _ in range(9000):
        seldom.warning("they left")
    seldom.warning("they came")
    seldom.log_counts()
    assert stream.getvalue().splitlines() == ["they left", "they came"]
    clock.now_s += PAUSE_S
    seldom.log_counts()
    assert stream.getvalue().splitlines()[2:] == ["they left (8999 more times since this was last said)"]
    clock.now_s += PAUSE_S
    seldom.log_counts()
    assert len(stream.getvalue().splitlines()) == 3
    seldom.warning("they left")
    assert stream.getvalue().splitlines()[3:] == ["they left"]


def test_each_example_is_said_once_but_not_without_end() -> None:
    lines: list[str] = []
    clock = Clock()
    seldom = RateLimitedLogger(lines.append, clock)
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


def counted(stream: io.StringIO, clock: Clock) -> tuple[logging.Logger, CountedLines]:
    log = logging.Logger("loko.test")
    handler = CountedLines(stream, clock)
    handler.setFormatter(TextLines())
    log.addHandler(handler)
    return log, handler


def texts(stream: io.StringIO) -> list[str]:
    return [line.partition(": ")[2] for line in stream.getvalue().splitlines()]


def test_equal_lines_of_whatever_logger_are_counted() -> None:
    stream, clock = io.StringIO(), Clock()
    log, handler = counted(stream, clock)
    for number in range(2951):
        before = REQUEST.set(f"r{number}")
        log.error("%s failed", "it")
        log.warning("number %d", number)
        REQUEST.reset(before)
    lines = texts(stream)
    assert sum("it failed" in line for line in lines) == EQUAL_LINES
    assert sum("number" in line for line in lines) == 2951, "lines that differ are all logged"
    clock.now_s += PAUSE_S
    handler.sum_up()
    told = f"it failed ({2951 - EQUAL_LINES} more times since this was last said)"
    assert texts(stream)[len(lines) :] == [told]
    log.error("%s failed", "it")
    assert texts(stream)[-1] == "it failed"


def test_what_was_counted_is_told_at_the_end() -> None:
    stream = io.StringIO()
    log, handler = counted(stream, Clock())
    for _ in range(EQUAL_LINES + 3):
        log.warning("it failed")
    handler.close()
    assert texts(stream)[EQUAL_LINES:] == ["it failed (3 more times since this was last said)"]


def test_the_count_comes_with_the_next_line_if_that_is_late() -> None:
    stream, clock = io.StringIO(), Clock()
    log, handler = counted(stream, clock)
    for _ in range(EQUAL_LINES + 3):
        log.warning("it %s", "failed")
    clock.now_s += PAUSE_S
    log.warning("it %s", "failed")
    assert texts(stream)[EQUAL_LINES:] == ["it failed (3 more times since this was last said)"]
    handler.close()


def test_other_exceptions_are_other_lines_and_details_are_never_counted() -> None:
    stream = io.StringIO()
    log, handler = counted(stream, Clock())
    for number in range(2 * EQUAL_LINES):
        log.debug("GET /")
        try:
            raise ValueError("first" if number < EQUAL_LINES else "second")
        except ValueError:
            log.exception("GET / has failed")
    text = stream.getvalue()
    assert text.count("GET / has failed") == text.count("Traceback") == 2 * EQUAL_LINES
    assert text.count("ValueError: second") == EQUAL_LINES
    assert texts(stream).count("GET /") == 2 * EQUAL_LINES
    handler.close()
    assert "more times" not in stream.getvalue()


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
