"""What figures of the control plane have in common: measuring messages, rows of their samples."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.bench import campaign
from evaluation.bench.control_parts import NO_LENGTH
from evaluation.kinds.control_plane.document import ControlPlane
from evaluation.kinds.measured import Samples, left_out, measure
from evaluation.options import Options, Progress

US: Final = 1000
Times = Mapping[str, NDArray[np.int64]]
"""Processing times in nanoseconds by name of the part."""


def parts_named(names: Collection[str], samples: int) -> list[campaign.Part]:
    """The parts of the campaign with these names."""
    return [part for part in campaign.parts(("messages",), samples=samples) if part.name in names]


def measured(
    figure: ControlPlane, options: Options, progress: Progress, names: tuple[str, ...]
) -> tuple[Samples, int]:
    """Samples by name of the part and length, and how many were left out. Raises `InputError`, `RunError`."""
    samples = figure.count(quick=options.quick)
    found = measure(figure, options, progress, partial(parts_named, names, samples), samples=samples)
    keys = {f"messages/{name}" for name in names}
    by_name = {key.partition("/")[2]: by_length for key, by_length in found.items()}
    return by_name, left_out(figure, options, keys, samples=samples)


def times_of(samples: Samples) -> Times:
    """Those that belong to no length."""
    return {name: by_length[NO_LENGTH] for name, by_length in samples.items()}


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
