"""Measured delays of the flows beside their guarantees: pure bookkeeping of what a measurement observed.

Who measures (`loko.serve.companion`) is another process. A delay is from the beginning of a frame at the
sender's tap to its beginning at the receiver's, as in the evaluation's records.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

RECENT: Final = 2000
"""Quantiles and the histogram are of so many packets of a flow, the latest."""
BINS: Final = 96
_BOUND_BIN: Final = 80
"""The guarantee lies where this bin begins; beyond it are the late ones."""
_LINE_BYTES: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the taps of one flow have seen since the last time."""

    flow: str
    sent: int
    lost: int
    delays_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DelaysChanged:
    """More delays are known than before."""


def encode_observations(observations: Iterable[Observation]) -> bytes:
    """A line each, as the service reads them; many delays take several."""
    lines = []
    most = _LINE_BYTES // 12
    for one in observations:
        for first in range(0, max(len(one.delays_ns), 1), most):
            part = Observation(
                flow=one.flow,
                sent=0 if first else one.sent,
                lost=0 if first else one.lost,
                delays_ns=one.delays_ns[first : first + most],
            )
            lines.append(json.dumps(asdict(part), separators=(",", ":")).encode() + b"\n")
    return b"".join(lines)


def decode_observation(line: bytes) -> Observation:
    """The inverse, of one line. Raises `ValueError`."""
    values = json.loads(line)
    try:
        return Observation(**{**values, "delays_ns": tuple(values["delays_ns"])})
    except (TypeError, KeyError) as error:
        raise ValueError(f"not an observation: {error}") from None


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

    def add(self, one: Observation) -> None:
        self.sent += one.sent
        self.lost += one.lost
        if not one.delays_ns:
            return
        self.received += len(one.delays_ns)
        self.late += sum(delay > self.guarantee_ns for delay in one.delays_ns)
        least, most = min(one.delays_ns), max(one.delays_ns)
        self.min_ns = least if self.min_ns is None else min(self.min_ns, least)
        self.max_ns = most if self.max_ns is None else max(self.max_ns, most)
        self.recent_ns.extend(one.delays_ns)

    def values(self) -> dict[str, Any]:
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
    """The nearest rank: the least value that so large a part does not exceed."""
    return ordered[max(0, -(-len(ordered) * round(part * 100) // 100) - 1)] if ordered else None


class DelayBook:
    """The measured delays of all flows that are installed. Totals count from when a flow was."""

    def __init__(self) -> None:
        self._flows: dict[str, _FlowDelays] = {}

    def keep(self, guarantees_ns: Mapping[str, float]) -> None:
        """These flows are installed, with these guarantees; what is known of others is forgotten."""
        self._flows = {
            name: known
            if (known := self._flows.get(name)) is not None and known.guarantee_ns == guarantee_ns
            else _FlowDelays(guarantee_ns)
            for name, guarantee_ns in guarantees_ns.items()
        }

    def add(self, observation: Observation) -> None:
        """Take up an observation; one of an unknown flow came too late."""
        if (flow := self._flows.get(observation.flow)) is not None:
            flow.add(observation)

    def values(self) -> dict[str, Any]:
        """Of each flow that has sent: how many packets became what, and their delays, in plain values."""
        return {name: flow.values() for name, flow in self._flows.items() if flow.sent or flow.received}
