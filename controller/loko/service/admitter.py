"""The two ways to grant flows to the flow manager: by an admission scheme, or by the slots of a schedule.

They share no other protocol: `Admitter` is all that the flow manager asks of either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from loko.admission import Admission, Admitted, Refusal, SchemeConditions, Usage
from loko.admission.protection import Protection
from loko.admission.routing import Ends, admit
from loko.service.outcome import ReservedPaths, SendSlot, StoredFlow
from loko.switch_model.flow import Flow
from loko.switch_model.margin import LimitTest
from loko.topology.lab import Lab
from loko.topology.network import Hop, Routed


class AdmittedFlow(Routed, Protocol):
    """A granted flow, with the path for which it was granted."""

    @property
    def guarantee_ns(self) -> float:
        """The bound on its delay from end to end."""


Decide = Callable[[], AdmittedFlow | Refusal]
"""Decides on one request, and counts the flow if it is granted. Raises `InputError` if it makes no sense."""


class Admitter(Protocol):
    """The granted flows, and what they use. Callers pass in the time, of any clock that never goes back."""

    @property
    def scheme(self) -> str:
        """Name of the admission or scheduling scheme."""

    @property
    def conditions(self) -> SchemeConditions:
        """The conditions on which its guarantees hold."""

    def restore_flow(self, stored: StoredFlow) -> AdmittedFlow | Refusal:
        """Grant again what was granted before a restart. Raises `InputError` if that is not possible here."""

    def move(
        self, flow: Flow, within_ns: float | None, protection: Protection | None = None
    ) -> AdmittedFlow | Refusal:
        """Grant a flow on whichever path has room and keeps a bound, if any is to be kept.

        If flows survive failures, it is protected as given, or else as requests that name no protection.
        Raises `InputError` where flows cannot be moved.
        """

    def rename(self, flow_id: str, flow: Flow) -> AdmittedFlow:
        """Give a granted flow another id and other ports. Raises `InputError` where flows cannot be moved."""

    def guarantee_ns(self, grant: AdmittedFlow) -> float:
        """Return the bound on the delay of a granted flow on the path that it takes, or on both of them."""

    def promised_ns(self, grant: AdmittedFlow) -> float:
        """Return the bound on the delay of a granted flow on all paths that are reserved for it."""

    def reserved_paths(self, flow_id: str) -> ReservedPaths | None:
        """Return the paths of a granted flow that survives failures; None if it has only one path."""

    def send_slot(self, flow_id: str) -> SendSlot | None:
        """Return when a granted flow sends; None if it was granted no particular time."""

    def timing(self, grant: AdmittedFlow) -> dict[str, int] | None:
        """Return when a granted flow sends, for programs that send beside the service; None if at any time.

        The keys are `offset_ns`, `period_ns` and `guard_ns`.
        """

    def values(self, grant: AdmittedFlow) -> dict[str, Any]:
        """Return what was decided on a flow, as plain values for JSON: guarantee, slot, path."""

    def avoid(self, dead_ends: Ends) -> None:
        """Choose no path out of these ports, by node, from now on, as far as there is another."""

    def advance(self, now_ns: int) -> None:
        """Let time pass."""

    def cancel(self, flow_id: str) -> None:
        """Remove a flow that has sent nothing."""

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None) -> None:
        """Remove a flow that has sent until now, or until `sent_until_ns`."""

    def drain_time_ns(self, flow_id: str) -> int:
        """Return the time from a flow's last frame until none of its frames is on its way."""

    def servers(self, grant: AdmittedFlow) -> tuple[str, ...]:
        """Return the servers where a flow may leave a residual backlog: mostly the switches of its path."""

    def residual_backlog(self, server: str) -> float | None:
        """Return what released flows may have left at a server, for `restore_backlogs`; None if nothing."""

    def restore_backlogs(self, backlogs: Mapping[str, float], *, now_ns: int) -> None:
        """Take over stored residual backlogs. Raises `KeyError` or `ValueError` for those of another kind."""

    def usage(self, switch: str) -> Usage:
        """Return what is used of a switch now."""


class SchemeAdmitter:
    """Flows are granted by an admission scheme, one by one."""

    def __init__(self, lab: Lab, admission: Admission) -> None:
        self._lab, self._admission = lab, admission
        self._dead_ends: Ends = frozenset()

    def decision(
        self, flow: Flow, path: Sequence[Hop] | None = None, deadline_ns: float | None = None
    ) -> Decide:
        """Return what decides on a flow: on the given path or else the best one, within any deadline."""
        return lambda: admit(self._lab, self._admission, flow, deadline_ns, path, dead_ends=self._dead_ends)

    @property
    def admitted(self) -> tuple[Admitted, ...]:
        """The admitted flows, in order of admission."""
        return tuple(self._admission.admitted.values())

    @property
    def is_robust(self) -> bool:
        """Whether guarantees hold for every device within the ranges of the profiles."""
        return self._lab.is_robust

    def falls_if_slower(self) -> LimitTest | None:
        """See `loko.admission.Admission`."""
        return self._admission.falls_if_slower()

    @property
    def scheme(self) -> str:
        """See `Admitter`, as for all methods below."""
        return self._admission.scheme

    @property
    def conditions(self) -> SchemeConditions:
        """The conditions of the admission scheme."""
        return self._admission.conditions

    def restore_flow(self, stored: StoredFlow) -> AdmittedFlow | Refusal:
        """Request the flow again, on its stored path."""
        return self._admission.request(stored.flow, stored.path)

    def move(
        self,
        flow: Flow,
        within_ns: float | None,
        protection: Protection | None = None,  # noqa: ARG002 - nothing survives here
    ) -> AdmittedFlow | Refusal:
        """Request the flow as if it were new."""
        return self.decision(flow, None, within_ns)()

    def rename(self, flow_id: str, flow: Flow) -> AdmittedFlow:
        """Have the admission scheme rename it."""
        return self._admission.rename(flow_id, flow)

    def guarantee_ns(self, grant: AdmittedFlow) -> float:
        """Return the guarantee of the flow's path."""
        return grant.guarantee_ns

    def promised_ns(self, grant: AdmittedFlow) -> float:
        """Return the guarantee: a flow has one path."""
        return grant.guarantee_ns

    def reserved_paths(self, _flow_id: str) -> ReservedPaths | None:
        """None: nothing is reserved for failures."""
        return None

    def send_slot(self, _flow_id: str) -> SendSlot | None:
        """None: admitted flows send at any time, as their token buckets allow."""
        return None

    def timing(self, _grant: AdmittedFlow) -> dict[str, int] | None:
        """None: see `send_slot`."""
        return None

    def values(self, grant: AdmittedFlow) -> dict[str, Any]:
        """Return the guarantee, and for each hop its delay bound and the flow's burst on arrival there."""
        assert isinstance(grant, Admitted)
        path = [
            {
                "switch": hop.switch,
                "output_port": hop.output_port,
                "delay_ns": hop.delay_ns,
                "burst_bytes": hop.arrival.burst_bytes,
            }
            for hop in grant.hops
        ]
        return {
            "guarantee_ns": self.guarantee_ns(grant),
            "path": path,
            "send_slot": None,
            **self.conditions.mark(),
        }

    def avoid(self, dead_ends: Ends) -> None:
        """Leave these cables out when a path is chosen; one that a request gives is taken as it is."""
        self._dead_ends = dead_ends

    def advance(self, now_ns: int) -> None:
        """Let time pass: released flows count less and less."""
        self._admission.advance(now_ns)

    def cancel(self, flow_id: str) -> None:
        """Undo the flow's request."""
        self._admission.cancel(flow_id)

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None) -> None:
        """Release the flow. It still counts as long as what it has sent may matter."""
        self._admission.release(flow_id, now_ns=now_ns, sent_until_ns=sent_until_ns)

    def drain_time_ns(self, flow_id: str) -> int:
        """Return the time from the flow's last frame until only the residual backlog holds its burst."""
        return self._admission.drain_time_ns(flow_id)

    def servers(self, grant: AdmittedFlow) -> tuple[str, ...]:
        """Return the servers that the flow has shared with others."""
        assert isinstance(grant, Admitted)
        return self._admission.servers(grant)

    def residual_backlog(self, server: str) -> float | None:
        """Return the residual backlog in the scheme's own unit."""
        return self._admission.residual_backlog(server)

    def restore_backlogs(self, backlogs: Mapping[str, float], *, now_ns: int) -> None:
        """Take over stored residual backlogs, as if no time had passed since."""
        self._admission.restore_backlogs(backlogs, now_ns=now_ns)

    def usage(self, switch: str) -> Usage:
        """Return the use of each quantity that the scheme limits."""
        return self._admission.usage(switch)
