"""Promises to requesters, their conditions, and whether they hold after a restart. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loko.admission import Refusal
from loko.document import InputError
from loko.service.admitter import AdmittedFlow, Admitter
from loko.service.outcome import FlowState, PromisedGuarantee, ReservedPaths, StoredFlow
from loko.switch_model.device import Device
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.topology.network import Hop
from loko.units import in_ms

_ROUNDING: Final = 1e-9
"""A guarantee is the same if it differs by no more than this part of it."""


def digest(profile: Device) -> str:
    """Return a short hash of all that a profile says."""
    return hashlib.sha256(profile.model_dump_json().encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Grounds:
    """Conditions of promises: the profiles of a lab's switches, and the conditions of the scheme."""

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

    def promise(
        self,
        grant: AdmittedFlow,
        deadline_ns: float | None,
        guarantee_ns: float | None = None,
        reserved: ReservedPaths | None = None,
    ) -> PromisedGuarantee:
        """Return what is promised with a grant: its guarantee, or the one that is given for all its paths.

        These are the `reserved` ones, if any.
        """
        paths = (grant.path, *(() if reserved is None else reserved.paths))
        return PromisedGuarantee(
            guarantee_ns=grant.guarantee_ns if guarantee_ns is None else guarantee_ns,
            deadline_ns=deadline_ns,
            profiles={hop.switch: self.profiles[hop.switch] for path in paths for hop in path},
            conditions=self.conditions,
        )

    def added_conditions(self, promised: PromisedGuarantee) -> frozenset[str]:
        """Return the conditions of which a requester was not told."""
        return frozenset(self.conditions) - frozenset(promised.conditions)

    def changed_profiles(self, promised: PromisedGuarantee) -> tuple[str, ...]:
        """Return the switches whose profile is not the one on which a promise rests."""
        return tuple(
            name for name, known in promised.profiles.items() if self.profiles.get(name) not in {None, known}
        )


@dataclass(frozen=True)
class NotAdmitted:
    """Stands for the grant of a flow that has neither room nor path: nothing is guaranteed."""

    flow: Flow
    path: tuple[Hop, ...] = ()
    guarantee_ns: float = math.inf


def is_kept(promised: PromisedGuarantee, guarantee_ns: float) -> bool:
    """Return whether a guarantee is no worse than what was promised."""
    return guarantee_ns <= promised.guarantee_ns * (1 + _ROUNDING)


def is_sufficient(promised: PromisedGuarantee, guarantee_ns: float) -> bool:
    """Return whether a guarantee is good enough for the requester: as promised, or within the deadline."""
    deadline_ns = promised.deadline_ns
    return is_kept(promised, guarantee_ns) or (deadline_ns is not None and guarantee_ns <= deadline_ns)


def limit_ns(promised: PromisedGuarantee) -> float:
    """Return the highest guarantee that is good enough for the requester (`is_sufficient`)."""
    return max(promised.guarantee_ns, promised.deadline_ns or 0.0)


@dataclass(frozen=True)
class RestoredFlow:
    """A stored flow, granted again."""

    stored: StoredFlow
    admitted: AdmittedFlow | None
    """None if it could not be granted."""
    problem: str | None
    """Why its promise does not hold, in words; None if it holds."""


def restore(admitter: Admitter, stored: StoredFlow, grounds: Grounds) -> RestoredFlow:
    """Grant a stored flow again on its path, and compare with what was promised."""
    try:
        answer = admitter.restore_flow(stored)
    except InputError as error:
        return RestoredFlow(stored, None, f"does not fit this lab any more: {error}")
    if isinstance(answer, Refusal):
        text = str(answer).removeprefix(f"{stored.flow.id}: ")
        return RestoredFlow(stored, None, f"does not fit any more: {text}")
    promised, guarantee_ns = stored.promise, admitter.promised_ns(answer)
    if promised is None or stored.state is not FlowState.INSTALLED or is_kept(promised, guarantee_ns):
        return RestoredFlow(stored, answer, None)
    return RestoredFlow(stored, answer, describe_raised(promised, guarantee_ns, grounds))


def describe_raised(promised: PromisedGuarantee, guarantee_ns: float, grounds: Grounds) -> str:
    """Say that a guarantee is worse than promised, and which profiles have changed."""
    deadline_ns = promised.deadline_ns
    deadline = "" if deadline_ns is None else f" (deadline {in_ms(deadline_ns, math.floor)} ms)"
    changed = grounds.changed_profiles(promised)
    why = f": the profile of {', '.join(changed)} has changed" if changed else ""
    return (
        f"gets {in_ms(guarantee_ns, math.ceil)} ms in place of the promised"
        f" {in_ms(promised.guarantee_ns, math.ceil)} ms{deadline}{why}"
    )
