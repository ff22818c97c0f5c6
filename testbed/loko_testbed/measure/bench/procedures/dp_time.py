"""Processing time of the data plane (section 3.3): every combination of Table 1, with 100 lone frames each.

In real time that takes hours, and least squares find the same costs from far fewer tables. So a reduced
design varies one factor at a time, each where its effect is largest.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, product
from typing import Final

import numpy as np

from loko.switch_model.scenario import (
    TABLE_1_ENTRIES,
    TABLE_1_FRAME_BYTES,
    TABLE_1_MATCHES,
    ActionType,
    MatchType,
    PriorityOrder,
    UsedEntry,
)
from loko_testbed.instruments.numbered_frame import FrameLayout, frames
from loko_testbed.measure.bench.cases import SingleFieldMatch, TableCase, flow_mods, loading_s, tables
from loko_testbed.measure.bench.device import MISSING, BenchDevice, TrainTimes
from loko_testbed.measure.bench.equations import data_time_ns
from loko_testbed.measure.bench.part import (
    ROUNDS,
    Combination,
    Design,
    Key,
    MeasurementPart,
    MeasurementSize,
    Procedure,
    SampleSet,
)
from loko_testbed.simulation.runner import RunError

PAPER_SAMPLES: Final = 100
SIZES: Final = (64, 306, 790, 1516)
"""Costs are straight lines over the length from 64 bytes on: both ends, and two between as a check."""

_ENDS: Final = (TABLE_1_FRAME_BYTES[0], TABLE_1_FRAME_BYTES[-1])
_SHORT_FRAMES: Final = TABLE_1_FRAME_BYTES[:1]
_SOME_FRAMES: Final[tuple[int, ...]] = TABLE_1_FRAME_BYTES[:-1:2]
"""Not the longest ones, so that actions may lengthen the frame."""
_TAGGED_FRAMES: Final[tuple[int, ...]] = (68, *_SOME_FRAMES[1:])
"""Without their tag they are no shorter than Ethernet allows."""
_SURER: Final = 80
"""Samples for the smallest costs, as a multiple of those for the others."""
_PROBES: Final = 3
_PROBE_GAP_NS: Final = 5_000_000
_JITTER_NS: Final = 100_000
"""Frames come at random phases of anything that is periodic in the switch."""
_UNKNOWN_NS: Final = 5_000_000
"""Assumed time of frames if the host disturbed all probes; the longest in the paper is 2.1 ms."""
_TRAINS: Final = 4
"""How often a train is sent at most, if frames of it are disturbed or lost."""
_SPACING: Final = 1.25
"""Gap as a multiple of the longest time of the probes, so that no frame waits for another."""
_FRAME_S: Final = 50e-6
_BYTE_S: Final = 0.2e-6
_ENTRY_S: Final = 9e-6
"""Roughly from figure 9: 50 us per frame, 10 us per entry, and a byte's way in and out."""
TRAIN_S: Final = 0.05
"""Time of a train beside its frames: three probes, the emulator's report, reading the taps."""


def measure(
    device: BenchDevice, seed: int, *, table: TableCase, sizes: tuple[int, ...], samples: int
) -> Iterator[Combination]:
    """Measure a table with frames of these lengths. Raises `RunError` if frames do not come out."""
    random = np.random.default_rng(seed)
    device.load(flow_mods(table))
    shape = FrameLayout.TAGGED if table.tagged else FrameLayout.UDP
    for size in sizes:
        yield (
            size,
            lone_frames(device, size, samples=samples, random=random, what=str(table), shape=shape),
        )


def lone_frames(
    device: BenchDevice,
    size: int,
    *,
    samples: int,
    random: np.random.Generator,
    what: str,
    shape: FrameLayout = FrameLayout.UDP,
) -> SampleSet:
    """Measure processing times of frames of one length, none of which waits for another.

    Frames that the bench's own host disturbed are sent again, as long as that may help. Raises `RunError`,
    which names `what` they should have passed, if frames do not come out.
    """
    probes = _train(device, size, [_PROBE_GAP_NS] * _PROBES, what, shape)
    longest_ns = int(probes.values.max()) if len(probes.values) else _UNKNOWN_NS
    spacing_ns = int(_SPACING * longest_ns) + device.wire.time_ns(size)
    trains: list[SampleSet] = []
    for _ in range(_TRAINS):
        missing = samples - sum(len(train.values) for train in trains)
        if missing <= 0:
            break
        gaps_ns = spacing_ns + random.integers(0, _JITTER_NS, missing)
        trains.append(_train(device, size, gaps_ns.tolist(), what, shape))
    times_ns = np.concatenate([train.values for train in trains])
    if not len(times_ns):
        raise RunError(
            f"{device.name}: this machine stalled during every one of {samples} frames of {size} bytes;"
            " end other programs and run again"
        )
    return SampleSet(times_ns, sum(train.left_out for train in trains))


def _train(device: BenchDevice, size: int, gaps_ns: list[int], what: str, shape: FrameLayout) -> SampleSet:
    """Send frames that do not meet. Raises `RunError` if some never come out, even when sent again."""
    gaps_ns = gaps_ns[:1] * device.warm_up_frames + gaps_ns
    train = frames(size, len(gaps_ns), shape=shape)
    for _ in range(_TRAINS):
        passage = device.send(gaps_ns, train)
        lost = int(np.count_nonzero(passage.left_ns[~passage.disturbed] == MISSING))
        if not lost:
            return _times(device, size, passage)
    raise RunError(
        f"{device.name}: {lost} of {len(train)} lone frames of {size} bytes did not come out"
        f" ({what}); check the wiring of ports 1 and 2 and the table"
    )


def _times(device: BenchDevice, size: int, passage: TrainTimes) -> SampleSet:
    fine = ~passage.disturbed & (passage.left_ns != MISSING)
    fine[: device.warm_up_frames] = False
    # If the switch once takes much longer than for the probes, it may hold several frames.
    fine[1:] &= passage.entered_ns[1:] >= np.maximum.accumulate(passage.left_ns)[:-1]
    measured_ns = passage.left_ns[fine] - passage.entered_ns[fine]
    offset_ns = data_time_ns(0, size, device.wire)
    return SampleSet(measured_ns + offset_ns, int(np.count_nonzero(~fine[device.warm_up_frames :])))


SINGLE_FIELDS: Final = (
    "in_port",
    "dl_src",
    "dl_dst",
    "dl_vlan",
    "dl_vlan_pcp",
    "dl_type",
    "nw_tos",
    "nw_proto",
    "nw_src",
    "nw_dst",
    "tp_src",
    "tp_dst",
)


def identification_tables() -> Iterator[TableCase]:
    """Yield tables beyond Table 1 that separate costs which its match types only show as sums."""
    for match in (SingleFieldMatch(), *map(SingleFieldMatch, SINGLE_FIELDS)):
        for entries in (1, TABLE_1_ENTRIES[-1]):
            yield TableCase(entries=entries, match=match, action=ActionType.OUTPUT)


def action_tables() -> Iterator[TableCase]:
    """Yield tables that show what the cheapest actions cost: one entry, so that little else takes time."""
    # Three rewrites show what costs less than the taps' noise. A tagged frame has only one tag to strip.
    for action, rewrites, tagged in (
        (ActionType.OUTPUT, 1, False),
        (ActionType.SET_DL_SRC, 3, False),
        (ActionType.STRIP_VLAN, 3, False),
        (ActionType.SET_VLAN_ID, 3, False),
        (ActionType.STRIP_VLAN, 1, True),
    ):
        yield TableCase(
            entries=1,
            match=SingleFieldMatch("tp_dst"),
            action=action,
            used_entry=UsedEntry.FIRST,
            rewrites=rewrites,
            tagged=tagged,
        )


Chosen = tuple[TableCase, tuple[int, ...]]
"""A table, and the frame lengths to measure it with."""


def chosen_tables(design: Design) -> list[Chosen]:
    """Return the tables of Table 1 that a design measures."""
    return list(tables()) if design is Design.FULL else list(_one_factor_at_a_time())


def _one_factor_at_a_time() -> Iterator[Chosen]:
    short, middle, long = (TABLE_1_ENTRIES[place] for place in (0, len(TABLE_1_ENTRIES) // 2, -1))
    five = MatchType.FIVE_TUPLE
    # The cost of an action shows best where little else takes time.
    yield from ((TableCase(entries=short, match=five, action=action), SIZES) for action in ActionType)
    for entries in (middle, long):
        yield TableCase(entries=entries, match=five, action=ActionType.OUTPUT), SIZES
    for match in TABLE_1_MATCHES:
        if match is not five:
            yield TableCase(entries=long, match=match, action=ActionType.OUTPUT), _ENDS
    for used, priorities in product(UsedEntry, PriorityOrder):
        if (used, priorities) != (UsedEntry.LAST, PriorityOrder.INCREASING):
            order = TableCase(
                entries=long, match=five, action=ActionType.OUTPUT, used_entry=used, priorities=priorities
            )
            yield order, _ENDS


def _parts(extent: MeasurementSize) -> Iterator[MeasurementPart]:
    samples = extent.samples
    wanted = chosen_tables(extent.design) if extent.scenario is None else tables(extent.scenario)
    # Fewer actions first: a board that stays on keeps old ones in its memory (quirk 55).
    chosen = sorted(wanted, key=lambda part_and_key: part_and_key[0].action is not ActionType.OUTPUT)
    if extent.scenario is None:
        # In turns, so that a drift of the bench does not look like one of the costs.
        for turn, table in product(range(ROUNDS), action_tables()):
            sizes = _TAGGED_FRAMES if table.tagged else _SOME_FRAMES
            yield _part(table, sizes, _SURER * samples // ROUNDS, turn)
        for table in identification_tables():
            yield _part(table, _SHORT_FRAMES, samples)
    for table, sizes in chosen:
        yield _part(table, sizes, samples)


def _part(table: TableCase, sizes: tuple[int, ...], samples: int, turn: int = 0) -> MeasurementPart:
    frames_s = sum(
        samples * (_SPACING * _frame_s(table, size) + _JITTER_NS / 2e9) + TRAIN_S for size in sizes
    )
    measured = partial(measure, table=table, sizes=sizes, samples=samples)
    return MeasurementPart(PROCEDURE.key(table, turn=turn), measured, loading_s(table.entries) + frames_s)


def _frame_s(table: TableCase, size: int) -> float:
    """Estimate the time that a lone frame takes through the board."""
    return _FRAME_S + size * _BYTE_S + table.entries * _ENTRY_S


def _simulated_parts(extent: MeasurementSize) -> Iterator[MeasurementPart]:
    # The simulator's hosts only recognise frames that come out unchanged, so its switches rewrite none.
    for part in _parts(extent):
        (table,) = part.key.subject
        if isinstance(table, TableCase) and table.action is ActionType.OUTPUT:
            yield part


def measured_tables() -> Iterator[tuple[Key, TableCase]]:
    """Yield all tables that a campaign can measure, with the keys of their parts."""
    for turn, table in product(range(ROUNDS), action_tables()):
        yield PROCEDURE.key(table, turn=turn), table
    for table in chain(identification_tables(), (table for table, _ in tables())):
        yield PROCEDURE.key(table), table


PROCEDURE: Final = Procedure(
    name="dp-time",
    text="Processing time of frames, every combination of Table 1 (section 3.3, equation 4).",
    parts=_parts,
    simulated_parts=_simulated_parts,
)
