"""Common parts of figures of the bench: the parts of their campaigns, the store of samples, and boxes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loko.switch_model.device import load_profile
from loko.switch_model.scenario import Scenario
from loko.units import NS_PER_US
from loko_testbed.measure.bench import campaign
from loko_testbed.measure.bench.device import wire_of
from loko_testbed.measure.bench.device_choice import DeviceChoice
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.measure.bench.part import Key, MeasurementPart, NoFrameLength, Procedure, Samples
from loko_testbed.measure.bench.procedures import messages
from loko_testbed.measure.bench.procedures.messages import MeasuredMessage
from loko_testbed.measure.bench.processes import Parts, run
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.reproduce.analysis import box_of
from loko_testbed.reproduce.chart import BoxGroup
from loko_testbed.reproduce.figure_types.bench.document import BenchFigure, ControlPlane
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_WHISKERS: Final = (5, 95)
WHISKERS: Final = "{} % and {} %".format(*_WHISKERS)
"""Where the whiskers of the boxes of section 3 end."""
LEFT_OUT: Final = "left_out_frames"
"""Finding: frames left out because the bench's host lost time, or an earlier frame was in the switch."""

_SAMPLE_S: Final = 0.0005
_ENTRY_S: Final = 0.00004
_FRESH_BOARD_S: Final = 0.001
_OTHER_S: Final = 1.0
"""Virtual times of a message's sample, a loaded entry, a fresh board, and any other part of messages."""

Times = Mapping[Key, NDArray[np.int64]]
"""Processing times of messages in nanoseconds, by part."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Samples of all parts of a figure, with the switch that was measured."""

    device: DeviceChoice
    samples: Samples
    left_out: int
    """How many samples were left out."""
    options: Options

    @property
    def wire(self) -> LinkTiming:
        """The switch's links in the form that the equations need."""
        return wire_of(load_profile(self.device.form).ports)

    @property
    def times(self) -> Times:
        """The samples that belong to no frame length, by part."""
        return {key: by_length[NoFrameLength.VALUES] for key, by_length in self.samples.items()}


class Shown(NamedTuple):
    """One value of `BenchFigure.shows`: what is measured for it, and how that is evaluated."""

    parts: Callable[[Any, bool], list[MeasurementPart]]
    """Returns the parts to measure for a figure, with ``--quick`` or without."""
    evaluate: Callable[[Any, Measured], tuple[Outcome, pa.Table]]
    virtual_s: Callable[[Any], float]
    """Estimates the time for measuring in virtual time; measured on an x86-64 VM."""


def measure(figure: BenchFigure, options: Options, progress: Progress, make_parts: Parts) -> Measured:
    """Measure the parts that no figure has measured yet with as many samples.

    Raises `InputError` or `RunError`; parts that are complete by then are kept.
    """
    chosen, samples = figure.chosen(options), figure.count(quick=options.quick)
    store = SampleStore(
        options.out, {**chosen.identity, "mode": options.mode, "samples": samples, "seed": options.seed}
    )
    todo = make_parts()
    wanted = {part.key for part in todo}
    on_part = campaign.counting(
        todo, store.complete_among(wanted), progress, real_time=chosen.inventory is not None
    )
    run(chosen, make_parts, store, seed=options.seed, workers=options.workers, on_part=on_part)
    return Measured(chosen, store.samples(wanted), store.left_out(wanted), options)


def parts_with(keys: Collection[Key], samples: int, *procedures: Procedure) -> list[MeasurementPart]:
    """Return those parts of the whole campaign of these procedures that have these keys."""
    every = campaign.parts(procedures, samples=samples, scenario=Scenario())
    return [part for part in every if part.key in keys]


def messages_shown(
    evaluate: Callable[[ControlPlane, Measured], tuple[Outcome, pa.Table]],
    *others: Key,
    subjects: Callable[[], Iterable[MeasuredMessage]] = tuple,
) -> Shown:
    """Return how a figure of these messages, and of `others` of the same procedure, is measured."""
    return Shown(
        partial(_parts_of_messages, subjects, others), evaluate, partial(_virtual_s, subjects, others)
    )


def _parts_of_messages(
    subjects: Callable[[], Iterable[MeasuredMessage]],
    others: tuple[Key, ...],
    figure: ControlPlane,
    quick: bool,
) -> list[MeasurementPart]:
    keys = {*others, *(subject.key for subject in subjects())}
    return parts_with(keys, figure.count(quick=quick), messages.PROCEDURE)


def _virtual_s(
    subjects: Callable[[], Iterable[MeasuredMessage]], others: tuple[Key, ...], figure: ControlPlane
) -> float:
    seconds = len(others) * _OTHER_S
    for subject in subjects():
        loads = figure.samples if subject.changes else 1
        seconds += figure.samples * _SAMPLE_S + loads * (_FRESH_BOARD_S + len(subject.table) * _ENTRY_S)
    return seconds


def boxes_us(times_ns: Iterable[NDArray[np.int64]]) -> list[BoxGroup]:
    """Return boxes of processing times in microseconds as in figures 9 and 10, with their means."""
    low, high = _WHISKERS
    boxes = [box_of(times, low=low, high=high, per=NS_PER_US) for times in times_ns]
    return [BoxGroup(label="", boxes=[*boxes])]


def sample_numbers(samples: Collection[NDArray[np.int64]]) -> NDArray[np.int32]:
    """Return the column that numbers the samples of each case."""
    return np.concatenate([np.arange(len(values), dtype=np.int32) for values in samples])


def rows_of(times: Times) -> pa.Table:
    """Return a table with a row for each sample of a message."""
    names = [key.name for key, values in times.items() for _ in range(len(values))]
    return pa.table(
        {
            "what": pa.array(names).dictionary_encode(),
            "sample": sample_numbers(times.values()),
            "time_ns": np.concatenate(list(times.values())),
        }
    )
