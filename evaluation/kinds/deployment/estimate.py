"""How long the replay of a deployment takes at the paper's scale."""

from __future__ import annotations

import os

from evaluation.kinds.deployment.admission import deploy
from evaluation.kinds.deployment.document import Deployment
from evaluation.replay.duration import LIVE_OVERHEAD_S, LIVE_SETUP_S, PACKETS_PER_CPU_S


def estimate_s(figure: Deployment) -> dict[str, float]:
    """Estimated time in seconds of each mode that is there."""
    systems = [deploy(figure, system) for system in figure.systems]
    bits_per_s = sum(sender.shaper_rate_bps for one in systems for sender in one.senders)
    packets = bits_per_s * figure.runs * figure.seconds / (8 * figure.frame_bytes)
    cores = len(os.sched_getaffinity(0))
    live_s = len(systems) * (LIVE_SETUP_S + figure.runs * (figure.seconds + LIVE_OVERHEAD_S))
    estimates = {"virtual": 1.0 + packets / (PACKETS_PER_CPU_S * cores), "live": live_s, "hardware": live_s}
    return {mode: estimates[mode] for mode in figure.modes if mode in estimates}
