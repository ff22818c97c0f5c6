"""What a switch's driver tells of its table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Installed:
    """An entry stands in the table."""

    cookie: int


@dataclass(frozen=True, slots=True)
class Removed:
    """An entry that is no longer wanted is not in the table."""

    cookie: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """The switch does not take an entry; it is tried again later as long as it is wanted."""

    cookie: int
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something that people should know, in one line."""

    text: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """The connection is to be closed. The switch connects again."""

    reason: str


Notice = Installed | Removed | Rejected | Note | Failed
