"""The samples of a campaign: the kept results of its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from loko_testbed.measure.bench.part import Combination, Key, Samples, SampleSet
from loko_testbed.tasks.executor import Workers
from loko_testbed.tasks.provenance import today
from loko_testbed.tasks.store import StoredTasks

_CAMPAIGN: Final = "samples"


class _HasKey(Protocol):
    """A part, or a task that measures one."""

    @property
    def key(self) -> Key:
        """The part's key."""


_Part = TypeVar("_Part", bound=_HasKey)
PartSamples = dict[int, SampleSet]
"""Samples of a part by frame length or `NoFrameLength`, in the order of these numbers."""


@dataclass(frozen=True, slots=True)
class _KeptPart:
    key: Key


@dataclass(frozen=True, slots=True)
class SampleStore:
    """Samples in a folder, by part (such as a flow table) and frame length."""

    folder: Path
    parameters: Mapping[str, Any]
    """Inputs of all samples apart from the commit: samples taken with other parameters are not found."""

    def parts(
        self,
        measure: Callable[[_Part], PartSamples],
        *,
        workers: Workers | None = None,
        on_kept: Callable[[_Part], object] = lambda _: None,
    ) -> StoredTasks[_Part, PartSamples]:
        """Return parts as tasks, which `measure` measures. Default for `workers`: this process."""
        return StoredTasks(
            folder=self.folder,
            campaign=_CAMPAIGN,
            function=measure,
            inputs=lambda part: str(part.key),
            common=self.parameters,
            workers=workers or Workers(),
            on_kept=on_kept,
        )

    @property
    def begun(self) -> str:
        """The day on which the campaign began, which is when this was first asked for."""
        day: StoredTasks[str, str] = StoredTasks(
            folder=self.folder,
            campaign="begun",
            function=lambda _: today(),
            inputs=str,
            common=self.parameters,
        )
        (begun,) = day.in_order(["begun"])
        return begun

    def complete_among(self, keys: Iterable[Key]) -> set[Key]:
        """Return those of these parts that are complete."""
        kept = self.parts(_nothing)
        return {key for key in keys if kept.is_kept(_KeptPart(key))}

    def rows(self, keys: Iterable[Key]) -> Iterator[tuple[Key, int, NDArray[np.int64], int]]:
        """Yield part, frame length, times in nanoseconds, and samples left out, in a fixed order."""
        kept = self.parts(_nothing)
        for key in sorted(set(keys), key=str):
            by_size = kept.result_of(_KeptPart(key)) or {}
            for size, (times, left_out) in by_size.items():
                yield key, size, times, left_out

    def samples(self, keys: Iterable[Key]) -> Samples:
        """Return the samples of these parts, as far as they are complete."""
        samples: dict[Key, dict[int, NDArray[np.int64]]] = {}
        for key, size, times, _ in self.rows(keys):
            samples.setdefault(key, {})[size] = times
        return samples

    def left_out(self, keys: Iterable[Key]) -> int:
        """Return how many samples of these parts were left out because the bench's host lost time."""
        return sum(count for *_, count in self.rows(keys))


def part_samples(combinations: Iterable[Combination]) -> PartSamples:
    """Return all combinations of a part as they are stored."""
    return {
        int(size): SampleSet(values.astype(np.int64), int(left_out))
        for size, (values, left_out) in sorted(combinations, key=lambda combination: int(combination[0]))
    }


def _nothing(part: _HasKey) -> PartSamples:
    raise AssertionError(f"{part.key} is only read")
