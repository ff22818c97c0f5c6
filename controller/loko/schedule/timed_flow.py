"""Flows that are to be scheduled, as people and programs write them down.

The format is that of `loko plan` with a period in the place of rate and burst; a list for `loko plan` is
taken as it is: a flow that may send a frame every so often wants a slot at least as often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loko.document import InputError
from loko.switch_model.flow import Flow
from loko.topology.requests import RequestDocument


class TimedFlow(NamedTuple):
    """A flow that sends one frame a period, at most (section 2.1)."""

    id: str
    source: str
    destination: str
    udp_source: int
    udp_destination: int
    frame_bytes: int
    period_ns: int | None
    """As stated: a multiple of the base period. None: every base period, or as `requested_ns` allows."""
    requested_ns: float | None
    """How often it wants to send a frame at least, by the rate that it states; None if it states none."""

    def every(self, base_period_ns: int) -> int:
        """How often it uses its slot, in ns. Raises `InputError` for a period that is no multiple."""
        if self.period_ns is not None:
            if self.period_ns % base_period_ns:
                raise InputError(
                    f"flow '{self.id}': its period of {self.period_ns / 1e3:g} us is no multiple of the base"
                    f" period of {base_period_ns / 1e3:g} us; change one of them"
                )
            return self.period_ns
        if self.requested_ns is None:
            return base_period_ns
        return base_period_ns * max(1, int(self.requested_ns // base_period_ns))

    def sent(self, base_period_ns: int) -> Flow:
        """The flow on the wire."""
        every_ns = self.every(base_period_ns)
        rate_bps = self.frame_bytes * 8e9 / every_ns
        return Flow(*self[:5], rate_bps, float(self.frame_bytes), self.frame_bytes)


def timed_flows_of(documents: Sequence[RequestDocument], name: str) -> tuple[TimedFlow, ...]:
    """Return the flows of a list that was read from there. Raises `InputError` if it has none."""
    if not documents:
        raise InputError(f"{name}: no flows to schedule; list at least one")
    return tuple(
        TimedFlow(
            id=document.id,
            source=document.source,
            destination=document.destination,
            udp_source=document.udp_source,
            udp_destination=document.udp_destination,
            frame_bytes=document.size_bytes,
            period_ns=document.period_ns,
            requested_ns=None
            if document.rate_of_bits is None
            else document.size_bytes * 8e9 / document.rate_of_bits,
        )
        for document in documents
    )
