"""The systems that the paper compares itself with, as admission schemes: `silo` and `qjump` (section 2.3).

Both assume that a switch forwards at line rate and that its ports do not disturb each other. On a switch with
one CPU for all ports neither holds, so their guarantees are broken (figures 3 and 15).
"""

from __future__ import annotations

from enum import Enum

from loko.admission import Admission, SchemeConditions
from loko.admission.baselines.qjump import Epsilon, QJump, QJumpAdmission
from loko.admission.baselines.silo import SiloAdmission, SiloPort
from loko.switch_model.scenario import Scenario
from loko.topology.lab import Lab

__all__ = [
    "Baseline",
    "Epsilon",
    "QJump",
    "QJumpAdmission",
    "SiloAdmission",
    "SiloPort",
    "baseline_admission",
    "baseline_conditions",
]


class Baseline(Enum):
    """The systems by their names on the command line."""

    SILO = "silo"
    QJUMP = "qjump"


def baseline_admission(
    baseline: Baseline, lab: Lab, scenario: Scenario, *, epsilon: Epsilon = Epsilon.PAPER
) -> Admission:
    """Return an empty admission control of a baseline, for frames of up to the scenario's largest size.

    Raises `InputError` for a lab that the system cannot describe.
    """
    frame_bytes = max(scenario.frame_bytes)
    if baseline is Baseline.SILO:
        return SiloAdmission(lab, frame_bytes=frame_bytes)
    return QJumpAdmission(lab, QJump.of(lab, scenario, frame_bytes=frame_bytes, epsilon=epsilon))


def baseline_conditions(baseline: Baseline) -> SchemeConditions:
    """Return what a baseline assumes, and why its guarantees do not hold."""
    return (SiloAdmission if baseline is Baseline.SILO else QJumpAdmission).conditions
