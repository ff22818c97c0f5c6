"""Why promises are broken: the one mechanism by which the service says that a granted flow is not delivered.

A break has a cause, the place where it is, words for people, and since when. A flow may have several at once,
one for each cause and place; its promise is kept again when the last of them has gone. `FlowManager` notes
breaks as it hears of them; REST, page, log, metrics and health all read them from there (docs/service.md).
A duplicated flow has two paths that both carry all its frames: faults of only one of them break nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ViolationCause(StrEnum):
    """Why a promise is broken. Add a cause here, and the flow manager's callers need nothing else."""

    SWITCH_AWAY = "switch-away"
    """A switch of its path has no session, so nobody knows whether it forwards."""
    ENTRY_MISSING = "entry-missing"
    """A switch of its path lacks the flow's entry: it restarted, or refuses it."""
    LINK_DOWN = "link-down"
    """A cable of its path has no link, as the switch at one of its ends reports."""
    GUARANTEE_RAISED = "guarantee-raised"
    """It was migrated, and frames may take longer than its requester was told."""
    CABLE_REMOVED = "cable-removed"
    """The lab no longer has a cable of its path: it has neither room nor entries."""
    NO_ROOM = "no-room"
    """It was migrated, and has neither room nor path: no switch has its entries."""


_OF_PLACE: Final = frozenset(
    {ViolationCause.SWITCH_AWAY, ViolationCause.ENTRY_MISSING, ViolationCause.LINK_DOWN}
)
"""The causes that concern only the paths across their place."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One reason for which a promise is broken."""

    cause: ViolationCause
    place: str
    """The switch, or the cable as `s1:3-s2:3`: with the cause it identifies the break of a flow."""
    text: str
    """In words: what is broken, without the flow's name."""
    since_ns: int
    """When it was noticed, of the flow manager's clock."""


@dataclass(frozen=True, slots=True)
class StoredViolation:
    """A break that lasts whatever is restarted, until the flow is granted again or released."""

    cause: ViolationCause
    place: str
    text: str
    since_ms: int
    """When it began, in milliseconds since 1970."""


class Violations:
    """The breaks of one promise, in the order in which they were noticed."""

    __slots__ = ("_known", "_paths")

    def __init__(self, *paths: Collection[str]) -> None:
        """Begin without breaks. `paths` are those of a duplicated flow, each with all its places."""
        self._known: dict[tuple[ViolationCause, str], Violation] = {}
        self._paths = paths

    def __bool__(self) -> bool:
        return bool(self._known) and not self.on_one_path

    def __iter__(self) -> Iterator[Violation]:
        return iter(self._known.values() if self else ())

    @property
    def on_one_path(self) -> tuple[Violation, ...]:
        """The faults of the other path, while one of a flow's two paths has none; else empty."""
        is_one_whole = any(self._leave_whole(path) for path in self._paths)
        return tuple(self._known.values()) if is_one_whole else ()

    @property
    def lasting(self) -> Violation | None:
        """The break that lasts whichever path the flow takes, and whatever is restarted, if there is one."""
        return next((found for found in self._known.values() if found.cause not in _OF_PLACE), None)

    def clear_places(self) -> None:
        """Forget all breaks but the lasting one, as the flow has another path."""
        self._known = {key: found for key, found in self._known.items() if found.cause not in _OF_PLACE}

    def _leave_whole(self, path: Collection[str]) -> bool:
        return all(cause in _OF_PLACE and place not in path for cause, place in self._known)

    def add(self, found: Violation) -> bool:
        """Note a break. Return whether it is new; one that is known keeps its text and its beginning.

        The promise to a duplicated flow is broken only if each of its paths has a break.
        """
        key = (found.cause, found.place)
        if key in self._known:
            return False
        self._known[key] = found
        return True

    def clear(self, cause: ViolationCause, place: str | None = None) -> bool:
        """Forget the break of this cause at a place, or everywhere. Return whether there was one."""
        gone = [key for key in self._known if key[0] is cause and place in (None, key[1])]
        for key in gone:
            del self._known[key]
        return bool(gone)
