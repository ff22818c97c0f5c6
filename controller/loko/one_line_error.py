"""What ends a command with one line. Apart from what raises it, so that `loko --help` need not load that."""

from __future__ import annotations


class OneLineError(Exception):
    """What could not be done, in one line: what, where, how to mend it."""
