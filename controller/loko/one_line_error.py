"""The error that ends a command with one line. It has its own module so that `loko --help` loads little."""

from __future__ import annotations


class OneLineError(Exception):
    """An error told in one line: what could not be done, where, and how to mend it."""
