"""Admission schemes by name, ready for a lab."""

from __future__ import annotations

from enum import Enum

from loko.admission import Admission, LokoAdmission
from loko.allocation import scheme_named
from loko.control_traffic import ControlTraffic
from loko.lab import Lab
from loko.packets import PacketAdmission
from loko.plan import allocations_of
from loko.rivals import Epsilon, Rival, rival_admission
from loko.scenario import Scenario


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
    least_entries: int | None = None,
    epsilon: Epsilon = Epsilon.PAPER,
    target_ns: float | None = None,
) -> Admission:
    """An empty admission control of a lab.

    `allocation` is Loko's alone, `target_ns` (the delay of each switch) the packets', `traffic` is of both;
    the rivals know of none. Who does not fill tables up with dummies says by `least_entries` how short they
    may get: frames then follow each other faster, which the packets must know. Raises `InputError`.
    """
    if scheme is SchemeName.LOKO:
        return LokoAdmission(lab, allocations_of(lab, scheme_named(allocation), scenario, traffic))
    if scheme is SchemeName.PACKETS:
        targets = None if target_ns is None else dict.fromkeys(lab.switches, target_ns)
        return PacketAdmission(lab, scenario, targets, traffic=traffic, least_entries=least_entries)
    return rival_admission(Rival(scheme.value), lab, scenario, epsilon=epsilon)
