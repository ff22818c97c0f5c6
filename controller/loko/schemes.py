"""Admission schemes by name, ready for a lab."""

from __future__ import annotations

from enum import Enum

from loko.admission import Admission, LokoAdmission
from loko.allocation import scheme_named
from loko.control_traffic import ControlTraffic
from loko.document import InputError
from loko.lab import Lab
from loko.packets import PacketAdmission
from loko.plan import allocations_of
from loko.rivals import Epsilon, Rival, rival_admission
from loko.scenario import Scenario, Unknown


class SchemeName(Enum):
    """The admission schemes."""

    LOKO = "loko"
    PACKETS = "packets"
    SILO = Rival.SILO.value
    QJUMP = Rival.QJUMP.value


def admission_of(
    lab: Lab,
    scheme: SchemeName,
    scenario: Scenario,
    *,
    allocation: str = "fifth-rate",
    traffic: ControlTraffic | None = None,
    fillers: int | None = None,
    epsilon: Epsilon = Epsilon.PAPER,
    target_ns: float | None = None,
) -> Admission:
    """An empty admission control of a lab.

    `allocation` is Loko's alone, `target_ns`, the delay of each switch, the packets' alone; `traffic` is of
    both, and the rivals know of none. By default tables are filled up with dummies to the planned number of
    entries, whatever flows there are. Who does not says by `fillers` how many entries that no frame hits
    stand beside those of the flows: with few entries frames follow each other faster, which the packets must
    know.

    Raises `InputError`.
    """
    entries = scenario.entries
    if fillers is not None and not isinstance(entries, Unknown) and fillers >= entries:
        raise InputError(f"fillers: {fillers} of {entries} entries leave none to flows; plan fewer")
    if scheme is SchemeName.LOKO:
        allocations = allocations_of(lab, scheme_named(allocation), scenario, traffic)
        return LokoAdmission(lab, allocations, fillers=fillers or 0)
    if scheme is SchemeName.PACKETS:
        targets = None if target_ns is None else dict.fromkeys(lab.switches, target_ns)
        return PacketAdmission(lab, scenario, targets, traffic=traffic, fillers=fillers)
    return rival_admission(Rival(scheme.value), lab, scenario, epsilon=epsilon)
