"""Settings as commands of Linux, for switch chips with a driver (switchdev, DSA) or software bridges.

Grammar: the manual pages bridge(8), ip-link(8), tc-prio(8), tc-flower(8) and tc-skbedit(8) of iproute2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loko.admission.port_queues.vlans import OTHER_TRAFFIC_VLAN
from loko.control.managed_switches.settings import SwitchSettings, dscp_of

_BRIDGE: Final = "br0"
_PRIORITIES_OF_LINUX: Final = 16


def linux_commands(switch: SwitchSettings, *, ports: str = "swp", by_dscp: bool = False) -> str:
    """Return a shell script for one switch, whose ports are called `ports` and their number.

    `by_dscp` tells flows by their DSCP, not by their PCP.

    A VLAN of flows has the ports of their paths as members. They form a tree, and static entries lead to
    each destination.
    """
    return "\n".join(["#!/bin/sh", "set -e", *_commands(switch, ports, by_dscp=by_dscp)]) + "\n"


def _commands(switch: SwitchSettings, ports: str, *, by_dscp: bool) -> Iterator[str]:
    yield f"ip link add name {_BRIDGE} type bridge vlan_filtering 1 stp_state 0"
    for port in switch.ports:
        yield f"ip link set dev {ports}{port} master {_BRIDGE}"
        if port in switch.without_others:
            yield f"bridge vlan del dev {ports}{port} vid {OTHER_TRAFFIC_VLAN}"
    for vlan in switch.vlans:
        for port in vlan.inputs:
            yield f"bridge vlan add dev {ports}{port} vid {vlan.vlan}"
        untagged = "" if vlan.is_tagged else " untagged"
        yield f"bridge vlan add dev {ports}{vlan.output} vid {vlan.vlan}{untagged}"
        for host in vlan.destinations:
            yield f"bridge fdb add {host.mac} dev {ports}{vlan.output} master static vlan {vlan.vlan}"
    highest = max(switch.queues.values(), default=0)
    lowest_band = len(switch.queues)
    bands = [
        highest - switch.queues[priority] if priority in switch.queues else lowest_band
        for priority in range(_PRIORITIES_OF_LINUX)
    ]
    for port in switch.ports:
        name = f"{ports}{port}"
        yield f"tc qdisc add dev {name} clsact"
        for pcp in sorted(switch.queues):
            told = (
                f"vlan_ethtype ipv4 ip_tos {dscp_of(pcp) << 2:#04x}/0xfc" if by_dscp else f"vlan_prio {pcp}"
            )
            yield (
                f"tc filter add dev {name} ingress protocol 802.1q flower {told}"
                f" action skbedit priority {pcp}"
            )
        yield (
            f"tc qdisc replace dev {name} root handle 1: prio bands {max(2, lowest_band + 1)}"
            f" priomap {' '.join(map(str, bands))}"
        )
    yield f"ip link set dev {_BRIDGE} up"
    yield from (f"ip link set dev {ports}{port} up" for port in switch.ports)
