"""Loko's own admission, which gives away half of each switch's rate, and the burst that goes with it."""

from __future__ import annotations

from typing import Final

from loko.admission import LokoAdmission, PluggedInScheme
from loko.switch_model.allocation import AllocationRule
from loko.switch_model.control_traffic import ControlTraffic
from loko.switch_model.scenario import Scenario
from loko.topology.lab import Lab
from loko.topology.lab_allocation import Allocator, splits_for

RULE: Final = AllocationRule(name="half-rate", rate_fraction=0.5)
"""Its name is that of the scheme: the entry point's."""


def admission(
    lab: Lab, scenario: Scenario, *, traffic: ControlTraffic | None, padding: int | None
) -> LokoAdmission:
    """Return an empty admission control. Raises `InputError` if a switch gives no worst case."""
    return LokoAdmission(
        lab,
        Allocator(lab, scenario, traffic).allocations(RULE),
        padding=padding or 0,
        splits_of=splits_for(scenario, traffic),
    )


SCHEME: Final = PluggedInScheme(admission=admission, conditions=LokoAdmission.conditions, is_monotone=True)
