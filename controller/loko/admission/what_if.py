"""Dry runs of plans: the requests if flows came or went, and the changes for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from loko.admission.answer import Refusal
from loko.document import InputError
from loko.switch_model.flow import refuse_duplicates
from loko.topology.requests import Request, no_such_flow


def changed(
    requests: Sequence[Request], *, added: Sequence[Request] = (), without: Sequence[str] = ()
) -> tuple[Request, ...]:
    """Return the requests without those of the ids `without`, followed by the `added` ones.

    Raises `InputError` for an id that no request has, and if an added one repeats an id or hosts and ports.
    """
    ids = [request.flow.id for request in requests]
    for gone in without:
        if gone not in ids:
            raise no_such_flow("--without", gone, ids)
    kept = [request for request in requests if request.flow.id not in without]
    changed_list = (*kept, *added)
    try:
        refuse_duplicates([request.flow for request in changed_list])
    except InputError as error:
        raise InputError(f"--add: {error}") from None
    return changed_list


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Differences between two plans for the flows that both contain."""

    accepted_now: tuple[str, ...]
    refused_now: tuple[str, ...]
    guarantees_ns: dict[str, tuple[float, float]]
    """Guarantees before and now, by flow id, of flows accepted in both whose guarantee changed."""

    @property
    def has_any(self) -> bool:
        """Whether anything differs."""
        return bool(self.accepted_now or self.refused_now or self.guarantees_ns)

    def as_values(self) -> dict[str, object]:
        """Return the changes as plain values, for JSON."""
        return {
            "accepted_now": list(self.accepted_now),
            "refused_now": list(self.refused_now),
            "guarantees_ns": {flow_id: list(pair) for flow_id, pair in self.guarantees_ns.items()},
        }


class PlannedGuarantees(Protocol):
    """A plan, or one that survives failures."""

    @property
    def guarantees_ns(self) -> Mapping[str, float]:
        """By id of an accepted flow, its guarantee."""

    @property
    def refused(self) -> Sequence[Refusal]:
        """The flows that are refused."""


def changes(before: PlannedGuarantees, now: PlannedGuarantees) -> Changes:
    """Return what a plan changes for the flows of the plan before it."""
    granted_before, granted = before.guarantees_ns, now.guarantees_ns
    refused_before = {request.flow.id for request in before.refused}
    return Changes(
        accepted_now=tuple(flow_id for flow_id in granted if flow_id in refused_before),
        refused_now=tuple(request.flow.id for request in now.refused if request.flow.id in granted_before),
        guarantees_ns={
            flow_id: (granted_before[flow_id], guarantee_ns)
            for flow_id, guarantee_ns in granted.items()
            if flow_id in granted_before and granted_before[flow_id] != guarantee_ns
        },
    )
