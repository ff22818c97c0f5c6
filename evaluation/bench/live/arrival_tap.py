"""A tap that tells when a frame reaches the program at the same interface, a switch in software.

The kernel stamps a frame of its own TCP anew for each listener when its turn comes, which is a microsecond
after the one before: so a listener ahead of the switch sees it earlier than the switch does, and one behind
it later. Two listeners ahead tell how long a turn takes, and thereby when the switch's own comes. Frames that
are stamped once, as all others are, have the same stamp for both.
"""

from __future__ import annotations

from collections import deque

from evaluation.instruments.packet_tap import PacketTap, Seen


class ArrivalTap:
    """Two taps of an interface, opened after the switch's program: the last one has the first turn."""

    def __init__(self, interface: str) -> None:
        """Begin to watch. Raises `RunError`."""
        self.interface = interface
        self._open()

    def _open(self) -> None:
        self._second = PacketTap(self.interface)
        self._first = PacketTap(self.interface)
        self._ahead: deque[Seen] = deque()

    def renew(self) -> None:
        """To be called when the switch's program has begun anew: its turn is the first one then."""
        self.close()
        self._open()

    def read(self, *, patience_s: float = 0.0) -> list[Seen]:
        """As `PacketTap.read`, with the instants of the switch's turn."""
        behind = self._second.read(patience_s=patience_s)
        self._ahead += self._first.read()
        return [self._of_switch(one) for one in behind]

    def _of_switch(self, second: Seen) -> Seen:
        while self._ahead:
            first = self._ahead.popleft()
            if first.data == second.data:
                return Seen(2 * second.at_ns - first.at_ns, second.outgoing, second.data)
        return second

    def forget(self) -> None:
        """Let go of what came until now."""
        self._second.forget()
        self._first.forget()
        self._ahead.clear()

    def close(self) -> None:
        """Watch no longer."""
        self._second.close()
        self._first.close()
