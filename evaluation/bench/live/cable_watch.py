"""Whether the cables of a bench in real time keep their links, by the kernel's counts of their changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.bench.cables import named
from evaluation.live.programs import run_json
from evaluation.runner import RunError


@dataclass(frozen=True, slots=True)
class Carrier:
    """What the kernel says of an interface's link."""

    is_there: bool
    changes: int
    """How often it was lost or found since the interface exists."""


class CableWatch:
    """Looks at the bench's ends of its cables, in the network of the thread that asks."""

    def __init__(self, cables: Mapping[str, Sequence[str]]) -> None:
        """`cables`: the interfaces at each cable, by what it is called."""
        self._cables = cables
        self._before: dict[str, Carrier] = {}

    def begin(self) -> None:
        """What was lost before does not count, unless it still is."""
        self._before = {name: carrier(name) for ends in self._cables.values() for name in ends}

    def unplugged(self) -> str | None:
        """As `Device.unplugged`."""
        return named(cable for cable, ends in self._cables.items() if any(map(self._was_lost, ends)))

    def _was_lost(self, name: str) -> bool:
        now = carrier(name)
        return not now.is_there or now != self._before.get(name, now)


def carrier(interface: str) -> Carrier:
    """The carrier of an interface; an interface that is gone has none."""
    try:
        command = ["ip", "-json", "-statistics", "-statistics", "link", "show", "dev", interface]
        shown: list[dict[str, Any]] = run_json(command, what=interface)
    except RunError:
        return Carrier(is_there=False, changes=0)
    sent = shown[0].get("stats64", {}).get("tx", {})
    return Carrier("LOWER_UP" in shown[0]["flags"], int(sent.get("carrier_changes", 0)))
