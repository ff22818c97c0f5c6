"""Admission by a bound for each server on a path, whether a switch has one server or one for each port."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from loko.admission import SchemeConditions
from loko.admission.mixed.conditions import CONDITIONS
from loko.admission.mixed.shared_server import SharedServerQueue, shared_queue
from loko.admission.port_queues import PortAdmission
from loko.admission.port_queues.device import HIGHEST_CLASS
from loko.switch_model.control_traffic import ControlTraffic
from loko.switch_model.device import has_shared_server
from loko.switch_model.scenario import Scenario
from loko.topology.lab import Lab
from loko.topology.lab_allocation import Allocator


class MixedAdmission(PortAdmission):
    """Admission by ports, where some switches have one queue for all ports (docs/mixed-labs.md)."""

    conditions: ClassVar[SchemeConditions] = CONDITIONS

    def __init__(
        self,
        lab: Lab,
        scenario: Scenario,
        *,
        traffic: ControlTraffic,
        target_ns: float | Mapping[str, float] | None = None,
        padding: int | None = None,
        classes: int = HIGHEST_CLASS,
        class_targets_ns: Mapping[int, float] = MappingProxyType({}),
    ) -> None:
        """Start empty; see `PortAdmission`. `traffic` is what the controller sends to boards.

        Raises `InputError` for a switch that can promise nothing, or a target that no frame can keep.
        """
        self._traffic = traffic
        shared = _shared_queues(lab, scenario, traffic)
        super().__init__(
            lab,
            scenario,
            target_ns=target_ns,
            padding=padding,
            classes=classes,
            class_targets_ns=class_targets_ns,
            shared=shared,
        )

    @property
    def scheme(self) -> str:
        """Name of the scheme."""
        return "mixed"

    def _with_targets(self, lab: Lab) -> MixedAdmission:
        return MixedAdmission(
            lab,
            self._scenario,
            traffic=self._traffic,
            target_ns=self._targets,
            padding=self._padding,
            classes=len(self._every_class),
        )


def _shared_queues(lab: Lab, scenario: Scenario, traffic: ControlTraffic) -> dict[str, SharedServerQueue]:
    """Return the queues of the switches with one server for all ports, by switch."""
    names = [name for name, switch in lab.switches.items() if has_shared_server(switch.profile)]
    allocator = Allocator(lab, scenario, traffic, switches=names)

    def queues(delays_ns: Mapping[str, float] | None) -> dict[str, SharedServerQueue]:
        return {
            name: shared_queue(lab.switches[name].profile, splits)
            for name, splits in allocator.frontiers(delays_ns).items()
        }

    # Messages of the controller take room for as long as frames may wait; with less room none waits longer.
    return queues({name: queue.room_ns for name, queue in queues(None).items()})
