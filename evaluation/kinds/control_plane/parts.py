"""What figures of the control plane have in common: measuring messages, rows of their samples."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.bench import campaign
from evaluation.bench.part import Apart, Part
from evaluation.bench.procedures import messages
from evaluation.kinds.control_plane.document import ControlPlane
from evaluation.kinds.measured import left_out, measure
from evaluation.options import Options, Progress

US: Final = 1000
Times = Mapping[str, NDArray[np.int64]]
"""Processing times in nanoseconds by name of the part."""


BySubject = Mapping[str, Mapping[int, NDArray[np.int64]]]
"""By name of the part, then by length or `Apart`."""


def parts_named(names: Collection[str], samples: int) -> list[Part]:
    """The parts of the campaign with these names."""
    every = campaign.parts((messages.PROCEDURE,), samples=samples)
    return [part for part in every if part.key.name in names]


def measured(
    figure: ControlPlane, options: Options, progress: Progress, names: tuple[str, ...]
) -> tuple[BySubject, int]:
    """Samples by name of the part and length, and how many were left out. Raises `InputError`, `RunError`."""
    samples = figure.count(quick=options.quick)
    found = measure(figure, options, progress, partial(parts_named, names, samples), samples=samples)
    by_name = {key.name: by_length for key, by_length in found.items()}
    return by_name, left_out(figure, options, found.keys(), samples=samples)


def times_of(samples: BySubject) -> Times:
    """Those that belong to no length."""
    return {name: by_length[Apart.VALUES] for name, by_length in samples.items()}


def rows_of(times: Times) -> pa.Table:
    """A row for each sample."""
    names = [name for name, one in times.items() for _ in range(len(one))]
    return pa.table(
        {
            "what": pa.array(names).dictionary_encode(),
            "sample": np.concatenate([np.arange(len(one), dtype=np.int32) for one in times.values()]),
            "time_ns": np.concatenate(list(times.values())),
        }
    )
