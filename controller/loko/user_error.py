"""The errors that end a command with one line. A module of their own, so that `loko --help` loads little."""

from __future__ import annotations

import errno
import os
from typing import Final

WRONG_INPUT: Final = 2
"""The exit status after wrong input: the same command fails again."""
NOT_NOW: Final = os.EX_TEMPFAIL
"""The exit status, 75, after a fault of the environment: the same command may succeed later."""
ENVIRONMENT_FAULT: Final = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL),
    }
)
"""Errors of the operating system that are faults of the environment, not of what the user has given."""


class UserError(Exception):
    """An error told in one line: what could not be done, where, and how to mend it."""

    status = WRONG_INPUT


class EnvironmentFaultError(UserError):
    """A fault of the environment, such as a full disk, told in one line."""

    status = NOT_NOW


def validator_message(text: str) -> str:
    """Return the message of a failed validation without the kind of error that pydantic puts before it."""
    return text.replace("Value error, ", "", 1)
