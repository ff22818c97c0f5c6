"""The settings of switches without OpenFlow, and of hosts, for a plan: VLANs, priorities, queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from loko.admission import Admitted
from loko.admission.planning import Plan
from loko.admission.port_queues.device import queue_of
from loko.document import InputError
from loko.switch_model.device import Profile
from loko.switch_model.generic_switch import GenericSwitch
from loko.topology.lab import Host, Lab
from loko.topology.network import visits

PCP_VALUES: Final = 8
"""How many values a PCP has (IEEE 802.1Q)."""
DSCP_VALUES: Final = 64
_DSCP_OF_PCP: Final = 8
"""A class selector (RFC 2474) is a DSCP of eight times a precedence."""
LOWEST_QUEUE: Final = 0


@dataclass(frozen=True, kw_only=True)
class VlanSettings:
    """A VLAN of flows at a switch: what comes leaves by one port."""

    vlan: int
    inputs: tuple[int, ...]
    """The ports at which its frames arrive, with a tag."""
    output: int
    is_tagged: bool
    """Whether frames leave with the tag: to another switch, but not to a host."""
    destinations: tuple[Host, ...]
    """The hosts to which its flows lead."""


@dataclass(frozen=True, kw_only=True)
class SwitchSettings:
    """The settings of one switch."""

    name: str
    profile: GenericSwitch
    ports: tuple[int, ...]
    """The cabled ports."""
    queues: Mapping[int, int]
    """By PCP of flows, the queue, the first one the lowest. All others belong to the lowest queue."""
    vlans: tuple[VlanSettings, ...]
    without_others: tuple[int, ...]
    """Ports that are no members of the VLAN of other traffic, which would have a loop."""

    @property
    def queue_count(self) -> int:
        """How many queues a port has."""
        assert self.profile.priorities is not None
        return self.profile.priorities.queues.value


class FlowMarking(NamedTuple):
    """How a host marks the frames of a flow."""

    flow: str
    source: Host
    destination: Host
    vlan: int
    pcp: int

    @property
    def dscp(self) -> int:
        """The class selector of the same priority."""
        return dscp_of(self.pcp)


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """The settings of all switches without OpenFlow, and of hosts, for a plan."""

    lab: str
    switches: tuple[SwitchSettings, ...]
    flows: tuple[FlowMarking, ...]
    """Of flows that cross one of these switches."""
    getting_tags: tuple[str, ...]
    """The hosts that get frames of flows with their tags, from switches with OpenFlow."""


def pcp_of(traffic_class: int) -> int:
    """Return the PCP of a class: 7 for the highest."""
    return PCP_VALUES - traffic_class


def dscp_of(pcp: int) -> int:
    """Return the DSCP that means the same as a PCP."""
    return _DSCP_OF_PCP * pcp


def network_settings(plan: Plan) -> NetworkSettings:
    """Return what the accepted flows of a plan ask of switches without OpenFlow, and of hosts.

    Raises `InputError` if there is no such switch, as no profile says how many VLANs it has, and if a flow
    would come to one without its tag.
    """
    lab = plan.lab
    profiles = {
        name: switch.profile
        for name, switch in lab.switches.items()
        if isinstance(switch.profile, GenericSwitch) and switch.profile.table.vlans is not None
    }
    if not profiles:
        name, switch = next(iter(lab.switches.items()))
        raise InputError(
            f"{name}: {switch.profile.name}: has OpenFlow, as far as its profile says, as all others have; if"
            " not, state its VLANs: [table] vlans"
        )
    closing = set(_closing_loops(lab))
    tagged = [admitted for admitted in plan.accepted if admitted.vlan is not None]
    for admitted in tagged:
        _refuse_lost_tags(lab, admitted, profiles)
    classes = sorted({admitted.flow.traffic_class for admitted in tagged})
    by_switch: dict[str, dict[int, list[tuple[int, int, Host]]]] = {name: {} for name in profiles}
    for admitted in tagged:
        for visit in visits(lab, admitted.flow.source, admitted.path):
            if visit.switch in profiles and admitted.vlan is not None:
                ways = by_switch[visit.switch].setdefault(admitted.vlan, [])
                ways.append((visit.input_port, visit.output_port, lab.hosts[admitted.flow.destination]))
    return NetworkSettings(
        lab=lab.name,
        switches=tuple(
            SwitchSettings(
                name=name,
                profile=profile,
                ports=tuple(port for port, _ in lab.neighbours(name)),
                queues={
                    pcp_of(each): queue for each in classes if (queue := queue_of(profile, each)) is not None
                },
                vlans=tuple(_vlan(lab, name, vlan, ways) for vlan, ways in sorted(by_switch[name].items())),
                without_others=tuple(port for port, _ in lab.neighbours(name) if (name, port) in closing),
            )
            for name, profile in profiles.items()
        ),
        flows=tuple(dict.fromkeys(_marking(lab, admitted) for admitted in tagged)),
        getting_tags=tuple(
            dict.fromkeys(
                admitted.flow.destination for admitted in tagged if admitted.path[-1].switch not in profiles
            )
        ),
    )


def _refuse_lost_tags(lab: Lab, admitted: Admitted, by_vlan: Collection[str]) -> None:
    """Raise `InputError` if a board takes a flow's tag off before a switch that forwards by it."""
    removing = ""
    for hop in admitted.path:
        if hop.switch in by_vlan and removing:
            raise InputError(
                f"flow '{admitted.flow.id}': {removing} takes VLAN tags off (cpu_port_tags of its profile),"
                f" so {hop.switch} cannot forward by them; let no path lead from the one to the other"
            )
        profile = lab.switches[hop.switch].profile
        if isinstance(profile, Profile) and profile.integrated_switch.cpu_port_tags == "removed":
            removing = hop.switch


def _vlan(lab: Lab, switch: str, vlan: int, ways: Sequence[tuple[int, int, Host]]) -> VlanSettings:
    ((output),) = {output for _, output, _ in ways}
    end = lab.far_end(switch, output)
    return VlanSettings(
        vlan=vlan,
        inputs=tuple(sorted({port for port, _, _ in ways})),
        output=output,
        is_tagged=end is not None and end.node in lab.switches,
        destinations=tuple({host.name: host for _, _, host in ways}.values()),
    )


def _marking(lab: Lab, admitted: Admitted) -> FlowMarking:
    flow = admitted.flow
    assert admitted.vlan is not None
    source, destination = lab.hosts[flow.source], lab.hosts[flow.destination]
    return FlowMarking(flow.id, source, destination, admitted.vlan, pcp_of(admitted.flow.traffic_class))


def _closing_loops(lab: Lab) -> Iterator[tuple[str, int]]:
    """Yield the ports of cables between switches that are on no tree that reaches all of them."""
    reached: set[str] = set()
    on_tree: set[tuple[str, int]] = set()
    for root in lab.switches:
        waiting = deque([] if root in reached else [root])
        reached.add(root)
        while waiting:
            switch = waiting.popleft()
            for port, far in lab.neighbours(switch):
                if far.node in lab.switches and far.node not in reached:
                    reached.add(far.node)
                    on_tree |= {(switch, port), (far.node, far.port)}
                    waiting.append(far.node)
    for switch in lab.switches:
        for port, far in lab.neighbours(switch):
            if far.node in lab.switches and (switch, port) not in on_tree:
                yield switch, port
