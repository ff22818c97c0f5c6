"""The kind ``sweep``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import SIMULATED, Kind
from evaluation.kinds.sweep.document import Sweep
from evaluation.kinds.sweep.production import produce
from evaluation.kinds.sweep.setting import prepare, traffic
from evaluation.replay.duration import live_s, virtual_s


def packets(sweep: Sweep) -> int:
    """Packets of all flows at the paper's scale, as far as the shapers let them pass."""
    setting = prepare(sweep)
    bits_per_s = sum(
        flow.bucket.rate_bps * min(1.0, sweep.senders.offered_load)
        for x in sweep.x.values
        for flow in traffic(setting, x)
    )
    return int(bits_per_s * sweep.runs * sweep.seconds / (8 * sweep.frame_bytes))


def estimate_s(sweep: Sweep) -> dict[str, float]:
    """Estimated time in seconds of each mode that is there."""
    live = live_s(len(sweep.x.values) * sweep.runs, sweep.seconds)
    return {"virtual": virtual_s(packets(sweep)), "live": live, "hardware": live}


KIND: Final = Kind(document=Sweep, produce=produce, estimate_s=estimate_s, honours=SIMULATED)
