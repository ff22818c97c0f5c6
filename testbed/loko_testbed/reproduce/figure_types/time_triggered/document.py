"""The document of a figure whose hosts send by time slots."""

from __future__ import annotations

from itertools import product
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from loko.document import StrictModel
from loko.schedule.sources import STALL_THRESHOLD_US
from loko_testbed.reproduce.facts import facts
from loko_testbed.reproduce.figure import IN_TASKS
from loko_testbed.reproduce.finding_checks import FindingFigure
from loko_testbed.reproduce.result import Printed

SendPath = Literal["sockets", "timed-sockets", "packet-ring"]
"""How frames get to the network in real time: UDP sockets, the same with a time for each frame (`SO_TXTIME`)
and the queue ETF, or rings of packet sockets."""

_COLUMNS: Final = {"avg": "mean", "std": "deviation", "min": "least", "max": "most"}
"""Names of statistics in findings, by the columns of the paper's tables."""
_LEAST_LIVE_BYTES: Final = 74
"""Length of the generator's shortest frame in real time."""


class HostTimes(StrictModel):
    """The end-to-end delay through an idle network, from program to program, as the paper measured it.

    It has no upper end: the longest delay that a paper prints is the longest of so many packets.
    """

    least_us: float = Field(gt=0)
    mean_us: float
    deviation_us: float = Field(gt=0)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.least_us < self.mean_us:
            raise ValueError("mean_us must be above least_us")
        return self


class TimeTriggeredCase(StrictModel):
    """One row: so many flows, and how they send. Flow i goes from the i-th host at s1 to the i-th at s2."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    """Prefix of the names of the case's findings."""
    label: str
    flows: Annotated[int, Field(ge=1, le=5)]
    frame_bytes: Annotated[int, Field(ge=64, le=1518)] | None = None
    """Length of the time-triggered frames; None: the figure's."""
    period_us: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    """Time between two frames of a flow; None: the figure's."""
    adjacent: bool = True
    """Whether each flow has a slot of its own, one after the other; else all flows share one slot."""
    priority: bool = True
    """Whether time-triggered frames wait in the highest queue; everything else always waits in the lowest."""
    cross_percent: float = Field(default=0, ge=0, le=95)
    """Mean load that the other hosts put on the cable between the switches."""
    cross_burst_frames: int = Field(default=1, ge=1)
    """Frames that these hosts hand over at once, at the rate of their cables."""
    path: SendPath = "packet-ring"
    """How the frames reach the network, in real time only."""
    watch_us: float = Field(default=100, ge=0, le=10_000)
    """How long before a slot the sender wakes up and polls the clock; 0: a timer wakes it for the slot.

    In real time only.
    """


class QuickTimeTriggered(StrictModel):
    """The small run of ``--quick``."""

    packets: int = Field(ge=1)


class TimeTriggeredFigure(FindingFigure):
    """End-to-end delays of time-triggered flows, case by case."""

    supported_options = IN_TASKS
    kind: Literal["time_triggered"]
    table: str = ""
    """The paper's table that the figure is, by its name in the facts; each case is a row of it.

    In virtual time it is drawn as a table, any other figure as distributions. In real time the picture shows
    delays over time, with the machine's stalls.
    """
    lab: str
    frame_bytes: Annotated[int, Field(ge=64, le=1518)]
    period_us: float = Field(gt=0, le=1_000_000)
    slot_us: float = Field(gt=0)
    packets: int = Field(ge=1)
    """Packets of each flow, in virtual time."""
    live_packets: int = Field(default=1, ge=1)
    """Packets of each flow, in real time."""
    live_trunk_mbps: float | None = Field(default=None, gt=0, le=1000)
    """In real time, the rate of the cable between the switches, by a token bucket that holds one frame. None:
    nothing limits it, and frames of one slot never wait for each other there."""
    live_stall_us: int = Field(default=STALL_THRESHOLD_US, ge=1)
    """In real time, the shortest interruption of a program that counts as a stall.

    Choose a longer one on a slow cable, where delays are longer and a short interruption changes little.
    """
    live_period_us: float | None = Field(default=None, gt=0, le=1_000_000)
    """In real time, the period, if it differs from `period_us`."""
    quick: QuickTimeTriggered
    hosts: HostTimes | None = None
    """The delays of the hosts, in virtual time only: there, hosts are modelled by these numbers."""
    cross_frame_bytes: list[Annotated[int, Field(ge=64, le=1518)]] = Field(default=[])
    """Frame lengths of the cross traffic.

    It consists of bursts at random instants, from all hosts of s1 that send nothing else. Each length has the
    same share of the load.
    """
    live_cross_frame_bytes: list[Annotated[int, Field(ge=_LEAST_LIVE_BYTES, le=1518)]] | None = None
    """In real time, the lengths of cross traffic, if others: the generator sends at least 74 bytes."""
    cases: list[TimeTriggeredCase] = Field(min_length=1)

    def printed(self) -> list[Printed]:
        """See `Figure.printed`. Of a table, every cell that the paper prints."""
        marks = {mark.finding: mark for mark in super().printed()}
        known = facts(self.paper) if self.table else {}
        for case, (column, statistic) in product(self.cases, _COLUMNS.items()):
            cell = known.get(f"{self.table}/{case.flows}/{column}")
            if cell is not None:
                finding = f"{case.name}_{statistic}_us"
                marks[finding] = Printed(
                    finding=finding, value=cell.number, text=f"{cell.number:g}", fact=cell.reference
                )
        return list(marks.values())

    def for_replication(self) -> Self | None:
        """See `Figure.for_replication`: the cases that decide the claims; none depends on the others."""
        part = super().for_replication()
        if part is None:
            return None
        cases = [case for case in self.cases if any(name.startswith(f"{case.name}_") for name in part.read)]
        return part.model_copy(update={"cases": cases or self.cases})

    def in_real_time(self) -> Self:
        """Return the figure with the values that apply in real time."""
        return self.model_copy(
            update={
                "period_us": self.live_period_us or self.period_us,
                "cross_frame_bytes": self.live_cross_frame_bytes or self.cross_frame_bytes,
            }
        )

    def of(self, case: TimeTriggeredCase) -> Self:
        """Return the figure with the values that apply to this case of it."""
        return self.model_copy(
            update={
                "frame_bytes": case.frame_bytes or self.frame_bytes,
                "period_us": case.period_us or self.period_us,
            }
        )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if "virtual" in self.modes and self.hosts is None:
            raise ValueError("hosts: what hosts take in virtual time is missing; add it")
        if not self.cross_frame_bytes and any(case.cross_percent for case in self.cases):
            raise ValueError("cross_frame_bytes: a case has cross traffic, and no length is given; add some")
        crossed = any(case.cross_percent for case in self.cases)
        if "live" in self.modes and crossed and self.live_trunk_mbps is None:
            raise ValueError(
                "live_trunk_mbps: cross traffic needs a cable with a rate, which veths have not; give one, or"
                " leave live out of modes"
            )
        if (
            "live" in self.modes
            and crossed
            and min(self.in_real_time().cross_frame_bytes) < _LEAST_LIVE_BYTES
        ):
            raise ValueError(
                "live_cross_frame_bytes: the generator's shortest frame has"
                f" {_LEAST_LIVE_BYTES} bytes; give lengths, or leave live out of modes"
            )
        if "live" in self.modes and self.live_trunk_mbps is None and not all(c.adjacent for c in self.cases):
            raise ValueError(
                "live_trunk_mbps: flows of one slot meet on a cable with a rate, which veths have not; give"
                " one, or leave live out of modes"
            )
        for case in self.cases:
            slots = case.flows if case.adjacent else 1
            if slots * self.slot_us > self.of(case).period_us:
                raise ValueError(
                    f"slot_us: {slots} slots of {self.slot_us:g} us are longer than the period;"
                    " use fewer flows"
                )
        return self
