"""The documents of figures of the model; `shows` tells them apart."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from loko.document import StrictModel
from loko.switch_model.device import Profile, load_profile
from loko.switch_model.scenario import (
    TABLE_1_ENTRIES,
    TABLE_1_FRAME_BYTES,
    UNKNOWN,
    ActionType,
    MatchType,
    PriorityOrder,
    Scenario,
    UsedEntry,
)
from loko_testbed.reproduce.figure import FixedScheme
from loko_testbed.reproduce.finding_checks import FindingFigure
from loko_testbed.simulation.options import Options

Open = Literal["unknown"]


class ModelFigure(FindingFigure):
    """A figure that is computed from a device profile, without any replay."""

    kind: Literal["model"]
    shows: str
    profile: str
    """Name of a device profile."""

    def shorter(self, _options: Options) -> str:
        """See `Figure.shorter`. The figure is always computed in full."""
        return ""

    def loaded_profile(self) -> Profile:
        """Load the profile, as the paper prints it if the figure is `as_printed`. Raises `InputError`."""
        profile = load_profile(self.profile)
        return profile.with_exact_clocks() if self.as_printed else profile


class ServiceCurve(ModelFigure):
    """The service curve of a device in a scenario; ``unknown`` values are taken at their worst."""

    shows: Literal["service-curve"]
    entries: int | Open = "unknown"
    match: Literal["port", "tp-dst", "dl-dst", "masked-nw-dst", "five-tuple", "all", "unknown"] = "unknown"
    action: str = "unknown"
    packet_sizes_bytes: list[int] | Open = "unknown"
    priorities: Literal["increasing", "decreasing", "unknown"] = "unknown"
    used_entry: Literal["first", "last", "unknown"] = "unknown"
    allocations: list[FixedScheme] = Field(default=["full-rate", "fifth-rate"])
    """Schemes whose arrival curves are drawn beside the service curve."""

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


class AllocationMap(ModelFigure):
    """Delay, maximum burst and rate of a switch with Loko's tables, for each frame size and table size."""

    shows: Literal["allocation-map"]
    allocation: FixedScheme
    compared_with: FixedScheme | None = None
    """A second scheme; findings tell how the two differ."""
    split: float | None = Field(default=None, ge=0)
    """N of equation 8; findings tell which cells leave each flow of section 6.1 a burst of one frame."""
    packet_sizes_bytes: list[int] = Field(default=list(TABLE_1_FRAME_BYTES), min_length=2)
    entries: list[int] = Field(default=list(TABLE_1_ENTRIES), min_length=2)


class RatesOfSwitch(StrictModel):
    """A switch whose packet rates are compared."""

    profile: str
    ports: int = Field(ge=1)
    """Ports that receive."""
    frame_bytes: int = Field(default=64, ge=64, le=1518)
    """Length of the packets that the ports receive."""
    forwards_bytes: int | None = Field(default=None, ge=64, le=1518)
    """Length of the packets whose forwarding is computed; None for a switch that forwards line rate."""


class PacketRates(ModelFigure):
    """Packets per second that the ports of switches may receive, and those that the switches forward."""

    shows: Literal["packet-rates"]
    switches: list[RatesOfSwitch] = Field(min_length=1)
