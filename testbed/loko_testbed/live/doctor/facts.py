"""Facts about a machine. None stands for a fact that could not be found out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """The processors that live runs may use."""

    usable: int
    emulator: int
    """Number of the core on which the emulator's thread polls."""
    emulator_alone: bool
    """Whether the emulator has a core that it does not share with the rest of the lab."""
    isolated: bool
    """Whether the kernel keeps other programs off that core (``isolcpus``)."""
    siblings: Sequence[int]
    """Other hardware threads of the emulator's core that are in use."""
    governor: str | None
    """Frequency governor of that core; None where the kernel does not choose frequencies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """The kernel's clocks."""

    source: str
    """Clock source of the kernel, such as tsc."""
    read_ns: float
    """Median time to read the monotonic clock."""
    step_ns: int
    """How far the wall clock, which stamps packets, was set against the monotonic one meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Stalls of a thread that polls as the live emulator does."""

    scheduling: str
    """The scheduling that the kernel gave the thread."""
    duration_ns: int
    threshold_ns: int
    """Shorter gaps do not count as stalls."""
    stalls: Sequence[tuple[int, int]]
    """Start and duration of each stall."""

    @property
    def worst_ns(self) -> int:
        """The longest stall; 0 without any."""
        return max((duration for _, duration in self.stalls), default=0)

    def excused_share(self, under_way_ns: int) -> float:
        """Return the share of time in which a packet that is under way for this long meets a stall.

        A late packet counts against the switch only if it met none.
        """
        excused, until = 0, 0
        for start, duration in sorted(self.stalls):
            begin, end = max(start - under_way_ns, until), start + duration
            excused += max(0, end - begin)
            until = max(until, end)
        return min(1.0, excused / self.duration_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """A network card."""

    name: str
    driver: str
    offloads: Sequence[str] | None
    """Offloads that are on, and pass frames on differently from how they are on the wire."""
    hardware_stamps: bool | None
    """Whether the card stamps what it receives and what it sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Something that live runs need: a feature of the kernel, tried out, or a program, looked for."""

    name: str
    there: bool | None
    """None if it could not be tried without root."""
    change: str
    """How to get it."""
    backends: Sequence[str] = ()
    """The only backends that need it. If empty, every live run does."""
    optional: bool = False
    """Whether these also work without it, although less well."""
    found: str = ""
    """Its path or version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts of a machine."""

    kernel: str
    root: bool
    parts: Sequence[Requirement]
    cores: Cores
    deadline: bool | None
    """Whether the kernel grants `SCHED_DEADLINE` with a whole core."""
    clocks: Clocks
    noise: Noise | None
    no_noise: str = ""
    """Why noise was not measured, if it was not."""
    load: float
    """Number of processes that ran or wanted to run, on average over the minute before."""
    steal_share: float | None
    """Share of the processors' time that a hypervisor gave to others during the measurement."""
    virtual_machine: bool
    adapters: Sequence[Adapter] = ()
    versions: Mapping[str, str]
