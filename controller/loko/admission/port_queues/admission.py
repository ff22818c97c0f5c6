"""Admission for switches with a queue for each priority and port: each port keeps a delay target.

Each class of flows has a queue at every port, which is a server of its own. A flow fits if, with it, bounds
exist for all servers of the network that are not above their targets, and no queue holds more than its worst
room. Its guarantee is the sum of the targets on its path, so it holds whatever is admitted later. Rule and
proofs, also for flows that leave: docs/port-queues.md.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import lru_cache, partial
from itertools import accumulate
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple, Self

from loko.admission import (
    Admitted,
    AdmittedFlows,
    BarePath,
    Refusal,
    ResourceDemand,
    ResourceShare,
    SchemeConditions,
    Suggestion,
    Usage,
    suggest_more_entries,
    suggest_on_path,
)
from loko.admission.port_queues.conditions import CONDITIONS
from loko.admission.port_queues.device import (
    BESIDE_BYTES,
    HIGHEST_CLASS,
    PREAMBLE_BYTES,
    FlowQueue,
    PortDevice,
    planned_entries,
    port_device,
    table_entries,
)
from loko.admission.port_queues.vlans import FlowVlans, vlans_of
from loko.admission.residual_backlog import AdmissionClock, wait_advice
from loko.document import InputError
from loko.lazy_mapping import LazyMapping
from loko.switch_model.calculus import (
    CoarseBounds,
    PassingFlow,
    PathStep,
    PortServer,
    RateLatency,
    ServerLoad,
    TokenBucket,
    TotalFlow,
    UnsettledError,
    backlog_of_port_bytes,
    longest_busy_ns,
)
from loko.switch_model.flow import Flow
from loko.switch_model.margin import GuaranteeKind, LimitTest, MarginLimit
from loko.switch_model.scenario import Scenario, Unknown
from loko.topology.lab import Lab
from loko.topology.network import Hop, ShortestPaths

_MOST_USED: Final = 0.999
"""The part of a port's rate that flows may take: so every busy period ends."""
_MOST_FITTING: Final = 256
"""Flows on paths that are kept, in case that another state, or the request after a check, asks for them."""
_MOST_UNDONE: Final = 4
"""Flows that are undone quickly, the last first: a plan that survives failures tries few at a time."""
_MOST_CHANGES: Final = 200
"""Changes of the bounds that an advice to wait looks ahead."""


class _CountedFlow(NamedTuple):
    """A flow as its servers see it."""

    flow_id: str
    path: tuple[Hop, ...]
    steps: tuple[PathStep, ...]
    bucket: TokenBucket
    """With preamble and gap."""
    cables_ns: float
    """The time on the cables of its path together, beside that at its servers."""
    hosts: tuple[str, str]
    """Its source and its destination."""
    vlan: int | None = None
    """Takes it along its path through switches without OpenFlow."""

    @property
    def passing(self) -> PassingFlow:
        """The flow as servers see it."""
        return PassingFlow(self.flow_id, self.steps, self.bucket)


class _DrainingFlow(NamedTuple):
    """A released flow that still counts."""

    counted: _CountedFlow
    sent_ns: int
    """When its last frame was sent at the latest."""


class _PortState:
    """The flows that count, the bounds that hold for them, and what time changes in both.

    Bounds are found when they are read. Until then coarse ones show that they are within the limits.
    """

    def __init__(self, servers: Mapping[str, PortServer], coarse: CoarseBounds | None = None) -> None:
        """Start without flows. Without `coarse` bounds, none is known to fit before the bounds are found.

        Other states may share these, until one has to have its own.
        """
        self._network = TotalFlow(servers)
        """Without `_unsettled`. Its bounds are empty if they are to be found anew, as a flow was undone."""
        self._coarse = coarse
        self._unsettled: dict[str, _CountedFlow] = {}
        """Flows that are not in the network yet."""
        self._is_fresh = True
        """Whether all flows that have ever sent still count. So the least bounds hold."""
        self._former: deque[tuple[str, dict[str, int]]] = deque(maxlen=_MOST_UNDONE)
        """The last flows whose bounds were found, each with the bounds before."""
        self.flows: dict[str, _CountedFlow] = {}
        self.draining: list[_DrainingFlow] = []
        self._releases = 0
        self.is_above = False
        """Whether the bounds are above the least ones, because of flows that have left."""
        self.since_ns = 0
        """From when on the present bounds hold for all that is in the network."""
        self.is_within = True
        """Whether all bounds and backlogs are known to be within their limits. Then a request is checked only
        where it changes something: removals and time only lower them."""

    @property
    def network(self) -> TotalFlow:
        """The flows that count, with bounds that hold for them: the least ones that may follow the former."""
        start = self._network.bounds
        if self._unsettled or not start:
            for counted in self._unsettled.values():
                self._network.add(counted.steps, counted.bucket)
            changed = self._unsettled.values() if start else self._counted
            servers = [step.server for counted in changed for step in counted.steps]
            # There are bounds: the coarse ones are some, or those with a flow more were.
            settled = self._network.settle(servers, start=start, most_steps=math.inf)
            # In the order in which they would have been found one by one.
            self._network.bounds = {name: settled[name] for name in dict.fromkeys((*start, *servers))}
            self._unsettled = {}
            self._former.clear()
        return self._network

    @property
    def has_backlog(self) -> bool:
        """Whether released flows still matter."""
        return self.is_above or bool(self.draining)

    @property
    def _counted(self) -> list[_CountedFlow]:
        return [*self.flows.values(), *(released.counted for released in self.draining)]

    def fits(self, counted: _CountedFlow) -> bool:
        """Return True only if a flow certainly keeps all limits of rates, bounds and rooms."""
        coarse = self._coarse
        if coarse is None:
            return False
        if coarse.fits(counted.passing):
            return True
        return coarse.is_shared and self._apart(coarse).fits(counted.passing)

    def _apart(self, coarse: CoarseBounds) -> CoarseBounds:
        """Return coarse bounds that no other state shares, from now on."""
        if coarse.is_shared:
            passing = [counted.passing for counted in self._counted]
            self._coarse = coarse = coarse.apart(passing, self.network.bounds)
        return coarse

    def admit(self, counted: _CountedFlow, bounds: dict[str, int] | None, *, now_ns: int) -> None:
        """Count a flow, with the bounds that then hold; None: `fits` has returned True for it."""
        if bounds is None:
            self._unsettled[counted.flow_id] = counted
        else:
            network = self.network
            self._former.append((counted.flow_id, network.bounds))
            network.add(counted.steps, counted.bucket)
            network.bounds = bounds
            self.is_within = True
        self.flows[counted.flow_id] = counted
        self.since_ns = max(self.since_ns, now_ns)
        if self._coarse is not None:
            self._coarse.add(counted.passing)
            if bounds is not None:
                self._apart(self._coarse).reset(bounds)

    def undo(self, flow_id: str) -> _CountedFlow:
        """Forget a flow that has sent nothing. The bounds fall at once, or stay if the state is not fresh."""
        if not self._is_fresh:
            self.network.remove(self.flows[flow_id].steps, self.flows[flow_id].bucket)
            self.is_above = True
        elif self._unsettled.pop(flow_id, None) is None:
            self._network.remove(self.flows[flow_id].steps, self.flows[flow_id].bucket)
            if self._former and self._former[-1][0] == flow_id:
                _, self._network.bounds = self._former.pop()
            else:
                self._network.bounds = {}
                self._former.clear()
        counted = self.flows.pop(flow_id)
        if self._coarse is not None:
            self._coarse.remove(counted.passing)
        return counted

    def rename(self, flow_id: str, name: str) -> None:
        """Give a flow another id."""
        self._former.clear()
        passing = self.flows[flow_id].passing
        if self._coarse is not None and not self._coarse.rename(passing, name):
            self._apart(self._coarse).rename(passing, name)
        self.flows[name] = self.flows.pop(flow_id)._replace(flow_id=name)
        if self._unsettled.pop(flow_id, None) is not None:
            self._unsettled[name] = self.flows[name]

    def close(self) -> None:
        """Take all flows out of the coarse bounds that other states may share."""
        if self._coarse is not None:
            for counted in self._counted:
                self._coarse.remove(counted.passing)

    def release(self, flow_id: str, *, sent_ns: int) -> None:
        """Note that a flow has sent its last frame. It still counts, by a name that no other flow has."""
        self._releases += 1
        name = f"{flow_id} left {self._releases}"
        self.rename(flow_id, name)
        self.draining.append(_DrainingFlow(self.flows.pop(name), sent_ns))

    def restore(self, bounds: dict[str, int]) -> None:
        """Take over bounds d with F(d) <= d. Because of flows that have left, they may exceed limits."""
        self.network.bounds = bounds
        self.is_above, self.is_within, self._is_fresh = True, False, False
        if self._coarse is not None:
            self._apart(self._coarse).suspend()

    def copy(self) -> _PortState:
        """Return a state that can change on its own, to look ahead."""
        state = _PortState(self._network.servers)
        for counted in self._counted:
            state._network.add(counted.steps, counted.bucket)
        state._network.bounds = dict(self.network.bounds)
        state.flows, state.draining = dict(self.flows), list(self.draining)
        state.is_above, state.since_ns = self.is_above, self.since_ns
        state.is_within, state._is_fresh = self.is_within, self._is_fresh
        return state

    def next_ns(self) -> int:
        """Return when time next changes something. Only if it holds a backlog of something."""
        ways_ns = self._ways_ns()
        return min(
            [*(self._forgotten_ns(released, ways_ns) for released in self.draining), *self._lowered_ns()]
        )

    def settle(self, now_ns: int) -> None:
        """Let time pass: forget flows that have left, and lower bounds that are too high."""
        while self._forget(now_ns) or self._lower(now_ns):
            pass

    def _forget(self, now_ns: int) -> bool:
        """Forget released flows that count nowhere any more. Return whether there were any."""
        ways_ns = self._ways_ns()
        forgotten = [
            (at_ns, released)
            for released in self.draining
            if (at_ns := self._forgotten_ns(released, ways_ns)) <= now_ns
        ]
        for at_ns, released in forgotten:
            self.draining.remove(released)
            self.network.remove(released.counted.steps, released.counted.bucket)
            if self._coarse is not None:
                self._coarse.remove(released.counted.passing)
            self.is_above, self._is_fresh, self.since_ns = True, False, max(self.since_ns, at_ns)
        return bool(forgotten)

    def _lower(self, now_ns: int) -> bool:
        """Lower the bounds by one step, if they are too high and long enough in force. Return whether so."""
        if not self.is_above:
            return False
        lower = self.network.once_more()
        if lower == self.network.bounds:
            self.is_above = False
        elif (at_ns := next(self._lowered_ns())) <= now_ns:
            self.network.bounds, self.since_ns = lower, at_ns
            return True
        return False

    def _ways_ns(self) -> Mapping[str, float]:
        """Return, by server, the longest way to its queue and busy period there together."""
        servers = self.network.servers
        return LazyMapping(lambda name: servers[name].before_ns + self.network.busy_ns(name))

    def _clear_ns(self, counted: _CountedFlow, ways_ns: Mapping[str, float]) -> float:
        """Return the time after which a frame is not in the network, nor in a busy period that goes on.

        At each server it has passed those before within their bounds. It leaves within the bound, and the
        busy period that serves it had begun when it came to the queue.
        """
        passed_ns, clear_ns = counted.cables_ns, 0.0
        for step in counted.steps:
            bound_ns = self.network.bounds[step.server]
            clear_ns = max(clear_ns, passed_ns + max(bound_ns, ways_ns[step.server]))
            passed_ns += bound_ns
        return clear_ns

    def _forgotten_ns(self, draining: _DrainingFlow, ways_ns: Mapping[str, float]) -> int:
        """Return from when on a released flow counts nowhere, by the bounds in force: no others matter."""
        return AdmissionClock.after(draining.sent_ns, self._clear_ns(draining.counted, ways_ns))

    def _lowered_ns(self) -> Iterator[int]:
        """Yield when the next lower bounds hold: all earlier frames are gone, and no other waits for one."""
        if self.is_above:
            ways_ns = self._ways_ns()
            clear_ns = max((self._clear_ns(flow, ways_ns) for flow in self._counted), default=0.0)
            yield AdmissionClock.after(self.since_ns, clear_ns)


class PortAdmission:
    """Admission by bounds for every port; see `loko.admission.Admission`."""

    conditions: ClassVar[SchemeConditions] = CONDITIONS
    _finds_bounds_late: ClassVar[bool] = True
    """Whether bounds are found only where coarse ones are too high."""

    def __init__(
        self,
        lab: Lab,
        scenario: Scenario,
        *,
        target_ns: float | Mapping[str, float] | None = None,
        padding: int | None = None,
        classes: int = HIGHEST_CLASS,
        class_targets_ns: Mapping[int, float] = MappingProxyType({}),
        shared: Mapping[str, FlowQueue] = MappingProxyType({}),
    ) -> None:
        """Start empty. `target_ns` is the target of each queue, or has each one's, by the name of its server.

        Flows to come are in one of so many traffic `classes`. `class_targets_ns` has the targets of classes
        at ports, and is the stronger there. Without a target, it is what the room in the buffer allows.
        `shared` has the queues of switches with one for all ports and classes, by switch; its server is
        called like the switch. All others have one for each port and class, with a server `switch:port`, or
        `switch:port class 2`. Raises `InputError` for a switch that can promise nothing, or not to so many
        classes, or a target that no frame can keep.
        """
        self._every_class = range(HIGHEST_CLASS, classes + 1)
        self.class_targets_ns: Mapping[int, float] = class_targets_ns
        self._sizes = LazyMapping(self._sizes_at)
        self._between = ShortestPaths(lab).between
        self._lab = lab
        self._scenario = scenario
        self._most_entries = {
            name: planned - (padding or 0) for name, planned in planned_entries(lab, scenario.entries).items()
        }
        self._shared = shared
        self._queues: dict[str, FlowQueue] = {**shared}
        for name in lab.switches:
            if name not in shared:
                ports = _ports(lab, name, scenario.at(name).frame_bytes, self._every_class[-1])
                self._queues |= {self._server(name, port): device for port, device in ports}
        """By server of the highest class, the queue of a switch."""
        servers = {_host(name): self._sender(name) for name in lab.hosts}
        self._targets: dict[str, float] = dict.fromkeys(servers, math.inf)
        self._same_port: dict[str, tuple[str, ...]] = {host: (host,) for host in servers}
        """By server: those of the same port, the highest class first."""
        for name, queue in self._queues.items():
            every_class = (HIGHEST_CLASS,) if name in shared else self._every_class
            of_port = tuple(_of_class(name, each) for each in every_class)
            self._same_port |= dict.fromkeys(of_port, of_port)
            for traffic_class, server in enumerate(of_port, HIGHEST_CLASS):
                if isinstance(target_ns, Mapping):
                    asked_ns = target_ns.get(server)
                else:
                    asked_ns = target_ns if traffic_class == HIGHEST_CLASS else None
                    if name not in shared:
                        asked_ns = class_targets_ns.get(traffic_class, asked_ns)
                above = of_port[: traffic_class - HIGHEST_CLASS]
                servers[server] = replace(queue.server, above=above) if above else queue.server
                self._targets[server] = _target_ns(queue, server, asked_ns, traffic_class)
        self._servers = servers
        self._padding = padding or 0
        self._has_hints = True
        self._limits_vlans = True
        self._coarse = CoarseBounds(
            servers, limits_ns=self._targets, rooms_bytes=LazyMapping(self._room_bytes), most_used=_MOST_USED
        )
        self._fitting = lru_cache(_MOST_FITTING)(self._as_if_fitting)
        self._begin()

    def _begin(self) -> None:
        """Start with no flow."""
        self._register = AdmittedFlows(
            self._lab,
            BarePath.prepare,
            single_visits="of ports, each counts a flow once; take another path",
            classes=len(self._every_class),
            between=self._between,
        )
        self._clock = AdmissionClock()
        self._state = self._no_flows()
        self._entries: Counter[str] = Counter()
        self._vlans = self._no_vlans()
        self._held_ns = 0
        """Until then nothing is admitted: what came before a restart may wait."""

    def empty_copy(self) -> Self:
        """Return an empty admission control of the same network, as it is after a failure.

        It shares with this one what does not change, and the work for flows that both are asked for. Its
        refusals have no hint how much memory to reserve, as whoever asks says after which failure they are.
        """
        empty = copy(self)
        empty._has_hints = False
        empty._begin()
        return empty

    @property
    def scheme(self) -> str:
        """Name of the scheme."""
        return "ports"

    @property
    def admitted(self) -> Mapping[str, Admitted]:
        """The accepted flows by id, in order of admission."""
        return self._register.admitted

    @property
    def bounds_ns(self) -> Mapping[str, int]:
        """The bound of each port in use, as `switch:port`, with the flows of now: at most its target."""
        self._settle()
        bounds = self._state.network.bounds
        return {name: bound for name, bound in bounds.items() if name not in self._lab.hosts}

    def as_bound_now(self, flow_id: str) -> Admitted:
        """Return an admitted flow with the bounds of now in place of the targets: while no flow comes."""
        admitted, bounds = self._register.admitted[flow_id], self.bounds_ns
        delays_ns = tuple(
            bounds[self._server(hop.switch, hop.output_port, admitted.flow.traffic_class)]
            + self._cable_ns(hop.switch)
            + (self._first_wire_ns(admitted.flow) if place == 0 else 0.0)
            for place, hop in enumerate(admitted.path)
        )
        return admitted._replace(delays_ns=delays_ns)

    def even_target_ns(self, flow: Flow, deadline_ns: float, path: Sequence[Hop] | None = None) -> float:
        """Return the target of all ports with which a flow just keeps a deadline on a path.

        By default it is the shortest. Switches with one server for all ports keep their own targets; a path
        across them alone leaves the ports' infinite.
        """
        path = self._register.route(flow, path).path
        shared = [hop.switch for hop in path if hop.switch in self._shared]
        if len(shared) == len(path):
            return math.inf
        cables_ns = sum(self._cable_ns(hop.switch) for hop in path)
        left_ns = deadline_ns - self._first_wire_ns(flow) - cables_ns
        left_ns -= sum(self._targets[switch] for switch in shared)
        return math.floor(left_ns / (len(path) - len(shared)))

    @property
    def least_target_ns(self) -> float:
        """The least target that every port can keep."""
        return max(queue.lone_frame_ns for name, queue in self._queues.items() if name not in self._shared)

    def backlog_bytes(self, switch: str, port: int, traffic_class: int = HIGHEST_CLASS) -> float:
        """Return the most that waits in a port's queue with the flows of now, with preambles and gaps."""
        self._settle()
        return self._state.network.backlog_bytes(self._server(switch, port, traffic_class))

    def room_bytes(self, switch: str) -> float:
        """Return what a queue of a port holds at least, in the same bytes."""
        port, _ = self._lab.neighbours(switch)[0]
        return self._room_bytes(self._server(switch, port))

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Return what `request` would answer, without admitting anything."""
        answer, _, _ = self._decide(flow, path)
        return answer

    def request(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Admit a flow along a path, by default the shortest, or say why not. Raises `InputError`."""
        answer, counted, bounds = self._decide(flow, path)
        if isinstance(answer, Admitted):
            self._register.add(answer)
            self._state.admit(counted, bounds, now_ns=self._clock.now_ns)
            self._entries.update(hop.switch for hop in counted.path)
            if counted.vlan is not None:
                self._vlans.add(counted.vlan, counted.path, counted.hosts)
        return answer

    def advance(self, now_ns: int) -> None:
        """Let time pass. Released flows count less and less."""
        self._clock.advance(now_ns)

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None = None) -> None:
        """Release a flow that has sent until now, or until `sent_until_ns`. Raises `InputError`."""
        self._clock.advance(now_ns)
        sent_ns = self._clock.now_ns if sent_until_ns is None else sent_until_ns
        self._settle()
        self._register.remove(flow_id)
        self._state.release(flow_id, sent_ns=sent_ns)

    def cancel(self, flow_id: str) -> None:
        """Undo the request of a flow that has sent nothing. Raises `InputError` if it was not admitted."""
        self._settle()
        self._register.remove(flow_id)
        self._forget(self._state.undo(flow_id))

    def rename(self, flow_id: str, flow: Flow) -> Admitted:
        """Give an admitted flow another id and other ports."""
        renamed = self._register.rename(flow_id, flow)
        self._state.rename(flow_id, flow.id)
        return renamed

    def release_all(self) -> None:
        """Begin anew, as if no flow had ever sent."""
        self._register.clear()
        self._state.close()
        self._state = self._no_flows()
        self._entries.clear()
        self._vlans = self._no_vlans()
        self._held_ns = 0

    @contextmanager
    def without_vlans(self) -> Iterator[None]:
        """Take VLANs for unlimited meanwhile, to begin with and end without flows.

        Flows get them in their order, so those that find none may find some in another order: a refusal says
        nothing of other sets, not even of parts of larger ones.
        """
        self._limits_vlans = False
        self.release_all()
        try:
            yield
        finally:
            self._limits_vlans = True
            self.release_all()

    def drain_time_ns(self, flow_id: str) -> int:
        """Return the time from a flow's last frame until none is on its way, whatever is admitted meanwhile.

        Bounds may rise up to the targets. At its host's cable a frame does not wait for later ones.
        """
        counted = self._state.flows[flow_id]
        cable, *ports = counted.steps
        passage_ns = self._state.network.bounds[cable.server] + sum(
            self._targets[port.server] for port in ports
        )
        return AdmissionClock.after(0, counted.cables_ns + passage_ns)

    def servers(self, admitted: Admitted) -> tuple[str, ...]:
        """Return the cable of a flow's host, and the ports on its path as `switch:port`."""
        flow = admitted.flow
        ports = (self._server(hop.switch, hop.output_port, flow.traffic_class) for hop in admitted.path)
        return (_host(flow.source), *ports)

    def residual_backlog(self, server: str) -> float | None:
        """Return a server's bound in nanoseconds while flows that have left keep bounds up; or None."""
        self._settle()
        state = self._state
        return float(state.network.bounds.get(server, 0)) if state.has_backlog or self._is_held else None

    def restore_backlogs(self, backlogs: Mapping[str, float], *, now_ns: int) -> None:
        """Take over stored residual backlogs by server, as if no time had passed since.

        The bounds of ports were at most the targets, and at a host's cable released flows add at most the
        stored bound. So bounds begin there or above, and fall as after a release.
        """
        self._clock.advance(now_ns)
        if unknown := backlogs.keys() - self._servers.keys():
            raise KeyError(min(unknown))
        if not backlogs:
            return
        state, network = self._state, self._state.network
        start = {
            name: max(math.ceil(target), bound)
            if math.isfinite(target)
            else bound + math.ceil(backlogs.get(name, 0.0))
            for name, bound in network.bounds.items()
            for target in [self._targets[name]]
        }
        try:
            state.restore(network.settle(start, start=start))
        except UnsettledError:
            raise ValueError(
                "the residual backlogs of released flows have no bound beside the flows that stay"
            ) from None
        # Frames of the flow that left may wait at any port.
        busy_ns = max(
            longest_busy_ns(
                network.arriving(name, network.bounds),
                network.service(name, network.bounds),
                delay_ns=network.bounds.get(name, self._finite_target_ns(name)),
            )
            for name in self._servers
        )
        self._held_ns = state.since_ns = AdmissionClock.after(self._clock.now_ns, busy_ns)

    def usage(self, switch: str) -> Usage:
        """Return what is used of each port that flows leave by, and of the table."""
        self._settle()
        network, shares = self._state.network, []
        ports = (self._server(switch, port) for port, _ in self._lab.neighbours(switch))
        for of_port in dict.fromkeys(ports):
            if used_bps := self._used_bps(of_port):
                allowed_bps = self._allowed_bps(of_port)
                shares.append(ResourceShare(self._quantity("rate", of_port), used_bps, allowed_bps, "bit/s"))
            for name in filter(network.has_flows, self._same_port[of_port]):
                delay_ns, backlog_bytes = float(network.bounds[name]), network.backlog_bytes(name)
                shares += [
                    ResourceShare(self._quantity("delay", name), delay_ns, self._targets[name], "ns"),
                    ResourceShare(
                        self._quantity("burst", name), backlog_bytes, self._room_bytes(name), "bytes"
                    ),
                ]
        entries = ResourceShare("entries", self._entries[switch], self._most_entries[switch], "entries")
        targets_ns = (
            self._delay_ns(switch, port, traffic_class)
            for port, _ in self._lab.neighbours(switch)
            for traffic_class in self._every_class
        )
        return Usage(shares=(*shares, entries), delay_ns=max(targets_ns, default=0.0))

    def demands(self, admitted: Admitted) -> Iterator[ResourceDemand]:
        """See `Admission.demands`. Flows that exceed no capacity need not fit: delays and bursts decide."""
        wire = _on_wire(admitted.flow)
        for hop in admitted.path:
            name = self._server(hop.switch, hop.output_port)
            yield ResourceDemand(
                hop.switch, self._quantity("rate", name), wire.rate_bps, self._allowed_bps(name)
            )
            yield ResourceDemand(hop.switch, "entries", 1.0, float(self._most_entries[hop.switch]))

    def falls_if_slower(self) -> LimitTest | None:
        """See `Admission.falls_if_slower`."""
        self._settle()
        flows = tuple(self.admitted.values())
        return None if not flows or self._state.has_backlog or self._is_held else partial(self._fall, flows)

    def _fall(self, flows: Sequence[Admitted], slower_ppm: int) -> MarginLimit | None:
        """Return what falls if every switch is slower but must keep its targets."""
        lab = self._lab.slowed(slower_ppm)
        try:
            slower = self._with_targets(lab)
        except InputError:  # some target is less than a lone frame takes
            return MarginLimit(flows[0].path[0].switch, GuaranteeKind.LATENESS)
        for admitted in flows:
            answer = slower.request(admitted.flow, admitted.path)
            if isinstance(answer, Refusal):
                is_late = answer.quantity.startswith("delay")
                return MarginLimit(answer.switch, GuaranteeKind.LATENESS if is_late else GuaranteeKind.LOSS)
        return None

    def _with_targets(self, lab: Lab) -> PortAdmission:
        """Return an empty admission of another lab with the same cables that must keep these targets."""
        return PortAdmission(
            lab,
            self._scenario,
            target_ns=self._targets,
            padding=self._padding,
            classes=len(self._every_class),
        )

    # How requests are decided.

    def _sizes_at(self, switch: str) -> Sequence[int]:
        scenario = self._scenario.at(switch)
        sizes = scenario.frame_bytes
        return range(sizes[0], sizes[-1] + 1) if isinstance(scenario.packet_sizes_bytes, Unknown) else sizes

    def _decide(
        self, flow: Flow, path: Sequence[Hop] | None
    ) -> tuple[Admitted | Refusal, _CountedFlow, dict[str, int] | None]:
        """Return the answer, the flow as its servers see it, and the bounds with it if they were found."""
        route = self._register.route(flow, path).path
        for hop in route:
            if flow.frame_bytes not in (sizes := self._sizes[hop.switch]):
                known = ", ".join(map(str, sizes[:8]))
                raise InputError(
                    f"frame_bytes {flow.frame_bytes} is not a size that {hop.switch} was planned for"
                    f" ({known})"
                )
        self._settle()
        counted, admitted = self._fitting(flow, route)
        if (vlan := self._vlans.find(route, counted.hosts)) is not None:
            counted, admitted = counted._replace(vlan=vlan), admitted._replace(vlan=vlan)
        decided = self._found(flow, counted, self._state)
        if isinstance(decided, Refusal):
            advice = self._patience(flow, counted) or partial(suggest_on_path, self.check, path)
            return decided._replace(advice=advice), counted, None
        return admitted, counted, decided

    def _as_if_fitting(self, flow: Flow, path: tuple[Hop, ...]) -> tuple[_CountedFlow, Admitted]:
        """Return a flow as its servers see it, and the answer if it fits, both without a VLAN."""
        delays_ns = tuple(
            self._delay_ns(hop.switch, hop.output_port, flow.traffic_class)
            + (self._first_wire_ns(flow) if place == 0 else 0.0)
            for place, hop in enumerate(path)
        )
        growths = [flow.rate_bps * delay_ns / 8e9 for delay_ns in delays_ns]
        bursts_bytes = tuple(accumulate(growths, initial=flow.burst_bytes))[:-1]
        return self._counted(flow, path), Admitted(flow, path, bursts_bytes, delays_ns)

    def _found(self, flow: Flow, counted: _CountedFlow, state: _PortState) -> dict[str, int] | Refusal | None:
        """Return the bounds with the flow, or the first limit that it exceeds. The state stays as it is.

        None stands for bounds that need not be found: they are within the limits.
        """
        is_fitting = not self._is_held and state.fits(counted)
        refusal = None if is_fitting else self._obstacle(flow, counted, state)
        refusal = refusal or self._full_table(flow, counted)
        if refusal is not None or is_fitting:
            return refusal
        return self._settled(flow, counted, state)

    def _obstacle(self, flow: Flow, counted: _CountedFlow, state: _PortState) -> Refusal | None:
        """Return what refuses a flow whatever the bounds with it are: bounds of now, or a rate."""
        network = state.network
        above = None
        if not state.is_within:
            above = next((name for name, ns in network.bounds.items() if ns > self._targets[name]), None)
        if above is not None or self._is_held:
            name = above or counted.steps[1].server
            return self._delay_refusal(flow, counted, name, network.bounds.get(name, 0), state)
        for step in counted.steps:
            used, allowed = self._used_bps(step.server, network), self._allowed_bps(step.server)
            if used + counted.bucket.rate_bps > allowed:
                return self._refusal(
                    flow, counted, step.server, "rate", (used, counted.bucket.rate_bps, allowed, "bit/s")
                )
        return None

    def _full_table(self, flow: Flow, counted: _CountedFlow) -> Refusal | None:
        """Return the refusal by a switch without room for an entry, or for a VLAN, if there is one."""
        for hop in counted.path:
            here, most = self._entries[hop.switch], self._most_entries[hop.switch]
            if here + 1 > most:
                table = table_entries(self._lab.switches[hop.switch].profile)
                hint = suggest_more_entries(hop.switch, most + self._padding, table)
                counts = (float(here), 1.0, float(most), "entries")
                return Refusal(flow, hop.switch, "entries", *counts, hint=hint)
        if (full_switch := self._vlans.obstacle(counted.path, counted.hosts)) is not None:
            used, most = self._vlans.used(full_switch), self._vlans.most(full_switch)
            return Refusal(flow, full_switch, "VLANs", float(used), 1.0, float(most), "VLANs")
        return None

    def _settled(self, flow: Flow, counted: _CountedFlow, state: _PortState) -> dict[str, int] | Refusal:
        """Return the bounds with the flow, or the first target or room that one of them exceeds."""
        network = state.network
        try:
            with _added(network, counted):
                touched: dict[str, ServerLoad] = {}
                path = [step.server for step in counted.steps]
                bounds = network.settle(path, limits_ns=self._targets, touched=touched)
                # In the order of the bounds, so that of several limits the same one is always told.
                for name in bounds if not state.is_within else filter(touched.__contains__, bounds):
                    load = touched.get(name) or network.load(name, bounds)
                    backlog_bytes = backlog_of_port_bytes(*load)
                    if backlog_bytes > self._room_bytes(name):
                        break
                else:
                    return bounds
            refusal = self._burst_refusal(flow, counted, name, backlog_bytes, state)
            is_room = True
        except UnsettledError as unsettled:
            name = unsettled.server
            refusal = self._delay_refusal(flow, counted, name, unsettled.delay_ns, state)
            is_room = self._is_by_room(name)
        if not (is_room and self._has_hints):
            return refusal
        return refusal._replace(hint=self._room_hint(counted, name, state))

    def _is_by_room(self, name: str) -> bool:
        """Return whether a port's target is the time in which a full queue drains."""
        if name in self._lab.hosts:
            return False
        return self._targets[name] == self._queue(name).drain_ns(self._class(name))

    def _room_hint(self, counted: _CountedFlow, name: str, state: _PortState) -> str:
        """Return how much to reserve in switches like that of a server so that a flow fits.

        Empty if they share no memory, or if another limit would refuse the flow.
        """
        refusing = None if name in self._lab.hosts else self._queue(name)
        if not isinstance(refusing, PortDevice) or refusing.profile.buffer is None:
            return ""
        network, needed_bytes = state.network, 0.0
        given_ns = {one: ns for one, ns in self._targets.items() if not self._is_by_room(one)}
        try:
            with _added(network, counted):
                bounds = network.settle([step.server for step in counted.steps], limits_ns=given_ns)
                for one, bound_ns in bounds.items():
                    device = None if one in self._lab.hosts else self._queue(one)
                    if not isinstance(device, PortDevice) or device.profile.name != refusing.profile.name:
                        continue
                    needed_bytes = max(needed_bytes, network.backlog_bytes(one, bounds))
                    if self._is_by_room(one):
                        needed_bytes = max(needed_bytes, device.room_for_ns(bound_ns, self._class(one)))
        except UnsettledError:
            return ""
        return refusing.room_hint(needed_bytes)

    def _burst_refusal(
        self, flow: Flow, counted: _CountedFlow, name: str, backlog_bytes: float, state: _PortState
    ) -> Refusal:
        used_bytes = state.network.backlog_bytes(name) if state.network.has_flows(name) else 0.0
        numbers = (used_bytes, backlog_bytes - used_bytes, self._room_bytes(name), "bytes")
        return self._refusal(flow, counted, name, "burst", numbers)

    def _delay_refusal(
        self, flow: Flow, counted: _CountedFlow, name: str, delay_ns: float, state: _PortState
    ) -> Refusal:
        used_ns = min(float(state.network.bounds.get(name, 0)), delay_ns)
        target_ns = self._targets[name]
        return self._refusal(flow, counted, name, "delay", (used_ns, delay_ns - used_ns, target_ns, "ns"))

    def _refusal(
        self,
        flow: Flow,
        counted: _CountedFlow,
        name: str,
        what: str,
        numbers: tuple[float, float, float, str],
    ) -> Refusal:
        if name in self._lab.hosts:
            return Refusal(flow, counted.path[0].switch, f"{what} of {flow.source}'s cable", *numbers)
        return Refusal(flow, name.partition(":")[0], self._quantity(what, name), *numbers)

    def _quantity(self, what: str, name: str) -> str:
        """Return what is limited at a server of a switch, in words: of which port, and of which class."""
        return what if name in self._shared else f"{what} of port {name.partition(':')[2]}"

    def _server(self, switch: str, port: int, traffic_class: int = HIGHEST_CLASS) -> str:
        """Return the name of the server at which flows of a class wait that leave a switch by a port."""
        return switch if switch in self._shared else _of_class(f"{switch}:{port}", traffic_class)

    def _class(self, name: str) -> int:
        """Return the class of the flows that wait at a switch's server."""
        return HIGHEST_CLASS + self._same_port[name].index(name)

    def _queue(self, name: str) -> FlowQueue:
        """Return the queue of a switch's server, which is the same for all classes."""
        return self._queues[self._same_port[name][0]]

    def _patience(self, flow: Flow, counted: _CountedFlow) -> Suggestion | None:
        """Return the advice to wait until the flow fits, if it does once released flows are forgotten."""
        if not self._state.has_backlog:
            return None
        ahead, at_ns = self._state.copy(), self._clock.now_ns
        held_ns, self._held_ns = self._held_ns, 0
        try:
            for _ in range(_MOST_CHANGES):
                if not ahead.has_backlog:
                    return None
                at_ns = max(at_ns, ahead.next_ns())
                ahead.settle(at_ns)
                if not isinstance(self._found(flow, counted, ahead), Refusal):
                    return wait_advice(self._clock.now_ns, max(at_ns, held_ns))
        finally:
            self._held_ns = held_ns
        return None

    def _counted(self, flow: Flow, path: tuple[Hop, ...]) -> _CountedFlow:
        rate_bps = self._lab.port_rate_bps(flow.source, 1)
        steps = [PathStep(_host(flow.source), (PREAMBLE_BYTES + flow.frame_bytes) * 8e9 / rate_bps)]
        for hop in path:
            server = self._server(hop.switch, hop.output_port, flow.traffic_class)
            steps.append(PathStep(server, self._queue(server).least_ns(flow.frame_bytes)))
        cables_ns = sum(self._cable_ns(hop.switch) for hop in path)
        hosts = flow.source, flow.destination
        return _CountedFlow(flow.id, path, tuple(steps), _on_wire(flow), cables_ns, hosts)

    def _no_flows(self) -> _PortState:
        return _PortState(self._servers, self._coarse if self._finds_bounds_late else None)

    def _no_vlans(self) -> FlowVlans:
        return FlowVlans(vlans_of(self._lab) if self._limits_vlans else {})

    def _forget(self, counted: _CountedFlow) -> None:
        """Give back a flow's entries and its VLAN."""
        self._entries.subtract(hop.switch for hop in counted.path)
        if counted.vlan is not None:
            self._vlans.remove(counted.vlan, counted.path, counted.hosts)

    def _settle(self) -> None:
        state = self._state
        if state.has_backlog and self._clock.now_ns >= self._held_ns:
            before = {released.counted.flow_id: released.counted for released in state.draining}
            state.settle(self._clock.now_ns)
            left = {released.counted.flow_id for released in state.draining}
            for flow_id, counted in before.items():
                if flow_id not in left:
                    self._forget(counted)

    @property
    def _is_held(self) -> bool:
        return self._clock.now_ns < self._held_ns

    def _sender(self, host: str) -> PortServer:
        """Return a host's cable: it sends its flows' frames in the order in which they come."""
        end, switches = self._lab.far_end(host, 1), self._lab.switches
        switch = end.node if end is not None and end.node in switches else next(iter(switches))
        rate_bps, stretch = self._lab.port_rate_bps(host, 1), switches[switch].profile.tolerance.stretch
        return PortServer(
            service=RateLatency(rate_bps=rate_bps / stretch, latency_ns=0.0),
            line_rate_bps=rate_bps * stretch,
        )

    def _first_wire_ns(self, flow: Flow) -> float:
        """Return the time of a flow's frame on its host's cable, from its first bit to its last."""
        service = self._servers[_host(flow.source)].service
        return (flow.frame_bytes + BESIDE_BYTES) * 8e9 / service.rate_bps

    def _delay_ns(self, switch: str, port: int, traffic_class: int = HIGHEST_CLASS) -> float:
        """Return the target of a port for a class, with the cable to the switch."""
        return self._targets[self._server(switch, port, traffic_class)] + self._cable_ns(switch)

    def _cable_ns(self, switch: str) -> float:
        tolerance = self._lab.switches[switch].profile.tolerance
        return tolerance.cable_ns.value * tolerance.stretch

    def _used_bps(self, name: str, network: TotalFlow | None = None) -> float:
        """Return the rate of all flows of a host's cable, or of all classes of a server's port."""
        return sum(map((network or self._state.network).used_bps, self._same_port[name]))

    def _allowed_bps(self, name: str) -> float:
        return self._servers[name].service.rate_bps * _MOST_USED

    def _room_bytes(self, name: str) -> float:
        return math.inf if name in self._lab.hosts else self._queue(name).room_bytes

    def _finite_target_ns(self, name: str) -> float:
        target_ns = self._targets[name]
        return target_ns if math.isfinite(target_ns) else 0.0


@contextmanager
def _added(network: TotalFlow, counted: _CountedFlow) -> Iterator[None]:
    """Count a flow meanwhile. The bounds stay as they are."""
    network.add(counted.steps, counted.bucket)
    try:
        yield
    finally:
        kept = network.bounds
        network.bounds = dict(kept)
        network.remove(counted.steps, counted.bucket)
        network.bounds = kept


def _host(name: str) -> str:
    """Return the name of a host's cable as a server; no port of a switch is called like a host."""
    return name


def _of_class(server: str, traffic_class: int) -> str:
    """Return the name of a server of a class, for that of the highest class of the same port."""
    return server if traffic_class == HIGHEST_CLASS else f"{server} class {traffic_class}"


def _on_wire(flow: Flow) -> TokenBucket:
    """Return a flow's bucket with preambles and gaps: its frames all have one size."""
    factor = (flow.frame_bytes + BESIDE_BYTES) / flow.frame_bytes
    return TokenBucket(rate_bps=flow.rate_bps * factor, burst_bytes=flow.burst_bytes * factor)


def _ports(lab: Lab, switch: str, sizes: tuple[int, ...], classes: int) -> Iterator[tuple[int, PortDevice]]:
    """Yield the ports of a switch that have cables, each with what it promises at its cable's rate."""
    by_rate = LazyMapping[int, PortDevice](lambda rate_bps: _device(lab, switch, sizes, rate_bps, classes))
    for port, _ in lab.neighbours(switch):
        yield port, by_rate[lab.port_rate_bps(switch, port)]


def _device(lab: Lab, switch: str, sizes: tuple[int, ...], rate_bps: int, classes: int) -> PortDevice:
    device, cabled = lab.switches[switch], len(lab.neighbours(switch))
    try:
        port = port_device(
            device.profile,
            frame_bytes=sizes,
            cabled_ports=cabled,
            fastest=device.fastest,
            rate_bps=rate_bps,
            classes=classes,
        )
    except InputError as error:
        raise InputError(f"{switch}: {error}") from None
    if port.room_bytes < port.server.frame_bytes:
        hint = port.room_hint(port.server.frame_bytes)
        raise InputError(
            f"{switch}: {device.profile.name}: nothing can be promised: when other queues are full, a queue"
            f" has room for {max(0.0, port.room_bytes):.0f} bytes, less than a frame"
            + (f"; {hint}" if hint else "")
        )
    return port


def _target_ns(queue: FlowQueue, name: str, target_ns: float | None, traffic_class: int) -> float:
    """Return the target of a server for a class. Raises `InputError` if no frame can keep it."""
    if target_ns is None:
        return queue.drain_ns(traffic_class)
    if target_ns < queue.lone_frame_ns:
        raise InputError(
            f"target {target_ns / 1e6:g} ms: a frame may take {queue.lone_frame_ns / 1e6:.4f} ms at {name};"
            " choose more"
        )
    return min(target_ns, queue.room_ns) if traffic_class == HIGHEST_CLASS else target_ns
