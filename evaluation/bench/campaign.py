"""The whole of step 1 as parts, each measured once and kept: what is varied, in which order, how often."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.bench import buffer, control_plane, data_plane, duration, interference, throughput
from evaluation.bench.cases import Table, identification_tables, tables
from evaluation.bench.control_questions import Question, questions
from evaluation.bench.design import Design, chosen_tables, throughput_sizes
from evaluation.bench.device import Device
from evaluation.bench.store import SampleStore
from loko.scenario import (
    TABLE_1_ENTRIES,
    TABLE_1_FRAME_BYTES,
    Action,
    Match,
    Priorities,
    Scenario,
    UsedEntry,
)

Procedure = Literal["dp-time", "cp-time", "interference", "throughput", "buffer"]
PROCEDURES: Final[tuple[Procedure, ...]] = ("dp-time", "cp-time", "interference", "throughput", "buffer")

Measured = Mapping[int, tuple[NDArray[np.int64], int]]
"""By length of frame: the samples, and how many were left out since the bench's host lost time."""

_NO_LENGTH: Final = 0
"""Length under which samples are kept that belong to no frame."""
_SHORT_FRAMES: Final = (TABLE_1_FRAME_BYTES[0],)
_AFTER_RENEWAL: Final = 5
"""Samples of a message that changes the table, in a reduced design."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the campaign: measured in one go or not at all."""

    procedure: Procedure
    name: str
    measure: Callable[[Device, int], Measured]
    """Takes the device and a seed."""
    expected_s: float = 1.0
    """How long it takes in real time, roughly."""

    @property
    def key(self) -> str:
        """Its name in the store."""
        return f"{self.procedure}/{self.name}"


def parts(
    procedures: tuple[Procedure, ...],
    *,
    samples: int,
    scenario: Scenario | None = None,
    design: Design = Design.FULL,
) -> list[Part]:
    """The parts of these procedures. `scenario` restricts the combinations of Table 1, or else `design`."""
    makers: dict[Procedure, Callable[[], Iterator[Part]]] = {
        "dp-time": lambda: _data_plane(samples, scenario, design),
        "cp-time": lambda: _control_plane(samples, design),
        "interference": lambda: _interference(samples),
        "throughput": lambda: _throughput(design),
        "buffer": _buffer,
    }
    return [part for procedure in procedures for part in makers[procedure]()]


def run(
    device: Device, todo: list[Part], store: SampleStore, *, seed: int, on_part: Callable[[Part], None]
) -> None:
    """Measure the parts that the store does not hold; `on_part` hears of each one that is complete."""
    there = store.parts()
    for number, part in enumerate(todo):
        if part.key not in there:
            store.keep(part.key, part.measure(device, seed + number))
        on_part(part)


def table_name(table: Table) -> str:
    """A table's name in the store."""
    words = (table.match.value, table.action.value, table.priorities.value, table.used_entry.value)
    return "/".join((str(table.entries), *words))


def _data_plane(samples: int, scenario: Scenario | None, design: Design) -> Iterator[Part]:
    wanted = chosen_tables(design) if scenario is None else tables(scenario)
    # Fewer actions first: a board that stays on keeps old ones in its memory (quirk 55).
    chosen = sorted(wanted, key=lambda one: one[0].action is not Action.OUTPUT)
    more = [] if scenario is not None else [(table, _SHORT_FRAMES) for table in identification_tables()]
    for table, sizes in (*more, *chosen):

        def measure(
            device: Device, seed: int, table: Table = table, sizes: tuple[int, ...] = sizes
        ) -> Measured:
            found = data_plane.measure(device, table, sizes, samples=samples, seed=seed)
            return {size: (one.times_ns, one.disturbed) for size, one in found.items()}

        yield Part("dp-time", table_name(table), measure, duration.data_plane_s(table, sizes, samples))


def _control_plane(samples: int, design: Design) -> Iterator[Part]:
    for question in questions():
        # A board that the question leaves in disorder is switched off and on, which takes seconds.
        fewer = design is Design.REDUCED and not question.repeatable
        count = min(samples, _AFTER_RENEWAL) if fewer else samples

        def measure(device: Device, seed: int, question: Question = question, count: int = count) -> Measured:
            found = control_plane.ask(device, question, samples=count, seed=seed)
            return {_NO_LENGTH: (found.times_ns, found.disturbed)}

        yield Part("cp-time", question.name, measure, duration.question_s(question, count))


def _interference(samples: int) -> Iterator[Part]:
    for leader in interference.leaders():

        def measure(device: Device, seed: int, leader: interference.Leader = leader) -> Measured:
            device.load(interference.table(leader))
            return {
                size: (interference.measure(device, leader, size, samples=5 * samples, seed=seed), 0)
                for size in leader.sizes
            }

        yield Part("interference", leader.name, measure, duration.interference_s(leader, samples))


def throughput_tables() -> Iterator[Table]:
    """The tables of section 3.4.2."""
    orders = (
        (Priorities.INCREASING, UsedEntry.LAST),
        (Priorities.DECREASING, UsedEntry.FIRST),
    )
    for match in (Match.FIVE_TUPLE, Match.PORT):
        for priorities, used in orders:
            for entries in TABLE_1_ENTRIES:
                yield Table(
                    entries=entries, match=match, action=Action.OUTPUT, priorities=priorities, used_entry=used
                )


def _throughput(design: Design) -> Iterator[Part]:
    for table in throughput_tables():
        sizes = throughput_sizes(design, table)
        if not sizes:
            continue

        def measure(device: Device, _: int, table: Table = table, sizes: tuple[int, ...] = sizes) -> Measured:
            return {size: (_one(throughput.maximum_bps(device, table, size)), 0) for size in sizes}

        yield Part("throughput", table_name(table), measure, duration.throughput_s(table, sizes))


def _buffer() -> Iterator[Part]:
    def measure(device: Device, _: int) -> Measured:
        found = {size: buffer.capacity(device, size) for size in TABLE_1_FRAME_BYTES}
        return {size: (_one(one.frames), int(one.disturbed)) for size, one in found.items()}

    yield Part("buffer", table_name(buffer.SLOWEST), measure, duration.buffer_s(TABLE_1_FRAME_BYTES))


def _one(value: float) -> NDArray[np.int64]:
    return np.array([round(value)], dtype=np.int64)
