"""The interface between bench and switch, whatever and wherever the switch is.

A bench has the switch's port 1 (in) and port 2 (out) under taps, and the connection of its controller, tapped
as well. Instants are nanoseconds of the bench's own clock; they rise from call to call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from loko.switch_model.quantity import Section
from loko_testbed.measure.bench.equations import LinkTiming

Instants = NDArray[np.int64]
ACKNOWLEDGEMENT_NS: Final = 200_000
"""Delay after which a bench's controller acknowledges a segment, if it can choose the delay itself."""
MISSING = -1
"""Instant of a frame that a tap did not see."""


@dataclass(frozen=True, slots=True)
class TrainTimes:
    """When the taps saw each frame of a train begin (its start of frame delimiter); `MISSING` if never."""

    entered_ns: Instants
    left_ns: Instants
    disturbed: NDArray[np.bool_]
    """Frames during whose passage the bench's own host lost time: to be left out and counted."""


@dataclass(frozen=True, slots=True)
class ControlFrame:
    """A frame with OpenFlow bytes on the controller's connection."""

    at_ns: int
    from_switch: bool
    length_bytes: int
    """On the wire, with FCS, without preamble."""
    payload: bytes
    disturbed: bool = False
    """Whether the bench's own host lost time meanwhile: to be left out and counted."""


def wire_of(ports: Section) -> LinkTiming:
    """The links of a profile's ports."""
    return LinkTiming(
        rate_bps=ports.link_rate_bps.value,
        preamble_bytes=ports.preamble_bytes.value,
        gap_bytes=ports.interframe_gap_bytes.value,
        tag_bytes=ports.tail_tag_bytes.value,
    )


class BenchDevice(Protocol):
    """A switch under test."""

    name: str
    wire: LinkTiming
    warm_up_frames: int
    """Frames at the start of a train that do not count, while caches and an emulator's lead settle."""

    @property
    def now_ns(self) -> int:
        """The current time of the bench's clock."""

    @property
    def acknowledgement_ns(self) -> int | None:
        """Delay from a segment of the switch to the controller's acknowledgement; None if it is unknown."""

    @property
    def lateness_ns(self) -> int:
        """How late an emulated switch usually is against its own schedule; 0 for a real switch.

        Covers the frames sent since `begin`. Real time cannot resolve anything shorter. Raises `RunError`.
        """

    def begin(self, seed: int) -> None:
        """Begin a part of a campaign. From now on, the bench's random choices depend on `seed` alone."""

    def unplugged(self) -> str | None:
        """Name the cables that had no link at some time since `begin`; None if all had one."""

    def revive(self) -> bool:
        """Power-cycle a switch that has fallen silent. Return whether the bench can. Raises `RunError`."""

    def load(self, messages: Sequence[bytes]) -> None:
        """Empty the table, send these FLOW_MODs, and confirm them with a barrier. Raises `RunError`."""

    def with_housekeeping(self) -> BenchDevice | None:
        """Return the same switch with the jobs of its unmodified firmware; None if the bench cannot.

        In real time this lasts until the next `begin`.
        """

    def in_openflow13(self) -> BenchDevice | None:
        """Return the same switch in a session of OpenFlow 1.3; None if the bench cannot open one.

        All messages sent from now on must be of that version. In real time this lasts until the next `begin`.
        Raises `RunError`.
        """

    def without_cpu(self) -> BenchDevice | None:
        """Return the same switch with OpenFlow off; None if it, or the bench, has no such mode.

        The integrated switch then forwards alone, and has learned where the bench's frames go. A table cannot
        be loaded. In real time this lasts until the next `begin`. Raises `RunError`.
        """

    def send(self, gaps_ns: Sequence[int], frames: Sequence[bytes]) -> TrainTimes:
        """Send each frame (without FCS) to port 1, `gaps_ns` after the one before, and watch it pass.

        A frame that is due while the link is busy follows as closely as the link allows.
        """

    def control(self, gaps_ns: Sequence[int], segments: Sequence[bytes]) -> list[ControlFrame]:
        """Send each segment to the switch, `gaps_ns` after the one before. Return the frames seen."""
