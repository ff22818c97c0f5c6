"""The answers to a request: admitted with a guarantee, or refused with the reason.

They are named tuples because planning may make millions of them: they are several times as fast to make as
frozen dataclasses. What only people read is put together when it is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from loko.switch_model.calculus import TokenBucket
from loko.switch_model.flow import Flow
from loko.topology.network import Hop
from loko.units import EXACT, readable


@dataclass(frozen=True, slots=True, kw_only=True)
class HopTerm:
    """Share of one switch that a flow takes, and the delay that the switch adds."""

    switch: str
    output_port: int
    arrival: TokenBucket
    """The flow's token bucket where it enters the switch; the burst has grown at every switch before."""
    delay_ns: float
    """Bound on the delay at the switch."""


class Admitted(NamedTuple):
    """An accepted flow. The path, the bursts and the delays have one value per switch."""

    flow: Flow
    path: tuple[Hop, ...]
    bursts_bytes: tuple[float, ...]
    """The flow's burst where it enters the switch: it has grown at every switch before."""
    delays_ns: tuple[float, ...]
    """Bound on the delay at the switch."""
    whole_path_ns: float | None = None
    """Bound on the delay of the whole path, if it was bounded as a whole, below the sum of the switches'."""
    vlan: int | None = None
    """The VLAN that takes it along its path, through switches without OpenFlow."""

    @property
    def guarantee_ns(self) -> float:
        """The end-to-end bound: that of the whole path, else the sum of the switches' bounds."""
        return sum(self.delays_ns) if self.whole_path_ns is None else self.whole_path_ns

    @property
    def hops(self) -> tuple[HopTerm, ...]:
        """The burst and the delay of the flow, switch by switch."""
        rate_bps = self.flow.rate_bps
        return tuple(
            HopTerm(
                switch=hop.switch,
                output_port=hop.output_port,
                arrival=TokenBucket(rate_bps=rate_bps, burst_bytes=burst_bytes),
                delay_ns=delay_ns,
            )
            for hop, burst_bytes, delay_ns in zip(self.path, self.bursts_bytes, self.delays_ns, strict=True)
        )


class Suggestion(NamedTuple):
    """Smaller request that would be granted in place of a refused one. A value of None may stay as it is."""

    rate_bps: int | None = None
    """The highest rate that is granted."""
    burst_bytes: int | None = None
    """The largest burst that is granted."""
    deadline_ns: int | None = None
    """The shortest deadline that is kept."""
    wait_ms: int | None = None
    """Ask for the same this much later: until then, flows that were released count."""

    def __bool__(self) -> bool:
        return any(value is not None for value in self)

    def __str__(self) -> str:
        """Say what to ask for, in the units in which a request is written."""
        rate_bps, burst_bytes, deadline_ns, wait_ms = self
        if wait_ms is not None:
            return f"ask again in {wait_ms} ms: until then, flows that were released count"
        parts = (
            None if burst_bytes is None else f"a burst of at most {burst_bytes} bytes",
            None if rate_bps is None else f"a rate of at most {_one(rate_bps, 'bit/s')}",
            None if deadline_ns is None else f"a deadline of at least {_one(deadline_ns, 'ns')}",
        )
        return " and ".join(part for part in parts if part)

    def as_values(self) -> dict[str, int]:
        """Return what would change, by the names of a request's fields."""
        named = {name: value for name, value in self._asdict().items() if value is not None}
        named.pop("wait_ms", None)  # a request has no such field
        return named


class Refusal(NamedTuple):
    """Why a flow does not fit: the first limit along its path that it would exceed."""

    flow: Flow
    switch: str
    quantity: str
    """Limiting quantity, such as rate, burst, entries."""
    used: float
    requested: float
    allowed: float
    unit: str
    """Unit of the three numbers: bit/s, bytes, entries, ..."""
    advice: str | Suggestion | Callable[[Refusal], Suggestion] = ""
    """The suggestion, or a function that finds it when somebody reads it: that takes many decisions."""
    paths: int = 1
    """How many paths were tried; the limit is that of the first."""
    hint: str = ""
    """Advice to whoever runs the network, such as to plan for more entries; empty if there is none."""

    @property
    def suggestion(self) -> Suggestion:
        """Smaller request that is granted as things are when this is read; empty if there is none."""
        if isinstance(self.advice, str):
            return Suggestion()
        return self.advice if isinstance(self.advice, Suggestion) else self.advice(self)

    @property
    def suggestion_text(self) -> str:
        """The suggestion, or another way out, in words. Empty if nothing smaller is granted."""
        return self.advice if isinstance(self.advice, str) else str(self.suggestion)

    def __eq__(self, other: object) -> bool:
        """Return whether two refusals say the same; how their advice would be found does not count."""
        return isinstance(other, Refusal) and self._key == other._key

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        return (*self[:7], self.paths)

    def excess_values(self) -> dict[str, object]:
        """Return which limit would be exceeded, and by how much, as plain values."""
        return dict(zip(self._fields[1:7], self[1:7], strict=True))

    def as_values(self) -> dict[str, object]:
        """Return all but the flow as plain values, for JSON."""
        change = self.suggestion
        return {
            **self.excess_values(),
            "paths": self.paths,
            "suggestion": self.advice if isinstance(self.advice, str) else str(change),
            "hint": self.hint,
            "would_fit": change.as_values(),
            "wait_ms": change.wait_ms,
        }

    @property
    def excess(self) -> str:
        """The limit that would be exceeded, and by how much, in words."""
        (used, requested, allowed), unit = readable(
            (_up(self.used), _up(self.requested), _down(self.allowed)), self.unit
        )
        demand = f"{used} used + {requested} requested"
        return f"{self.quantity} at {self.switch}: {demand} > {allowed} {unit} allowed"

    def __str__(self) -> str:
        return (
            f"{self.flow.id}: {self.excess}"
            + (f"; none of {self.paths} paths fits" if self.paths > 1 else "")
            + (f"; {self.hint}" if self.hint else "")
        )


def _up(value: float) -> float:
    """Round up, so that what is too much reads as too much; ignore the rounding error of arithmetic."""
    return math.ceil(round(value, 3)) if value < EXACT else value


def _down(value: float) -> float:
    return math.floor(value) if value < EXACT else value


def _one(value: float, unit: str) -> str:
    (written,), unit = readable((value,), unit)
    return f"{written} {unit}"
