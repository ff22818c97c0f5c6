"""EchoRequests at a rate: control traffic for experiments (section 6.1.4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from loko.controller.session import Echo

FIRST_XID: Final = 0xE000_0000
"""From here on are the requests of the load; nobody waits for their replies."""
_IDLE_S: Final = 0.02
"""How often an idle load looks whether it has a rate."""
_LOOK_S: Final = 0.1
"""How often a busy one looks whether the rate is still the same."""


class EchoLoad:
    """Sends EchoRequests to every switch at equal distances, at the rate that a file holds."""

    def __init__(self, path: Path, senders: Callable[[], Sequence[Callable[[Echo], None]]]) -> None:
        """`path` holds EchoRequests a second to each switch; none while it is missing or empty."""
        self._path = path
        self._senders = senders
        self._sent = 0

    def run_forever(self) -> None:
        """Send. Ends with the thread."""
        while True:
            rate_pps = self._rate_pps()
            if rate_pps > 0:
                self._send_for(_LOOK_S, rate_pps)
            else:
                time.sleep(_IDLE_S)

    def _send_for(self, seconds: float, rate_pps: float) -> None:
        """Send at equal distances, to the switches in turn: each gets the rate.

        What is late is not made up for: two requests in one segment get two replies at once, which a board
        does not survive (quirks 14 and 15).
        """
        begin = due = time.monotonic()
        while due < begin + seconds:
            senders = self._senders()
            if not senders:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            senders[self._sent % len(senders)](Echo(xid=FIRST_XID + self._sent % FIRST_XID_COUNT))
            self._sent += 1
            gap = 1 / (rate_pps * len(senders))
            due = max(due + gap, time.monotonic() + gap / 2)

    def _rate_pps(self) -> float:
        try:
            return float(self._path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0.0


FIRST_XID_COUNT: Final = 0x1000_0000
"""So many before they begin again."""
