"""A sliced switch, measured in this process."""

from __future__ import annotations

from pathlib import Path

from loko_testbed.measure.slices import campaign
from loko_testbed.measure.slices.document import load_sliced_switch
from loko_testbed.measure.slices.judgement import SliceRow
from loko_testbed.tasks.executor import Workers
from loko_testbed.tasks.progress import NoProgress


def measured_rows(device: str, folder: Path, *, seed: int = 1) -> list[SliceRow]:
    """Measure what the folder lacks, and return the table. Raises `InputError` or `RunError`."""
    switch = load_sliced_switch(device)
    return campaign.measured_rows(switch, folder, seed=seed, workers=Workers(), progress=NoProgress())
