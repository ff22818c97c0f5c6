"""Link watch of a bench in real time: notices lost links by the kernel's count of link changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loko_testbed.instruments.programs import run_json
from loko_testbed.measure.bench.cables import join_names
from loko_testbed.simulation.runner import RunError


@dataclass(frozen=True, slots=True)
class Carrier:
    """The link of an interface, as the kernel reports it."""

    is_there: bool
    changes: int
    """How often the link has gone up or down since the interface was created."""


class CableWatch:
    """Watches the bench's ends of its cables, in the network namespace of the calling thread."""

    def __init__(self, cables: Mapping[str, Sequence[str]]) -> None:
        """Take the interfaces at each cable, by the cable's name."""
        self._cables = cables
        self._before: dict[str, Carrier] = {}

    def begin(self) -> None:
        """Forget links that were lost before; those that still are count again."""
        self._before = {name: carrier(name) for ends in self._cables.values() for name in ends}

    def unplugged(self) -> str | None:
        """See `BenchDevice.unplugged`."""
        return join_names(cable for cable, ends in self._cables.items() if any(map(self._lost_link, ends)))

    def _lost_link(self, name: str) -> bool:
        now = carrier(name)
        return not now.is_there or now != self._before.get(name, now)


def carrier(interface: str) -> Carrier:
    """Return the carrier of an interface. An interface that no longer exists has none."""
    try:
        command = ["ip", "-json", "-statistics", "-statistics", "link", "show", "dev", interface]
        shown: list[dict[str, Any]] = run_json(command, what=interface)
    except RunError:
        return Carrier(is_there=False, changes=0)
    sent = shown[0].get("stats64", {}).get("tx", {})
    return Carrier("LOWER_UP" in shown[0]["flags"], int(sent.get("carrier_changes", 0)))
