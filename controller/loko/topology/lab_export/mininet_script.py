"""A lab as a custom topology of Mininet, for ``mn --custom``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loko.topology.lab import Endpoint, Lab, Link
from loko.units import BPS_PER_MBPS

_HEADER: Final = '''\
"""{title}

sudo mn --custom THIS_FILE --topo {name}
"""

from mininet.topo import Topo


class Lab(Topo):
    """Switches, hosts and cables, with the datapath ids, addresses, ports and rates of the lab."""

    def build(self):
'''


def mininet_script(lab: Lab) -> str:
    """Return a Python script that offers the lab as a topology called as the lab is.

    It names no class of switch, so `mn --switch` chooses it. Rates count with `mn --link tc`.
    """
    title = " ".join(lab.title.split()).replace("\\", "/").replace('"', "'")
    lines = [_HEADER.format(title=title, name=lab.name).rstrip("\n")]
    lines += [f"        {line}" for line in _statements(lab)]
    return "\n".join([*lines, "", "", f"topos = {{{lab.name!r}: Lab}}", ""])


def _statements(lab: Lab) -> Iterator[str]:
    for name, switch in lab.switches.items():
        yield f"self.addSwitch({name!r}, dpid='{switch.datapath_id:016x}')"
    for machine, (first, *_) in lab.machines.items():
        yield f"self.addHost({machine!r}, mac={first.mac!r}, ip='{first.ip}')"
    for link in lab.links:
        yield f"self.addLink({', '.join(_link(lab, link))})"


def _link(lab: Lab, link: Link) -> Iterator[str]:
    ends = link.a, link.b
    for end in ends:
        yield repr(lab.hosts[end.node].machine if end.node in lab.hosts else end.node)
    for number, end in enumerate(ends, 1):
        yield from _end(lab, end, number)
    yield f"bw={lab.rate_bps(link) / BPS_PER_MBPS:g}"


def _end(lab: Lab, end: Endpoint, number: int) -> Iterator[str]:
    host = lab.hosts.get(end.node)
    if host is None:
        yield f"port{number}={end.port}"
    elif host.interface is not None:
        yield f"intfName{number}={host.device!r}"
        yield f"addr{number}={host.mac!r}"
        yield f"params{number}={{'ip': '{host.ip}'}}"
