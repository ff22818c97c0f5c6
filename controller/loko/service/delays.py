"""Measured delays of the flows against their guarantees: pure bookkeeping of observations.

Another process measures (`loko.service.sidecar`). A delay is from the beginning of a frame at the sender's
tap to its beginning at the receiver's tap, as in the evaluation's records.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

RECENT: Final = 2000
"""How many of a flow's latest packets quantiles and the histogram cover."""
BINS: Final = 96
_BOUND_BIN: Final = 80
"""This bin begins at the guarantee: it and those after it have the late packets."""
SPAN_NS: Final = 1_000_000_000
"""Delays over time are counted in spans of this length."""
SPANS: Final = 300
"""So many spans of each flow are kept."""
_LINE_BYTES: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayObservation:
    """Packets that the taps of one flow have seen since the last observation."""

    flow: str
    sent: int
    lost: int
    delays_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DelaysChanged:
    """New delays were measured."""


def encode_observations(observations: Iterable[DelayObservation]) -> bytes:
    """Encode observations as the service reads them: one line each, or several for many delays."""
    lines = []
    most = _LINE_BYTES // 12
    for event in observations:
        for first in range(0, max(len(event.delays_ns), 1), most):
            part = DelayObservation(
                flow=event.flow,
                sent=0 if first else event.sent,
                lost=0 if first else event.lost,
                delays_ns=event.delays_ns[first : first + most],
            )
            lines.append(json.dumps(asdict(part), separators=(",", ":")).encode() + b"\n")
    return b"".join(lines)


def decode_observation(line: bytes) -> DelayObservation:
    """Decode one line of `encode_observations`. Raises `ValueError`."""
    values = json.loads(line)
    try:
        return DelayObservation(**{**values, "delays_ns": tuple(values["delays_ns"])})
    except (TypeError, KeyError) as error:
        raise ValueError(f"not an observation: {error}") from None


@dataclass(slots=True)
class _Span:
    """Measurements of one span of time."""

    index: int
    sent: int = 0
    lost: int = 0
    received: int = 0
    sum_ns: int = 0
    min_ns: int | None = None
    max_ns: int | None = None

    def add(self, event: DelayObservation) -> None:
        self.sent += event.sent
        self.lost += event.lost
        for delay_ns in event.delays_ns:
            self.min_ns = delay_ns if self.min_ns is None else min(self.min_ns, delay_ns)
            self.max_ns = delay_ns if self.max_ns is None else max(self.max_ns, delay_ns)
        self.received += len(event.delays_ns)
        self.sum_ns += sum(event.delays_ns)

    def values(self, now_ns: int) -> dict[str, Any]:
        return {
            "ago_ns": max(0, now_ns - self.index * SPAN_NS),
            "sent": self.sent,
            "received": self.received,
            "lost": self.lost,
            "min_ns": self.min_ns,
            "mean_ns": self.sum_ns / self.received if self.received else None,
            "max_ns": self.max_ns,
        }


@dataclass(slots=True)
class _FlowDelays:
    guarantee_ns: float
    sent: int = 0
    received: int = 0
    lost: int = 0
    late: int = 0
    min_ns: int | None = None
    max_ns: int | None = None
    recent_ns: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT))
    spans: deque[_Span] = field(default_factory=lambda: deque(maxlen=SPANS))
    shown: dict[str, Any] | None = None
    """Cached result of `values`, while nothing has changed."""

    def add(self, event: DelayObservation, now_ns: int) -> None:
        self.shown = None
        self.sent += event.sent
        self.lost += event.lost
        self._span(now_ns // SPAN_NS).add(event)
        if not event.delays_ns:
            return
        self.received += len(event.delays_ns)
        self.late += sum(delay > self.guarantee_ns for delay in event.delays_ns)
        least, most = min(event.delays_ns), max(event.delays_ns)
        self.min_ns = least if self.min_ns is None else min(self.min_ns, least)
        self.max_ns = most if self.max_ns is None else max(self.max_ns, most)
        self.recent_ns.extend(event.delays_ns)

    def _span(self, index: int) -> _Span:
        if not self.spans or self.spans[-1].index != index:
            self.spans.append(_Span(index))
        return self.spans[-1]

    def values(self) -> dict[str, Any]:
        if self.shown is None:
            self.shown = self._values()
        return self.shown

    def _values(self) -> dict[str, Any]:
        ordered = sorted(self.recent_ns)
        return {
            "guarantee_ns": self.guarantee_ns,
            "sent": self.sent,
            "received": self.received,
            "lost": self.lost,
            "late": self.late,
            "min_ns": self.min_ns,
            "p50_ns": _quantile(ordered, 0.50),
            "p99_ns": _quantile(ordered, 0.99),
            "max_ns": self.max_ns,
            "histogram": self._histogram(ordered),
        }

    def _histogram(self, ordered: Iterable[int]) -> dict[str, Any]:
        width_ns = self.guarantee_ns / _BOUND_BIN
        counts = [0] * BINS
        for delay_ns in ordered:
            counts[min(int(delay_ns / width_ns), BINS - 1)] += 1
        return {"bin_ns": width_ns, "counts": counts}


def _quantile(ordered: list[int], part: float) -> int | None:
    """Return the quantile by nearest rank: the least value that a fraction `part` does not exceed."""
    return ordered[max(0, -(-len(ordered) * round(part * 100) // 100) - 1)] if ordered else None


class DelayStatistics:
    """The measured delays of all installed flows. Totals count from a flow's installation."""

    def __init__(self) -> None:
        self._flows: dict[str, _FlowDelays] = {}

    def set_flows(self, guarantees_ns: Mapping[str, float]) -> None:
        """Set the installed flows with their guarantees. Forget what is known about others."""
        self._flows = {
            name: known
            if (known := self._flows.get(name)) is not None and known.guarantee_ns == guarantee_ns
            else _FlowDelays(guarantee_ns)
            for name, guarantee_ns in guarantees_ns.items()
        }

    def add(self, observation: DelayObservation, *, now_ns: int) -> None:
        """Add an observation. One of an unknown flow has come too late and is ignored.

        `now_ns` is of any clock that never goes back.
        """
        if (flow := self._flows.get(observation.flow)) is not None:
            flow.add(observation, now_ns)

    def over_time(self, flow_id: str, *, now_ns: int) -> dict[str, Any] | None:
        """Return what was measured of a flow, span by span, as plain values; None if it is not known."""
        flow = self._flows.get(flow_id)
        if flow is None:
            return None
        return {
            "guarantee_ns": flow.guarantee_ns,
            "span_ns": SPAN_NS,
            "spans": [span.values(now_ns) for span in flow.spans],
        }

    def values(self) -> dict[str, Any]:
        """Return packet counts and delays of each flow that has sent, as plain values."""
        return {name: flow.values() for name, flow in self._flows.items() if flow.sent or flow.received}
