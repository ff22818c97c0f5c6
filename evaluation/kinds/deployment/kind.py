"""The kind ``deployment``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import SIMULATED, Kind
from evaluation.kinds.deployment.admission import deploy
from evaluation.kinds.deployment.document import Deployment
from evaluation.kinds.deployment.production import compute
from evaluation.outcome import OneByOne
from evaluation.replay.duration import live_s, virtual_s
from evaluation.replay.point import carriage


def _estimate_s(figure: Deployment) -> dict[str, float]:
    systems = [deploy(figure, system) for system in figure.systems]
    bits_per_s = sum(sender.bucket.rate_bps for one in systems for sender in one.senders)
    packets = bits_per_s * figure.runs * figure.seconds / (8 * figure.frame_bytes)
    live = len(systems) * live_s(figure.runs, figure.seconds)
    estimates = {"virtual": virtual_s(packets), "live": live, "hardware": live}
    return {mode: estimates[mode] for mode in figure.modes if mode in estimates}


KIND: Final = Kind(
    document=Deployment,
    produce=OneByOne(
        compute, lambda figure, options: {**carriage(figure, options), "points": options.points}
    ),
    estimate_s=_estimate_s,
    honours=SIMULATED,
)
