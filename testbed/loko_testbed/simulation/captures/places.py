"""Places in captures: a file for each node, an interface for each port and for each session without cable."""

from __future__ import annotations

from typing import Final, NamedTuple

from loko.switch_model.device import Profile
from loko.topology.lab import Lab, Switch

CONTROLLER: Final = "controller"
"""Node at the other end of the switches' control ports, if they have any."""


class CapturePlace(NamedTuple):
    """An interface of a capture file."""

    file: str
    """Name of the node, as the file has it before its ending."""
    interface: str


def place_of_port(lab: Lab, node: str, port: int) -> CapturePlace:
    """Return the place of an end of a cable."""
    host = lab.hosts.get(node)
    return CapturePlace(node, f"{node}:{port}") if host is None else CapturePlace(host.machine, host.device)


def place_of_session(switch: str) -> CapturePlace:
    """Return the place of a switch's OpenFlow session, if that needs no cable."""
    return CapturePlace(switch, f"{switch}:openflow")


def quirks_of(switch: Switch) -> object:
    """Return a switch's setting `quirks`; "spec" for devices that are no boards."""
    return switch.config.get("quirks", "firmware") if isinstance(switch.profile, Profile) else "spec"
