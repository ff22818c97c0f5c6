"""What the service counts while it runs, for `/metrics`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tallies:
    """Totals since the start."""

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    """HTTP answers by method and status."""
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Errors by their code; of flows that do not fit, also by the quantity that runs out."""
    stalls: int = 0
    """How often the event loop was kept from its work."""
    stalled_s: float = 0.0
    """For how long it was kept from its work, in all."""
