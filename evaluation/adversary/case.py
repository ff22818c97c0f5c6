"""An admitted set of flows on a lab: what is guaranteed, and what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from loko.admission import Admitted
from loko.control_traffic import ControlTraffic
from loko.device import bounded
from loko.flow import Flow
from loko.lab import Lab
from loko.scenario import OpenFlow, of_lokos_tables
from loko.service_curve import service_curve

_PREAMBLE_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class Case:
    """Flows that an admission scheme has accepted. Each follows the path on which it was."""

    lab: Lab
    scheme: str
    admitted: tuple[Admitted, ...]
    entries: int
    """Of every switch's table."""
    control: ControlTraffic = field(default_factory=dict)
    """What the controller may send to every switch meanwhile."""
    openflow: OpenFlow = OpenFlow.V1_0
    """Version of the sessions with the switches."""
    profile_of: Mapping[str, str] = field(default_factory=dict)
    """Profiles in place of the lab's, by switch, such as of boards that are slower than the model says."""

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """The flows in the order of admission; a flow's number in a run is its place here."""
        return tuple(admitted.flow for admitted in self.admitted)

    def idle_ns(self, switch: str, frame_bytes: int) -> float:
        """From a frame's beginning before a switch that is idle to its beginning behind it."""
        return self._idle_ns[switch, frame_bytes]

    @cached_property
    def _idle_ns(self) -> Mapping[tuple[str, int], float]:
        found = {}
        for size in {flow.frame_bytes for flow in self.flows}:
            scenario = of_lokos_tables(
                entries=self.entries, packet_sizes_bytes=(size,), openflow=self.openflow
            )
            for name, switch in self.lab.switches.items():
                profile = bounded(switch.profile)
                wire_ns = (_PREAMBLE_BYTES + size) * 8e9 / profile.ports.link_rate_bps.value
                found[name, size] = service_curve(profile, scenario).processing_ns + wire_ns
        return found

    def upstream_ns(self, admitted: Admitted, switch: str) -> float | None:
        """From release to a frame's beginning before a switch, with all before it idle; None off its path."""
        passed_ns = 0.0
        for hop in admitted.hops:
            if hop.switch == switch:
                return passed_ns
            passed_ns += self.idle_ns(hop.switch, admitted.flow.frame_bytes)
        return None
