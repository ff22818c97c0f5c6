"""The admission schemes of a figure, as the library has them."""

from __future__ import annotations

from dataclasses import replace

from evaluation.kinds.admission.document import SchemeName
from loko.admission import Admission, LokoAdmission
from loko.allocation import FIFTH_RATE, FULL_RATE, Allocation, Scheme, allocate
from loko.device import deterministic
from loko.lab import Lab
from loko.packets import PacketAdmission
from loko.scenario import Scenario
from loko.service import service_curve


def empty_admission(
    name: SchemeName,
    lab: Lab,
    scenario: Scenario,
    *,
    buffer_factor: int = 1,
    target_ns: float | None = None,
) -> Admission:
    """The scheme without any flow.

    `target_ns` is the delay target of every switch if the scheme has any. Raises `InputError` if the scheme
    cannot describe a switch.
    """
    if name in {"packet-granular", "optimised"}:
        targets = None if target_ns is None else dict.fromkeys(lab.switches, target_ns)
        return PacketAdmission(lab, scenario, targets)
    scheme = FIFTH_RATE if name == "fifth-rate" else FULL_RATE
    same_delay = name == "full-rate-same-delay"
    return LokoAdmission(lab, _allocations(lab, scenario, scheme, buffer_factor, same_delay=same_delay))


def _allocations(
    lab: Lab, scenario: Scenario, scheme: Scheme, buffer_factor: int, *, same_delay: bool
) -> dict[str, Allocation]:
    found = {}
    for name, switch in lab.switches.items():
        service = service_curve(deterministic(switch.profile), scenario)
        larger = replace(service, capacity_bytes=buffer_factor * service.capacity_bytes)
        found[name] = allocate(larger, scheme)
        if same_delay:
            found[name] = replace(found[name], delay_ns=allocate(service, scheme).delay_ns)
    return found
