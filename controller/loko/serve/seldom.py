"""Log lines that thousands of clients could cause: logged once at first, then only as counts now and then."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

PAUSE_S: Final = 60.0


@dataclass(slots=True)
class _Told:
    until_s: float
    more: int = 0


class Seldom:
    """Logs each text at most once in `PAUSE_S`, with the number of times it was suppressed since."""

    def __init__(self, log: logging.Logger, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock_s = clock_s
        self._told: dict[str, _Told] = {}

    def warning(self, text: str) -> None:
        """Log a text, or count it if it was logged recently. Texts are those in the code, so they are few."""
        now_s = self._clock_s()
        told = self._told.get(text)
        if told is not None and now_s < told.until_s:
            told.more += 1
            return
        self._log.warning("%s%s", text, _times(told.more) if told is not None else "")
        self._told[text] = _Told(now_s + PAUSE_S)

    def sum_up(self) -> None:
        """Log the counts of suppressed texts. Call it now and then."""
        now_s = self._clock_s()
        for text, told in list(self._told.items()):
            if now_s < told.until_s:
                continue
            del self._told[text]
            if told.more:
                self._log.warning("%s%s", text, _times(told.more))


def _times(more: int) -> str:
    return f" ({more} more times since this was last said)" if more else ""
