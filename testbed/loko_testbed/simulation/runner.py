"""The interface of all ways to run an experiment: their common input and output.

A *runner* sends the traffic of one point of an experiment through a lab once and returns a record of every
packet: `loko_testbed.simulation.virtual.VirtualRunner` in virtual time, `loko_testbed.live.runner.LiveRunner`
in real time. Times are integer nanoseconds since the start of the run, on one clock for all columns and
stalls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from loko.user_error import UserError
from loko_testbed.simulation.traffic import IN_WORDS, Sender, Sends

LOST: int = -1
"""Value of `RunRecords.received_ns` for a packet that never arrived."""


class RunError(UserError):
    """A run could not be carried out. The message is one line: what failed, where, and how to mend it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A period in which the host kept the emulator from running: delays then say nothing about the switch."""

    start_ns: int
    duration_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """How well the machine kept time during a run. There are no stalls and no lateness in virtual time."""

    stalls: tuple[Stall, ...] = ()
    lateness_ns: Mapping[str, int] = field(default_factory=dict)
    """Actual minus intended departure of the emulator's frames: ``p50``, ``p99``, ``p999``, ``max``."""

    @property
    def worst_stall_ns(self) -> int:
        """Length of the longest stall, 0 without any."""
        return max((stall.duration_ns for stall in self.stalls), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsKept:
    """How precisely a flow's host kept its slots: from their beginning until frames were handed over."""

    frames: int
    late_p50_ns: int
    late_p99_ns: int
    late_most_ns: int
    stalls: int
    """How often the source of all flows was kept from running."""

    @classmethod
    def of(cls, late_ns: NDArray[np.int64], *, stalls: int) -> Self:
        """Summarise how late each frame was; all 0 if there are none."""
        shares = (np.quantile(late_ns, [0.5, 0.99, 1]) if late_ns.size else np.zeros(3)).round().astype(int)
        p50_ns, p99_ns, most_ns = shares.tolist()
        return cls(
            frames=late_ns.size, late_p50_ns=p50_ns, late_p99_ns=p99_ns, late_most_ns=most_ns, stalls=stalls
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecords:
    """All packets of the observed flows of one run, one row per packet, and what else the run recorded.

    All columns have the same length. Rows of one flow are in order of their sequence numbers.
    """

    flow: NDArray[np.int32]
    sequence: NDArray[np.int64]
    sent_ns: NDArray[np.int64]
    """When the first bit of the frame passed the tap behind the sender's shaper."""
    received_ns: NDArray[np.int64]
    """When the first bit of the frame passed the receiver's tap; `LOST` if it never did."""
    size: NDArray[np.int32]
    """Bytes with FCS, without preamble."""
    host: HostReport = field(default_factory=HostReport)
    boards: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Counters of each switch by name, such as ``received``, ``forwarded``, ``dropped_buffer``."""
    real_boards: dict[str, dict[str, str]] = field(default_factory=dict)
    """Self-description of each real board: ``mac``, ``firmware``, ``hardware``, ``serial``."""
    flows: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Counters of all flows by number, including those not observed: ``sent``, ``received``,
    ``max_delay_ns``, ``nonconforming``, … In virtual time only."""
    slots: Mapping[int, SlotsKept] = field(default_factory=dict)
    """How well each flow that sends in slots kept them, by its number. In real time only."""
    events: tuple[str, ...] = ()
    """Complaints of boards. In virtual time only."""

    def __len__(self) -> int:
        """Number of packets."""
        return int(self.flow.shape[0])


class Runner(Protocol):
    """Sends traffic through a lab. A context manager: leaving it takes down everything it has set up."""

    carries: ClassVar[frozenset[type[Sends]]]
    """The ways of sending that this runner supports."""

    def __enter__(self) -> Self:
        """Set up what all runs share."""

    def __exit__(self, *_: object) -> None:
        """Take everything down, even after an error."""

    def run(
        self, traffic: Sequence[Sender], *, seconds: float, seed: int, echoes_per_s: float = 0
    ) -> RunRecords:
        """Send the traffic for this many seconds and return a record of every packet of the observed flows.

        Meanwhile the controller sends `echoes_per_s` EchoRequests per second to each switch, evenly spaced.
        The seed determines all that is random. Raises `RunError` if the run cannot be carried out, for
        example because the runner does not support a way of sending.
        """


def refuse_others(traffic: Iterable[Sender], carries: frozenset[type[Sends]], mode: str) -> None:
    """Raise `RunError` for the first flow whose way of sending is not among those that a runner supports."""
    for flow in traffic:
        if type(flow.sends) not in carries:
            known = "; ".join(words for how, words in IN_WORDS.items() if how in carries)
            raise RunError(
                f"{flow.where}: --mode {mode} cannot send {IN_WORDS[type(flow.sends)]} (it can: {known});"
                " describe the sender in one of these ways, or choose another mode"
            )
