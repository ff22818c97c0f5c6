"""The whole of step 1 as parts, each measured once and kept: what is varied, in which order, how often."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from typing import Final, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from evaluation.bench import (
    acknowledgement,
    backlog,
    buffer,
    buffer_rule,
    control_plane,
    data_plane,
    duration,
    idle,
    integrated_switch,
    interference,
    overload,
    table_size,
    throughput,
)
from evaluation.bench.cables import UnpluggedError
from evaluation.bench.cases import Table, action_tables, identification_tables, table_name, tables
from evaluation.bench.control_parts import NO_LENGTH, control_parts
from evaluation.bench.control_questions import Question, questions
from evaluation.bench.design import Design, chosen_tables, throughput_sizes
from evaluation.bench.device import Device
from evaluation.bench.store import SampleStore
from evaluation.runner import RunError
from loko.scenario import (
    TABLE_1_ENTRIES,
    TABLE_1_FRAME_BYTES,
    Action,
    Match,
    Priorities,
    Scenario,
    UsedEntry,
)

Procedure = Literal[
    "dp-time",
    "cp-time",
    "messages",
    "is-time",
    "interference",
    "throughput",
    "buffer",
    "idle",
    "backlog",
    "housekeeping",
    "table",
    "overload",
]
PROCEDURES: Final[tuple[Procedure, ...]] = tuple(one for one in get_args(Procedure) if one != "messages")
"""Those that tell the numbers of a profile. What figures 6 and 7 show (``messages``) follows from them."""

Combination = tuple[int, tuple[NDArray[np.int64], int]]
"""A length of frame with its samples, and how many were left out since the bench's host lost time."""

Measured = Mapping[int, tuple[NDArray[np.int64], int]]
"""By length of frame: the samples, and how many were left out since the bench's host lost time."""

IDLE_PART: Final = "idle/passes"
UNITS_PART: Final = "buffer/units"
TABLE_PART: Final = "table/entries"
PAUSE_PART: Final = "overload/pause"
INNER_PART: Final = "overload/link to the CPU"
INTEGRATED_SWITCH_PART: Final = "is-time/OpenFlow switched off"

LATENESS: Final = -1
"""Length under which `Device.lateness_ns` is kept beside the times of the integrated switch."""

_TRAINS: Final = 3
_HOUSEKEEPING_TRAINS: Final = 9
"""One or two ticks of each of its jobs show in a train."""
_SHORT_FRAMES: Final = TABLE_1_FRAME_BYTES[:1]
_SOME_FRAMES: Final = TABLE_1_FRAME_BYTES[:-1:2]
"""Room is left in the longest for what actions add."""
_TAGGED_FRAMES: Final = (68, *_SOME_FRAMES[1:])
"""Without their tag they are no shorter than Ethernet wants them."""
ROUNDS: Final = 4
"""So often the smallest costs are measured, in turns; those of messages, too, in a reduced design."""
_AFTER_RENEWAL: Final = 5
"""Samples of a message after which the switch has to be switched off and on, in a reduced design."""
_SURER: Final = 80
"""Samples for the smallest costs, over those for the others."""
_PAIRS: Final = 30
"""Pairs of a leader and a follower, over samples of lone frames."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the campaign: measured in one go or not at all."""

    procedure: Procedure
    name: str
    measure: Callable[[Device, int], Measured | Iterator[Combination]]
    """Takes the device and a seed. Combinations that are yielded are kept one by one."""
    expected_s: float = 1.0
    """How long it takes in real time, roughly."""

    @property
    def key(self) -> str:
        """Its name in the store."""
        return f"{self.procedure}/{self.name}"

    def measured(self, device: Device, seed: int) -> Iterator[Combination]:
        """Measure it. What it draws depends on the campaign's seed and on itself, not on what came before.

        Raises `UnpluggedError` if a cable had no link meanwhile, whatever the procedure has made of that.
        """
        mine = int.from_bytes(blake2b(f"{seed} {self.key}".encode(), digest_size=7).digest(), "big")
        try:
            device.begin(mine)
            found = self.measure(device, mine)
            for combination in found.items() if isinstance(found, Mapping) else found:
                self._refuse_unplugged(device)
                yield combination
        except Exception:
            self._refuse_unplugged(device)
            raise
        self._refuse_unplugged(device)

    def _refuse_unplugged(self, device: Device) -> None:
        cable = device.unplugged()
        if cable is not None:
            raise UnpluggedError(
                f"{device.name}: {cable} had no link while '{self.key}' was measured, so that does not count:"
                " plug it in and run the command again; what was measured before is kept"
            ) from None


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
        "messages": lambda: _messages(samples, design),
        "is-time": lambda: _integrated_switch(samples),
        "interference": lambda: _interference(samples),
        "throughput": lambda: _throughput(design),
        "buffer": _buffer,
        "idle": lambda: _idle(samples),
        "backlog": _backlog,
        "housekeeping": _housekeeping,
        "table": _table,
        "overload": _overload,
    }
    return [part for procedure in procedures for part in makers[procedure]()]


def run(
    device: Device,
    todo: list[Part],
    store: SampleStore,
    *,
    seed: int,
    on_part: Callable[[Part], None],
    on_refusal: Callable[[Part, RunError], None] | None = None,
) -> None:
    """Measure the parts that the store does not hold; `on_part` hears of each one that is complete.

    A switch that falls silent, as a Zodiac FX may, is switched off and on where the bench can, and the part
    is measured anew, once. A part that a switch does not let be measured ends the campaign, unless
    `on_refusal` wants to hear of it. A cable without link always ends it: `UnpluggedError`.
    """
    there = store.parts()
    for part in todo:
        try:
            if part.key not in there:
                try:
                    _measure(device, part, store, seed)
                except UnpluggedError:
                    raise
                except RunError:
                    if not device.revive():
                        raise
                    _measure(device, part, store, seed)
        except RunError as error:
            if on_refusal is None or isinstance(error, UnpluggedError):
                raise
            on_refusal(part, error)
        on_part(part)


def _measure(device: Device, part: Part, store: SampleStore, seed: int) -> None:
    for size, (times, left_out) in part.measured(device, seed):
        store.keep(part.key, size, times, left_out)
    store.complete(part.key)


def in_turn(name: str, turn: int) -> str:
    """The name of a part that is measured several times, as of one of these times."""
    return f"{name}/turn {turn}" if turn else name


def _data_plane(samples: int, scenario: Scenario | None, design: Design) -> Iterator[Part]:
    wanted = chosen_tables(design) if scenario is None else tables(scenario)
    # Fewer actions first: a board that stays on keeps old ones in its memory (quirk 55).
    chosen = sorted(wanted, key=lambda one: one[0].action is not Action.OUTPUT)
    todo = [(table, sizes, samples, 0) for table, sizes in chosen]
    if scenario is None:
        # In turns: what drifts on the bench meanwhile must not look like one of the costs.
        surer = [
            (table, _TAGGED_FRAMES if table.tagged else _SOME_FRAMES, _SURER * samples // ROUNDS, turn)
            for turn, table in product(range(ROUNDS), action_tables())
        ]
        todo = [*surer, *((table, _SHORT_FRAMES, samples, 0) for table in identification_tables()), *todo]
    for table, sizes, count, turn in todo:

        def measure(
            device: Device,
            seed: int,
            table: Table = table,
            sizes: tuple[int, ...] = sizes,
            count: int = count,
        ) -> Iterator[Combination]:
            for size, one in data_plane.measure_each(device, table, sizes, samples=count, seed=seed):
                yield size, (one.times_ns, one.disturbed)

        name = in_turn(table_name(table), turn)
        yield Part("dp-time", name, measure, duration.data_plane_s(table, sizes, count))


def _control_plane(samples: int, design: Design) -> Iterator[Part]:
    # A board that messages leave in disorder is switched off and on, which takes seconds.
    # In a reduced design few medians tell the costs of messages: they are asked more often, in turns.
    turns = ROUNDS if design is Design.REDUCED else 1
    fewer = min(samples, _AFTER_RENEWAL) if design is Design.REDUCED else samples
    for turn, question in product(range(turns), questions()):
        renews = not question.repeatable and duration.needs_renewal(question)
        if renews and turn:
            continue
        count = fewer if renews else samples

        def measure(device: Device, seed: int, question: Question = question, count: int = count) -> Measured:
            found = control_plane.ask(device, question, samples=count, seed=seed)
            return {NO_LENGTH: (found.times_ns, found.disturbed)}

        yield Part("cp-time", in_turn(question.name, turn), measure, duration.question_s(question, count))

    def acknowledge(device: Device, seed: int) -> Measured:
        return {NO_LENGTH: (acknowledgement.measure(device, samples=samples, seed=seed), 0)}

    yield _part(acknowledgement.PART, acknowledge)


def _messages(samples: int, design: Design) -> Iterator[Part]:
    fewer = min(samples, _AFTER_RENEWAL) if design is Design.REDUCED else samples
    for name, measure, expected_s in control_parts(samples, changing=fewer):
        yield Part("messages", name, measure, expected_s)


def _integrated_switch(samples: int) -> Iterator[Part]:
    def measure(device: Device, seed: int) -> Measured:
        alone = device.without_cpu()
        if alone is None:
            return {NO_LENGTH: (_NOTHING, 0)}
        found = integrated_switch.measure(alone, samples=samples, seed=seed)
        times = {size: (one.times_ns, one.disturbed) for size, one in found.items()}
        return {**times, LATENESS: (_one(alone.lateness_ns), 0)}

    yield _part(INTEGRATED_SWITCH_PART, measure)


def _interference(samples: int) -> Iterator[Part]:
    pairs = _PAIRS * samples // ROUNDS
    for turn, leader in product(range(ROUNDS), interference.leaders()):

        def measure(device: Device, seed: int, leader: interference.Leader = leader) -> Measured:
            device.load(interference.table(leader))
            return {
                size: (interference.measure(device, leader, size, samples=pairs, seed=seed), 0)
                for size in leader.sizes
            }

        name = in_turn(leader.name, turn)
        yield Part("interference", name, measure, duration.interference_s(leader, pairs))


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

    def explore(device: Device, _: int) -> Measured:
        frames = buffer_rule.explore(lambda size: buffer.capacity(device, size).frames)
        return {size: (_one(held), 0) for size, held in frames.items()}

    yield _part(UNITS_PART, explore)


def _idle(samples: int) -> Iterator[Part]:
    def measure(device: Device, seed: int) -> Measured:
        return {idle.SIZE: (idle.measure(device, samples=10 * samples, seed=seed), 0)}

    yield _part(IDLE_PART, measure)


def _backlog() -> Iterator[Part]:
    for train in range(_TRAINS):
        yield Part(
            "backlog", f"train {train}", lambda device, _: {backlog.SIZE: (backlog.measure(device), 0)}
        )


def _housekeeping() -> Iterator[Part]:
    def measure(device: Device, _: int) -> Measured:
        unmodified = device.with_housekeeping()
        times = _NOTHING if unmodified is None else backlog.measure(unmodified)
        return {backlog.SIZE: (times, 0)}

    for train in range(_HOUSEKEEPING_TRAINS):
        yield Part("housekeeping", f"train {train}", measure)


def _table() -> Iterator[Part]:
    def measure(device: Device, _: int) -> Measured:
        entries = table_size.entries(device)
        return {NO_LENGTH: (_NOTHING if entries is None else _one(entries), 0)}

    yield _part(TABLE_PART, measure)


def _overload() -> Iterator[Part]:
    def pause(device: Device, seed: int) -> Measured:
        there = overload.situation(device)
        kept = overload.held(device, there)
        taken = None if kept != 0 else overload.taken_before_end(device, there)
        room = _NOTHING if taken is None else overload.room(device, there, taken, seed=seed)
        counts = [there.frames, *(-1 if one is None else one for one in (kept, taken))]
        return {NO_LENGTH: (np.array(counts, dtype=np.int64), 0), backlog.SIZE: (room, 0)}

    yield _part(PAUSE_PART, pause)

    def inner_link(device: Device, _: int) -> Measured:
        return {overload.LINE_SIZE: (overload.inner_gaps(device), 0)}

    yield _part(INNER_PART, inner_link)


def forwarding_rate(sizes: tuple[int, ...]) -> list[Part]:
    """What comes out of a flooded switch: for one whose losses say more of its host than of itself."""
    table = Table(entries=TABLE_1_ENTRIES[0], match=Match.FIVE_TUPLE, action=Action.OUTPUT)

    def measure(device: Device, _: int) -> Measured:
        return {size: (_one(throughput.flooded(device, table, size).output_bps), 0) for size in sizes}

    return [_part("throughput/flooded", measure)]


def _part(key: str, measure: Callable[[Device, int], Measured]) -> Part:
    procedure, name = key.split("/", 1)
    return Part(cast(Procedure, procedure), name, measure)


_NOTHING: Final = np.array([], dtype=np.int64)


def _one(value: float) -> NDArray[np.int64]:
    return np.array([round(value)], dtype=np.int64)
