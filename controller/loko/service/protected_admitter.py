"""Flows that are granted together with what they need to survive failures: backup paths, or second copies.

As in every `SchemeAdmitter`, the admission control counts the paths in use. Here it also counts the working
path of a flow that is on a backup path. So all paths in use are admitted together, and guarantees hold
whatever has failed. The states after failures (`loko.admission.protection`) reserve the room that flows need
to get their backup paths. The second copies of a duplicated flow count in every state, as a flow of their
own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from loko.admission import Admitted, Refusal
from loko.admission.protection import (
    NetworkFailure,
    ProtectedAdmission,
    ProtectedFlow,
    Protection,
)
from loko.admission.protection.replacement import ChosenPaths, may_exchange, rounds_of_move
from loko.admission.routing import Ends, leaves_by
from loko.admission.second_path import on_second_path
from loko.document import InputError
from loko.service.admitter import AdmittedFlow, Decide, SchemeAdmitter
from loko.service.outcome import ReservedPaths, SecondCopies, StoredFlow
from loko.service.source_ports import SourcePort, free_port
from loko.switch_model.flow import DuplicateFlowError, Flow
from loko.topology.lab import Lab
from loko.topology.network import Hop


class ProtectedAdmitter(SchemeAdmitter):
    """Grants a flow only if its reserved paths fit after every failure that is covered, one at a time.

    While a flow moves, it is granted twice: under its own id, and under another on the path that it gets or
    leaves. A path that it leaves stays reserved if it is the working path, and is released otherwise.
    """

    def __init__(
        self, lab: Lab, protected: ProtectedAdmission, protection: Protection = Protection.BACKUP
    ) -> None:
        """Begin without flows. Those get the `protection` whose request names none."""
        super().__init__(lab, protected.working)
        self._protected = protected
        self._protection = protection
        self._flows: dict[str, ProtectedFlow] = {}
        self._second_paths: dict[str, str] = {}
        """By the id under which a flow is granted on a second path: its own id."""
        self._kept_ports: frozenset[SourcePort] = frozenset()

    @property
    def failures(self) -> tuple[NetworkFailure, ...]:
        """The failures that are covered, one at a time."""
        return self._protected.failures

    # Requests.

    def decision(
        self,
        flow: Flow,
        path: Sequence[Hop] | None = None,
        deadline_ns: float | None = None,
        protection: Protection | None = None,
    ) -> Decide:
        """Return what decides on a flow with all its paths: on the given working path or else the best."""
        return lambda: self._request(flow, path, deadline_ns, protection or self._protection)

    def _request(
        self,
        flow: Flow,
        path: Sequence[Hop] | None,
        deadline_ns: float | None,
        protection: Protection,
    ) -> Admitted | Refusal:
        answer = self._protected.admit(flow, protection, deadline_ns, path=path, dead_ends=self._dead_ends)
        if isinstance(answer, Refusal):
            return answer
        self._flows[flow.id] = answer
        if answer.duplicate is not None:
            second = _second_copies(flow, self._free_port(flow))
            self._admission.rename(second.id, second)
        return answer.working

    def _free_port(self, flow: Flow) -> int:
        """Return a source port by which the destination tells the second copies of a flow from all others."""
        taken = {admitted.flow[1:4] for admitted in self._admission.admitted.values()}
        return free_port(flow, taken | self._kept_ports)

    def keep_ports(self, ports: Iterable[SourcePort]) -> None:
        """Give none of these ports to new second copies: flows have them that are restored one by one."""
        self._kept_ports = frozenset(ports)

    def restore_flow(self, stored: StoredFlow) -> AdmittedFlow | Refusal:
        """Grant a flow again on its paths.

        If reserved paths are missing or broken, it gets new ones for its present path: no frame is to be on a
        path that does not count.
        """
        flow, reserved = stored.flow, stored.reserved or ReservedPaths(stored.path, {})
        if (flow_id := self._second_paths.get(flow.id)) is not None:
            return self.grant_second_path(flow_id, flow, stored.path)
        copies = reserved.second_copies
        chosen = ChosenPaths(reserved.working, None if copies is None else copies.path, reserved.backups)
        try:
            answer = self._protected.reserve(flow, stored.protection, chosen)
        except InputError:
            if copies is not None:  # its host sends them now, by this path
                raise
            return self._request(flow, stored.path, None, stored.protection)
        if isinstance(answer, Refusal):
            return answer
        granted = self._admission.request(flow, stored.path)
        if isinstance(granted, Admitted) and copies is not None:
            try:
                second = self._admission.request(_second_copies(flow, copies.udp_source), copies.path)
            except DuplicateFlowError:  # it was lost, and another flow has taken the port
                self._admission.cancel(flow.id)
                self._protected.cancel_reserved(answer)
                raise
            if isinstance(second, Refusal):
                self._admission.cancel(flow.id)
                granted = second
        if isinstance(granted, Refusal):
            self._protected.cancel_reserved(answer)
            return granted
        self._flows[flow.id] = answer
        if (refusal := self._reserve_working_path(flow.id)) is None:
            return granted
        self.cancel(flow.id)
        return refusal

    def move(
        self, flow: Flow, within_ns: float | None, protection: Protection | None = None
    ) -> AdmittedFlow | Refusal:
        """Request the flow with a protection as if it were new."""
        return self._request(flow, None, within_ns, protection or self._protection)

    def expect_second_path(self, second_id: str, flow_id: str) -> None:
        """Note that what is to be restored under `second_id` is the second path of a flow."""
        self._second_paths[second_id] = flow_id

    def _reserve_working_path(self, flow_id: str) -> Refusal | None:
        """Reserve a flow's working path unless it is granted there, or may be so when all are restored."""
        working = self._flows[flow_id].working
        reserved = on_second_path(working.flow)
        seconds = [second for second, first in self._second_paths.items() if first == flow_id]
        granted = [self._admission.admitted.get(name) for name in (flow_id, *seconds)]
        is_granted = any(admitted and admitted.path == working.path for admitted in granted)
        if None in granted or is_granted or reserved.id in self._admission.admitted:
            return None
        answer = self._admission.request(reserved, working.path)
        return answer if isinstance(answer, Refusal) else None

    def guarantee_ns(self, grant: AdmittedFlow) -> float:
        """Return the guarantee of the path in use; of a duplicated flow the longer one of its two paths."""
        known = self._flows.get(grant.flow.id)
        return grant.guarantee_ns if known is None or known.duplicate is None else known.guarantee_ns

    def promised_ns(self, grant: AdmittedFlow) -> float:
        """Return the longest guarantee of all paths of a flow."""
        known = self._flows.get(grant.flow.id)
        return grant.guarantee_ns if known is None else max(grant.guarantee_ns, known.guarantee_ns)

    def reserved_paths(self, flow_id: str) -> ReservedPaths | None:
        """Return the working path and the backup paths of a flow; None for a second path under its own id."""
        known = self._flows.get(flow_id)
        if known is None:
            return None
        copies: SecondCopies | None = None
        if known.duplicate is not None:
            second = self._admission.admitted[on_second_path(known.working.flow).id]
            copies = SecondCopies(second.path, second.flow.udp_source)
        return ReservedPaths(
            known.working.path,
            {name: backup.path for name, backup in known.backups.items()},
            known.protection,
            copies,
        )

    def remembered_frames(self, flow_id: str) -> int:
        """Return how many frames the receiver of a duplicated flow must remember, to drop second copies."""
        return self._flows[flow_id].remembered_frames

    # Entries that are installed beforehand.

    def preinstalled(self) -> Mapping[str, Sequence[Hop]]:
        """Return by flow the hops of its backup paths whose entries are installed beforehand."""
        return self._protected.preinstalled(self._flows)

    def moved_in_two_rounds(self, preinstalled: Mapping[str, Sequence[Hop]]) -> tuple[str, ...]:
        """Return the flows with a backup path whose entries are not all installed beforehand."""
        return tuple(
            flow_id
            for flow_id, known in self._flows.items()
            if any(
                len(rounds_of_move(known.working.path, backup.path, preinstalled.get(flow_id, ()))) > 1
                for backup in known.backups.values()
            )
        )

    # Moves.

    def path_without(
        self, flow_id: str, present: Sequence[Hop], dead_ends: Ends, alive: frozenset[str]
    ) -> tuple[Hop, ...] | None:
        """Return a reserved path on which a flow avoids what has failed; None if it has none.

        First comes the backup path for the smallest failure that covers what has failed, and takes no switch
        that is known to be `alive`.
        """
        known = self._flows.get(flow_id)
        if known is None:
            return None

        def remoteness(failure: NetworkFailure) -> tuple[bool, bool, int]:
            return (
                not dead_ends <= failure.dead_ends,
                bool(failure.switches & alive),
                len(failure.dead_ends),
            )

        source = known.working.flow.source
        failures = sorted(self.failures, key=remoteness)
        backups = [known.backups[failure.name].path for failure in failures if failure.name in known.backups]
        for path in (*backups, known.working.path):
            if not leaves_by(dead_ends, source, path) and may_exchange(present, path):
                return path
        return None

    def working_path(self, flow_id: str, present: Sequence[Hop]) -> tuple[Hop, ...] | None:
        """Return the working path of a flow that is on another, and may return; None for any other."""
        known = self._flows.get(flow_id)
        if known is None or known.working.path == tuple(present):
            return None
        return known.working.path if may_exchange(present, known.working.path) else None

    def grant_second_path(self, flow_id: str, second: Flow, path: Sequence[Hop]) -> Admitted | Refusal:
        """Grant a flow on another of its paths as well, as the flow `second`."""
        known = self._flows.get(flow_id)
        if known is not None and known.working.path == tuple(path):
            reservation = on_second_path(known.working.flow).id
            if reservation in self._admission.admitted:
                self._second_paths[second.id] = flow_id
                return self._admission.rename(reservation, second)
        answer = self._admission.request(second, path)
        if isinstance(answer, Refusal):
            return answer
        self._second_paths[second.id] = flow_id
        refusal = None if known is None else self._reserve_working_path(flow_id)
        return answer if refusal is None else refusal

    # Ends of grants.

    def cancel(self, flow_id: str) -> None:
        """Undo a flow's request, or give up its second path."""
        if self._keeps_working_path(flow_id):
            return
        super().cancel(flow_id)
        if (known := self._flows.pop(flow_id, None)) is not None:
            self._protected.cancel_reserved(known)
            reservation = on_second_path(known.working.flow).id
            if reservation in self._admission.admitted:
                super().cancel(reservation)

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None) -> None:
        """Release a flow with all its paths, or the second path that it has left."""
        if self._keeps_working_path(flow_id):
            return
        super().release(flow_id, now_ns=now_ns, sent_until_ns=sent_until_ns)
        if (known := self._flows.pop(flow_id, None)) is not None:
            self._protected.release_reserved(known, now_ns=now_ns, sent_until_ns=sent_until_ns)
            reservation = on_second_path(known.working.flow).id
            if reservation in self._admission.admitted:
                super().release(reservation, now_ns=now_ns, sent_until_ns=sent_until_ns)

    def _keeps_working_path(self, second_id: str) -> bool:
        """Turn a second path that a flow leaves into a reservation, if it is the flow's working path."""
        flow_id = self._second_paths.pop(second_id, None)
        known = None if flow_id is None else self._flows.get(flow_id)
        if known is None or self._admission.admitted[second_id].path != known.working.path:
            return False
        self._admission.rename(second_id, on_second_path(known.working.flow))
        return True

    def servers(self, grant: AdmittedFlow) -> tuple[str, ...]:
        """Return the servers of the path in use, of the working path, and of second copies."""
        known = self._flows.get(grant.flow.id)
        others = () if known is None else (known.working, known.duplicate)
        paths = [grant, *(path for path in others if path is not None)]
        return tuple(
            dict.fromkeys(server for path in paths for server in super(ProtectedAdmitter, self).servers(path))
        )

    def drain_time_ns(self, flow_id: str) -> int:
        """Return the time until none of the flow's frames is on its way, nor any second copy."""
        known = self._flows.get(flow_id)
        drain_ns = super().drain_time_ns(flow_id)
        if known is None or known.duplicate is None:
            return drain_ns
        return max(drain_ns, super().drain_time_ns(on_second_path(known.working.flow).id))

    # All states.

    def advance(self, now_ns: int) -> None:
        """Let time pass in every state."""
        for admission in self._protected.admissions:
            admission.advance(now_ns)

    def restore_backlogs(self, backlogs: Mapping[str, float], *, now_ns: int) -> None:
        """Take over stored residual backlogs in every state, as if no time had passed since."""
        for admission in self._protected.admissions:
            admission.restore_backlogs(backlogs, now_ns=now_ns)


def _second_copies(flow: Flow, udp_source: int) -> Flow:
    """Return the second copies of a flow as the flow that they are on the wire."""
    return on_second_path(flow)._replace(udp_source=udp_source)
