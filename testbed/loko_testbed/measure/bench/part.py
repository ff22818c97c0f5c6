"""The elements of a campaign: procedures, their parts, and the keys under which samples are kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loko.switch_model.scenario import Scenario
from loko_testbed.measure.bench.cables import UnpluggedError
from loko_testbed.measure.bench.device import BenchDevice

ROUNDS: Final = 4
"""Rounds in which the smallest costs are measured in turn; in a reduced design, those of messages too."""
AFTER_RENEWAL: Final = 5
"""Samples, in a reduced design, of a message after which the switch must be power-cycled."""


class NoFrameLength(IntEnum):
    """Takes the place of a frame length for samples that belong to no frame."""

    VALUES = 0
    """Times of messages, or counts."""
    CONTEXT = -1
    """How to read the other samples: when each was taken, or how late the bench was."""


@dataclass(frozen=True, slots=True)
class Key:
    """Identifies a part. As text, it names the part in stores and for people."""

    procedure: str
    subject: tuple[Hashable, ...]
    """The case within the procedure, such as a flow table or a message."""
    turn: int = 0
    """Which repetition this is, if the part is measured several times."""

    @property
    def name(self) -> str:
        """The text of the key without the procedure's name."""
        name = "/".join(map(str, self.subject))
        return f"{name}/turn {self.turn}" if self.turn else name

    def __str__(self) -> str:
        return f"{self.procedure}/{self.name}"


class SampleSet(NamedTuple):
    """Samples of one combination of a part."""

    values: NDArray[np.int64]
    """Times in nanoseconds, or what the procedure counts."""
    left_out: int = 0
    """Further samples that do not count, since the bench's host lost time or the bench was too late."""


Combinations = Mapping[int, SampleSet]
"""Samples of a part, by frame length or `NoFrameLength`."""

Combination = tuple[int, SampleSet]
"""One item of `Combinations`."""

Samples = Mapping[Key, Mapping[int, NDArray[np.int64]]]
"""Samples by part, then by frame length or `NoFrameLength`."""

NOTHING: Final = SampleSet(np.array([], dtype=np.int64))
"""No samples: the switch, or its bench, lacks what would be measured."""


def counts(*values: float, left_out: int = 0) -> SampleSet:
    """Return counts, or values measured once, as samples (whole numbers)."""
    return SampleSet(np.array([round(value) for value in values], dtype=np.int64), left_out)


@dataclass(frozen=True, slots=True)
class MeasurementPart:
    """A piece of the campaign: measured in one go or not at all."""

    key: Key
    measure: Callable[[BenchDevice, int], Combinations | Iterator[Combination]]
    """Measures the part, given the device and a seed. Each combination that it yields is kept at once."""
    expected_s: float = 1.0
    """Rough duration in real time."""

    def measured(self, device: BenchDevice, seed: int) -> Iterator[Combination]:
        """Measure the part, and yield its combinations.

        Random choices depend only on the campaign's seed and the part's key, not on what was measured before.
        Raises `UnpluggedError` if a cable had no link meanwhile, whatever the procedure made of that.
        """
        mine = int.from_bytes(blake2b(f"{seed} {self.key}".encode(), digest_size=7).digest(), "big")
        try:
            device.begin(mine)
            samples = self.measure(device, mine)
            for combination in samples.items() if isinstance(samples, Mapping) else samples:
                self._refuse_unplugged(device)
                yield combination
        except Exception:
            self._refuse_unplugged(device)
            raise
        self._refuse_unplugged(device)

    def _refuse_unplugged(self, device: BenchDevice) -> None:
        cable = device.unplugged()
        if cable is not None:
            raise UnpluggedError(
                f"{device.name}: {cable} had no link while '{self.key}' was measured, so that does not count:"
                " plug it in and run the command again; what was measured before is kept"
            ) from None


class Design(StrEnum):
    """How much of Table 1 is measured."""

    FULL = "full"
    """Every combination: takes a minute in virtual time, hours in real time."""
    REDUCED = "reduced"
    """Just enough to find every number: one factor at a time is varied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementSize:
    """How much a campaign measures."""

    samples: int
    """Samples of each combination."""
    design: Design = Design.FULL
    scenario: Scenario | None = None
    """If given, selects the combinations of Table 1 in place of `design`."""


def _all(samples: NDArray[np.int64]) -> NDArray[np.int64]:
    return samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A way to measure a switch. Each has a file of its own in `loko_testbed.measure.bench.procedures`."""

    name: str
    """Name of its command, and of its samples."""
    text: str
    """Help text of its command."""
    parts: Callable[[MeasurementSize], Iterator[MeasurementPart]]
    simulated_parts: Callable[[MeasurementSize], Iterator[MeasurementPart]] | None = None
    """Parts for a simulated switch of another kind than the board; None if they make no sense there."""
    unit: str = "us"
    scale: float = 1000
    """How many stored units make one `unit`."""
    shown: Callable[[NDArray[np.int64]], NDArray[np.int64]] = _all
    """Selects the values that a row of the printed table summarises, from samples as they are stored."""
    beside: tuple[Procedure, ...] = ()
    """Procedures that its command runs as well, although they find no number of a profile."""

    def key(self, *subject: Hashable, turn: int = 0) -> Key:
        """Return the key of one of its parts."""
        return Key(self.name, subject, turn)

    def among(self, samples: Samples) -> dict[Key, Mapping[int, NDArray[np.int64]]]:
        """Return the samples of this procedure only."""
        return {key: by_size for key, by_size in samples.items() if key.procedure == self.name}


@dataclass(frozen=True, slots=True)
class ProfileNumber:
    """A number of a profile as a campaign found it, in the unit that its name ends with."""

    value: float
    error: float
    """Standard error; 0 for a count."""
    procedures: tuple[str, ...]
    """The procedures that found it."""
    samples: int
    note: str = ""
