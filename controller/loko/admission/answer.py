"""The answers to a request: admitted with a guarantee, or refused with the reason.

Named tuples, because whoever plans asks millions of times: they are made several times as fast as frozen
dataclasses, and what only people read is put together when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from loko.calculus import TokenBucket
from loko.flow import Flow
from loko.network import Hop


@dataclass(frozen=True, slots=True, kw_only=True)
class HopTerm:
    """What a flow takes of one switch on its path, and what the switch adds to its delay."""

    switch: str
    output_port: int
    arrival: TokenBucket
    """The flow where it enters the switch: its burst has grown at every switch before."""
    delay_ns: float
    """Bound on the delay at the switch."""


class Admitted(NamedTuple):
    """An accepted flow. The last three have one value for each switch, in the order of the path."""

    flow: Flow
    path: tuple[Hop, ...]
    bursts_bytes: tuple[float, ...]
    """The flow's burst where it enters the switch: it has grown at every switch before."""
    delays_ns: tuple[float, ...]
    """Bound on the delay at the switch."""

    @property
    def guarantee_ns(self) -> float:
        """The end-to-end bound: the sum of the switches' bounds along the path."""
        return sum(self.delays_ns)

    @property
    def hops(self) -> tuple[HopTerm, ...]:
        """The same, switch by switch."""
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


class Refusal(NamedTuple):
    """Why a flow does not fit: the first limit along its path that it would exceed."""

    flow: Flow
    switch: str
    quantity: str
    """What runs out, such as rate, burst, entries."""
    used: float
    requested: float
    allowed: float
    unit: str
    """Of the three numbers: bit/s, bytes, entries, ..."""
    advice: str | Callable[[Refusal], str] = ""
    """The remedy, or what finds it."""

    @property
    def remedy(self) -> str:
        """What would make this limit fit, if that is simple to say."""
        return self.advice if isinstance(self.advice, str) else self.advice(self)

    def as_values(self) -> dict[str, str | float]:
        """All but the flow as plain values, for JSON."""
        return {
            "switch": self.switch,
            "quantity": self.quantity,
            "used": self.used,
            "requested": self.requested,
            "allowed": self.allowed,
            "unit": self.unit,
            "remedy": self.remedy,
        }

    def __str__(self) -> str:
        return (
            f"{self.flow.id}: {self.quantity} at {self.switch}: {self.used:.0f} used + {self.requested:.0f}"
            f" requested > {self.allowed:.0f} {self.unit} allowed"
        )
