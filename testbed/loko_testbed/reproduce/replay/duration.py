"""Estimate how long runs take, from rates measured once on an x86-64 VM."""

from __future__ import annotations

import os
from typing import Final

PACKETS_PER_CPU_S: Final = 1_500_000
"""Packets that one processor simulates, analyses and writes per second in virtual time."""

LIVE_SETUP_S: Final = 15.0
"""Time to start a lab of a few switches."""

LIVE_OVERHEAD_S: Final = 1.6
"""Overhead of a live run: starting the generators, draining, reading the captures."""


def virtual_s(packets: float) -> float:
    """Estimate the time of all runs in virtual time that together send this many packets."""
    return 1.0 + packets / (PACKETS_PER_CPU_S * len(os.sched_getaffinity(0)))


def live_s(runs: int, seconds: float, *, setup_s: float = LIVE_SETUP_S) -> float:
    """Estimate the time of `runs` runs of `seconds` each in one lab in real time."""
    return setup_s + runs * (seconds + LIVE_OVERHEAD_S)
