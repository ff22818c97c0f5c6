"""How long runs take: rates measured once, on an x86-64 VM."""

from __future__ import annotations

import os
from typing import Final

PACKETS_PER_CPU_S: Final = 1_500_000
"""Simulated, analysed and written in virtual time."""

LIVE_SETUP_S: Final = 15.0
"""Starting a lab of a few switches once."""

LIVE_OVERHEAD_S: Final = 1.6
"""What a live run needs beside its own length: starting the generators, draining, reading the captures."""


def virtual_s(packets: float) -> float:
    """Time of all runs in virtual time, which together send so many packets."""
    return 1.0 + packets / (PACKETS_PER_CPU_S * len(os.sched_getaffinity(0)))


def live_s(runs: int, seconds: float, *, setup_s: float = LIVE_SETUP_S) -> float:
    """Time of so many runs of so many seconds in one lab in real time."""
    return setup_s + runs * (seconds + LIVE_OVERHEAD_S)
