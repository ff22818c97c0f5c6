"""Routes of hosts: to every network of the lab, and for a host with several interfaces, which one it uses.

A packet with the address of an interface as its source leaves by that interface. If the interfaces are in one
network, Linux would send everything by the first one. So each has a routing table of its own, chosen by the
source address. mgen leaves that address to Linux, so for its flows the UDP source port chooses the table.
These tables come before the one of the host's own addresses, so that packets from one interface to another
pass the network, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Final

from loko.topology.lab import Host, Lab

_FIRST_TABLE: Final = 101
_BY_PORT, _BY_ADDRESS, _OWN_ADDRESSES = 10, 20, 100
"""Priorities of the routing rules; by default the rule for own addresses is first, at 0."""


def commands(lab: Lab, machine: str, devices: Sequence[str]) -> list[str]:
    """Return the lines for ``ip -batch`` in a host's namespace; its interfaces are devices of Linux.

    All networks of the lab are reached directly, whichever of them an interface has its address in.
    """
    interfaces = lab.machines[machine]
    networks = list(dict.fromkeys(host.ip.network for host in lab.hosts.values()))
    first, *_ = zip(interfaces, devices, strict=True)
    lines = [
        _route(network, *first)
        for network in networks
        if all(host.ip.network != network for host in interfaces)  # Linux knows its own
    ]
    if len(interfaces) == 1:
        return lines
    lines += [f"rule add pref {_OWN_ADDRESSES} lookup local", "rule delete pref 0"]
    for table, (host, device) in enumerate(zip(interfaces, devices, strict=True), start=_FIRST_TABLE):
        lines += [f"{_route(network, host, device)} table {table}" for network in networks]
        lines.append(f"rule add pref {_BY_ADDRESS} iif lo from {host.ip.ip} lookup {table}")
    return lines


def _route(network: IPv4Network, host: Host, device: str) -> str:
    return f"route add {network} dev {device} src {host.ip.ip}"


def port_rule(lab: Lab, host: str, udp_source: int) -> list[str] | None:
    """Return the rule that sends packets from a UDP port by this interface; None if it is the only one."""
    interfaces = lab.machines[lab.hosts[host].machine]
    if len(interfaces) == 1:
        return None
    table = _FIRST_TABLE + interfaces.index(lab.hosts[host])
    port = ["ipproto", "udp", "sport", str(udp_source)]
    return ["pref", str(_BY_PORT), "iif", "lo", *port, "lookup", str(table)]
