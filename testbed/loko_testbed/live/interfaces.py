"""Rules for all network interfaces of a live lab: their names, and no offloads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from loko.topology.lab import Host, Lab
from loko_testbed.live.programs import run
from loko_testbed.simulation.runner import RunError

OFFLOADS = {
    "tx": "tx-checksumming",
    "rx": "rx-checksumming",
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
}
"""Offloads by ethtool's name for setting and for showing: a frame must pass as it would on a wire."""

_LONGEST_NAME = 15  # IFNAMSIZ - 1


def interface_name(name: str, *, node: str, where: str) -> str:
    """Return a name for an interface of a node, as it is. Raises `RunError` if Linux would not accept it."""
    if len(name.encode()) > _LONGEST_NAME:
        what = "characters" if name.isascii() else "bytes"
        raise RunError(
            f"{where}: the interface name '{name}' has more than {_LONGEST_NAME} {what}: "
            f"shorten the name of {node}"
        )
    if name.startswith("-") or "/" in name or any(character.isspace() for character in name):
        raise RunError(
            f"{where}: Linux takes no interface name '{name}': take spaces, slashes and a leading hyphen"
            f" out of the name of {node}"
        )
    return name


def device_of(host: Host, lab: Lab) -> str:
    """Return the interface of a host of a lab that is up. Raises `RunError` if Linux refuses its name."""
    return interface_name(host.device, node=host.name, where=str(lab.path))


def make_plain(interface: str, *, what: str) -> None:
    """Put an interface up that passes frames as they are and sends none of its own. Raises `RunError`."""
    switch_off_offloads(interface, what=what)
    run(["sysctl", "-q", "-w", f"net.ipv6.conf.{interface}.disable_ipv6=1"], what=what)
    run(["ip", "link", "set", interface, "up"], what=what)


def switch_off_offloads(interface: str, *, what: str, prefix: Sequence[str] = ()) -> None:
    """Switch all offloads off, so that frames pass as they are. Raises `RunError`."""
    switches = itertools.chain.from_iterable((key, "off") for key in OFFLOADS)
    run(["ethtool", "-K", interface, *switches], what=what, prefix=prefix)
