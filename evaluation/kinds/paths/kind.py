"""The kind ``paths``."""

from __future__ import annotations

from typing import Any, Final

from evaluation.kinds import Kind
from evaluation.kinds.paths.document import Paths
from evaluation.kinds.paths.production import compute
from evaluation.options import Options
from evaluation.outcome import OneByOne
from evaluation.replay.duration import LIVE_OVERHEAD_S
from loko.lab import load_lab

_SETUP_S_PER_SWITCH: Final = 0.5
_VIRTUAL_S_PER_S: Final = 0.1


def _parameters(_figure: Paths, options: Options) -> dict[str, Any]:
    return {
        "backend": options.backend,
        "builder": options.builder,
        "framework": options.driven_by,
        "capacity_factor": options.capacity_factor,
        "senders": options.senders.chosen,
        "real_boards": options.real_boards(),
    }


def _estimate_s(figure: Paths) -> dict[str, float]:
    switches = len(load_lab(figure.lab).switches)
    live_s = 5 + switches * _SETUP_S_PER_SWITCH + figure.runs * (figure.seconds + LIVE_OVERHEAD_S)
    found = {"virtual": 1 + switches * figure.runs * figure.seconds * _VIRTUAL_S_PER_S, "live": live_s}
    found["hardware"] = live_s
    return {mode: found[mode] for mode in figure.modes if mode in found}


KIND: Final = Kind(document=Paths, produce=OneByOne(compute, _parameters), estimate_s=_estimate_s)
