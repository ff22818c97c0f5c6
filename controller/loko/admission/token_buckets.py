"""Loko's own scheme (section 5): sums of rates and of bursts, each within the switch's allocation.

So the delay bound D of a switch, and with it every guarantee once given, holds whatever is admitted later.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import ClassVar, Final, NamedTuple

from loko.admission.admitted_flows import AdmittedFlows
from loko.admission.answer import Admitted, Refusal, Suggestion
from loko.admission.residual_backlog import AdmissionClock, ResidualBacklog, wait_advice
from loko.admission.scheme import ResourceDemand, ResourceShare, Usage
from loko.admission.suggestion import suggest_more_entries, suggest_on_path
from loko.document import InputError
from loko.lazy_mapping import LazyMapping
from loko.switch_model.allocation import Allocation
from loko.switch_model.calculus import NOTHING, TokenBucket, time_ns
from loko.switch_model.flow import Flow
from loko.switch_model.margin import GuaranteeKind, LimitTest, MarginLimit
from loko.switch_model.scenario import Unknown
from loko.topology.conditions import HOSTS_TAG_FRAMES, SchemeConditions, of_one_server
from loko.topology.lab import Lab
from loko.topology.lab_allocation import SplitsOf
from loko.topology.network import Hop
from loko.units import BITS_NS_PER_BYTE_S

ROUNDING: Final = 1e-9
"""Relative slack of comparisons, so that shares which add up to the whole fit in binary floating point."""
_ULP: Final = sys.float_info.epsilon
_MOST_FLOWS: Final = 1_000_000
"""The most flows of a switch without entries per flow: sums of this many keep within `ROUNDING`."""
_NO_CAPACITY: Final = -math.inf
_new: Final = tuple.__new__
"""Makes a named tuple from all its values in order, in half the time of a normal call."""
CONDITIONS: Final = of_one_server(HOSTS_TAG_FRAMES)
"""The conditions of Loko's guarantees."""
_Suggest = Callable[[Refusal], Suggestion]
"""Finds a suggestion, as `Refusal.advice` does."""
Sizes = tuple[int, ...] | range
"""Sizes of frames in bytes."""


class LokoAdmission:
    """Admission by token buckets.

    A decision costs O(path), however many flows are admitted. Only when room is tight, or while released
    flows matter, are the sums over a switch's flows computed anew; its table holds at most 128. The
    allocations never change.
    """

    conditions: ClassVar[SchemeConditions] = CONDITIONS

    def __init__(
        self,
        lab: Lab,
        allocations: Mapping[str, Allocation],
        control: TokenBucket = NOTHING,
        *,
        padding: int = 0,
        entry_per_flow: bool = True,
        between: Callable[[str, str], tuple[Hop, ...]] | None = None,
        splits_of: SplitsOf | None = None,
    ) -> None:
        """Start empty. `allocations` has one for each switch; `control` is reserved at each (r_CP, b_CP).

        Of the planned entries, `padding` belong to no flow. Without `entry_per_flow` none does, and entries
        limit nothing. `between` gives the shortest paths, if the caller knows them already; `splits_of` the
        splits from which the allocations would be chosen with other devices.
        """
        self.allocations = allocations
        """The allocation of each switch."""
        self._register = AdmittedFlows(
            lab,
            self._prepare,
            single_visits=_single_visits(allocations) if entry_per_flow else "",
            between=between,
        )
        self._clock = AdmissionClock()
        self._owes = False  # until a flow is released
        self._splits_of = splits_of
        self._suggest = self._suggestion_on(None)
        """Shared by all refusals on shortest paths: it takes time to make, and few are read."""
        self._control, self._padding, self._entry_per_flow = control, padding, entry_per_flow
        self._limits: dict[int, _Limits] = {}
        """By the identity of the allocation."""
        alike = {id(allocation): allocation for allocation in allocations.values()}
        self._limits_of_all = self._limits_of(*alike.values()) if len(alike) == 1 else None
        """The limits of every switch, if all have the same."""
        self._switches: LazyMapping[str, _SwitchState] = LazyMapping(
            lambda name: _SwitchState(name, self._limits_of(allocations[name]), self._clock)
        )

    @property
    def scheme(self) -> str:
        """The allocation schemes in use."""
        return ", ".join(dict.fromkeys(allocation.scheme.name for allocation in self.allocations.values()))

    @property
    def admitted(self) -> Mapping[str, Admitted]:
        """The accepted flows by id, in order of admission."""
        return self._register.admitted

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Return what `request` would answer, without admitting anything."""
        route = self._register.route(flow, path)
        answer = route.decide(flow, self._suggest if path is None else self._suggestion_on(path))
        return self._with_wait_advice(answer, route) if self._owes else answer

    def request(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Admit a flow along a path, by default the shortest, or say why not.

        Raises `InputError` for unknown hosts, a path that does not connect them, an id or ports in use, or
        frames that the model does not cover.
        """
        route = self._register.route(flow, path)
        answer = route.decide(flow, self._suggest if path is None else self._suggestion_on(path))
        if isinstance(answer, Admitted):
            self._register.add(answer)
            rate_bps = flow.rate_bps
            for switch, burst_bytes in zip(route.switches, answer.bursts_bytes, strict=True):
                switch.add(rate_bps, burst_bytes)
            return answer
        return self._with_wait_advice(answer, route) if self._owes else answer

    def _suggestion_on(self, path: Sequence[Hop] | None) -> _Suggest:
        """Return a function that finds what would fit on a path, by default the shortest at that time."""
        return partial(suggest_on_path, self.check, path)

    def _with_wait_advice(self, answer: Admitted | Refusal, route: _Route) -> Admitted | Refusal:
        """Add the advice to wait to a refusal, if waiting helps."""
        if isinstance(answer, Refusal) and any(switch.has_backlog() for switch in route.switches):
            advice = wait_advice(self._clock.now_ns, route.fits_ns(answer.flow))
            return answer if advice is None else answer._replace(advice=advice)
        return answer

    def advance(self, now_ns: int) -> None:
        """Let time pass. Released flows count less and less."""
        self._clock.advance(now_ns)

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None = None) -> None:
        """Release a flow that has sent until now, or until `sent_until_ns`.

        It still counts as long as what it has sent may matter. Raises `InputError` if it was not admitted.
        """
        self._clock.advance(now_ns)
        self._owes = True
        sent_ns = self._clock.now_ns if sent_until_ns is None else sent_until_ns
        admitted = self._register.remove(flow_id)
        rate_bps = admitted.flow.rate_bps
        ends_ns = self._ends_ns(admitted)
        for hop, burst_bytes, end_ns in zip(admitted.path, admitted.bursts_bytes, ends_ns, strict=False):
            self._switches[hop.switch].drain(self._clock.after(sent_ns, end_ns), rate_bps, burst_bytes)

    def cancel(self, flow_id: str) -> None:
        """Undo the request of a flow that has sent nothing. Raises `InputError` if it was not admitted."""
        admitted = self._register.remove(flow_id)
        for hop, burst_bytes in zip(admitted.path, admitted.bursts_bytes, strict=True):
            self._switches[hop.switch].remove(admitted.flow.rate_bps, burst_bytes)

    def rename(self, flow_id: str, flow: Flow) -> Admitted:
        """Give an admitted flow another id and other ports."""
        return self._register.rename(flow_id, flow)

    def release_all(self) -> None:
        """Begin anew, as if no flow had ever sent."""
        self._register.clear()
        self._owes = False
        for switch in self._switches.values():
            if switch.entries or switch.backlog.is_open:
                switch.clear()

    def drain_time_ns(self, flow_id: str) -> int:
        """Return the time from a flow's last frame until none is on its way and the flow counts nowhere."""
        return self._clock.after(0, max(self._ends_ns(self._register.admitted[flow_id])))

    def servers(self, admitted: Admitted) -> tuple[str, ...]:
        """Return the switches on a flow's path."""
        return tuple(hop.switch for hop in admitted.path)

    def residual_backlog(self, server: str) -> float | None:
        """Return what released flows that no longer count may have left at a switch, in bytes; or None."""
        return self._switches[server].backlog_bytes() or None

    def restore_backlogs(self, backlogs: Mapping[str, float], *, now_ns: int) -> None:
        """Take over stored residual backlogs by switch, as if no time had passed since."""
        self._clock.advance(now_ns)
        self._owes = True
        for server, amount in backlogs.items():
            self._switches[server].restore(amount)

    def usage(self, switch: str) -> Usage:
        """Return what is used of a switch now.

        It depends on the set of flows and on recent releases, not on older history.
        """
        return self._switches[switch].usage()

    def demands(self, admitted: Admitted) -> Iterator[ResourceDemand]:
        """See `Admission.demands`. Flows that exceed no capacity fit."""
        rate_bps = admitted.flow.rate_bps
        for hop, burst_bytes in zip(admitted.path, admitted.bursts_bytes, strict=True):
            name, limits = hop.switch, self._switches[hop.switch].limits
            free_bps = limits.max_rate_bps * (1 + ROUNDING) - limits.control.rate_bps
            free_bytes = limits.max_burst_bytes * (1 + ROUNDING) - limits.control.burst_bytes
            yield ResourceDemand(name, "rate", rate_bps, free_bps)
            yield ResourceDemand(name, "burst", burst_bytes, free_bytes)
            if self._entry_per_flow:
                yield ResourceDemand(name, "entries", 1.0, float(limits.max_entries))

    def falls_if_slower(self) -> LimitTest | None:
        """See `Admission.falls_if_slower`. Also None without `splits_of`."""
        splits_of = self._splits_of
        if splits_of is None or not self.admitted:
            return None
        if self._owes and any(switch.has_backlog() for switch in self._switches.values()):
            return None
        used = {switch.name: switch.used() for switch in self._switches.values() if switch.entries}
        lab = self._register.lab
        delays_ns = {name: allocation.delay_ns for name, allocation in self.allocations.items()}

        def falls(slower_ppm: int) -> MarginLimit | None:
            try:
                splits = splits_of(lab.slowed(slower_ppm), delays_ns)
            except InputError:  # what is reserved beside flows takes all
                return MarginLimit(next(iter(used)), GuaranteeKind.LOSS)
            for name, (rate_bps, burst_bytes) in used.items():
                promise = splits[name].falls(rate_bps, burst_bytes, delay_ns=delays_ns[name], slack=ROUNDING)
                if promise is not None:
                    return MarginLimit(name, promise)
            return None

        return falls

    def _ends_ns(self, admitted: Admitted) -> Iterator[float]:
        """Yield, for each switch on the path, how long a flow counts there after its last frame was sent.

        The last value is when that frame is at its destination at the latest.
        """
        first = self._switches[admitted.path[0].switch]
        passed_ns = first.limits.sender_queue_ns
        for hop, delay_ns in zip(admitted.path, admitted.delays_ns, strict=True):
            yield passed_ns + self._switches[hop.switch].limits.latency_ns
            passed_ns += delay_ns
        yield passed_ns

    def _limits_of(self, allocation: Allocation) -> _Limits:
        known = self._limits.get(id(allocation))
        if known is None:
            known = self._limits[id(allocation)] = _Limits(
                allocation, self._control, self._padding, entry_per_flow=self._entry_per_flow
            )
        return known

    def _prepare(self, _source: str, path: tuple[Hop, ...]) -> _Route:
        every, limits = self._switches, self._limits_of_all
        switches = tuple([every[hop.switch] for hop in path])
        if len(set(switches)) < len(switches):
            return _RevisitingRoute(
                path, switches, tuple([switch.limits.delay_ns for switch in switches]), ()
            )
        if limits is None:
            first, *others = [switch.limits.sizes for switch in switches]
            sizes = first if all(each == first for each in others) else ()
            return _Route(path, switches, tuple([switch.limits.delay_ns for switch in switches]), sizes)
        return _new(_Route, (path, switches, limits.delays_ns[len(path)], limits.sizes))


class _Route(NamedTuple):
    """A path, with what a decision needs to know about its switches."""

    path: tuple[Hop, ...]
    switches: tuple[_SwitchState, ...]
    delays_ns: tuple[float, ...]
    sizes: Sizes
    """Frame sizes that every switch of the path was planned for, if it is the same ones for all."""

    def decide(self, flow: Flow, suggest: _Suggest) -> Admitted | Refusal:
        """Decide whether the sums of rates and bursts fit the allocation at every switch (section 5)."""
        switches, delays_ns = self.switches, self.delays_ns
        rate_bps, burst_bytes, frame_bytes = flow[5:8]
        if frame_bytes not in self.sizes:
            self._refuse_uncovered(frame_bytes)
        here_bytes = burst_bytes
        # Bursts are added up along the path: in a full network most flows are refused before its end.
        for switch, delay_ns in zip(switches, delays_ns):  # noqa: B905 - `strict` takes longer than a switch
            if here_bytes > switch.burst_room or rate_bps > switch.rate_room:
                refusal = switch.refusal(flow, rate_bps, here_bytes, suggest)
                if refusal is not None:
                    return refusal
            here_bytes += rate_bps * delay_ns / BITS_NS_PER_BYTE_S  # as `_bursts_bytes`
        bursts_bytes = self._bursts_bytes(rate_bps, burst_bytes)
        return _new(Admitted, (flow, self.path, bursts_bytes, delays_ns, None, None))

    def _refuse_uncovered(self, frame_bytes: int) -> None:
        for switch in self.switches:
            if frame_bytes not in switch.limits.sizes:
                raise switch.uncovered(frame_bytes)

    def fits_ns(self, flow: Flow) -> float:
        """Return the instant from which a flow fits, if nothing else is added; infinite if it never does."""
        bursts = self._bursts_bytes(flow.rate_bps, flow.burst_bytes)
        return max(
            switch.fits_ns(flow.rate_bps, burst_bytes)
            for switch, burst_bytes in zip(self.switches, bursts, strict=True)
        )

    def _bursts_bytes(self, rate_bps: float, burst_bytes: float) -> tuple[float, ...]:
        """Return the burst of the flow where it enters each switch: it grows by r D (section 6.1)."""
        growths = [rate_bps * delay_ns / BITS_NS_PER_BYTE_S for delay_ns in self.delays_ns]
        return tuple(accumulate(growths, initial=burst_bytes))[:-1]


class _RevisitingRoute(_Route):
    """A path that visits a switch several times. There the flow counts once for each visit.

    Each visit has the rate of the flow, and the burst to which it has grown by then (docs/model.md, section
    15). So all visits are requested together.
    """

    __slots__ = ()

    def decide(self, flow: Flow, suggest: _Suggest) -> Admitted | Refusal:
        self._refuse_uncovered(flow.frame_bytes)
        for switch, bursts in self._visits(flow).items():
            rate_bps = len(bursts) * flow.rate_bps
            refusal = switch.refusal(flow, rate_bps, math.fsum(bursts), suggest, visits=len(bursts))
            if refusal is not None:
                return refusal
        bursts_bytes = self._bursts_bytes(flow.rate_bps, flow.burst_bytes)
        return Admitted(flow, self.path, bursts_bytes, self.delays_ns)

    def fits_ns(self, flow: Flow) -> float:
        return max(
            switch.fits_ns(len(bursts) * flow.rate_bps, math.fsum(bursts), visits=len(bursts))
            for switch, bursts in self._visits(flow).items()
        )

    def _visits(self, flow: Flow) -> dict[_SwitchState, list[float]]:
        """Return the flow's bursts at its visits to each switch."""
        bursts_of: dict[_SwitchState, list[float]] = {}
        bursts = self._bursts_bytes(flow.rate_bps, flow.burst_bytes)
        for switch, burst_bytes in zip(self.switches, bursts, strict=True):
            bursts_of.setdefault(switch, []).append(burst_bytes)
        return bursts_of


def _single_visits(allocations: Mapping[str, Allocation]) -> str:
    """Return why no path may visit a switch twice; empty if the tables are made for it."""
    scenarios = {
        id(allocation.service.scenario): allocation.service.scenario for allocation in allocations.values()
    }
    if all(scenario.compares_ports for scenario in scenarios.values()):
        return ""
    return "entries that tell the visits apart compare ports, which is not planned for; take another path"


class _Limits:
    """Limits of a switch, and its delay bound. Switches with the same allocation share one."""

    __slots__ = (
        "allocation",
        "certain_bps",
        "certain_bytes",
        "control",
        "delay_ns",
        "delays_ns",
        "entry_per_flow",
        "free_bps",
        "latency_ns",
        "max_burst_bytes",
        "max_entries",
        "max_rate_bps",
        "planned",
        "sender_queue_ns",
        "sizes",
        "table",
    )

    def __init__(
        self, allocation: Allocation, control: TokenBucket, padding: int, *, entry_per_flow: bool
    ) -> None:
        service = allocation.service
        scenario = service.scenario
        table = service.profile.table.entries.value
        sizes: Sizes = tuple(scenario.frame_bytes)
        if isinstance(scenario.packet_sizes_bytes, Unknown):
            sizes = range(min(sizes), max(sizes) + 1)
        self.allocation = allocation
        self.control = control
        """Usage by control traffic, without any flow."""
        self.max_rate_bps = allocation.max_rate_bps
        self.max_burst_bytes = allocation.max_burst_bytes
        planned = table if isinstance(scenario.entries, Unknown) else scenario.entries
        self.entry_per_flow = entry_per_flow
        self.max_entries = planned - padding if entry_per_flow else _MOST_FLOWS
        self.planned, self.table = planned, table
        """Entries that the table is planned for, with padding entries, and that it has."""
        certain = 1 - (self.max_entries + 4) * _ULP
        self.certain_bps, self.certain_bytes = self.max_rate_bps * certain, self.max_burst_bytes * certain
        """The allowed rate and burst, less the most that rounding errors can add up to in a full table."""
        self.delay_ns = delay_ns = allocation.delay_ns
        self.delays_ns: LazyMapping[int, tuple[float, ...]] = LazyMapping(lambda count: (delay_ns,) * count)
        """By length of a path across such switches only, the bound of each."""
        self.sizes = sizes
        """Frame sizes for which the service curve was made; no guarantee would hold for others."""
        self.free_bps = allocation.splits.max_rate_bps
        """All of R that is left to flows, allocated or not. What they leave reduces the residual backlog."""
        self.latency_ns = allocation.splits.latency_ns
        """T', after which arrived frames are served at that rate. A released flow still counts this long."""
        self.sender_queue_ns = time_ns(size_bytes=self.max_burst_bytes, rate_bps=service.rate_bps)
        """Longest wait for the link of a flow's own host, which is at least as fast as R."""


class _SwitchState:
    """Usage of one switch, and its limits.

    Sums are exact (`math.fsum`), so they depend only on the set of flows. They are computed when somebody
    asks, or when room gets tight. Until then, rooms that are no larger than what is really left are enough.
    """

    __slots__ = (
        "backlog",
        "burst_room",
        "bursts",
        "clock",
        "entries",
        "limits",
        "name",
        "rate_room",
        "rates",
        "summed",
        "used_bps",
        "used_bytes",
    )

    def __init__(self, name: str, limits: _Limits, clock: AdmissionClock) -> None:
        self.name = name
        self.limits = limits
        self.clock = clock
        self.backlog: ResidualBacklog[tuple[float, float]] = ResidualBacklog()
        """In bytes. Of each flow, it keeps the rate and the burst."""
        self.rates: list[float]
        self.bursts: list[float]
        """The rates and bursts of all flows, and of the control traffic."""
        self.entries: int
        self.rate_room: float
        self.burst_room: float
        """Up to here a flow certainly fits. In a full table there is no room for any rate."""
        self.used_bps: float
        self.used_bytes: float
        """The sums, as last computed."""
        self.summed: int
        """How many flows the sums cover. Only added flows make them stale: a release renews them."""
        self.clear()

    def clear(self) -> None:
        self.rates = [self.limits.control.rate_bps]
        self.bursts = [self.limits.control.burst_bytes]
        self.entries = 0
        self.backlog.clear()
        self._sum()

    def add(self, rate_bps: float, burst_bytes: float) -> None:
        if self.backlog.is_open:
            self._settle()
        self.rates.append(rate_bps)
        self.bursts.append(burst_bytes)
        self.entries += 1
        # Rounding errors are covered: `certain_bytes` leaves out more than they can add up to.
        self.burst_room -= burst_bytes
        self.rate_room = self.rate_room - rate_bps if self.entries < self.limits.max_entries else _NO_CAPACITY

    def remove(self, rate_bps: float, burst_bytes: float) -> None:
        if self.backlog.is_open:
            self._settle()
        self.rates.remove(rate_bps)
        self.bursts.remove(burst_bytes)
        self.entries -= 1
        self._sum()

    def drain(self, until_ns: int, rate_bps: float, burst_bytes: float) -> None:
        """Note that a flow was released; it counts until `until_ns`."""
        share = rate_bps / BITS_NS_PER_BYTE_S
        self.backlog.drain(until_ns, share=share, burst=burst_bytes, payload=(rate_bps, burst_bytes))

    def restore(self, backlog_bytes: float) -> None:
        self.backlog.restore(backlog_bytes, self.clock.now_ns)
        self._sum()

    def has_backlog(self) -> bool:
        """Return whether released flows still matter."""
        if self.backlog.is_open:
            self._settle()
        return self.backlog.is_open

    def backlog_bytes(self) -> float:
        """Return the residual backlog of released flows that no longer count; 0 if there is none."""
        return max(self.backlog.amount, 0.0) if self.has_backlog() else 0.0

    def fits_ns(self, rate_bps: float, burst_bytes: float, visits: int = 1) -> float:
        """Return the instant from which a flow fits, if nothing else is added; infinite if it never does."""
        leaving = [draining.payload for draining in self.backlog.draining]
        limits = self.limits
        left_bps = limits.max_rate_bps - math.fsum([*self.rates, *(-rate for rate, _ in leaving), rate_bps])
        enough = limits.max_burst_bytes - math.fsum(
            [*self.bursts, *(-burst for _, burst in leaving), burst_bytes]
        )
        if left_bps < 0 or enough < 0 or self.entries - len(leaving) + visits > limits.max_entries:
            return math.inf
        return self.backlog.falls_below_ns(self._spare(), enough)

    def used(self) -> tuple[float, float]:
        """Return the rate in bit/s and the burst in bytes that are used."""
        self._know()
        return self.used_bps, self.used_bytes

    def usage(self) -> Usage:
        """Return the usage, with its shares in the order in which they are checked."""
        self._know()
        limits = self.limits
        shares = (
            _new(ResourceShare, ("rate", self.used_bps, limits.max_rate_bps, "bit/s")),
            _new(ResourceShare, ("burst", self.used_bytes, limits.max_burst_bytes, "bytes")),
            _new(ResourceShare, ("entries", self.entries, limits.max_entries, "entries")),
        )
        return _new(Usage, (shares if limits.entry_per_flow else shares[:-1], limits.delay_ns))

    def refusal(
        self, flow: Flow, rate_bps: float, burst_bytes: float, suggest: _Suggest, visits: int = 1
    ) -> Refusal | None:
        """Return the first limit that the flow would exceed here, if any, with all its visits together."""
        if self.backlog.is_open or self.summed != self.entries:
            self._know()
        limits = self.limits
        used_bps, used_bytes = self.used_bps, self.used_bytes
        if used_bps + rate_bps > limits.max_rate_bps * (1 + ROUNDING):
            allowed = limits.max_rate_bps
            return _new(
                Refusal, (flow, self.name, "rate", used_bps, rate_bps, allowed, "bit/s", suggest, 1, "")
            )
        if used_bytes + burst_bytes > limits.max_burst_bytes * (1 + ROUNDING):
            allowed = limits.max_burst_bytes
            return _new(
                Refusal, (flow, self.name, "burst", used_bytes, burst_bytes, allowed, "bytes", suggest, 1, "")
            )
        if self.entries + visits > limits.max_entries:
            used, allowed = float(self.entries), float(limits.max_entries)
            hint = suggest_more_entries(self.name, limits.planned, limits.table)
            return Refusal(
                flow, self.name, "entries", used, float(visits), allowed, "entries", suggest, hint=hint
            )
        return None

    def _know(self) -> None:
        if self.backlog.is_open:
            self._settle()
        elif self.summed != self.entries:
            self._sum()

    def _settle(self) -> None:
        self.backlog.settle(self.clock.now_ns, self._spare, self._forget, lambda: 0.0)
        self._sum()

    def _spare(self) -> float:
        """Return the rate that the flows leave of what the switch serves, in bytes per nanosecond."""
        return (self.limits.free_bps - math.fsum(self.rates)) / BITS_NS_PER_BYTE_S

    def _forget(self, kept: tuple[float, float]) -> None:
        rate_bps, burst_bytes = kept
        self.rates.remove(rate_bps)
        self.bursts.remove(burst_bytes)
        self.entries -= 1

    def _sum(self) -> None:
        limits = self.limits
        self.used_bps = used_bps = math.fsum(self.rates)
        self.used_bytes = used_bytes = math.fsum(self.bursts) + max(self.backlog.amount, 0.0)
        self.summed = self.entries
        self.burst_room = limits.certain_bytes - used_bytes
        self.rate_room = limits.certain_bps - used_bps if self.entries < limits.max_entries else _NO_CAPACITY

    def uncovered(self, frame_bytes: int) -> InputError:
        sizes = self.limits.sizes
        known = ", ".join(str(size) for size in sizes[:8])
        if isinstance(sizes, range):
            known = f"{sizes.start} to {sizes.stop - 1}"
        return InputError(
            f"frame_bytes {frame_bytes} is not a size that {self.name} was planned for ({known})"
        )
