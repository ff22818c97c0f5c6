"""The margin of the flows that are admitted, computed beside the service."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from loko.admission import Admitted
from loko.service.admitter import SchemeAdmitter
from loko.switch_model.margin import Margin, margin

_MOST_FLOWS: Final = 2_000
"""Of larger sets it takes too long."""
_NONE: Final = (
    "not known: no flow is admitted, or what released flows have left still counts, or the scheme cannot say"
)


class Margins:
    """Computes the margin when somebody asks, once for each set of flows, and never twice at a time.

    All calls are made in the event loop's thread; the computation has a thread of its own. Who asks while it
    runs gets its result, which is of the flows with which it began.
    """

    def __init__(self, admitter: SchemeAdmitter) -> None:
        self._admitter = admitter
        self._running: asyncio.Task[Margin | None] | None = None
        self._flows: Sequence[Admitted] = ()
        self._margin: Margin | None = None

    async def values(self) -> dict[str, Any]:
        """Return how much slower the switches may be, as plain values."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._computed())
        told = await asyncio.shield(self._running)  # a client that goes away does not end it
        if told is None:
            return {"slower_ppm": None, "limited_by": None, "text": _NONE}
        return {**told.as_values(), "text": told.describe(is_robust=self._admitter.is_robust)}

    async def _computed(self) -> Margin | None:
        flows = self._admitter.admitted
        falls = self._admitter.falls_if_slower() if len(flows) <= _MOST_FLOWS else None
        if falls is None:
            return None
        if flows != self._flows:
            self._margin = await asyncio.to_thread(margin, falls)
            self._flows = flows
        return self._margin
