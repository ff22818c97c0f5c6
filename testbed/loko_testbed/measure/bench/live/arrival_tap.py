"""A tap that stamps when a frame reaches the program that listens on the same interface, a software switch.

The kernel stamps a frame of its own TCP anew for each listener, when that listener's turn comes. Turns are
about a microsecond apart, so a listener ahead of the switch sees a frame too early, and one behind it too
late. Two listeners ahead tell how long a turn takes, and so when the switch's own turn comes. All other
frames are stamped once, and have the same stamp for both.
"""

from __future__ import annotations

from collections import deque

from loko_testbed.instruments.packet_tap import PacketTap, TappedFrame


class ArrivalTap:
    """Two taps of an interface, opened after the switch's program: the last to come has the first turn."""

    def __init__(self, interface: str) -> None:
        """Start watching. Raises `RunError`."""
        self.interface = interface
        self._open()

    def _open(self) -> None:
        self._second = PacketTap(self.interface)
        self._first = PacketTap(self.interface)
        self._ahead: deque[TappedFrame] = deque()

    def renew(self) -> None:
        """Reopen the taps after a restart of the switch's program, which then has the first turn."""
        self.close()
        self._open()

    def read(self, *, timeout_s: float = 0.0) -> list[TappedFrame]:
        """See `PacketTap.read`. The stamps are the instants of the switch's own turn."""
        behind = self._second.read(timeout_s=timeout_s)
        self._ahead += self._first.read()
        return [self._of_switch(sighting) for sighting in behind]

    def _of_switch(self, second: TappedFrame) -> TappedFrame:
        while self._ahead:
            first = self._ahead.popleft()
            if first.data == second.data:
                return TappedFrame(2 * second.at_ns - first.at_ns, second.outgoing, second.data)
        return second

    def purge(self) -> None:
        """Drop all frames seen until now."""
        self._second.purge()
        self._first.purge()
        self._ahead.clear()

    def close(self) -> None:
        """Stop watching."""
        self._second.close()
        self._first.close()
