"""Processing time of the data plane (section 3.3): every combination of Table 1, 100 lone frames each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.bench.cases import Table, flow_mods, table_name
from evaluation.bench.device import MISSING, Device, Passage
from evaluation.bench.equations import data_time_ns
from evaluation.instruments.numbered_frame import frame
from evaluation.runner import RunError

PAPER_SAMPLES: Final = 100

_PROBES: Final = 3
_PROBE_GAP_NS: Final = 5_000_000
_JITTER_NS: Final = 100_000
"""Frames come at random phases of whatever is periodic in the switch."""
_UNKNOWN_NS: Final = 5_000_000
"""Taken for the time of frames whose probes the host disturbed: the paper's longest is 2.1 ms."""
_TRAINS: Final = 4
"""How often a train is sent again for frames that were disturbed, or lost."""
_SPACING: Final = 1.25
"""Gap over the longest time that the probes needed, so that no frame waits for another."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Processing times p_FX of one case."""

    times_ns: NDArray[np.int64]
    disturbed: int
    """Frames left out: the bench's own host lost time meanwhile, or the switch still held one before."""


def measure(
    device: Device, table: Table, sizes: tuple[int, ...], *, samples: int, seed: int
) -> dict[int, Samples]:
    """Measure a table with frames of these lengths. Raises `RunError` if frames do not come out."""
    return dict(measure_each(device, table, sizes, samples=samples, seed=seed))


def measure_each(
    device: Device, table: Table, sizes: tuple[int, ...], *, samples: int, seed: int
) -> Iterator[tuple[int, Samples]]:
    """As `measure`, length by length."""
    random = np.random.default_rng(seed)
    device.load(flow_mods(table))
    for size in sizes:
        yield (
            size,
            lone_frames(
                device, size, samples=samples, random=random, what=table_name(table), tagged=table.tagged
            ),
        )


def lone_frames(
    device: Device,
    size: int,
    *,
    samples: int,
    random: np.random.Generator,
    what: str,
    tagged: bool = False,
) -> Samples:
    """Processing times of frames of this length, none of which waits for another one.

    Frames that the bench's own host disturbed are sent again, for as long as that may help. Raises
    `RunError`, which names `what` they should have passed, if frames do not come out.
    """
    probes = _train(device, size, [_PROBE_GAP_NS] * _PROBES, what, tagged=tagged)
    longest_ns = int(probes.times_ns.max()) if len(probes.times_ns) else _UNKNOWN_NS
    spacing_ns = int(_SPACING * longest_ns) + device.wire.time_ns(size)
    trains: list[Samples] = []
    for _ in range(_TRAINS):
        missing = samples - sum(len(one.times_ns) for one in trains)
        if missing <= 0:
            break
        gaps_ns = spacing_ns + random.integers(0, _JITTER_NS, missing)
        trains.append(_train(device, size, gaps_ns.tolist(), what, tagged=tagged))
    times_ns = np.concatenate([one.times_ns for one in trains])
    if not len(times_ns):
        raise RunError(
            f"{device.name}: this machine stalled during every one of {samples} frames of {size} bytes;"
            " end other programs and run again"
        )
    return Samples(times_ns, sum(one.disturbed for one in trains))


def _train(device: Device, size: int, gaps_ns: list[int], what: str, *, tagged: bool) -> Samples:
    """Send frames that do not meet. Raises `RunError` if some come out neither now nor later."""
    gaps_ns = gaps_ns[:1] * device.warm_up_frames + gaps_ns
    train = [frame(size, number, tagged=tagged) for number in range(len(gaps_ns))]
    for _ in range(_TRAINS):
        passage = device.send(gaps_ns, train)
        lost = int(np.count_nonzero(passage.left_ns[~passage.disturbed] == MISSING))
        if not lost:
            return _times(device, size, passage)
    raise RunError(
        f"{device.name}: {lost} of {len(train)} lone frames of {size} bytes did not come out"
        f" ({what}); check the wiring of ports 1 and 2 and the table"
    )


def _times(device: Device, size: int, passage: Passage) -> Samples:
    fine = ~passage.disturbed & (passage.left_ns != MISSING)
    fine[: device.warm_up_frames] = False
    # A switch that once needs much longer than for the probes may hold several.
    fine[1:] &= passage.entered_ns[1:] >= np.maximum.accumulate(passage.left_ns)[:-1]
    measured_ns = passage.left_ns[fine] - passage.entered_ns[fine]
    offset_ns = data_time_ns(0, size, device.wire)
    return Samples(measured_ns + offset_ns, int(np.count_nonzero(~fine[device.warm_up_frames :])))
