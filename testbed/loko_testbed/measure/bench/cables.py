"""The cables of a bench. Somebody may pull one out; samples taken meanwhile do not count."""

from __future__ import annotations

from collections.abc import Iterable

from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.simulation.runner import RunError


class UnpluggedError(RunError):
    """A cable had no link while a part was measured. Measuring the part again at once would not help."""


def port_cable(port: int) -> str:
    """Return the name of the cable of a switch port."""
    return f"the cable of port {port}"


class VirtualCables:
    """The cables of ports 1 and 2 of a bench in virtual time."""

    def __init__(self) -> None:
        self._out: dict[int, int] = {}
        """By port: how many more frames enter the switch before its cable is out."""
        self._lost: set[int] = set()

    def unplug(self, port: int, *, after_frames: int = 0) -> None:
        """Pull out the cable of a port after so many more frames have entered the switch."""
        self._out[port] = after_frames
        self._note()

    def plug(self, port: int) -> None:
        """Plug the cable in again."""
        self._out.pop(port, None)

    def is_out(self, port: int) -> bool:
        """Whether the cable is out now."""
        return self._out.get(port) == 0

    @property
    def stay_plugged(self) -> bool:
        """Whether no cable is out, or will be after some more frames."""
        return not self._out

    def frames_until_out(self, port: int) -> int | None:
        """Return how many more frames enter before the cable is out; None if it stays plugged in."""
        return self._out.get(port)

    def entered(self, frames: int = 1) -> None:
        """Note that so many frames have entered the switch, or would have."""
        self._out = {port: max(left - frames, 0) for port, left in self._out.items()}
        self._note()

    def begin(self) -> None:
        """Forget cables that were out before; those that still are count again."""
        self._lost.clear()
        self._note()

    def unplugged(self) -> str | None:
        """See `BenchDevice.unplugged`."""
        return join_names(port_cable(port) for port in (IN_PORT, OUT_PORT) if port in self._lost)

    def _note(self) -> None:
        self._lost |= {port for port, left in self._out.items() if left == 0}


def join_names(cables: Iterable[str]) -> str | None:
    """Join the names of cables; None if there are none."""
    return " and ".join(cables) or None
