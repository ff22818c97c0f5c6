"""Common parts of figures of step 1: the switch that they measure, and the store of its samples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from loko.switch_model.device import load_profile
from loko.units import NS_PER_US
from loko_testbed.measure.bench.device import wire_of
from loko_testbed.measure.bench.device_choice import DeviceChoice, choose
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.measure.bench.inventory import BENCHES
from loko_testbed.measure.bench.part import Key, MeasurementPart, Samples
from loko_testbed.measure.bench.processes import Parts, run
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.reproduce.analysis import box_of
from loko_testbed.reproduce.chart import BoxStatistics
from loko_testbed.reproduce.figure import Mode
from loko_testbed.reproduce.finding_checks import FindingFigure
from loko_testbed.simulation.options import Options, Progress
from loko_testbed.tasks.provenance import commit

_FOLDER: Final = ".samples"
_FIRST_WHISKER: Final = 5
_LAST_WHISKER: Final = 95
WHISKERS: Final = f"{_FIRST_WHISKER} % and {_LAST_WHISKER} %"
"""Where the whiskers of the boxes of section 3 end."""
LEFT_OUT: Final = "left_out_frames"
"""Finding: frames left out because the bench's host lost time, or an earlier frame was in the switch."""


class MeasuredFigure(FindingFigure):
    """A figure of a single switch on the bench rather than of a lab."""

    device: dict[Mode, str] = Field(min_length=1)
    """By mode: a profile in virtual time, else an inventory, as a name in ``labs/bench`` or a path."""

    @model_validator(mode="after")
    def _device_for_every_mode(self) -> Self:
        for mode in self.modes:
            if mode not in self.device:
                raise ValueError(f"device: names none for mode {mode}")
        return self

    def chosen(self, options: Options) -> DeviceChoice:
        """Return the switch to measure in this mode. Raises `InputError`."""
        name = self.device["live" if options.mode == "live" else "virtual"]
        inventory = BENCHES / f"{name}.yml"
        return choose(str(inventory) if options.mode == "live" and inventory.is_file() else name)

    def wire(self, options: Options) -> LinkTiming:
        """Return the switch's links in the form that the equations need."""
        return wire_of(load_profile(self.chosen(options).form).ports)


def measure(
    figure: MeasuredFigure, options: Options, progress: Progress, make_parts: Parts, *, samples: int
) -> Samples:
    """Measure the parts that no figure has measured yet with as many samples; return all samples.

    Raises `InputError` or `RunError`; parts that are complete by then are kept.
    """
    chosen = figure.chosen(options)
    with _store(chosen, options, samples) as store:
        wanted = {part.key for part in make_parts()}
        there = store.complete_among(wanted)
        progress.begin(len(wanted), len(there), "parts")

        def tell(part: MeasurementPart) -> None:
            progress.advance(f"{figure.name}: {part.key.name}")

        run(chosen, make_parts, store, seed=options.seed, workers=options.workers, on_part=tell)
        return store.samples(wanted)


def left_out(figure: MeasuredFigure, options: Options, keys: Collection[Key], *, samples: int) -> int:
    """Return how many samples of these parts `measure` left out. Raises `InputError`."""
    with _store(figure.chosen(options), options, samples) as store:
        return sum(count for *_, count in store.rows(keys))


def _store(chosen: DeviceChoice, options: Options, samples: int) -> SampleStore:
    folder = options.out / _FOLDER
    folder.mkdir(exist_ok=True)
    parameters = {**chosen.identity, "samples": samples, "seed": options.seed, "commit": commit()}
    return SampleStore(folder / f"{options.mode}-{samples}.sqlite", parameters)


def box_us(times_ns: NDArray[np.int64]) -> BoxStatistics:
    """Return a box of processing times in microseconds as in figures 9 and 10, with the mean."""
    return box_of(times_ns, low=_FIRST_WHISKER, high=_LAST_WHISKER, per=NS_PER_US)


def linearity(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Fit a straight line; return its slope, and R^2, the share of the variance that it explains."""
    slope, offset = np.polyfit(x, y, 1)
    rest = np.array(y) - (slope * np.array(x) + offset)
    total = np.var(y)
    return float(slope), float(1 - np.var(rest) / total) if total > 0 else 1.0


def parameters_of(
    device: Callable[[Any, Options], DeviceChoice],
) -> Callable[[Any, Options], Mapping[str, Any]]:
    """Return a `OneByOne.parameters` with the identity of the profile or inventory that `device` chooses."""
    return lambda figure, options: device(figure, options).identity


MEASURED: Final = parameters_of(lambda figure, options: figure.chosen(options))
"""`OneByOne.parameters` of every `MeasuredFigure`."""
