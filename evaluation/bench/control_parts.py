"""Section 3.2 in parts: what is measured for figures 6a, 6b, 7a and 7b, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.bench import control_plane
from evaluation.bench.control_messages import Subject, flow_adds, flow_search, flow_searches, messages
from evaluation.bench.device import Device

ECHO_UNMODIFIED: Final = "echo over time, unmodified firmware"
ECHO_MODIFIED: Final = "echo over time, firmware as measured"
"""Without the three jobs (section 3.1), if the bench has such a firmware; else both series are the same."""
ENTRIES_ADDED: Final = "entries added by a Modify that hits none"
"""One sample, no time."""
_SOME_ENTRIES: Final = 17
NO_LENGTH: Final = 0
"""Length under which samples are kept that belong to no frame."""
INSTANTS: Final = -1
"""Length under which the instants of a series are kept."""
_BARRIER_SEED: Final = 0

Measure = Callable[[Device, int], Mapping[int, tuple[NDArray[np.int64], int]]]


def control_parts(samples: int) -> Iterator[tuple[str, Measure]]:
    """All parts. Those without reply count the samples that equation 3 does not allow as left out."""
    yield ECHO_UNMODIFIED, lambda device, _: _echo_over_time(device.with_housekeeping() or device)
    yield ECHO_MODIFIED, lambda device, _: _echo_over_time(device)
    yield ENTRIES_ADDED, _entries_added
    barrier = _Barrier(samples)
    for subject in (*messages(), *flow_adds(), *flow_searches()):
        yield subject.name, _measure(subject, samples, barrier)


def _echo_over_time(device: Device) -> Mapping[int, tuple[NDArray[np.int64], int]]:
    series = control_plane.echo_over_time(device)
    return {NO_LENGTH: (series.times_ns, series.missing), INSTANTS: (series.at_ns, 0)}


def _entries_added(device: Device, _seed: int) -> Mapping[int, tuple[NDArray[np.int64], int]]:
    added = control_plane.entries_added(device, flow_search("modify", "none", _SOME_ENTRIES))
    return {NO_LENGTH: (np.array([added], dtype=np.int64), 0)}


class _Barrier:
    """p_BR of a device, measured when it is first needed: the same in every part, also when resumed."""

    def __init__(self, samples: int) -> None:
        self._samples = samples
        self._known: control_plane.Barrier | None = None

    def of(self, device: Device, seed: int) -> control_plane.Barrier:
        """p_BR. The device is afterwards as at the beginning of a part with this seed."""
        if self._known is None:
            device.begin(_BARRIER_SEED)
            self._known = control_plane.barrier(device, samples=self._samples, seed=_BARRIER_SEED)
            device.begin(seed)
        return self._known


def _measure(subject: Subject, samples: int, barrier: _Barrier) -> Measure:
    def measure(device: Device, seed: int) -> Mapping[int, tuple[NDArray[np.int64], int]]:
        if subject.replies:
            found = control_plane.with_reply(device, subject, samples=samples, seed=seed)
        else:
            found = control_plane.without_reply(
                device, subject, barrier=barrier.of(device, seed), samples=samples, seed=seed
            )
        return {NO_LENGTH: (found.times_ns, found.late_barriers)}

    return measure
