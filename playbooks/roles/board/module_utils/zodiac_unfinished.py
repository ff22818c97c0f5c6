"""Unfinished work on a board whose configuration was interrupted, noted where it is plugged in.

The console tells the configuration in RAM. It cannot tell whether that was saved, nor whether the board has
been restarted since; a run that was killed in between would look complete to the next one.
"""

from __future__ import annotations

import urllib.parse
from pathlib import Path

UNSAVED = "unsaved"
"""The board is being changed, so what it has may be neither saved nor complete."""
UNRESTARTED = "unrestarted"
"""All is saved, and some of it waits for a restart."""


class Unfinished:
    """The note on one board, by the name of its device; a note is a file."""

    def __init__(self, folder: str, device: str) -> None:
        self._file = Path(folder) / (urllib.parse.quote(device, safe="") + ".unfinished")

    @property
    def what(self) -> str | None:
        """`UNSAVED`, `UNRESTARTED`, or None if the last run came to its end. Raises `OSError`."""
        try:
            text = self._file.read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            return None
        return UNRESTARTED if text == UNRESTARTED else UNSAVED

    def note(self, what: str) -> None:
        """Note it, before it is so. Raises `OSError`."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(".part")
        part.write_text(what, encoding="ascii")
        part.replace(self._file)

    def done(self) -> None:
        """Nothing is left to do. Raises `OSError`."""
        self._file.unlink(missing_ok=True)
