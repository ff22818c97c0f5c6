"""Failures that flows are to survive, and the way in which they do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from loko.admission.protection.failures import NetworkFailure
from loko.admission.protection.planner import (
    ProtectedAdmission,
    ProtectedPlan,
    Protection,
    protect,
    protections_of,
)
from loko.admission.protection.replacement import Path
from loko.admission.scheme import Admission
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab


@dataclass(frozen=True, kw_only=True)
class Survival:
    """The failures that a plan covers, and the protection of its flows."""

    failures: Sequence[NetworkFailure]
    protection: Protection
    duplicated: Collection[str] = ()
    """Flows that are duplicated whatever the protection of the others."""

    def kinds(self, flows: Sequence[Flow]) -> dict[str, Protection]:
        """Return the protection of each flow by its id. Raises `InputError` as `protections_of` does."""
        return protections_of(flows, self.protection, self.duplicated)

    def plan(
        self,
        lab: Lab,
        flows: Sequence[Flow],
        make_admission: Callable[[], Admission],
        deadlines_ns: Mapping[str, float] = MappingProxyType({}),
    ) -> ProtectedPlan:
        """Plan the flows so that they survive; see `protect`."""
        return protect(
            lab,
            flows,
            make_admission,
            self.failures,
            protection=self.protection,
            duplicated=self.duplicated,
            deadlines_ns=deadlines_ns,
        )

    def needed_paths(self, lab: Lab, flows: Sequence[Flow], admission: Admission) -> Mapping[str, list[Path]]:
        """Return by flow the shortest paths on which it may survive; none if a failure leaves it no path.

        `admission` is an empty admission control of the lab. Raises `InputError` as `protect` does.
        """
        kinds = self.kinds(flows)
        planner = ProtectedAdmission(lab, lambda: admission, self.failures)
        return {flow.id: list(planner.needed_paths(flow, kinds[flow.id])) for flow in flows}
