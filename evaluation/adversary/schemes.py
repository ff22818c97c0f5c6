"""The admission schemes under attack, by name, and admitted sets that use them up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from evaluation.adversary.case import Case
from loko.admission import Admission, LokoAdmission, Refusal
from loko.allocation import SCHEMES as ALLOCATIONS
from loko.control_traffic import ControlTraffic
from loko.document import InputError
from loko.flow import Flow
from loko.lab import Lab
from loko.packets import PacketAdmission
from loko.plan import allocations_of, rival_admission, rival_named
from loko.scenario import Scenario, of_lokos_tables

PACKET_GRANULAR: Final = "packet-granular"
GUARANTEED: Final = (*ALLOCATIONS, PACKET_GRANULAR)
"""Schemes whose guarantees must hold, with all that interrupts the CPU reserved."""
PRINTED: Final = "-as-printed"
"""Ending of a name: Loko with the paper's formulas alone, which reserve nothing for the board's own interruptions."""


def admission_named(
    scheme: str, lab: Lab, scenario: Scenario, *, control: ControlTraffic, generosity: float = 1.0
) -> Admission:
    """A scheme on a lab, empty. Raises `InputError` if it cannot guarantee anything there.

    `generosity` above 1 makes Loko's allocations, or the packet-granular delay targets' queues, too large by so much: a
    mistake on purpose, to see that the instrument notices.
    """
    if scheme == PACKET_GRANULAR:
        return _packets(lab, scenario, control, generosity)
    rival = rival_named(scheme)
    if rival is not None:
        kind, epsilon = rival
        return rival_admission(kind, lab, scenario, epsilon=epsilon)
    name = scheme.removesuffix(PRINTED)
    if name not in ALLOCATIONS:
        raise InputError(f"scheme '{scheme}' is unknown")
    reserved = None if scheme.endswith(PRINTED) else control
    allocations = allocations_of(lab, ALLOCATIONS[name], scenario, reserved)
    for switch, allocation in allocations.items():
        if not allocation.feasible:
            raise InputError(f"{switch}: {allocation.reason}")
        allocations[switch] = replace(
            allocation,
            max_rate_bps=allocation.max_rate_bps * generosity,
            max_burst_bytes=allocation.max_burst_bytes * generosity,
        )
    return LokoAdmission(lab, allocations)


def _packets(lab: Lab, scenario: Scenario, control: ControlTraffic, generosity: float) -> PacketAdmission:
    honest = PacketAdmission(lab, scenario, traffic=control)
    if generosity == 1:
        return honest
    targets = {name: generosity * honest.usage(name).delay_ns for name in lab.switches}
    return PacketAdmission(lab, scenario, targets, traffic=control)


def filled(
    scheme: str,
    lab: Lab,
    pairs: Sequence[tuple[str, str]],
    *,
    rate_bps: float,
    burst_bytes: float,
    frame_bytes: int = 306,
    entries: int = 17,
    control: ControlTraffic | None = None,
    generosity: float = 1.0,
) -> Case:
    """As many equal flows as the scheme accepts, round after round over the pairs of hosts.

    Raises `InputError` if it accepts none.
    """
    control = control or {}
    scenario = of_lokos_tables(entries=entries, packet_sizes_bytes=(frame_bytes,))
    admission = admission_named(scheme, lab, scenario, control=control, generosity=generosity)
    refused: set[tuple[str, str]] = set()
    for number in range(entries * len(lab.switches)):
        pair = pairs[number % len(pairs)]
        if pair in refused:
            continue
        flow = Flow(
            id=f"f{number}",
            source=pair[0],
            destination=pair[1],
            udp_source=5000 + number,
            udp_destination=6000 + number,
            rate_bps=rate_bps,
            burst_bytes=burst_bytes,
            frame_bytes=frame_bytes,
        )
        passing = [hop.switch for other in admission.admitted.values() for hop in other.hops]
        answer = admission.check(flow)
        full = isinstance(answer, Refusal) or any(passing.count(hop.switch) >= entries for hop in answer.hops)
        if full:
            refused.add(pair)
        else:
            admission.request(flow)
    if not admission.admitted:
        raise InputError(f"{scheme}: accepts none of these flows")
    return Case(
        lab=lab,
        scheme=scheme,
        admitted=tuple(admission.admitted.values()),
        entries=entries,
        control=control,
    )
