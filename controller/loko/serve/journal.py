"""The service's log: lines for people, or JSON for programs, each with the request that it belongs to."""

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
    """How lines of the log look."""

    TEXT = "text"
    JSON = "json"


def request_id(given: bytes | None) -> str:
    """What the client calls its request, if that can stand in a log, or a new name."""
    if given is not None and _GIVEN.fullmatch(given):
        return given.decode("ascii")
    return secrets.token_hex(8)


def fields(**values: object) -> dict[str, dict[str, object]]:
    """What a line says, as values: `log.info("text", extra=fields(switch="s1"))`."""
    return {_FIELDS: values}


class TextLines(logging.Formatter):
    """Time, part, text, and the request's id, if there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """One line, but for a traceback."""
        text = super().format(record)
        request = REQUEST.get()
        return text if request is None else f"{text} [{request}]"


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, text; request, fields, exception where there are some."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
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
    """From now on write to the standard error: our own parts from INFO, or DEBUG, others from WARNING."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if style is LogFormat.JSON else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("loko").setLevel(logging.DEBUG if verbose else logging.INFO)
