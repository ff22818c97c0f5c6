"""The admission schemes of a figure, as the library has them."""

from __future__ import annotations

from dataclasses import replace

from evaluation.kinds.admission.document import SAME_DELAY
from evaluation.kinds.admission.document import SchemeName as Name
from loko.admission import Admission, LokoAdmission
from loko.allocation import FULL_RATE
from loko.control_traffic import AS_PRINTED, NO_MESSAGES
from loko.device import deterministic, with_buffers
from loko.document import InputError
from loko.lab import Lab
from loko.lab_allocation import allocations_of
from loko.mix import Mix
from loko.scenario import Scenario
from loko.schemes import Choice, SchemeName, admission_of, choice_named


def empty_admission(name: Name, lab: Lab, scenario: Scenario, mix: Mix, buffer_factor: int) -> Admission:
    """The scheme without any flow, made for the mix if it is made for any.

    Raises `InputError` if the scheme cannot describe a switch.
    """
    larger = _with_buffers(lab, buffer_factor)
    if name == SAME_DELAY:
        allocations = allocations_of(larger, FULL_RATE, scenario, AS_PRINTED)
        smaller = allocations_of(lab, FULL_RATE, scenario, AS_PRINTED)
        delays_ns = {switch: one.delay_ns for switch, one in smaller.items()}
        return LokoAdmission(
            larger, {switch: replace(one, delay_ns=delays_ns[switch]) for switch, one in allocations.items()}
        )
    choice = choice_named(name)
    traffic = NO_MESSAGES if choice.scheme is SchemeName.PACKETS else AS_PRINTED
    try:
        return admission_of(larger, choice, scenario, mix=mix, traffic=traffic)
    except InputError:
        if not choice.is_optimised:
            raise
        # Nothing of the mix fits, so nothing can be chosen for it; a path may be too long for any flow.
        return admission_of(larger, Choice(scheme=choice.scheme), scenario, traffic=traffic)


def _with_buffers(lab: Lab, count: int) -> Lab:
    switches = {
        name: replace(switch, profile=with_buffers(deterministic(switch.profile), count))
        for name, switch in lab.switches.items()
    }
    return replace(lab, switches=switches)
