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
class _Suppressed:
    until_s: float
    times: int = 1
    more: int = 0


class RateLimitedLogger:
    """Logs each text `at_first` times in `PAUSE_S`, then the number of times it was suppressed."""

    def __init__(
        self, log: Callable[[str], None], clock_s: Callable[[], float] = time.monotonic, *, at_first: int = 1
    ) -> None:
        """`log` takes a line, as `logging.Logger.warning` does."""
        self._log = log
        self._clock_s = clock_s
        self._at_first = at_first
        self._told: dict[str, _Suppressed] = {}

    def warning(self, text: str, example: str = "") -> None:
        """Log a text, or count it if it was logged recently. Texts are those in the code, so they are few.

        An `example`, such as the address of a client, is put before the text. Each is logged by itself, up to
        `MOST_EXAMPLES`.
        """
        line = self.next_line(text, example)
        if line is not None:
            self._log(line)

    def next_line(self, text: str, example: str = "") -> str | None:
        """Return the line for `warning` to log; None if it is counted instead.

        Without a text, examples beyond `MOST_EXAMPLES` are never counted.
        """
        if len(self._told) >= MOST_EXAMPLES:
            self.log_counts()
        now_s = self._clock_s()
        line = example + text
        if line not in self._told and len(self._told) >= MOST_EXAMPLES:
            if not text:
                return line
            line = text
        told = self._told.get(line)
        if told is None or now_s >= told.until_s:
            self._told[line] = _Suppressed(now_s + PAUSE_S)
            return line + (_times(told.more) if told is not None else "")
        if told.times < self._at_first:
            told.times += 1
            return line
        told.more += 1
        return None

    @property
    def has_suppressed(self) -> bool:
        """Whether there are suppressed texts whose count was not logged yet."""
        return any(told.more for told in self._told.values())

    def log_counts(self, *, at_end: bool = False) -> None:
        """Log the counts of suppressed texts. Call it now and then, and at the end."""
        now_s = self._clock_s()
        for text, told in list(self._told.items()):
            if now_s < told.until_s and not at_end:
                continue
            del self._told[text]
            if told.more:
                self._log(text + _times(told.more))


def _times(more: int) -> str:
    return f" ({more} more times since this was last said)" if more else ""
