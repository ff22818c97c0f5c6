"""What requesters were told, what that rests on, and whether it still holds after a restart. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loko.admission import Refusal
from loko.device import Device
from loko.document import InputError
from loko.flow import Flow
from loko.lab import Lab
from loko.network import Hop
from loko.serve.granting import Grant, Granting
from loko.serve.outcome import FlowState, Promised, StoredFlow
from loko.units import in_ms

_ROUNDING: Final = 1e-9
"""A guarantee is the same if it differs by no more than this part of it."""


def digest(profile: Device) -> str:
    """Return a short hash of all that a profile says."""
    return hashlib.sha256(profile.model_dump_json().encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Grounds:
    """What promises rest on: the profiles of a lab's switches, and the conditions of the scheme."""

    profiles: Mapping[str, str]
    """By switch, the digest of its profile."""
    conditions: tuple[str, ...]
    """Ids of the conditions."""

    @classmethod
    def of(cls, lab: Lab, conditions: Sequence[str]) -> Grounds:
        """Return the grounds of promises in a lab."""
        known: dict[int, str] = {}
        for switch in lab.switches.values():
            if id(switch.profile) not in known:
                known[id(switch.profile)] = digest(switch.profile)
        profiles = {name: known[id(switch.profile)] for name, switch in lab.switches.items()}
        return cls(profiles, tuple(conditions))

    def promised(self, grant: Grant, deadline_ns: float | None) -> Promised:
        """Return what is promised with a grant."""
        return Promised(
            guarantee_ns=grant.guarantee_ns,
            deadline_ns=deadline_ns,
            profiles={hop.switch: self.profiles[hop.switch] for hop in grant.path},
            conditions=self.conditions,
        )

    def further(self, promised: Promised) -> frozenset[str]:
        """Return the conditions of which a requester was not told."""
        return frozenset(self.conditions) - frozenset(promised.conditions)

    def changed(self, promised: Promised) -> tuple[str, ...]:
        """Return the switches whose profile is not the one on which a promise rests."""
        return tuple(
            name for name, known in promised.profiles.items() if self.profiles.get(name) not in {None, known}
        )


@dataclass(frozen=True)
class Ungranted:
    """Stands for the grant of a flow that has neither room nor path: nothing is guaranteed."""

    flow: Flow
    path: tuple[Hop, ...] = ()
    guarantee_ns: float = math.inf


def keeps(promised: Promised, guarantee_ns: float) -> bool:
    """Return whether a guarantee is no worse than what was promised."""
    return guarantee_ns <= promised.guarantee_ns * (1 + _ROUNDING)


def serves(promised: Promised, guarantee_ns: float) -> bool:
    """Return whether a guarantee is good enough for the requester: as promised, or within the deadline."""
    deadline_ns = promised.deadline_ns
    return keeps(promised, guarantee_ns) or (deadline_ns is not None and guarantee_ns <= deadline_ns)


def limit_ns(promised: Promised) -> float:
    """Return the highest guarantee that is good enough for the requester (`serves`)."""
    return max(promised.guarantee_ns, promised.deadline_ns or 0.0)


@dataclass(frozen=True)
class Restored:
    """A stored flow, granted again."""

    stored: StoredFlow
    grant: Grant | None
    """None if it could not be granted."""
    problem: str | None
    """Why its promise does not hold, in words; None if it holds."""


def restored(granting: Granting, stored: StoredFlow, grounds: Grounds) -> Restored:
    """Grant a stored flow again on its path, and compare with what was promised."""
    try:
        answer = granting.take_up(stored)
    except InputError as error:
        return Restored(stored, None, f"does not fit this lab any more: {error}")
    if isinstance(answer, Refusal):
        text = str(answer).removeprefix(f"{stored.flow.id}: ")
        return Restored(stored, None, f"does not fit any more: {text}")
    promised = stored.promise
    if promised is None or stored.state is not FlowState.INSTALLED or keeps(promised, answer.guarantee_ns):
        return Restored(stored, answer, None)
    return Restored(stored, answer, raised_text(promised, answer.guarantee_ns, grounds))


def raised_text(promised: Promised, guarantee_ns: float, grounds: Grounds) -> str:
    """Say that a guarantee is worse than promised, and which profiles have changed."""
    deadline_ns = promised.deadline_ns
    deadline = "" if deadline_ns is None else f" (deadline {in_ms(deadline_ns, math.floor)} ms)"
    changed = grounds.changed(promised)
    why = f": the profile of {', '.join(changed)} has changed" if changed else ""
    return (
        f"gets {in_ms(guarantee_ns, math.ceil)} ms in place of the promised"
        f" {in_ms(promised.guarantee_ns, math.ceil)} ms{deadline}{why}"
    )
