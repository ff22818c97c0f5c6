"""The service's log: lines for people or JSON for programs, each with the id of its request."""

from __future__ import annotations

import json
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from copy import copy
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, TextIO

from loko.control.rate_limited_logger import PAUSE_S, RateLimitedLogger

REQUEST: Final[ContextVar[str | None]] = ContextVar("request", default=None)
"""The id of the request that is being handled."""
_GIVEN: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_FIELDS: Final = "fields"
EQUAL_LINES: Final = 8
"""Equal lines that are logged in `PAUSE_S`, before further ones are counted."""


class LogFormat(StrEnum):
    """The format of the log's lines."""

    TEXT = "text"
    JSON = "json"


def request_id(given: bytes | None) -> str:
    """Return the client's own id for its request, if it is fit for a log, or else a new one."""
    if given is not None and _GIVEN.fullmatch(given):
        return given.decode("ascii")
    return secrets.token_hex(8)


def fields(**values: object) -> dict[str, dict[str, object]]:
    """Return values to log with a line, as in `log.info("text", extra=fields(switch="s1"))`."""
    return {_FIELDS: values}


class TextLines(logging.Formatter):
    """Formats lines for people: time, logger, text, and the request's id, if there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and a traceback if there is one."""
        text = super().format(record)
        request = REQUEST.get()
        return text if request is None else f"{text} [{request}]"


class JsonLines(logging.Formatter):
    """Formats one JSON object per line: time, level, logger, text; request, fields, exception if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        values: dict[str, Any] = {
            "time": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if (request := REQUEST.get()) is not None:
            values["request"] = request
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        return json.dumps(values, default=str)


class CountedLines(logging.StreamHandler[TextIO]):
    """Logs to a stream. Of equal lines, from INFO on, those after the first `EQUAL_LINES` are counted.

    Lines of one request differ from those of others only in its id, so they are equal here.
    """

    def __init__(self, stream: TextIO | None = None, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._limited_log = RateLimitedLogger(self._log_count, clock_s, at_first=EQUAL_LINES)
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Log or count a line. Called with the handler's lock."""
        if record.levelno >= logging.INFO:
            line = record.getMessage()
            if record.exc_info and record.exc_info[1] is not None:
                line += f": {record.exc_info[1]!r}"
            admitted = self._limited_log.next_line("", line)
            if admitted is None:
                self._sum_up_later()
                return
            if admitted != line:
                record = copy(record)
                record.msg, record.args = admitted, None
        super().emit(record)

    def sum_up(self) -> None:
        """Log how often lines were suppressed that were last logged `PAUSE_S` ago or before."""
        with self._locked():
            self._timer = None
            self._limited_log.log_counts()
            if self._limited_log.has_suppressed:
                self._sum_up_later()

    def close(self) -> None:
        """Log all counts and end. Called when the program ends."""
        with self._locked():
            if self._timer is not None:
                self._timer.cancel()
            self._limited_log.log_counts(at_end=True)
        super().close()

    def _sum_up_later(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(PAUSE_S, self.sum_up)
            self._timer.daemon = True
            self._timer.start()

    def _locked(self) -> threading.RLock:
        assert self.lock is not None
        return self.lock

    def _log_count(self, text: str) -> None:
        super().emit(logging.LogRecord("loko", logging.INFO, __file__, 0, text, None, None))


def begin_log(style: LogFormat, *, verbose: bool) -> None:
    """Start to log to standard error: our own loggers from INFO (or DEBUG), others from WARNING."""
    handler = CountedLines()
    handler.setFormatter(JsonLines() if style is LogFormat.JSON else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("loko").setLevel(logging.DEBUG if verbose else logging.INFO)
