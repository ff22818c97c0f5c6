"""Output on a terminal, and the end of a program on an error of its user.

Sentences are broken at words on a terminal, and are one line each elsewhere, for other programs.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from loko.user_error import UserError

_INDENT: Final = "    "
"""Before each further line of a sentence, so that one sees where the next one begins."""


def tell(sentence: str, *, err: bool = False) -> None:
    """Print a sentence, on standard error if `err`."""
    stream = sys.stderr if err else sys.stdout
    text = wrap(sentence, shutil.get_terminal_size().columns) if stream.isatty() else sentence
    print(text, file=stream, flush=True)


def tell_error(error: Exception) -> None:
    """Print an error on standard error: a line, or one for each thing that is wrong (`InputError.lines`)."""
    for line in getattr(error, "lines", (str(error),)):
        tell(f"error: {' '.join(line.split())}", err=True)


def wrap(sentence: str, columns: int) -> str:
    """Break a sentence at its spaces; a word that is longer than a line, such as a path, stays whole."""
    return textwrap.fill(
        sentence, columns, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )


@contextmanager
def user_errors_end() -> Iterator[None]:
    """End the program with one line and the error's status on `UserError`."""
    try:
        yield
    except UserError as error:
        tell_error(error)
        raise SystemExit(error.status) from None
