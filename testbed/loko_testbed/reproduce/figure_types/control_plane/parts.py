"""Common functions of figures of the control plane: measure messages, make rows of samples."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko_testbed.measure.bench import campaign
from loko_testbed.measure.bench.part import Key, MeasurementPart, NoFrameLength, Samples
from loko_testbed.measure.bench.procedures import messages
from loko_testbed.reproduce.figure_types.control_plane.document import ControlPlane
from loko_testbed.reproduce.figure_types.measured import left_out, measure
from loko_testbed.simulation.options import Options, Progress

US: Final = 1000
Times = Mapping[Key, NDArray[np.int64]]
"""Processing times in nanoseconds by part."""


def parts_of(keys: Collection[Key], samples: int) -> list[MeasurementPart]:
    """Return the parts of the campaign with these keys."""
    return [part for part in campaign.parts((messages.PROCEDURE,), samples=samples) if part.key in keys]


def measure_parts(
    figure: ControlPlane, options: Options, progress: Progress, keys: tuple[Key, ...]
) -> tuple[Samples, int]:
    """Return samples of these parts, and how many were left out. Raises `InputError` or `RunError`."""
    samples = figure.count(quick=options.quick)
    taken = measure(figure, options, progress, partial(parts_of, keys, samples), samples=samples)
    return taken, left_out(figure, options, keys, samples=samples)


def times_of(samples: Samples) -> Times:
    """Return the samples that belong to no frame length, by part."""
    return {key: by_length[NoFrameLength.VALUES] for key, by_length in samples.items()}


def rows_of(times: Times) -> pa.Table:
    """Return a table with a row for each sample."""
    names = [key.name for key, values in times.items() for _ in range(len(values))]
    return pa.table(
        {
            "what": pa.array(names).dictionary_encode(),
            "sample": np.concatenate([np.arange(len(values), dtype=np.int32) for values in times.values()]),
            "time_ns": np.concatenate(list(times.values())),
        }
    )
