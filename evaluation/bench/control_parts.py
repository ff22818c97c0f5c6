"""Section 3.2 in parts: what is measured for figures 6a, 6b, 7a and 7b, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.bench import control_plane, duration
from evaluation.bench.control_messages import Subject, flow_adds, flow_searches, messages
from evaluation.bench.device import Device

ECHO_UNMODIFIED: Final = "echo over time, unmodified firmware"
ECHO_MODIFIED: Final = "echo over time, firmware as measured"
"""Without the three jobs (section 3.1), if the bench has such a firmware; else both series are the same."""
NO_LENGTH: Final = 0
"""Length under which samples are kept that belong to no frame."""
INSTANTS: Final = -1
"""Length under which the instants of a series are kept."""
_BARRIER_SEED: Final = 0

Measure = Callable[[Device, int], Mapping[int, tuple[NDArray[np.int64], int]]]


def control_parts(samples: int, *, changing: int) -> Iterator[tuple[str, Measure, float]]:
    """All parts, and how long they take in real time; `changing`: samples of messages that change the table.

    Those without reply count the samples that equation 3 does not allow as left out.
    """
    echo_s = control_plane.ECHO_SERIES_NS / 1e9
    yield ECHO_UNMODIFIED, lambda device, _: _echo_over_time(device.with_housekeeping() or device), echo_s
    yield ECHO_MODIFIED, lambda device, _: _echo_over_time(device), echo_s
    barrier = _Barrier(samples)
    for subject in (*messages(), *flow_adds(), *flow_searches()):
        count = changing if subject.changes else samples
        yield subject.name, _measure(subject, count, barrier), duration.subject_s(subject, count)


def _echo_over_time(device: Device) -> Mapping[int, tuple[NDArray[np.int64], int]]:
    series = control_plane.echo_over_time(device)
    return {NO_LENGTH: (series.times_ns, series.missing), INSTANTS: (series.at_ns, 0)}


class _Barrier:
    """p_BR of a device, measured when it is first needed: the same in every part, also when resumed."""

    def __init__(self, samples: int) -> None:
        self._samples = samples
        self._known_ns: int | None = None

    def time_ns(self, device: Device, seed: int) -> int:
        """p_BR. The device is afterwards as at the beginning of a part with this seed."""
        if self._known_ns is None:
            device.begin(_BARRIER_SEED)
            self._known_ns = control_plane.barrier_ns(device, samples=self._samples, seed=_BARRIER_SEED)
            device.begin(seed)
        return self._known_ns


def _measure(subject: Subject, samples: int, barrier: _Barrier) -> Measure:
    def measure(device: Device, seed: int) -> Mapping[int, tuple[NDArray[np.int64], int]]:
        if subject.replies:
            found = control_plane.with_reply(device, subject, samples=samples, seed=seed)
        else:
            found = control_plane.without_reply(
                device, subject, barrier_ns=barrier.time_ns(device, seed), samples=samples, seed=seed
            )
        return {NO_LENGTH: (found.times_ns, found.late_barriers)}

    return measure
