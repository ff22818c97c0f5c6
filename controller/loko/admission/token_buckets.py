"""Loko's own scheme (section 5): sums of rates and of bursts, each within the switch's allocation.

So the delay bound D of a switch, and with it every guarantee once given, holds whatever is admitted later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loko.admission.answer import Admitted, HopTerm, Refusal
from loko.admission.exact import ExactSum
from loko.admission.register import Register
from loko.admission.scheme import Share, Usage
from loko.allocation import Allocation
from loko.calculus import NOTHING, TokenBucket
from loko.document import InputError
from loko.flow import Flow
from loko.lab import Lab
from loko.network import Hop
from loko.scenario import Unknown

ROUNDING: Final = 1e-9
"""Relative slack of comparisons, so that shares which add up to the whole fit in binary floating point."""
_BITS_NS_PER_BYTE_S: Final = 8e9


class LokoAdmission:
    """Admission by token buckets. A decision costs O(path), however many flows are admitted."""

    def __init__(
        self, lab: Lab, allocations: Mapping[str, Allocation], control: TokenBucket = NOTHING
    ) -> None:
        """Start empty. `allocations` has one for each switch; `control` is reserved at each (r_CP, b_CP)."""
        self.allocations = allocations
        """Of each switch."""
        self._register = Register(lab)
        self._switches = {name: _Switch.empty(allocations[name], control) for name in lab.switches}

    @property
    def scheme(self) -> str:
        """The allocation schemes in use."""
        return ", ".join(dict.fromkeys(allocation.scheme.name for allocation in self.allocations.values()))

    @property
    def admitted(self) -> Mapping[str, Admitted]:
        """The accepted flows by id, in order of admission."""
        return self._register.admitted

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """What `request` would answer, without admitting anything."""
        rate_bps, burst_bytes, frame_bytes = flow.rate_bps, flow.burst_bytes, flow.frame_bytes
        hops = self._register.path(flow, path)
        switches = self._switches
        for hop in hops:
            switch = switches[hop.switch]
            if frame_bytes not in switch.sizes:
                raise switch.uncovered(frame_bytes, hop.switch)
            if (
                switch.burst.value + burst_bytes > switch.burst_limit
                or switch.rate.value + rate_bps > switch.rate_limit
                or switch.entries >= switch.max_entries
            ):
                return switch.refusal(flow, hop.switch, burst_bytes)
            burst_bytes += rate_bps * switch.delay_ns / _BITS_NS_PER_BYTE_S  # as TokenBucket.delayed
        return Admitted(flow=flow, hops=tuple(self._terms(flow, hops)))

    def request(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Admit a flow along a path, by default the shortest, or say why not.

        Raises `InputError` for unknown hosts, a path that does not connect them, an id or ports in use, or
        frames that the model does not cover.
        """
        answer = self.check(flow, path)
        if isinstance(answer, Admitted):
            self._register.add(answer)
            for hop in answer.hops:
                self._switches[hop.switch].add(hop.arrival)
        return answer

    def release(self, flow_id: str) -> None:
        """Give back what a flow uses. Raises `InputError` if it was not admitted."""
        for hop in self._register.remove(flow_id).hops:
            self._switches[hop.switch].remove(hop.arrival)

    def usage(self, switch: str) -> Usage:
        """What is used of a switch now. It depends on the set of flows only, not on their history."""
        state = self._switches[switch]
        return Usage(shares=tuple(state.shares()), delay_ns=state.delay_ns)

    def _terms(self, flow: Flow, path: Sequence[Hop]) -> Iterator[HopTerm]:
        arrival = flow.arrival
        for hop in path:
            delay_ns = self._switches[hop.switch].delay_ns
            yield HopTerm(switch=hop.switch, output_port=hop.output_port, arrival=arrival, delay_ns=delay_ns)
            arrival = arrival.delayed(delay_ns)


@dataclass(slots=True, kw_only=True)
class _Switch:
    """What is used of one switch, and what may be."""

    rate: ExactSum
    burst: ExactSum
    entries: int
    max_rate_bps: float
    max_burst_bytes: float
    max_entries: int
    rate_limit: float = field(init=False)
    burst_limit: float = field(init=False)
    """The two with the slack for rounding."""
    delay_ns: float
    sizes: Sequence[int]
    """Frames for which the service curve was made; no guarantee would hold for others."""

    def __post_init__(self) -> None:
        self.rate_limit = self.max_rate_bps * (1 + ROUNDING)
        self.burst_limit = self.max_burst_bytes * (1 + ROUNDING)

    @classmethod
    def empty(cls, allocation: Allocation, control: TokenBucket) -> _Switch:
        scenario = allocation.service.scenario
        sizes: Sequence[int] = scenario.frame_bytes
        if isinstance(scenario.packet_sizes_bytes, Unknown):
            sizes = range(min(sizes), max(sizes) + 1)
        table = allocation.service.profile.table.entries.value
        return cls(
            rate=ExactSum(control.rate_bps),
            burst=ExactSum(control.burst_bytes),
            entries=0,
            max_rate_bps=allocation.max_rate_bps,
            max_burst_bytes=allocation.max_burst_bytes,
            max_entries=table if isinstance(scenario.entries, Unknown) else scenario.entries,
            delay_ns=allocation.delay_ns,
            sizes=sizes,
        )

    def add(self, arrival: TokenBucket) -> None:
        self.rate.add(arrival.rate_bps)
        self.burst.add(arrival.burst_bytes)
        self.entries += 1

    def remove(self, arrival: TokenBucket) -> None:
        self.rate.remove(arrival.rate_bps)
        self.burst.remove(arrival.burst_bytes)
        self.entries -= 1

    def shares(self) -> Iterator[Share]:
        """In the order in which they are checked."""
        yield Share(quantity="rate", used=self.rate.value, allowed=self.max_rate_bps, unit="bit/s")
        yield Share(quantity="burst", used=self.burst.value, allowed=self.max_burst_bytes, unit="bytes")
        yield Share(quantity="entries", used=self.entries, allowed=self.max_entries, unit="entries")

    def refusal(self, flow: Flow, switch: str, burst_bytes: float) -> Refusal:
        """The first limit that the flow would exceed, with the burst that it has here."""
        if self.rate.value + flow.rate_bps > self.rate_limit:
            name, unit = "rate", "bit/s"
            used, requested, allowed = self.rate.value, flow.rate_bps, self.max_rate_bps
        elif self.burst.value + burst_bytes > self.burst_limit:
            name, unit = "burst", "bytes"
            used, requested, allowed = self.burst.value, burst_bytes, self.max_burst_bytes
        else:
            name, unit = "entries", "entries"
            used, requested, allowed = float(self.entries), 1.0, float(self.max_entries)
        return Refusal(
            flow=flow,
            switch=switch,
            quantity=name,
            used=used,
            requested=requested,
            allowed=allowed,
            unit=unit,
            remedy=_remedy(flow, unit, allowed - used, burst_bytes),
        )

    def uncovered(self, frame_bytes: int, switch: str) -> InputError:
        known = ", ".join(str(size) for size in self.sizes[:8])
        if isinstance(self.sizes, range):
            known = f"{self.sizes.start} to {self.sizes.stop - 1}"
        return InputError(f"frame_bytes {frame_bytes} is not a size that {switch} was planned for ({known})")


def _remedy(flow: Flow, unit: str, room: float, burst_bytes: float) -> str:
    """What the flow itself could change to keep to a limit that leaves so much room."""
    if unit == "bit/s" and room >= 1:
        return f"a rate of at most {room:.0f} bit/s"
    if unit == "bytes":
        growth = burst_bytes - flow.burst_bytes
        if room - growth >= flow.frame_bytes:
            return f"a burst of at most {room - growth:.0f} bytes"
        if growth > 0 and room > flow.burst_bytes:
            rate_bps = flow.rate_bps * (room - flow.burst_bytes) / growth
            return f"a rate of at most {rate_bps:.0f} bit/s, since the burst grows with it"
        return "release a flow that passes here, or take a path with fewer switches"
    return "release a flow that passes here"
