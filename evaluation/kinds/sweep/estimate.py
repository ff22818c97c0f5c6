"""How long a sweep takes at the paper's scale, from rates measured once."""

from __future__ import annotations

import os

from evaluation.kinds.sweep.document import Sweep
from evaluation.kinds.sweep.setting import prepare, traffic

PACKETS_PER_CPU_S = 1_500_000
"""Simulated, analysed and written in virtual time; measured on an x86-64 VM."""

LIVE_SETUP_S = 15.0
"""Starting the lab once; measured as above."""

LIVE_OVERHEAD_S = 1.6
"""What a live run needs beside its own length: starting the generators, draining, reading the captures."""


def packets(sweep: Sweep) -> int:
    """Packets of all flows at the paper's scale, as far as the shapers let them pass."""
    setting = prepare(sweep)
    bits_per_s = sum(
        min(flow.shaper_rate_bps, flow.offered_rate_bps)
        for x in sweep.x.values
        for flow in traffic(setting, x)
    )
    return int(bits_per_s * sweep.runs * sweep.seconds / (8 * sweep.frame_bytes))


def estimate_s(sweep: Sweep) -> dict[str, float]:
    """Estimated time in seconds of each mode that is there."""
    cores = len(os.sched_getaffinity(0))
    runs = len(sweep.x.values) * sweep.runs
    live_s = LIVE_SETUP_S + runs * (sweep.seconds + LIVE_OVERHEAD_S)
    virtual_s = 1.0 + packets(sweep) / (PACKETS_PER_CPU_S * cores)
    return {"virtual": virtual_s, "live": live_s, "hardware": live_s}
