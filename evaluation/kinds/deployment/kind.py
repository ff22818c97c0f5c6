"""The kind ``deployment``."""

from __future__ import annotations

from typing import Any, Final

from evaluation.kinds import Kind
from evaluation.kinds.deployment.document import Deployment
from evaluation.kinds.deployment.estimate import estimate_s
from evaluation.kinds.deployment.production import compute
from evaluation.options import Options
from evaluation.outcome import OneByOne


def _parameters(_figure: Deployment, options: Options) -> dict[str, Any]:
    return {
        "backend": options.backend,
        "builder": options.builder,
        "framework": options.driven_by,
        "real_boards": options.real_boards(),
        "capacity_factor": options.capacity_factor,
        "senders": options.senders.chosen,
        "points": options.points,
    }


KIND: Final = Kind(document=Deployment, produce=OneByOne(compute, _parameters), estimate_s=estimate_s)
