"""Sentences of a command: broken at words on a terminal, one line each elsewhere, for other programs."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import Final

import typer

_INDENT: Final = "    "
"""Before each further line of a sentence, so that one sees where the next one begins."""


def tell(sentence: str, *, err: bool = False) -> None:
    """Print a sentence, on standard error if `err`."""
    is_seen = (sys.stderr if err else sys.stdout).isatty()
    typer.echo(wrap(sentence, shutil.get_terminal_size().columns) if is_seen else sentence, err=err)


def tell_error(error: Exception) -> None:
    """Print an error on standard error: a line, or one for each thing that is wrong (`InputError.lines`)."""
    for line in getattr(error, "lines", (str(error),)):
        tell(f"error: {' '.join(line.split())}", err=True)


def wrap(sentence: str, columns: int) -> str:
    """Break a sentence at its spaces; a word that is longer than a line, such as a path, stays whole."""
    return textwrap.fill(
        sentence, columns, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )
