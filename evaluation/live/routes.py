"""Routes of a host with several interfaces: what bears the address of one leaves by that one.

Where the interfaces are in one network, Linux would send everything by the first. So each has a routing table
of its own, chosen by the sender's address. mgen leaves that address to Linux, so for its flows the UDP source
port chooses. These tables come before the one of the host's own addresses, so that frames from one interface
to another pass the network, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loko.lab import Host, Lab

_FIRST_TABLE: Final = 101
_BY_PORT, _BY_ADDRESS, _OWN_ADDRESSES = 10, 20, 100
"""The order in which Linux asks the rules; by default its own addresses come first of all, at 0."""


def commands(interfaces: Sequence[Host], devices: Sequence[str]) -> list[str]:
    """Return the lines for ``ip -batch`` in a host's namespace: its interfaces and what Linux calls them."""
    lines = [f"rule add pref {_OWN_ADDRESSES} lookup local", "rule delete pref 0"]
    for table, (host, device) in enumerate(zip(interfaces, devices, strict=True), start=_FIRST_TABLE):
        lines += [
            f"route add {host.ip.network} dev {device} src {host.ip.ip} table {table}",
            f"rule add pref {_BY_ADDRESS} iif lo from {host.ip.ip} lookup {table}",
        ]
    return lines


def port_rule(lab: Lab, host: str, udp_source: int) -> list[str] | None:
    """Return the rule that sends what comes from a UDP port by this interface; None if it is the only one."""
    interfaces = lab.machines[lab.hosts[host].machine]
    if len(interfaces) == 1:
        return None
    table = _FIRST_TABLE + interfaces.index(lab.hosts[host])
    port = ["ipproto", "udp", "sport", str(udp_source)]
    return ["pref", str(_BY_PORT), "iif", "lo", *port, "lookup", str(table)]
