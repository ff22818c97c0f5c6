"""The kind ``paths``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import SIMULATED, Kind
from evaluation.kinds.paths.document import Paths
from evaluation.kinds.paths.production import compute
from evaluation.outcome import OneByOne
from evaluation.replay.duration import live_s
from evaluation.replay.point import carriage
from loko.lab import load_lab

_SETUP_S_PER_SWITCH: Final = 0.5
_VIRTUAL_S_PER_S: Final = 0.1


def _estimate_s(figure: Paths) -> dict[str, float]:
    switches = len(load_lab(figure.lab).switches)
    live = live_s(figure.runs, figure.seconds, setup_s=5 + switches * _SETUP_S_PER_SWITCH)
    virtual = 1 + switches * figure.runs * figure.seconds * _VIRTUAL_S_PER_S
    found = {"virtual": virtual, "live": live, "hardware": live}
    return {mode: found[mode] for mode in figure.modes if mode in found}


KIND: Final = Kind(
    document=Paths, produce=OneByOne(compute, carriage), estimate_s=_estimate_s, honours=SIMULATED
)
