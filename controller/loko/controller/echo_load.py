"""EchoRequests at a rate: control traffic for experiments (section 6.1.4)."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping
from typing import Final

FIRST_XID: Final = 0xE000_0000
"""From here on are the requests of the load; no driver waits for their replies."""
_IDLE_S: Final = 0.02
"""How often an idle load looks whether it has a rate."""
_ECHO_REQUEST: Final = struct.Struct("!BBHI")

Send = Callable[[bytes], None]


class EchoLoad:
    """Sends EchoRequests to every switch at equal distances, one in a TCP segment.

    A request waits for the reply to the one before: two in one segment get two replies at once, which a board
    does not survive (quirks 14 and 15), and whoever reads a stream late reads both at once. What is late is
    not made up for.
    """

    def __init__(self, switches: Callable[[], Mapping[int, Send]], sleep: Callable[[float], None]) -> None:
        """`switches` gives the connections by number, `sleep` lets other threads of the framework run."""
        self._switches = switches
        self._sleep = sleep
        self._rate_pps = 0.0
        self._unanswered: set[int] = set()
        self._sent = 0

    def set_rate(self, rate_pps: float) -> None:
        """EchoRequests a second to each switch; 0 for none."""
        self._rate_pps = rate_pps

    def replied(self, connection: int, xid: int) -> None:
        """A switch has answered an EchoRequest, perhaps one of the load."""
        if xid >= FIRST_XID:
            self._unanswered.discard(connection)

    def run_forever(self) -> None:
        """Send to the switches in turn, so that each gets the rate. Ends with the thread."""
        due = time.monotonic()
        while True:
            switches = dict(self._switches())
            self._unanswered &= switches.keys()
            if not switches or self._rate_pps <= 0:
                self._sleep(_IDLE_S)
                due = time.monotonic()
                continue
            self._sleep(max(0.0, due - time.monotonic()))
            numbers = sorted(switches)
            number = numbers[self._sent % len(numbers)]
            self._sent += 1
            if number not in self._unanswered:
                self._unanswered.add(number)
                xid = FIRST_XID + self._sent % (0x1_0000_0000 - FIRST_XID)
                switches[number](_ECHO_REQUEST.pack(1, 2, _ECHO_REQUEST.size, xid))
            gap = 1 / (self._rate_pps * len(numbers))
            due = max(due + gap, time.monotonic() + gap / 2)
