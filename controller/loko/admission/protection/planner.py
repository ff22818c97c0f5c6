"""Plans that survive failures: backup paths that several failures share, and 1+1 duplication.

Every state of the network has an admission control of its own: one without failures and one for each failure
that the plan covers. In the state after a failure all flows keep their working paths, and each flow that the
failure hits has its backup path in addition. So the guarantees hold before and after the failure, and also in
between, while some frames are still under way on the former path and others take the new one: each frame
follows one of the two paths, and both count with all that the flow may send. Backup paths of different
failures share what they reserve, since the plan covers one failure at a time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from loko.admission.answer import Admitted, Refusal
from loko.admission.planning import Plan
from loko.admission.port_queues import PortAdmission
from loko.admission.protection.failures import NetworkFailure, Reachability
from loko.admission.protection.fast_failover import FailoverGroup, failover_groups
from loko.admission.protection.fixed_switches import FixedSwitches
from loko.admission.protection.preinstalled import preinstalled_hops
from loko.admission.protection.replacement import ChosenPaths, Path, may_exchange, rounds_of_move
from loko.admission.routing import Ends, on_path, paths
from loko.admission.scheme import Admission
from loko.admission.second_path import on_second_path
from loko.document import InputError
from loko.switch_model.flow import Flow, refuse_duplicates
from loko.topology.conditions import has_boards
from loko.topology.lab import Lab
from loko.topology.network import Hop
from loko.topology.requests import no_such_flow
from loko.units import BITS_NS_PER_BYTE_S, NS_PER_S

MOST_WORKING_PATHS: Final = 4
"""The most working paths that are tried for a flow, the shortest first."""
MOST_BACKUP_PATHS: Final = 16
"""The most backup paths that are tried for a flow and a failure, the shortest first."""
_NO_PATH: Final = "paths that avoid it"


class Protection(StrEnum):
    """The protection of flows against failures (terms of RFC 4427)."""

    BACKUP = "backup"
    """A reserved path for each failure. What is sent until the flow has moved there is lost."""
    DUPLICATE = "duplicate"
    """1+1: two copies of each frame on paths that no failure hits together; nothing is lost. The receiver
    takes the first copy and drops the other (IEEE 802.1CB, FRER)."""


@dataclass(frozen=True, kw_only=True)
class ProtectedFlow:
    """An accepted flow with its further paths."""

    protection: Protection
    """As requested."""
    working: Admitted
    duplicate: Admitted | None
    """The second copy, of 1+1 duplication; None if no failure hits the first."""
    backups: Mapping[str, Admitted]
    """By name of a failure that hits the working path, the flow on its backup path."""
    ends_with: tuple[str, ...]
    """The failures that take the source or the destination away, and with it the flow."""

    @property
    def guarantee_ns(self) -> float:
        """The bound on the delay in every state that the plan covers."""
        others = list(self.backups.values())
        if self.duplicate is not None:
            others.append(self.duplicate)
        return max(admitted.guarantee_ns for admitted in (self.working, *others))

    @property
    def remembered_frames(self) -> int:
        """As many frames must the receiver of a duplicated flow remember, to recognise every second copy.

        The host sends the two copies one right after the other, so both arrive within the bound on the delay
        and the time of a frame on the host's cable. Until then no frame arrives that is sent later. Nor one
        that was sent earlier by more than that time; of those the receiver may take some after the frame, if
        their copies on the faster path were lost before a repair. The token bucket lets so many through in
        twice that time, the frame itself included: its rate is at most the cable's, so the time of two frames
        adds at most two.
        """
        return 2 + self._most_frames(2 * self.guarantee_ns)

    @property
    def paths(self) -> ChosenPaths:
        """Its working path and its further ones."""
        return ChosenPaths(
            working=self.working.path,
            second=None if self.duplicate is None else self.duplicate.path,
            backups={name: backup.path for name, backup in self.backups.items()},
        )

    def most_lost_frames(self, outage_ns: float) -> int:
        """Return how many frames a failure may cost; 0 if duplicated.

        These are frames on their way to what fails, and those sent from the failure until the flow has moved.
        """
        if self.duplicate is not None or not self.backups:
            return 0
        return self._most_frames(self.working.guarantee_ns + outage_ns)

    def _most_frames(self, duration_ns: float) -> int:
        """Return how many frames its token bucket lets through in a span of time."""
        flow = self.working.flow
        sent_bytes = flow.burst_bytes + flow.rate_bps * duration_ns / BITS_NS_PER_BYTE_S
        return math.floor(sent_bytes / flow.frame_bytes)


class TableChange(NamedTuple):
    """An entry that the controller adds, or puts in the place of the flow's former one, after a failure."""

    after_ns: int
    """When it sends the change, counted from the failure."""
    flow_id: str
    hop: Hop


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """The recovery of all flows from one failure."""

    failure: NetworkFailure
    moved: tuple[str, ...]
    """The flows that get their backup paths."""
    ended: tuple[str, ...]
    """The flows that lose their source or destination."""
    table_changes: tuple[TableChange, ...]
    """The entries that are added or replaced for these moves."""
    diversions: tuple[TableChange, ...]
    """Where switches send flows to another port by themselves, and when."""
    in_two_rounds: tuple[str, ...]
    """The flows that the controller moves in two round trips, as an entry of their backup path is missing."""
    outages_ns: Mapping[str, float]
    """By flow that moves, the time from the failure until it has moved."""
    most_lost_frames: int
    """Frames that are lost, at most, of all flows together."""

    @property
    def outage_ns(self) -> float:
        """Time from the failure until all flows have moved."""
        return max(self.outages_ns.values(), default=0.0)

    @property
    def changes(self) -> Mapping[str, int]:
        """By switch, how many entries are added or replaced."""
        return Counter(change.hop.switch for change in self.table_changes)


@dataclass(frozen=True, kw_only=True)
class MoveTiming:
    """Speed at which a controller moves flows after a failure."""

    detection_ns: float
    """Time until the controller acts."""
    changes_per_s: float
    """Entries of each table that it changes per second."""
    port_detection_ns: float | None = None
    """Time until a switch notices that a port is down; None: there are no groups of type fast failover."""


@dataclass(frozen=True, kw_only=True)
class ProtectedPlan:
    """The flows that a lab carries whatever failure of a list happens, one at a time."""

    plan: Plan
    """The flows that are accepted, on their working paths, and those that are refused."""
    protection: Protection
    failures: tuple[NetworkFailure, ...]
    flows: Mapping[str, ProtectedFlow]
    """The accepted flows by id."""
    cut_off: Mapping[str, tuple[str, ...]]
    """By id of a flow that cannot survive, whatever room there is, the failures that leave it no path."""
    preinstalled: Mapping[str, tuple[Hop, ...]]
    """By flow, the hops of its backup paths whose entries are installed beforehand (`preinstalled_hops`)."""
    groups: Mapping[str, tuple[FailoverGroup, ...]] = field(default_factory=dict)
    """By flow, the groups by which its switches divert it without the controller; see `with_groups`."""

    def with_groups(self) -> ProtectedPlan:
        """Return the plan for switches that have groups of type fast failover.

        Raises `InputError` if the lab has boards: they have no such groups.
        """
        if has_boards(self.plan.lab):
            raise InputError(
                f"{self.plan.lab.name}: its boards have no groups of type fast failover (quirk 167); leave"
                " --port-detect-ms out"
            )
        return replace(
            self,
            groups=failover_groups(
                {flow_id: flow.paths for flow_id, flow in self.flows.items()},
                self.failures,
                self.preinstalled,
            ),
        )

    @property
    def on_all_paths(self) -> Plan:
        """The plan with each accepted flow once more on each further path, second copies under another id."""
        paths: list[Admitted] = []
        for flow_id, flow in self.flows.items():
            paths += [flow.working, *flow.backups.values()]
            if (copy := flow.duplicate) is not None:
                paths.append(copy._replace(flow=copy.flow._replace(id=f"{flow_id} (second copies)")))
        return replace(self.plan, accepted=tuple(paths))

    def group_for(self, flow_id: str, failure: str) -> FailoverGroup | None:
        """Return the group that diverts a flow after a failure; None if the controller moves it."""
        return next((group for group in self.groups.get(flow_id, ()) if failure in group.failures), None)

    @property
    def guarantees_ns(self) -> dict[str, float]:
        """By id of an accepted flow, its guarantee in all states."""
        return {flow_id: flow.guarantee_ns for flow_id, flow in self.flows.items()}

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """The flows that do not survive, or do not fit."""
        return self.plan.refused

    @property
    def worst_guarantee_ns(self) -> float | None:
        """The longest guarantee of all flows in all states; None if no flow is accepted."""
        return max(self.guarantees_ns.values(), default=None)

    def recoveries(self, timing: MoveTiming) -> tuple[Recovery, ...]:
        """Return how the flows recover from each failure that hits or ends one."""
        recoveries = (self._recovery(failure, timing) for failure in self.failures)
        return tuple(recovery for recovery in recoveries if recovery.moved or recovery.ended)

    def _recovery(self, failure: NetworkFailure, timing: MoveTiming) -> Recovery:
        moved = {
            flow_id: flow.backups[failure.name]
            for flow_id, flow in self.flows.items()
            if failure.name in flow.backups
        }
        diverted = {
            flow_id: Hop(switch=group.switch, output_port=group.backup_port)
            for flow_id in moved
            if (group := self.group_for(flow_id, failure.name)) is not None
        }
        rounds = {
            flow_id: rounds_of_move(
                self.flows[flow_id].working.path, backup.path, self.preinstalled.get(flow_id, ())
            )
            for flow_id, backup in moved.items()
            if flow_id not in diverted
        }
        change_ns = NS_PER_S / timing.changes_per_s
        ends_ns = [timing.detection_ns]
        table_changes: list[TableChange] = []
        for number in range(max(map(len, rounds.values()), default=0)):
            before: Counter[str] = Counter()
            for flow_id, of_flow in rounds.items():
                for hop in of_flow[number] if number < len(of_flow) else ():
                    after_ns = math.ceil(ends_ns[-1] + before[hop.switch] * change_ns)
                    table_changes.append(TableChange(after_ns, flow_id, hop))
                    before[hop.switch] += 1
            ends_ns.append(ends_ns[-1] + max(before.values()) * change_ns)
        diverted_ns = timing.port_detection_ns or 0.0
        outages_ns = {
            flow_id: diverted_ns if flow_id in diverted else ends_ns[len(rounds[flow_id])]
            for flow_id in moved
        }
        return Recovery(
            failure=failure,
            moved=tuple(moved),
            ended=tuple(flow_id for flow_id, flow in self.flows.items() if failure.name in flow.ends_with),
            table_changes=tuple(table_changes),
            diversions=tuple(
                TableChange(math.ceil(diverted_ns), flow_id, hop) for flow_id, hop in diverted.items()
            ),
            in_two_rounds=tuple(flow_id for flow_id, of_flow in rounds.items() if len(of_flow) > 1),
            outages_ns=outages_ns,
            most_lost_frames=sum(
                self.flows[flow_id].most_lost_frames(outages_ns[flow_id]) for flow_id in moved
            ),
        )

    def as_values(self, timing: MoveTiming) -> dict[str, object]:
        """Return the plan as plain values, for JSON."""
        return {
            "protection": self.protection.value,
            "failures": [failure.name for failure in self.failures],
            "worst_guarantee_ns": self.worst_guarantee_ns,
            "flows": [
                {
                    "flow": flow_id,
                    "guarantee_ns": flow.guarantee_ns,
                    "duplicate": None
                    if flow.duplicate is None
                    else {**_path_values(flow.duplicate), "remembered_frames": flow.remembered_frames},
                    "backups": [
                        {"failure": name, **_path_values(backup)} for name, backup in flow.backups.items()
                    ],
                    "ends_with": list(flow.ends_with),
                    "preinstalled": _hop_values(self.preinstalled.get(flow_id, ())),
                    "groups": [
                        {
                            "switch": group.switch,
                            "ports": [group.working_port, group.backup_port],
                            "failures": sorted(group.failures),
                            "installed": _hop_values(group.installed),
                        }
                        for group in self.groups.get(flow_id, ())
                    ],
                }
                for flow_id, flow in self.flows.items()
            ],
            "cut_off": {flow_id: list(names) for flow_id, names in self.cut_off.items()},
            "recoveries": [
                {
                    "failure": recovery.failure.name,
                    "moved": list(recovery.moved),
                    "ended": list(recovery.ended),
                    "changes": dict(recovery.changes),
                    "diverted": [diversion.flow_id for diversion in recovery.diversions],
                    "in_two_rounds": list(recovery.in_two_rounds),
                    "outage_ns": recovery.outage_ns,
                    "most_lost_frames": recovery.most_lost_frames,
                }
                for recovery in self.recoveries(timing)
            ],
        }


def _hop_values(hops: Sequence[Hop]) -> list[dict[str, object]]:
    return [{"switch": hop.switch, "output_port": hop.output_port} for hop in hops]


def _path_values(admitted: Admitted) -> dict[str, object]:
    return {
        "path": _hop_values(admitted.path),
        **({} if admitted.vlan is None else {"vlan": admitted.vlan}),
        "guarantee_ns": admitted.guarantee_ns,
    }


def protect(
    lab: Lab,
    flows: Sequence[Flow],
    make_admission: Callable[[], Admission],
    failures: Sequence[NetworkFailure],
    *,
    protection: Protection,
    duplicated: Collection[str] = (),
    deadlines_ns: Mapping[str, float] = MappingProxyType({}),
) -> ProtectedPlan:
    """Request flows in their order, each with what it needs to survive every one of the failures.

    `make_admission` returns a new and empty admission control of the lab. Flows whose ids are in `duplicated`
    are duplicated whatever the `protection` of the others. A flow whose source or destination fails with a
    switch ends with it; it must survive the other failures. Raises `InputError` if a flow names unknown hosts
    or repeats another.
    """
    kinds = protections_of(flows, protection, duplicated)
    planner = ProtectedAdmission(lab, make_admission, failures)
    return planner.plan(flows, protection, kinds, deadlines_ns=deadlines_ns)


def protections_of(
    flows: Sequence[Flow], protection: Protection, duplicated: Collection[str]
) -> dict[str, Protection]:
    """Return the protection of each flow by its id. Raises `InputError` for flows that are not there."""
    refuse_duplicates(flows)
    ids = [flow.id for flow in flows]
    if stray := set(duplicated).difference(ids):
        raise no_such_flow("--duplicate", min(stray), ids)
    return {flow_id: Protection.DUPLICATE if flow_id in set(duplicated) else protection for flow_id in ids}


@dataclass(frozen=True)
class FailedState:
    """The network after a failure."""

    failure: NetworkFailure
    admission: Admission
    reachability: Reachability


class _Requests:
    """The requests of one flow in several states, which are kept together or not at all."""

    def __init__(self, deadline_ns: float | None = None, dead_ends: Ends = frozenset()) -> None:
        self.deadline_ns = deadline_ns
        self.dead_ends = dead_ends
        """Its paths avoid them, as far as they can."""
        self._made: list[tuple[Admission, str]] = []

    def request(self, admission: Admission, flow: Flow, path: Sequence[Hop]) -> Admitted | Refusal:
        """Request a flow in one state."""
        answer = admission.request(flow, path)
        if isinstance(answer, Admitted):
            self._made.append((admission, flow.id))
        return answer

    def take_over(self, others: _Requests) -> None:
        """Keep other requests together with these."""
        self._made += others._made

    def cancel(self) -> None:
        """Undo the requests, the last first."""
        while self._made:
            admission, flow_id = self._made.pop()
            admission.cancel(flow_id)


class ProtectedAdmission:
    """The admission controls of all states, and the search for paths."""

    def __init__(
        self,
        lab: Lab,
        make_admission: Callable[[], Admission],
        failures: Sequence[NetworkFailure],
    ) -> None:
        """Begin without flows. `make_admission` returns an empty admission control of the lab."""
        self.lab = lab
        self.working = working = make_admission()
        """The state without failures."""
        another = working.empty_copy if isinstance(working, PortAdmission) else make_admission
        self.states = [FailedState(failure, another(), Reachability(lab, failure)) for failure in failures]
        self._fixed = FixedSwitches(lab, self._most_entries())

    @property
    def failures(self) -> tuple[NetworkFailure, ...]:
        """The failures that its flows survive."""
        return tuple(state.failure for state in self.states)

    @property
    def admissions(self) -> tuple[Admission, ...]:
        """The admission controls of all states, first that without failures."""
        return (self.working, *(state.admission for state in self.states))

    def preinstalled(self, flows: Mapping[str, ProtectedFlow]) -> dict[str, tuple[Hop, ...]]:
        """Return by flow the hops of its backup paths whose entries are installed beforehand."""
        # The entries of fixed switches are counted with all that any failure needs.
        room = self._most_entries() | dict.fromkeys(self._fixed.names, len(flows))
        return preinstalled_hops({flow_id: flow.paths for flow_id, flow in flows.items()}, room)

    def _most_entries(self) -> dict[str, int]:
        """Return how many entries of flows each table may have, if the scheme knows."""
        return {
            switch: math.floor(share.allowed)
            for switch in self.lab.switches
            for share in self.working.usage(switch).shares
            if share.quantity == "entries"
        }

    def cutting_off(self, flow: Flow) -> tuple[str, ...]:
        """Return the failures that leave the flow no path, although its hosts are there."""
        return tuple(
            state.failure.name
            for state in self.states
            if not state.reachability.takes_host_of(flow) and state.reachability.cuts_off(flow)
        )

    def plan(
        self,
        flows: Sequence[Flow],
        protection: Protection,
        kinds: Mapping[str, Protection],
        chosen: Mapping[str, ChosenPaths] = MappingProxyType({}),
        *,
        deadlines_ns: Mapping[str, float],
    ) -> ProtectedPlan:
        """Request flows in their order, beginning with empty states; see `protect`.

        `kinds` has the protection of each flow. A flow whose id is in `chosen` is requested on these paths,
        and on no others.
        """
        for admission in self.admissions:
            admission.release_all()
        self._fixed.release_all()
        accepted: dict[str, ProtectedFlow] = {}
        refused: list[Refusal] = []
        cut_off: dict[str, tuple[str, ...]] = {}
        for flow in flows:
            try:
                if names := self.cutting_off(flow):
                    cut_off[flow.id] = names
                    refused.append(_no_path(flow, self.lab, names[0]))
                    continue
                answer = self.admit(
                    flow, kinds[flow.id], deadlines_ns.get(flow.id), chosen=chosen.get(flow.id)
                )
            except InputError as error:
                raise InputError(f"flow '{flow.id}': {error}") from None
            if isinstance(answer, ProtectedFlow):
                accepted[flow.id] = answer
            else:
                refused.append(answer)
        return ProtectedPlan(
            plan=Plan(
                lab=self.lab,
                scheme=self.working.scheme,
                allocations=getattr(self.working, "allocations", {}),
                accepted=tuple(flow.working for flow in accepted.values()),
                refused=tuple(refused),
                deadlines_ns=deadlines_ns,
                baseline=self.working.conditions.baseline,
            ),
            protection=protection,
            failures=self.failures,
            flows=accepted,
            cut_off=cut_off,
            preinstalled=self.preinstalled(accepted),
        )

    def admit(
        self,
        flow: Flow,
        protection: Protection,
        deadline_ns: float | None = None,
        *,
        chosen: ChosenPaths | None = None,
        path: Sequence[Hop] | None = None,
        dead_ends: Ends = frozenset(),
    ) -> ProtectedFlow | Refusal:
        """Admit a flow in every state, or in none. The refusal is that of the first working path.

        It is requested on the `chosen` paths alone, or with `path` as its working path. By default its
        working path avoids the `dead_ends`, if any path does, and so does that of its second copies.
        """
        if chosen is not None:
            path = chosen.working
        working_paths = self._alive_paths(flow, dead_ends) if path is None else [tuple(path)]
        first: Refusal | None = None
        for working in working_paths:
            requests = _Requests(deadline_ns, dead_ends)
            answer = self._on_working_path(flow, working, protection, chosen, requests)
            if isinstance(answer, ProtectedFlow):
                answer = self._with_vlans(answer)
            if isinstance(answer, ProtectedFlow):
                return answer
            requests.cancel()
            first = first or answer
        assert first is not None, "a lab has a path between any two hosts"
        return first

    def reserve(self, flow: Flow, protection: Protection, chosen: ChosenPaths) -> ProtectedFlow | Refusal:
        """Admit a flow again in the states after failures, on the paths that `admit` had found for it.

        Raises `InputError` if a path is missing or broken, or if a failure hits both paths of a duplicated
        flow.
        """
        hit = {state.failure.name: state.failure for state in self.hitting(flow, chosen.working)}
        for name, failure in hit.items():
            if chosen.second is None and name not in chosen.backups:
                raise InputError(f"it has no backup path for a failure of {name}")
            if chosen.second is not None and failure.hits(flow.source, chosen.second):
                raise InputError(f"a failure of {name} hits both of its paths")
        requests = _Requests()
        backups: dict[str, Admitted] = {}
        working: Admitted | None = None
        duplicate: Admitted | None = None
        try:
            for state in self.states:
                answer, name = requests.request(state.admission, flow, chosen.working), state.failure.name
                if isinstance(answer, Admitted):
                    working = answer
                    if chosen.second is not None:
                        answer = requests.request(state.admission, on_second_path(flow), chosen.second)
                    elif name in hit:
                        answer = requests.request(state.admission, on_second_path(flow), chosen.backups[name])
                if isinstance(answer, Refusal):
                    requests.cancel()
                    return _after(answer, flow, state.failure)
                if chosen.second is not None:
                    duplicate = answer._replace(flow=flow)
                elif name in hit:
                    backups[name] = answer._replace(flow=flow)
        except InputError:
            requests.cancel()
            raise
        assert working is not None, "there is a failure to survive"
        return ProtectedFlow(
            protection=protection,
            working=working,
            duplicate=duplicate,
            backups=backups,
            ends_with=self._ending_with(flow),
        )

    def cancel_reserved(self, flow: ProtectedFlow) -> None:
        """Undo the requests of a flow in the states after failures."""
        for state in self.states:
            state.admission.cancel(flow.working.flow.id)
            if flow.duplicate is not None or state.failure.name in flow.backups:
                state.admission.cancel(on_second_path(flow.working.flow).id)

    def release_reserved(self, flow: ProtectedFlow, *, now_ns: int, sent_until_ns: int | None) -> None:
        """Release a flow in the states after failures: it has sent on its working path, and second copies."""
        for state in self.states:
            state.admission.release(flow.working.flow.id, now_ns=now_ns, sent_until_ns=sent_until_ns)
            second_id = on_second_path(flow.working.flow).id
            if flow.duplicate is not None:
                state.admission.release(second_id, now_ns=now_ns, sent_until_ns=sent_until_ns)
            elif state.failure.name in flow.backups:
                state.admission.cancel(second_id)

    def working_paths(self, flow: Flow, dead_ends: Ends = frozenset()) -> Iterator[Path]:
        """Yield the working paths that are tried for a flow, all of which avoid the `dead_ends`."""
        ends = flow.source, flow.destination
        return islice(paths(self.lab, *ends, dead_ends=dead_ends), MOST_WORKING_PATHS)

    def _alive_paths(self, flow: Flow, dead_ends: Ends) -> list[Path]:
        """Return the working paths that avoid the `dead_ends`, or the shortest path if all have one."""
        return list(self.working_paths(flow, dead_ends)) or list(islice(self.working_paths(flow), 1))

    def backup_paths(
        self, flow: Flow, working: Path, failure: NetworkFailure, known: Iterable[Path] = ()
    ) -> Iterator[Path]:
        """Yield the backup paths that are tried for a failure that hits a working path, known ones first."""
        known = tuple(known)
        others = paths(self.lab, flow.source, flow.destination, dead_ends=failure.dead_ends)
        for path in (*known, *islice(others, MOST_BACKUP_PATHS)):
            is_left = not failure.hits(flow.source, path) and may_exchange(working, path)
            if is_left and self._fixed.may_move(working, path, known):
                yield path

    def second_paths(self, flow: Flow, working: Path, avoided: Ends = frozenset()) -> Iterator[Path]:
        """Yield the paths that are tried for second copies, which no failure hits together with the first.

        Those without the `avoided` ends come first.
        """
        hit = self.hitting(flow, working)
        dead_ends = frozenset[tuple[str, int]]().union(*(state.failure.dead_ends for state in hit))
        for ends in dict.fromkeys((dead_ends | avoided, dead_ends)):
            yield from islice(
                paths(self.lab, flow.source, flow.destination, dead_ends=ends), MOST_BACKUP_PATHS
            )

    def needed_paths(self, flow: Flow, protection: Protection) -> Iterator[Path]:
        """Yield a flow's shortest working path, with the shortest further ones that it needs there.

        None if a failure leaves it no path.
        """
        if self.cutting_off(flow):
            return
        working = next(self.working_paths(flow))
        yield working
        hit = self.hitting(flow, working)
        if protection is Protection.BACKUP:
            for state in hit:
                yield from islice(self.backup_paths(flow, working, state.failure), 1)
        elif hit:
            yield from islice(self.second_paths(flow, working), 1)

    def hitting(self, flow: Flow, working: Path) -> list[FailedState]:
        """Return the failures that hit a working path and leave the flow its hosts."""
        return [
            state
            for state in self.states
            if state.failure.hits(flow.source, working) and not state.reachability.takes_host_of(flow)
        ]

    def _ending_with(self, flow: Flow) -> tuple[str, ...]:
        """Return the failures by which the flow loses its source or destination."""
        return tuple(state.failure.name for state in self.states if state.reachability.takes_host_of(flow))

    def _on_working_path(
        self,
        flow: Flow,
        path: Path,
        protection: Protection,
        chosen: ChosenPaths | None,
        requests: _Requests,
    ) -> ProtectedFlow | Refusal:
        answer = on_path(self.working, path, requests.deadline_ns, flow)
        if isinstance(answer, Refusal):
            return answer
        working = requests.request(self.working, flow, path)
        assert isinstance(working, Admitted), "the check has said so"
        for state in self.states:
            answer = requests.request(state.admission, flow, path)
            if isinstance(answer, Refusal):
                return _after(answer, flow, state.failure)
        ends_with, hit = self._ending_with(flow), self.hitting(flow, path)
        if protection is Protection.DUPLICATE:
            # If no failure hits the first path, one copy is enough.
            duplicate = self._duplicate(flow, path, chosen, requests) if hit else None
            if isinstance(duplicate, Refusal):
                return duplicate
            return ProtectedFlow(
                protection=protection, working=working, duplicate=duplicate, backups={}, ends_with=ends_with
            )
        backups: dict[str, Admitted] = {}
        for state in hit:
            known = dict.fromkeys(backup.path for backup in backups.values())
            candidates = (
                self.backup_paths(flow, path, state.failure, known)
                if chosen is None
                else (chosen.backups[state.failure.name],)
            )
            backup = self._backup(flow, candidates, state, requests)
            if isinstance(backup, Refusal):
                return backup
            backups[state.failure.name] = backup
        return ProtectedFlow(
            protection=protection, working=working, duplicate=None, backups=backups, ends_with=ends_with
        )

    def _with_vlans(self, protected: ProtectedFlow) -> ProtectedFlow | Refusal:
        """Return a flow with the VLANs that take it along its paths through switches without OpenFlow.

        One for its working and backup paths, as its host goes on to send with one tag, and one for second
        copies. Those of the states' own admission controls may differ from each other.
        """
        if not self._fixed.names:
            return protected
        working, duplicate, backups = protected.working, protected.duplicate, protected.backups
        first = [working.path, *(backup.path for backup in backups.values())]
        vlan = self._fixed.add(working.flow, first)
        if isinstance(vlan, Refusal):
            return vlan
        if duplicate is not None:
            second = self._fixed.add(working.flow, [duplicate.path])
            if isinstance(second, Refusal):
                self._fixed.remove(vlan, working.flow, first)
                return second
            duplicate = duplicate._replace(vlan=second)
        return replace(
            protected,
            working=working._replace(vlan=vlan),
            duplicate=duplicate,
            backups={name: backup._replace(vlan=vlan) for name, backup in backups.items()},
        )

    def _backup(
        self, flow: Flow, candidates: Iterable[Path], state: FailedState, requests: _Requests
    ) -> Admitted | Refusal:
        """Reserve a backup path for one failure, if possible one that the flow has for another failure."""
        failure, copy = state.failure, on_second_path(flow)
        first: Refusal | None = None
        for candidate in candidates:
            answer = on_path(state.admission, candidate, requests.deadline_ns, copy)
            if isinstance(answer, Admitted):
                reserved = requests.request(state.admission, copy, candidate)
                assert isinstance(reserved, Admitted), "the check has said so"
                return reserved._replace(flow=flow)
            first = first or answer
        if first is None:
            refusal = _no_path(flow, self.lab, failure.name)
            return refusal if not self._fixed.names else refusal._replace(hint=_unmoved(flow, failure))
        return _after(first, flow, failure)

    def _duplicate(
        self, flow: Flow, working: Path, chosen: ChosenPaths | None, requests: _Requests
    ) -> Admitted | Refusal:
        """Reserve a second path in every state, which no failure hits together with the first."""
        copy = on_second_path(flow)
        first: Refusal | None = None
        candidates: Iterable[Path] = self.second_paths(flow, working, requests.dead_ends)
        if chosen is not None and chosen.second is not None:
            candidates = (chosen.second,)
        for candidate in candidates:
            answer = on_path(self.working, candidate, requests.deadline_ns, copy)
            made = _Requests(requests.deadline_ns)
            if isinstance(answer, Admitted):
                for admission in self.admissions:
                    answer = made.request(admission, copy, candidate)
                    if isinstance(answer, Refusal):
                        break
                else:
                    requests.take_over(made)
                    return answer._replace(flow=flow)
            made.cancel()
            first = first or answer._replace(flow=flow, advice="", hint="no room for its second copy")
        return first or _no_path(flow, self.lab, "what its first path crosses")


def _after(refusal: Refusal, flow: Flow, failure: NetworkFailure) -> Refusal:
    """Return the refusal of a flow that does not fit after a failure."""
    return refusal._replace(flow=flow, advice="", hint=f"that is after a failure of {failure.name}")


def _unmoved(flow: Flow, failure: NetworkFailure) -> str:
    """Return the hint for a flow that the switches with OpenFlow may not be able to move."""
    return (
        f"after a failure of {failure.name} no path is left to which a switch with OpenFlow could move it;"
        f" --duplicate {flow.id} needs none"
    )


def _no_path(flow: Flow, lab: Lab, name: str) -> Refusal:
    """Return the refusal of a flow for which a failure leaves no path."""
    end = lab.far_end(flow.source, 1)
    return Refusal(
        flow=flow,
        switch="" if end is None else end.node,
        quantity=_NO_PATH,
        used=0,
        requested=1,
        allowed=0,
        unit="paths",
        hint=f"no other path is left after a failure of {name}",
    )
