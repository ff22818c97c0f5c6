"""Create the admission schemes of a figure."""

from __future__ import annotations

from dataclasses import replace

from loko.admission import Admission, LokoAdmission
from loko.admission.schemes import SchemeVariant, admission_of
from loko.document import InputError
from loko.switch_model.allocation import FULL_RATE
from loko.switch_model.mix import Mix
from loko.switch_model.scenario import Scenario
from loko.topology.lab import Lab
from loko.topology.lab_allocation import allocations_of
from loko_testbed.reproduce.figure_types.admission.ceilings import NO_JITTER, no_jitter_growth
from loko_testbed.reproduce.figure_types.admission.document import SAME_DELAY, SchemeSeries
from loko_testbed.reproduce.figure_types.admission.reservations import RESERVATIONS


def empty_admission(
    series: SchemeSeries, lab: Lab, scenario: Scenario, mix: Mix, buffer_factor: int
) -> Admission:
    """Return an empty admission of the scheme, optimised for the mix if the scheme is an optimised one.

    Raises `InputError` if the scheme cannot describe a switch.
    """
    larger = (lab.robust() if series.is_robust else lab).with_buffers(buffer_factor)
    reservation = RESERVATIONS[series.reservation]
    traffic, padding = reservation.traffic, reservation.padding
    if series.scheme == SAME_DELAY:
        allocations = allocations_of(larger, FULL_RATE, scenario, traffic)
        smaller = allocations_of(lab, FULL_RATE, scenario, traffic)
        delays_ns = {switch: allocation.delay_ns for switch, allocation in smaller.items()}
        return LokoAdmission(
            larger,
            {
                switch: replace(allocation, delay_ns=delays_ns[switch])
                for switch, allocation in allocations.items()
            },
        )
    if series.scheme == NO_JITTER:
        return no_jitter_growth(larger, scenario, reservation)
    choice = series.choice
    try:
        return admission_of(larger, choice, scenario, mix=mix, traffic=traffic, padding=padding)
    except InputError:
        if not choice.is_optimised:
            raise
        # No flow of the mix fits, perhaps because the path is too long, so there is nothing to optimise for.
        return admission_of(
            larger, SchemeVariant(scheme=choice.scheme), scenario, traffic=traffic, padding=padding
        )
