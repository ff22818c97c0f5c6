"""Counters of the running service, for `/metrics`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class RequestMetrics:
    """Totals of the REST process since its start."""

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    """HTTP answers by method and status."""
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Errors by their code; of flows that do not fit, also by the quantity that runs out."""


@dataclass(slots=True)
class LoopStalls:
    """How often, and how long in all, the flow manager's event loop was kept from its work."""

    count: int = 0
    total_s: float = 0.0
