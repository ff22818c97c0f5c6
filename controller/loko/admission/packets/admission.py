"""Packet-granular admission: a flow is accepted if no frame can exceed any switch's fixed delay target.

The theorem and its proof: docs/packet-granular.md. All work is counted in whole nanoseconds of the CPU, so
that a flow that no longer counts leaves nothing but its residual backlog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import ClassVar, Final, NamedTuple

from loko.admission import (
    Admitted,
    AdmittedFlows,
    Refusal,
    ResourceDemand,
    SchemeConditions,
    Usage,
    suggest_more_entries,
    suggest_on_path,
)
from loko.admission.packets.conditions import CONDITIONS
from loko.admission.packets.server import FrameServer, frame_server
from loko.admission.packets.staircase import Grid, Staircase
from loko.admission.packets.switch import PortLoad, ServerKey, SwitchUse
from loko.admission.residual_backlog import AdmissionClock, wait_advice
from loko.document import InputError
from loko.lazy_mapping import LazyMapping
from loko.switch_model.allocation import FULL_RATE, PACKET_GRANULAR
from loko.switch_model.calculus import bytes_in
from loko.switch_model.control_traffic import NO_MESSAGES, ControlTraffic
from loko.switch_model.device import deterministic
from loko.switch_model.flow import Flow
from loko.switch_model.margin import GuaranteeKind, LimitTest, MarginLimit
from loko.switch_model.scenario import Scenario, Unknown
from loko.topology.lab import Lab
from loko.topology.lab_allocation import allocations_of
from loko.topology.network import Hop

_SINGLE_VISITS: Final = "how its frames meet there is not bounded; take another path, or scheme loko"
_KEPT_FLOWS: Final = 1024
"""How many sorts of flows to remember per kind of path, with what they bring to its switches."""
_Kind = tuple[int, float, tuple[int, ...] | None]
"""Identity of the profile, delay target, and frame sizes if not all reach the switch."""
_new: Final = tuple.__new__
"""See `loko.admission.token_buckets._new`."""


def default_targets(lab: Lab, scenario: Scenario) -> dict[str, float]:
    """Return each switch's delay bound in ns under the paper's full-rate allocation: 1.86 ms in section 6."""
    return {
        name: allocation.delay_ns for name, allocation in allocations_of(lab, FULL_RATE, scenario).items()
    }


class _SwitchTransit(NamedTuple):
    """Frames of one size on one path, at one switch."""

    jitter_ns: int
    delay_ns: int
    service_ns: int


class _FlowLoads(NamedTuple):
    """Demand of a flow at the switches of a path: one value per switch, in order."""

    loads: tuple[tuple[Staircase, float, float], ...]
    """The fields of each `PortLoad` except the port."""
    bursts_bytes: tuple[float, ...]
    delays_ns: tuple[int, ...]


class _PathClass:
    """Paths across the same kinds of switches in the same order. A flow brings the same to each of them."""

    def __init__(self, *, jitter_grows: bool) -> None:
        self._jitter_grows = jitter_grows
        self._passages: dict[int, tuple[_SwitchTransit, ...]] = {}
        """Passages by frame size."""
        self._brought: dict[tuple[float, float, int], _FlowLoads] = {}
        """Demands of flows by rate, burst and frame size."""

    def loads_of(self, flow: Flow, ways: Sequence[tuple[SwitchUse, int]]) -> _FlowLoads:
        """Return what a flow brings to the switches of a path. Raises `InputError` for an unplanned size."""
        key = flow[5:8]
        known = self._brought.get(key)
        if known is None:
            if len(self._brought) >= _KEPT_FLOWS:
                self._brought.clear()
            known = self._brought[key] = self._computed(flow, [switch for switch, _ in ways])
        return known

    def _computed(self, flow: Flow, switches: Sequence[SwitchUse]) -> _FlowLoads:
        rate_bps, burst_bytes, frame_bytes = flow[5:8]
        passages = self.passages(frame_bytes, switches)
        loads = []
        for passage in passages:
            staircase = Staircase.of(
                rate_bps=rate_bps,
                burst_bytes=burst_bytes,
                jitter_ns=passage.jitter_ns,
                frame_bytes=frame_bytes,
                service_ns=passage.service_ns,
            )
            share = staircase.frames_per_ns * passage.service_ns
            burst_ns = burst_bytes / frame_bytes * passage.service_ns + share * passage.jitter_ns
            loads.append((staircase, share, burst_ns))
        return _FlowLoads(
            tuple(loads),
            tuple(
                burst_bytes + bytes_in(rate_bps=rate_bps, duration_ns=passage.jitter_ns)
                for passage in passages
            ),
            tuple(passage.delay_ns for passage in passages),
        )

    def passages(self, frame_bytes: int, switches: Sequence[SwitchUse]) -> tuple[_SwitchTransit, ...]:
        """Return the passages of a path in order. Raises `InputError` for a size that was not planned for."""
        if frame_bytes not in self._passages:
            self._passages[frame_bytes] = tuple(self._passed(frame_bytes, switches))
        return self._passages[frame_bytes]

    def _passed(self, frame_bytes: int, switches: Sequence[SwitchUse]) -> Iterator[_SwitchTransit]:
        jitter_ns = 0
        for switch in switches:
            delay_ns = switch.delay_ns(frame_bytes)
            server = switch.server
            yield _SwitchTransit(jitter_ns, delay_ns, server.times[frame_bytes].service_ns)
            if not self._jitter_grows:
                continue
            if jitter_ns == 0:
                jitter_ns = server.sender_queue_ns(switch.work_ns)
            jitter_ns += server.jitter_ns(frame_bytes, switch.work_ns)


class PacketRoute(NamedTuple):
    """A path, with what a decision needs to know about its switches."""

    path: tuple[Hop, ...]
    ways: tuple[tuple[SwitchUse, int], ...]
    """The switches, each with the port at which frames arrive."""
    kinds: _PathClass

    @property
    def sender_queue_ns(self) -> int:
        """Longest wait of a frame for the link of the path's source."""
        first = self.ways[0][0]
        return first.server.sender_queue_ns(first.work_ns)

    def loads(self, flow: Flow) -> Iterator[tuple[SwitchUse, PortLoad]]:
        """Yield what the flow brings to each switch. Raises `InputError` as `_Kinds.loads_of` does."""
        for (switch, port), load in zip(self.ways, self.kinds.loads_of(flow, self.ways).loads, strict=True):
            yield switch, _new(PortLoad, (port, *load))


class PacketAdmission:
    """Admission by staircases of whole frames. A decision costs O(path), however many flows are admitted."""

    conditions: ClassVar[SchemeConditions] = CONDITIONS
    _jitter_grows: ClassVar[bool] = True
    """Without growth nothing is guaranteed: it gives only a ceiling on what better bounds could accept."""

    def __init__(
        self,
        lab: Lab,
        scenario: Scenario,
        targets: Mapping[str, float] | None = None,
        *,
        traffic: ControlTraffic = NO_MESSAGES,
        padding: int | None = None,
        grid: Grid | None = None,
    ) -> None:
        """Start empty. `targets` has the largest delay of every switch in ns, from first bit in to first out.

        The default is that of the paper's full-rate allocation. `traffic`: see `frame_server`. `padding`: see
        `loko.admission.schemes.admission_of`. Raises `InputError` if a switch has no worst case or cannot
        forward even a single frame in time.
        """
        self._register = AdmittedFlows(lab, self._prepare, single_visits=_SINGLE_VISITS)
        self._clock = AdmissionClock()
        self._owes = False  # until a flow is released
        self._routes: dict[str, PacketRoute] = {}
        """By id of each admitted flow. Its loads are made only when needed, as they are many."""
        self._lab = lab
        self._targets = dict(targets or default_targets(lab, scenario))
        self._scenario, self._traffic, self._padding = scenario, traffic, padding
        self._grid = grid or Grid.standard()
        self._servers: dict[tuple[object, ...], FrameServer] = {}
        self._switches = LazyMapping(self._switch)
        self._arrivals = LazyMapping(self._arrival)
        self._kinds: LazyMapping[tuple[ServerKey, ...], _PathClass] = LazyMapping(
            lambda _: _PathClass(jitter_grows=self._jitter_grows)
        )
        # Make one switch of each kind now: it shows whether such a switch can forward anything.
        kinds: dict[_Kind, str] = {}
        for name in lab.switches:
            kinds.setdefault(self._kind(name), name)
        for name in kinds.values():
            self._server(name)
        for name in kinds.values():
            self._switches[name] = self._switch(name)

    @property
    def scheme(self) -> str:
        """Name of the scheme."""
        return PACKET_GRANULAR

    @property
    def switches(self) -> Mapping[str, SwitchUse]:
        """Usage of each switch."""
        return self._switches

    @property
    def admitted(self) -> Mapping[str, Admitted]:
        """The accepted flows by id, in order of admission."""
        return self._register.admitted

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Return what `request` would answer, without admitting anything."""
        answer = self._decide(flow, self._register.route(flow, path))
        return answer if isinstance(answer, Admitted) else self._advised(answer, path)

    def request(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Admit a flow along a path, by default the shortest, or say why not.

        Raises `InputError` for unknown hosts, a path that does not connect them, an id or ports in use, or
        frames that the model does not cover.
        """
        route = self._register.route(flow, path)
        answer = self._decide(flow, route)
        if isinstance(answer, Admitted):
            self._register.add(answer)
            self._routes[flow.id] = route
            for switch, load in route.loads(flow):
                switch.add(load)
            return answer
        return self._advised(answer, path)

    def advance(self, now_ns: int) -> None:
        """Let time pass. Released flows count less and less."""
        self._clock.advance(now_ns)

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None = None) -> None:
        """Release a flow that has sent until now, or until `sent_until_ns`.

        It still counts as long as what it has sent may matter. Raises `InputError` if it was not admitted.
        """
        self._clock.advance(now_ns)
        self._owes = True
        admitted = self._register.remove(flow_id)
        route = self._routes.pop(flow_id)
        last_ns = self._clock.now_ns if sent_until_ns is None else sent_until_ns
        reaches_ns = accumulate(admitted.delays_ns, initial=float(route.sender_queue_ns))
        for (switch, load), reach_ns in zip(route.loads(admitted.flow), reaches_ns, strict=False):
            switch.drain(self._clock.after(last_ns, reach_ns + switch.server.cable_ns), load)

    def cancel(self, flow_id: str) -> None:
        """Undo the request of a flow that has sent nothing. Raises `InputError` if it was not admitted."""
        admitted = self._register.remove(flow_id)
        for switch, load in self._routes.pop(flow_id).loads(admitted.flow):
            switch.remove(load)

    def rename(self, flow_id: str, flow: Flow) -> Admitted:
        """Give an admitted flow another id and other ports."""
        renamed = self._register.rename(flow_id, flow)
        self._routes[flow.id] = self._routes.pop(flow_id)
        return renamed

    def release_all(self) -> None:
        """Begin anew, as if no flow had ever sent."""
        self._register.clear()
        self._owes = False
        self._routes.clear()
        for switch in self._switches.values():
            switch.clear()

    def drain_time_ns(self, flow_id: str) -> int:
        """Return the time from a flow's last frame until none is on its way and the flow counts nowhere."""
        queue_ns = self._routes[flow_id].sender_queue_ns
        return self._clock.after(0, queue_ns + self._register.admitted[flow_id].guarantee_ns)

    def servers(self, admitted: Admitted) -> tuple[str, ...]:
        """Return the switches on a flow's path."""
        return tuple(hop.switch for hop in admitted.path)

    def residual_backlog(self, server: str) -> float | None:
        """Return what released flows that no longer count may have left at a switch, in ns of CPU; or None.

        It may be negative: then it matters only to flows whose bursts add up to more than the delay target.
        """
        return self._switches[server].backlog_ns

    def restore_backlogs(self, backlogs: Mapping[str, float], *, now_ns: int) -> None:
        """Take over stored residual backlogs by switch, as if no time had passed since."""
        self._clock.advance(now_ns)
        self._owes = True
        for server, backlog_ns in backlogs.items():
            self._switches[server].restore(backlog_ns)

    def usage(self, switch: str) -> Usage:
        """Return what is used of a switch now. It depends only on the set of flows that count."""
        return self._switches[switch].usage()

    def demands(self, admitted: Admitted) -> Iterator[ResourceDemand]:
        """See `Admission.demands`. How frames meet, which decides on delays, is not part of it."""
        flow, path = admitted.flow, admitted.path
        route = self._routes.get(flow.id) or self._register.route(flow, path)
        for switch, load in route.loads(flow):
            yield from switch.demands(load)

    def falls_if_slower(self) -> LimitTest | None:
        """See `Admission.falls_if_slower`."""
        flows = tuple(self.admitted.values())
        if not flows or (self._owes and any(switch.has_backlog() for switch in self._switches.values())):
            return None
        granted_ns: dict[_Kind, dict[int, int]] = {}
        for name in self._lab.switches:
            kind = self._kind(name)
            if kind not in granted_ns:
                use = self._switches[name]
                granted_ns[kind] = {size: use.delay_ns(size) for size in use.server.times}
        kinds = {name: granted_ns[self._kind(name)] for name in self._lab.switches}
        return partial(self._fall, flows, kinds)

    def _fall(
        self, flows: Sequence[Admitted], granted_ns: Mapping[str, Mapping[int, int]], slower_ppm: int
    ) -> MarginLimit | None:
        """Return what falls if every switch is slower but must keep the delays granted, by frame size."""
        lab = self._lab.slowed(slower_ppm)
        first = flows[0].path[0].switch
        kinds: dict[tuple[int, int], tuple[int, GuaranteeKind]] = {}
        """By profile and granted delays: the target that keeps them, and what a refusal means."""
        targets: dict[str, float] = {}
        promises: dict[str, GuaranteeKind] = {}
        try:
            for name, delays_ns in granted_ns.items():
                kind = id(lab.switches[name].profile), id(delays_ns)
                if kind not in kinds:
                    server = self._made_server(lab, name)
                    # With several sizes, each has a delay of its own to keep.
                    idle_ns = {size: server.delay_ns(size, 0) for size in delays_ns}
                    work_ns = min(delays_ns[size] - idle_ns[size] for size in delays_ns)
                    is_full = server.largest_work_ns < work_ns
                    target = work_ns + max(idle_ns.values())
                    kinds[kind] = target, GuaranteeKind.LOSS if is_full else GuaranteeKind.LATENESS
                targets[name], promises[name] = kinds[kind]
            slower = type(self)(lab, self._scenario, targets, traffic=self._traffic, padding=self._padding)
        except InputError:  # not even one frame
            return MarginLimit(first, promises.get(first, GuaranteeKind.LOSS))
        for admitted in flows:
            answer = slower.request(admitted.flow, admitted.path)
            if isinstance(answer, Refusal):
                promise = promises[answer.switch] if answer.quantity == "delay" else GuaranteeKind.LOSS
                return MarginLimit(answer.switch, promise)
        return None

    def _advised(self, refusal: Refusal, path: Sequence[Hop] | None) -> Refusal:
        """Add to a refusal what finds its suggestion, unless it already advises to wait."""
        advice = refusal.advice or partial(suggest_on_path, self.check, path)
        return refusal._replace(advice=advice)

    def _decide(self, flow: Flow, route: PacketRoute) -> Admitted | Refusal:
        for switch, load in route.loads(flow):
            refusal = switch.refusal(flow, load)
            if refusal is not None:
                return self._with_patience(refusal, route)
        return self._accepted(flow, route)

    @staticmethod
    def _accepted(flow: Flow, route: PacketRoute) -> Admitted:
        path, ways, kinds = route
        _, bursts_bytes, delays_ns = kinds.loads_of(flow, ways)
        return _new(Admitted, (flow, path, bursts_bytes, delays_ns, None, None))

    def _with_patience(self, refusal: Refusal, route: PacketRoute) -> Refusal:
        """Add the advice to wait to a refusal, if waiting helps."""
        if not self._owes:
            return refusal
        offered = list(route.loads(refusal.flow))
        if not any(switch.has_backlog() for switch, _ in offered):
            return refusal
        fits_ns = max(switch.fits_ns(refusal.flow, load) for switch, load in offered)
        advice = wait_advice(self._clock.now_ns, fits_ns)
        return refusal if advice is None else refusal._replace(advice=advice)

    def _prepare(self, source: str, path: tuple[Hop, ...]) -> PacketRoute:
        arrivals = self._arrivals
        ways = []
        node, port = source, 1
        for hop in path:
            ways.append(arrivals[node, port])
            node, port = hop.switch, hop.output_port
        kinds = self._kinds[tuple([switch.kind for switch, _ in ways])]
        return _new(PacketRoute, (path, tuple(ways), kinds))

    def _arrival(self, leaves: tuple[str, int]) -> tuple[SwitchUse, int]:
        """Return the switch, and its port, at the other end of the cable from a node's port."""
        end = self._lab.far_end(*leaves)
        assert end is not None, "the register has checked the path"
        return self._switches[end.node], end.port

    def _kind(self, name: str) -> _Kind:
        return id(self._lab.switches[name].profile), self._targets[name], self._scenario.sizes_at.get(name)

    def _server(self, name: str) -> FrameServer:
        """Return the server of a switch. Switches with the same profile, wait and frame sizes share one."""
        wait_ns = None if self._lab.controller is None else self._targets[name]
        kind = id(self._lab.switches[name].profile), wait_ns, self._scenario.sizes_at.get(name)
        if kind not in self._servers:
            self._servers[kind] = self._made_server(self._lab, name)
        return self._servers[kind]

    def _made_server(self, lab: Lab, name: str) -> FrameServer:
        """Return the server of a switch, which keeps the target of this admission."""
        switch, padding = lab.switches[name], self._padding
        return frame_server(
            deterministic(switch.profile),
            self._scenario.at(name),
            self._traffic,
            fastest=deterministic(switch.fastest),
            least_entries=None if padding is None else padding + 1,
            control_wait_ns=None if lab.controller is None else self._targets[name],
        )

    def _switch(self, name: str) -> SwitchUse:
        lab, entries = self._lab, self._scenario.entries
        table = lab.switches[name].profile.table.entries.value
        if isinstance(entries, Unknown):
            entries = table
        switch = SwitchUse(
            name,
            self._server(name),
            self._grid,
            target_ns=self._targets[name],
            max_entries=entries - (self._padding or 0),
            hint=suggest_more_entries(name, entries, table),
            clock=self._clock,
        )
        for port, far in lab.neighbours(name):
            if far.node in lab.switches:
                switch.shape_by_switch(port, self._server(far.node))
            else:
                switch.shape_by_link(port)
        return switch
