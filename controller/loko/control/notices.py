"""Reports of a switch's driver about its table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Installed:
    """An entry is in the table."""

    cookie: int


@dataclass(frozen=True, slots=True)
class Removed:
    """An entry that is no longer wanted is out of the table."""

    cookie: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """The switch does not take an entry. It is tried again later, as long as it is wanted."""

    cookie: int
    reason: str


@dataclass(frozen=True, slots=True)
class LinkChanged:
    """A port has lost its link or has it again, or the switch says for the first time whether it has one."""

    port: int
    is_up: bool


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something that people should know, in one line."""

    text: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """The connection has to be closed. The switch will connect again."""

    reason: str


Notice = Installed | Removed | Rejected | Diagnostic | Failed | LinkChanged
