"""An admitted set of flows on a lab: what is guaranteed, and under which conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from loko.admission import Admitted
from loko.admission.port_queues.device import port_device, queue_of
from loko.switch_model.control_traffic import ControlTraffic
from loko.switch_model.device import bounded
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow, Unknown, loko_scenario
from loko.switch_model.service_curve import service_curve
from loko.topology.lab import Lab

_PREAMBLE_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class AdmittedSet:
    """Flows that an admission scheme has accepted, each on the path for which it was accepted."""

    lab: Lab
    scheme: str
    admitted: tuple[Admitted, ...]
    entries: int | Unknown
    """Entries in every switch's table; `UNKNOWN` are those of the flows alone."""
    control: ControlTraffic = field(default_factory=dict)
    """Control traffic that the controller may send to every switch meanwhile."""
    openflow: OpenFlow = OpenFlow.V1_0
    """OpenFlow version of the sessions with the switches."""
    profile_of: Mapping[str, str] = field(default_factory=dict)
    """Profiles that replace the lab's, by switch, such as boards that are slower than the model says."""

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """The flows in order of admission. A flow's number in a run is its place here."""
        return tuple(admitted.flow for admitted in self.admitted)

    def idle_ns(self, switch: str, frame_bytes: int) -> float:
        """Return the time from a frame's start before an idle switch to its start behind it."""
        return self._idle_ns[switch, frame_bytes]

    @cached_property
    def _idle_ns(self) -> Mapping[tuple[str, int], float]:
        idle_ns = {}
        for size in {flow.frame_bytes for flow in self.flows}:
            scenario = loko_scenario(entries=self.entries, packet_sizes_bytes=(size,), openflow=self.openflow)
            for name, switch in self.lab.switches.items():
                if queue_of(switch.profile) is not None:
                    device = port_device(switch.profile, frame_bytes=(size,), cabled_ports=1)
                    idle_ns[name, size] = device.least_ns(size)
                    continue
                profile = bounded(switch.profile)
                wire_ns = (_PREAMBLE_BYTES + size) * 8e9 / profile.ports.link_rate_bps.value
                idle_ns[name, size] = service_curve(profile, scenario).processing_ns + wire_ns
        return idle_ns

    def upstream_ns(self, admitted: Admitted, switch: str) -> float | None:
        """Return the time from release to a frame's start before a switch, if all before it are idle.

        None if the switch is not on the path.
        """
        passed_ns = 0.0
        for hop in admitted.hops:
            if hop.switch == switch:
                return passed_ns
            passed_ns += self.idle_ns(hop.switch, admitted.flow.frame_bytes)
        return None
