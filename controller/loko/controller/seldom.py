"""Log lines that thousands of clients could cause: logged once at first, then only as counts now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

PAUSE_S: Final = 60.0
MOST_EXAMPLES: Final = 256
"""Lines to remember at most; further examples are counted with the others of their text."""


@dataclass(slots=True)
class _Told:
    until_s: float
    more: int = 0


class Seldom:
    """Logs each text at most once in `PAUSE_S`, with the number of times it was suppressed since."""

    def __init__(self, log: Callable[[str], None], clock_s: Callable[[], float] = time.monotonic) -> None:
        """`log` takes a line, as `logging.Logger.warning` does."""
        self._log = log
        self._clock_s = clock_s
        self._told: dict[str, _Told] = {}

    def warning(self, text: str, example: str = "") -> None:
        """Log a text, or count it if it was logged recently. Texts are those in the code, so they are few.

        An `example`, such as the address of a client, is put before the text. Each is logged by itself, up to
        `MOST_EXAMPLES`.
        """
        if len(self._told) >= MOST_EXAMPLES:
            self.sum_up()
        now_s = self._clock_s()
        line = example + text
        if line not in self._told and len(self._told) >= MOST_EXAMPLES:
            line = text
        told = self._told.get(line)
        if told is not None and now_s < told.until_s:
            told.more += 1
            return
        self._log(line + (_times(told.more) if told is not None else ""))
        self._told[line] = _Told(now_s + PAUSE_S)

    def sum_up(self) -> None:
        """Log the counts of suppressed texts. Call it now and then."""
        now_s = self._clock_s()
        for text, told in list(self._told.items()):
            if now_s < told.until_s:
                continue
            del self._told[text]
            if told.more:
                self._log(text + _times(told.more))


def _times(more: int) -> str:
    return f" ({more} more times since this was last said)" if more else ""
