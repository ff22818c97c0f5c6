"""Switches without OpenFlow in plans that survive failures: nobody changes their tables after a failure.

They forward by VLAN (docs/devices.md, "Switches without OpenFlow"). So a flow moves only where another switch
decides, and all its paths share a VLAN in which each of these switches sends out of one port.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from loko.admission.answer import Refusal
from loko.admission.port_queues.vlans import FlowVlans, vlans_of
from loko.admission.protection.replacement import Path, last_common_hop
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.topology.network import Hop


class FixedSwitches:
    """The switches without OpenFlow of a lab, with the VLANs and entries of flows on all their paths."""

    def __init__(self, lab: Lab, most_entries: Mapping[str, int]) -> None:
        """Start without flows. `most_entries` has how many entries each table has for flows."""
        self._counts = vlans_of(lab)
        self._most_entries = most_entries
        self.release_all()

    @property
    def names(self) -> frozenset[str]:
        """Their names."""
        return frozenset(self._counts)

    def release_all(self) -> None:
        """Begin anew, without flows."""
        self._vlans = FlowVlans(self._counts)
        self._entries: Counter[str] = Counter()

    def may_move(self, working: Path, backup: Path, others: Iterable[Path]) -> bool:
        """Return whether a flow may move to a backup path, if it may have these `others` as well.

        The switch where the paths part has to have OpenFlow; at all others one port serves all paths.
        """
        if not self._counts:
            return True
        fork = working[last_common_hop(working, backup)].switch
        ports = {hop.switch: hop.output_port for path in (working, *others) for hop in path}
        return fork not in self._counts and all(
            ports.get(hop.switch, hop.output_port) == hop.output_port for hop in self._hops([backup])
        )

    def add(self, flow: Flow, paths: Sequence[Path]) -> int | Refusal | None:
        """Note a flow, or its second copies, on all its paths, and return their VLAN; None if it needs none.

        Return a refusal, and note nothing, if it finds no VLAN or no entry, or if two of the paths leave one
        of these switches by different ports.
        """
        hops, hosts = self._hops(paths), (flow.source, flow.destination)
        count = Counter(hop.switch for hop in hops)
        if (twice := next((switch for switch in count if count[switch] > 1), None)) is not None:
            return Refusal(flow, twice, "ports of a flow", 1.0, 1.0, 1.0, "ports")
        for hop in hops:
            used, most = self._entries[hop.switch], self._most_entries[hop.switch]
            if used >= most:
                return Refusal(flow, hop.switch, "entries", float(used), 1.0, float(most), "entries")
        vlan = self._vlans.find(hops, hosts)
        if vlan is not None:
            self._vlans.add(vlan, hops, hosts)
            self._entries.update(hop.switch for hop in hops)
        elif (switch := self._vlans.obstacle(hops, hosts)) is not None:
            used, most = self._vlans.used(switch), self._vlans.most(switch)
            return Refusal(flow, switch, "VLANs", float(used), 1.0, float(most), "VLANs")
        return vlan

    def remove(self, vlan: int | None, flow: Flow, paths: Sequence[Path]) -> None:
        """Undo `add`, which has returned this VLAN."""
        if vlan is not None:
            self._vlans.remove(vlan, self._hops(paths), (flow.source, flow.destination))
            self._entries.subtract(hop.switch for hop in self._hops(paths))

    def _hops(self, paths: Sequence[Path]) -> list[Hop]:
        """Return the hops of paths at these switches, each once."""
        return list(dict.fromkeys(hop for path in paths for hop in path if hop.switch in self._counts))
