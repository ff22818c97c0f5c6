"""The service's log: lines for people or JSON for programs, each with the id of its request."""

from __future__ import annotations

import json
import logging
import re
import secrets
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

REQUEST: Final[ContextVar[str | None]] = ContextVar("request", default=None)
"""The id of the request that is being handled."""
_GIVEN: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_FIELDS: Final = "fields"


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


def begin_log(style: LogFormat, *, verbose: bool) -> None:
    """Start to log to standard error: our own loggers from INFO (or DEBUG), others from WARNING."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if style is LogFormat.JSON else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("loko").setLevel(logging.DEBUG if verbose else logging.INFO)
