"""What a campaign is made of: procedures, their parts, and the keys under which samples are kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.bench.cables import UnpluggedError
from evaluation.bench.device import Device
from loko.scenario import Scenario

ROUNDS: Final = 4
"""So often the smallest costs are measured, in turns; those of messages, too, in a reduced design."""
AFTER_RENEWAL: Final = 5
"""Samples of a message after which the switch has to be switched off and on, in a reduced design."""


class Apart(IntEnum):
    """In the place of a length: samples that belong to no frame."""

    VALUES = 0
    """Times of messages, or what is counted."""
    CONTEXT = -1
    """What tells how to read the others: when each was taken, or how late the bench was."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a part measures. Its text names the part in stores and for people."""

    procedure: str
    subject: tuple[Hashable, ...]
    """Of the procedure's own, such as a flow table or a message."""
    turn: int = 0
    """Of a part that is measured several times, which of these times it is."""

    @property
    def name(self) -> str:
        """Its text within the procedure."""
        name = "/".join(map(str, self.subject))
        return f"{name}/turn {self.turn}" if self.turn else name

    def __str__(self) -> str:
        return f"{self.procedure}/{self.name}"


class Taken(NamedTuple):
    """Samples of one combination of a part."""

    values: NDArray[np.int64]
    """Times in nanoseconds, or what the procedure counts."""
    left_out: int = 0
    """How many more were taken that do not count: the bench's own host lost time, or came too late."""


Combinations = Mapping[int, Taken]
"""By length of frame, or by `Apart`."""

Combination = tuple[int, Taken]
"""One of them."""

Samples = Mapping[Key, Mapping[int, NDArray[np.int64]]]
"""By part, then by length of frame or `Apart`."""

NOTHING: Final = Taken(np.array([], dtype=np.int64))
"""Of what a switch, or its bench, does not have."""


def counts(*values: float, left_out: int = 0) -> Taken:
    """What was measured once."""
    return Taken(np.array([round(value) for value in values], dtype=np.int64), left_out)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the campaign: measured in one go or not at all."""

    key: Key
    measure: Callable[[Device, int], Combinations | Iterator[Combination]]
    """Takes the device and a seed. Combinations that are yielded are kept one by one."""
    expected_s: float = 1.0
    """How long it takes in real time, roughly."""

    def measured(self, device: Device, seed: int) -> Iterator[Combination]:
        """Measure it. What it draws depends on the campaign's seed and on itself, not on what came before.

        Raises `UnpluggedError` if a cable had no link meanwhile, whatever the procedure has made of that.
        """
        mine = int.from_bytes(blake2b(f"{seed} {self.key}".encode(), digest_size=7).digest(), "big")
        try:
            device.begin(mine)
            found = self.measure(device, mine)
            for combination in found.items() if isinstance(found, Mapping) else found:
                self._refuse_unplugged(device)
                yield combination
        except Exception:
            self._refuse_unplugged(device)
            raise
        self._refuse_unplugged(device)

    def _refuse_unplugged(self, device: Device) -> None:
        cable = device.unplugged()
        if cable is not None:
            raise UnpluggedError(
                f"{device.name}: {cable} had no link while '{self.key}' was measured, so that does not count:"
                " plug it in and run the command again; what was measured before is kept"
            ) from None


class Design(StrEnum):
    """How much of Table 1 is measured."""

    FULL = "full"
    """Every combination: in virtual time a minute, in real time hours."""
    REDUCED = "reduced"
    """What tells every number: one factor at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much a campaign measures."""

    samples: int
    """Of each combination."""
    design: Design = Design.FULL
    scenario: Scenario | None = None
    """Restricts the combinations of Table 1, in place of the design."""


def _all(samples: NDArray[np.int64]) -> NDArray[np.int64]:
    return samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A way to measure a switch. Each is a file of `evaluation.bench.procedures`."""

    name: str
    """Of its command, and of its samples."""
    text: str
    """What its command says of it."""
    parts: Callable[[Extent], Iterator[Part]]
    simulated_parts: Callable[[Extent], Iterator[Part]] | None = None
    """For a switch that is not of the board's kind, in virtual time; None if it makes no sense there."""
    unit: str = "us"
    scale: float = 1000
    """How many of what is stored make one of the unit."""
    shown: Callable[[NDArray[np.int64]], NDArray[np.int64]] = _all
    """What a row of its table is about, from samples as they are stored."""
    beside: tuple[Procedure, ...] = ()
    """What its command measures as well, though it tells no number of a profile."""

    def key(self, *subject: Hashable, turn: int = 0) -> Key:
        """Of one of its parts."""
        return Key(self.name, subject, turn)

    def among(self, samples: Samples) -> dict[Key, Mapping[int, NDArray[np.int64]]]:
        """Those of its own."""
        return {key: by_size for key, by_size in samples.items() if key.procedure == self.name}


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a profile as a campaign finds it, in the unit of its name."""

    value: float
    error: float
    """Standard error; 0 for what is counted."""
    procedures: tuple[str, ...]
    """The procedures of `loko bench` that tell it."""
    samples: int
    note: str = ""
