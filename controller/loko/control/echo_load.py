"""EchoRequests at a rate: control traffic for experiments (section 6.1.4)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from loko.control.framing import framed

FIRST_XID: Final = 0xE000_0000
"""The load's requests have transaction ids from here on; no driver waits for their replies."""
_IDLE_S: Final = 0.02
"""How often an idle load checks whether it has got a rate."""
_ECHO_REQUEST: Final = 2

Send = Callable[[bytes], None]


class EchoLoad:
    """Sends EchoRequests to every switch at equal intervals, each in its own TCP segment.

    Two requests in one segment get two replies at once, which a board does not survive (quirks 14 and 15),
    and a board that reads its stream late reads both at once. So only one reply is outstanding at a time, to
    the load or to anything else that is sent. Late requests are not made up for.
    """

    def __init__(
        self,
        switches: Callable[[], Mapping[int, Send]],
        sleep: Callable[[float], None],
        clock_s: Callable[[], float] = time.monotonic,
        *,
        version: int = 1,
    ) -> None:
        """`switches` returns the connections by number; `sleep` lets other threads of the framework run.

        `version` is the OpenFlow wire version of the requests.
        """
        self._switches = switches
        self._sleep = sleep
        self._clock_s = clock_s
        self._version = version
        self._rate_pps = 0.0
        self._lock = threading.Lock()
        self._outstanding: set[int] = set()
        self._deferred: dict[int, bytes] = {}
        self._turn = 0

    def set_rate(self, rate_pps: float) -> None:
        """Set the EchoRequests per second to each switch; 0 for none."""
        self._rate_pps = rate_pps

    def carry(self, connection: int, send: Send, data: bytes) -> None:
        """Send another message that gets a reply, as soon as no reply to the load is outstanding."""
        with self._lock:
            if self._rate_pps > 0 and connection in self._outstanding:
                self._deferred[connection] = data
                return
            self._outstanding.add(connection)
        send(data)

    def replied(self, connection: int, send: Send) -> None:
        """Note that a switch has answered what was outstanding."""
        with self._lock:
            data = self._deferred.pop(connection, None)
            if data is None:
                self._outstanding.discard(connection)
                return
        send(data)

    def run_forever(self) -> None:
        """Send to the switches in turn, so that each gets the rate. Ends with the thread."""
        due = self._clock_s()
        while True:
            switches = dict(self._switches())
            with self._lock:
                self._outstanding &= switches.keys()
                self._deferred = {
                    number: data for number, data in self._deferred.items() if number in switches
                }
            if not switches or self._rate_pps <= 0:
                self._sleep(_IDLE_S)
                due = self._clock_s()
                continue
            self._sleep(max(0.0, due - self._clock_s()))
            self._turn += 1
            number = sorted(switches)[self._turn % len(switches)]
            self._request(number, switches[number])
            gap = 1 / (self._rate_pps * len(switches))
            due = max(due + gap, self._clock_s() + gap / 2)

    def _request(self, number: int, send: Send) -> None:
        with self._lock:
            if number in self._outstanding:
                return
            self._outstanding.add(number)
        xid = FIRST_XID + self._turn % (0x1_0000_0000 - FIRST_XID)
        send(framed(self._version, _ECHO_REQUEST, xid))
