"""The allocation of the switches in a figure's lab."""

from __future__ import annotations

from loko.admission.schemes import schemes_of
from loko.document import InputError
from loko.switch_model.allocation import Allocation
from loko.switch_model.control_traffic import AS_PRINTED, ControlTraffic
from loko.switch_model.scenario import OpenFlow, loko_scenario
from loko.topology.lab import Lab
from loko.topology.lab_allocation import allocations_of
from loko_testbed.reproduce.figure import LabFigure


def allocation_of(
    figure: LabFigure,
    lab: Lab,
    scheme: str,
    control: ControlTraffic | None = AS_PRINTED,
    *,
    entries: int | None = None,
    openflow: OpenFlow = OpenFlow.V1_0,
) -> Allocation:
    """Return what admission may use of each switch in the scenario of section 6; all are of one kind.

    By default as printed in the paper. With other `control` traffic, the CPU time of that traffic and of the
    boards' own interruptions is subtracted. `entries` overrides the figure's number of entries.
    Raises `InputError` if the switches are allocated differently.
    """
    profiles = {switch.profile.name for switch in lab.switches.values()}
    if len(profiles) != 1:
        raise InputError(
            f"{lab.path}: the evaluation needs switches of one profile, not {', '.join(profiles)}"
        )
    scenario = loko_scenario(
        entries=figure.entries if entries is None else entries,
        packet_sizes_bytes=(figure.frame_bytes,),
        openflow=openflow,
    )
    schemes = schemes_of(lab, scheme, scenario, traffic=control)
    allocation, *others = allocations_of(lab, schemes, scenario, control).values()
    if any(other != allocation for other in others):
        raise InputError(
            f"{lab.path}: '{scheme}' allocates its switches differently; the figure needs equal ones"
        )
    return allocation
