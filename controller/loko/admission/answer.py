"""The answers to a request: admitted with a guarantee, or refused with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from loko.calculus import TokenBucket
from loko.flow import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class HopTerm:
    """What a flow takes of one switch on its path, and what the switch adds to its delay."""

    switch: str
    output_port: int
    arrival: TokenBucket
    """The flow where it enters the switch: its burst has grown at every switch before."""
    delay_ns: float
    """Bound on the delay at the switch."""


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """An accepted flow."""

    flow: Flow
    hops: tuple[HopTerm, ...]

    @property
    def guarantee_ns(self) -> float:
        """The end-to-end bound: the sum of the switches' bounds along the path."""
        return sum(hop.delay_ns for hop in self.hops)


@dataclass(frozen=True, kw_only=True)
class Refusal:
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
    remedy: str = ""
    """What would make this limit fit, if that is simple to say."""

    def __str__(self) -> str:
        return (
            f"{self.flow.id}: {self.quantity} at {self.switch}: {self.used:.0f} used + {self.requested:.0f}"
            f" requested > {self.allowed:.0f} {self.unit} allowed"
        )
