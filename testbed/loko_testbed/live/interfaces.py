"""Names of the network interfaces of a live lab."""

from __future__ import annotations

from loko.topology.lab import Host, Lab
from loko_testbed.simulation.runner import RunError

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
