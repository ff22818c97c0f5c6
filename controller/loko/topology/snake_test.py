"""The shoelace wiring (predictability paper, section II-C, fig. 6): two hosts load every port of one switch.

Cables lead from port 2k of the switch to its port 2k + 1. A frame enters at port 1, leaves by 2, enters at 3,
and so on, until it leaves by the last port. Frames of the other host go the same way back. So each frame
visits the switch n/2 times, and two hosts load all n ports, in both directions, if all have the same rate.
"""

from __future__ import annotations

from collections.abc import Mapping

from loko.document import InputError
from loko.switch_model.device import load_device
from loko.topology.lab import Lab, lab_of
from loko.topology.network import Hop
from loko.topology.ring import Setting

SWITCH = "s1"
HOSTS = ("H1", "H2")
"""The hosts at the first port and at the last."""
_LEAST_PORTS = 2


def snake_test_lab(profile: str, ports: int, config: Mapping[str, Setting] | None = None) -> Lab:
    """Return a lab of one switch with this many ports laced. The controller's sessions use none of them.

    Raises `InputError` for a number of ports that cannot be laced, or that the switch does not have.
    """
    if ports < _LEAST_PORTS or ports % 2:
        raise InputError(
            f"{ports} ports cannot be a shoelace: two are the hosts', the others pairs; give an even number"
        )
    count = load_device(profile).ports.count.value
    if ports > count:
        raise InputError(f"{profile} has {count} ports; {ports} of them cannot be laced")
    first, last = HOSTS
    laces = [(f"{SWITCH}:{port}", f"{SWITCH}:{port + 1}") for port in range(2, ports, 2)]
    cables = [(first, f"{SWITCH}:1"), *laces, (f"{SWITCH}:{ports}", last)]
    return lab_of(
        {
            "name": "shoelace",
            "title": f"{ports} ports of one switch, laced",
            "switches": {
                SWITCH: {
                    "datapath_id": "00:00:70:b3:d5:6c:00:01",
                    "profile": profile,
                    "config": dict(config or {}),
                }
            },
            "hosts": {
                name: {"mac": f"02:00:00:00:00:{number:02x}", "ip": f"10.0.0.{number}/24"}
                for number, name in enumerate(HOSTS, start=1)
            },
            "links": [{"a": end, "b": other} for end, other in cables],
            "control_port": 0,
        }
    )


def snake_path(lab: Lab, source: str) -> tuple[Hop, ...]:
    """Return the path of a host's frames through all laces. Raises `InputError` if the lab is no shoelace."""
    links = lab.links
    if len(lab.switches) != 1 or set(lab.hosts) != set(HOSTS) or len(lab.loop_cables) != len(links) - 2:
        raise InputError(f"lab '{lab.name}': is no shoelace of one switch and two hosts")
    ports = range(2, 2 * len(links) - 1, 2) if source == HOSTS[0] else range(2 * len(links) - 3, 0, -2)
    return tuple(Hop(switch=SWITCH, output_port=port) for port in ports)
