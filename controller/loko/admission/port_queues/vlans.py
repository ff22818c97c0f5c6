"""VLANs that take flows along their paths, for switches without OpenFlow.

Such a switch forwards by VLAN and destination address. In each VLAN of flows, every switch sends out of one
port, and learns no destination from the frames that it sends (docs/devices.md, "Switches without OpenFlow").
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from loko.switch_model.generic_switch import GenericSwitch
from loko.topology.lab import Lab
from loko.topology.network import Hop

OTHER_TRAFFIC_VLAN: Final = 1
"""The VLAN of all other traffic: frames without a tag."""
_MOST_VLANS: Final = 4094
_HostPair = tuple[str, str]
"""The source and the destination of a flow."""


def vlans_of(lab: Lab) -> dict[str, int]:
    """Return how many VLANs each switch without OpenFlow may have, by its name."""
    counts = {
        name: switch.profile.table.vlans
        for name, switch in lab.switches.items()
        if isinstance(switch.profile, GenericSwitch)
    }
    return {name: count.value for name, count in counts.items() if count is not None}


class FlowVlans:
    """The VLANs of flows, each with the port by which a switch sends in it."""

    def __init__(self, vlans: Mapping[str, int]) -> None:
        """Start without flows. `vlans` has how many each switch without OpenFlow may have, by name."""
        self._most = vlans
        self._ports: dict[int, dict[str, int]] = {}
        """By VLAN and switch."""
        self._flows: defaultdict[tuple[int, str], Counter[_HostPair]] = defaultdict(Counter)
        """By VLAN and switch, how many there are between two hosts."""

    def find(self, path: Sequence[Hop], hosts: _HostPair) -> int | None:
        """Return the first VLAN that takes a flow along a path; None if there is none, or none is needed."""
        hops = self._hops(path) if self._most else []
        if not hops:
            return None
        candidates = [*self._ports, self._new()]
        return next((vlan for vlan in candidates if not self._obstacle(vlan, hops, hosts)), None)

    def obstacle(self, path: Sequence[Hop], hosts: _HostPair) -> str | None:
        """Return a switch of a path that has no VLAN left for a flow; None if none is missing."""
        hops = self._hops(path) if self._most else []
        if not hops or self.find(path, hosts) is not None:
            return None
        return self._obstacle(self._new(), hops, hosts)

    def used(self, switch: str) -> int:
        """Return how many VLANs of flows a switch has."""
        return sum(switch in ports for ports in self._ports.values())

    def most(self, switch: str) -> int:
        """Return how many VLANs of flows a switch may have: all but that of other traffic."""
        return self._most[switch] - 1

    def add(self, vlan: int, path: Sequence[Hop], hosts: _HostPair) -> None:
        """Note a flow in a VLAN that `find` has returned."""
        for hop in self._hops(path):
            self._ports.setdefault(vlan, {})[hop.switch] = hop.output_port
            self._flows[vlan, hop.switch][hosts] += 1

    def remove(self, vlan: int, path: Iterable[Hop], hosts: _HostPair) -> None:
        """Forget a flow."""
        for hop in self._hops(path):
            flows = self._flows[vlan, hop.switch]
            flows -= Counter([hosts])
            if not flows:
                del self._ports[vlan][hop.switch]
        if not self._ports[vlan]:
            del self._ports[vlan]

    def _hops(self, path: Iterable[Hop]) -> list[Hop]:
        return [hop for hop in path if hop.switch in self._most]

    def _new(self) -> int:
        return next(
            vlan for vlan in range(OTHER_TRAFFIC_VLAN + 1, _MOST_VLANS + 2) if vlan not in self._ports
        )

    def _obstacle(self, vlan: int, hops: Sequence[Hop], hosts: _HostPair) -> str | None:
        """Return a switch that sends elsewhere in a VLAN, would learn to, or has as many as it may."""
        ports = self._ports.get(vlan, {})
        for hop in hops:
            port = ports.get(hop.switch)
            is_full = port is None and self.used(hop.switch) >= self.most(hop.switch)
            if vlan > _MOST_VLANS or is_full or port not in {None, hop.output_port}:
                return hop.switch
            if port is not None and self._would_learn(vlan, hop.switch, hosts):
                return hop.switch
        return None

    def _would_learn(self, vlan: int, switch: str, hosts: _HostPair) -> bool:
        """Return whether a switch would get frames from the destination of a flow, in the flow's VLAN."""
        source, destination = hosts
        return any(source == to or destination == by for by, to in self._flows[vlan, switch])
