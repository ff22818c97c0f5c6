"""Measure all slices of a sliced switch, part by part."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

from loko_testbed.measure.bench.part import Key, SampleSet
from loko_testbed.measure.bench.store import PartSamples, SampleStore, part_samples
from loko_testbed.measure.slices.devices import SliceDevice, open_device
from loko_testbed.measure.slices.document import SlicedSwitch
from loko_testbed.measure.slices.judgement import SliceRow, rows
from loko_testbed.measure.slices.measurements import Numbers, parts
from loko_testbed.tasks.executor import Workers
from loko_testbed.tasks.progress import Progress


class SlicePart(NamedTuple):
    """A part that any worker may measure."""

    switch: SlicedSwitch
    seed: int
    key: Key


def measured_rows(
    switch: SlicedSwitch, folder: Path, *, seed: int, workers: Workers, progress: Progress
) -> list[SliceRow]:
    """Measure what the folder lacks, and return the table. Raises `InputError` or `RunError`.

    In real time the switch is opened once, so `workers` must be this process.
    """
    device, port = open_device(switch), switch.port()
    store = SampleStore(
        folder,
        {
            "switch": switch.model_dump(mode="json"),
            "port": port.model_dump(mode="json"),
            "device": device.parameters(),
            "seed": seed,
        },
    )
    todo = [SlicePart(switch, seed, part.key) for part in parts(port, switch.counted_as(), device)]
    measured = store.parts(
        partial(_measured, live=device if device.real_time else None),
        workers=workers,
        on_kept=lambda part: progress.advance(str(part.key)),
    )
    measured.all(todo, progress)
    return rows(port, switch.counted_as(), store.samples(part.key for part in todo))


def _measured(task: SlicePart, *, live: SliceDevice | None) -> PartSamples:
    return part_samples((size, SampleSet(each)) for size, each in _numbers(task, live).items())


def measure_part(task: SlicePart) -> dict[int, Numbers]:
    """Measure a part in virtual time; return its numbers by the length of frames. Raises `RunError`."""
    return _numbers(task, None)


def _numbers(task: SlicePart, live: SliceDevice | None) -> dict[int, Numbers]:
    device = live or open_device(task.switch)
    by_key = {part.key: part for part in parts(task.switch.port(), task.switch.counted_as(), device)}
    return dict(by_key[task.key].measure(device, task.seed))
