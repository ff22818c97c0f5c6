"""The document of a service curve."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from loko.switch_model.scenario import UNKNOWN, ActionType, MatchType, PriorityOrder, Scenario, UsedEntry
from loko_testbed.reproduce.figure import FixedScheme
from loko_testbed.reproduce.finding_checks import FindingFigure
from loko_testbed.simulation.options import Options

Open = Literal["unknown"]


class ServiceCurve(FindingFigure):
    """The service curve of a device in a scenario; ``unknown`` values are taken at their worst."""

    kind: Literal["service_curve"]
    profile: str
    """Name of a device profile."""
    entries: int | Open = "unknown"
    match: Literal["port", "tp-dst", "dl-dst", "masked-nw-dst", "five-tuple", "all", "unknown"] = "unknown"
    action: str = "unknown"
    packet_sizes_bytes: list[int] | Open = "unknown"
    priorities: Literal["increasing", "decreasing", "unknown"] = "unknown"
    used_entry: Literal["first", "last", "unknown"] = "unknown"
    allocations: list[FixedScheme] = Field(default=["full-rate", "fifth-rate"])
    """Schemes whose arrival curves are drawn beside the service curve."""

    def shorter(self, _options: Options) -> str:
        """See `Figure.shorter`. The figure is always computed in full."""
        return ""

    def scenario(self) -> Scenario:
        """Return the scenario. Raises `InputError` if it is meaningless, `ValueError` for unknown actions."""
        sizes = self.packet_sizes_bytes
        return Scenario(
            entries=UNKNOWN if isinstance(self.entries, str) else self.entries,
            match=UNKNOWN if self.match == "unknown" else MatchType(self.match),
            action=UNKNOWN if self.action == "unknown" else ActionType(self.action),
            packet_sizes_bytes=UNKNOWN if isinstance(sizes, str) else tuple(sizes),
            priorities=UNKNOWN if self.priorities == "unknown" else PriorityOrder(self.priorities),
            used_entry=UNKNOWN if self.used_entry == "unknown" else UsedEntry(self.used_entry),
        )
