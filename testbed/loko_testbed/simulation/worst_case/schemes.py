"""The admission schemes under attack, by name, and admitted sets that use them up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from loko.admission import Admission, Admitted, LokoAdmission, Refusal
from loko.admission.schemes import VARIANTS, SchemeName, admission_of, variant_named
from loko.document import InputError
from loko.switch_model.control_traffic import AS_PRINTED, NO_MESSAGES, ControlTraffic
from loko.switch_model.mix import Mix, mix_of_equal
from loko.switch_model.scenario import Scenario, loko_scenario
from loko.topology.lab import Lab
from loko_testbed.simulation.traffic import flow_of
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet

GUARANTEED: Final = tuple(
    name
    for name, choice in VARIANTS.items()
    if choice.reserves_control and choice.scheme is not SchemeName.MIXED
)
"""Schemes for boards alone whose guarantees must hold: they reserve time for all that interrupts the CPU."""
PRINTED: Final = "-as-printed"
"""Suffix of a scheme's name: Loko by the paper's formulas alone, which reserve nothing for interruptions."""


def admission_named(
    scheme: str, lab: Lab, scenario: Scenario, *, control: ControlTraffic, mix: Mix | None = None
) -> Admission:
    """Return a scheme on a lab, without flows. Raises `InputError` if it cannot guarantee anything there."""
    choice = variant_named(scheme.removesuffix(PRINTED))
    reserves = choice.reserves_control and not scheme.endswith(PRINTED)
    admission = admission_of(lab, choice, scenario, mix=mix, traffic=control if reserves else AS_PRINTED)
    if isinstance(admission, LokoAdmission):
        for switch, allocation in admission.allocations.items():
            if not allocation.feasible:
                raise InputError(f"{switch}: {allocation.reason}")
    return admission


def fill(
    scheme: str,
    lab: Lab,
    pairs: Sequence[tuple[str, str]],
    *,
    rate_bps: float,
    burst_bytes: float,
    frame_bytes: int = 306,
    entries: int = 17,
    control: ControlTraffic | None = None,
    too_many: float = 0.0,
) -> AdmittedSet:
    """Fill a lab with as many equal flows as the scheme accepts, round after round over the pairs of hosts.

    `too_many` adds flows that it refuses, as a fraction of those that it accepts, with the same guarantees: a
    deliberate mistake that the attack must notice. Raises `InputError` if the scheme accepts none.
    """
    control = NO_MESSAGES if control is None else control
    scenario = loko_scenario(entries=entries, packet_sizes_bytes=(frame_bytes,))
    mix = mix_of_equal(pairs, rate_bps=rate_bps, burst_bytes=burst_bytes, frame_bytes=frame_bytes)
    admission = admission_named(scheme, lab, scenario, control=control, mix=mix)
    alone = admission_named(scheme, lab, scenario, control=control, mix=mix)
    admitted: list[Admitted] = []
    refused: list[Admitted] = []
    passing = dict.fromkeys(lab.switches, 0)
    full: set[tuple[str, str]] = set()
    for number in range(2 * entries * len(lab.switches)):
        pair = pairs[number % len(pairs)]
        flow = flow_of(
            number,
            *pair,
            rate_bps=rate_bps,
            burst_bytes=burst_bytes,
            frame_bytes=frame_bytes,
            called="f",
        )
        lonely = alone.check(flow)
        if isinstance(lonely, Refusal):
            continue
        fits = all(passing[hop.switch] < entries for hop in lonely.path)
        answer = admission.request(flow, lonely.path) if pair not in full and fits else None
        if isinstance(answer, Admitted):
            admitted.append(answer)
            for hop in answer.path:
                passing[hop.switch] += 1
        else:
            full.add(pair)
            refused.append(lonely)
    if not admitted:
        raise InputError(f"{scheme}: accepts none of these flows")
    more = refused[: math.ceil(too_many * len(admitted))]
    for extra in more:
        for hop in extra.path:
            passing[hop.switch] += 1
    return AdmittedSet(
        lab=lab,
        scheme=scheme,
        admitted=(*admitted, *more),
        entries=max(entries, *passing.values()),
        control=control,
    )
