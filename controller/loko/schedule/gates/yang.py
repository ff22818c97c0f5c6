"""Gate control lists as YANG instance data (RFC 9195, in JSON by RFC 7951).

The modules are IEEE's `ieee802-dot1q-sched` and `ieee802-dot1q-sched-bridge` (802.1Qcw-2023), which augment
the ports of bridges (`ieee802-dot1q-bridge`) on `ietf-interfaces` (RFC 8343). IEC/IEEE 60802 uses
the same modules. Hosts are no bridges and have no instance data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from loko.schedule.gates.gate_list import GateLists, PortGates
from loko.schedule.gates.options import ALL_OPEN
from loko.units import NS_PER_S

_MODULES: Final = (
    "ietf-interfaces@2018-02-20",
    "iana-if-type@2023-01-26",
    "ieee802-dot1q-bridge@2023-10-26",
    "ieee802-dot1q-sched@2023-10-22",
    "ieee802-dot1q-sched-bridge@2023-10-26",
)


def instance_data(gates: GateLists) -> Mapping[str, str]:
    """Return the instance data of each switch, by the name of its file."""
    schedule = gates.schedule
    return {
        f"{node}.json": json.dumps(
            {
                "ietf-yang-instance-data:instance-data-set": {
                    "name": f"{schedule.lab.name}-{node}",
                    "content-schema": {"module": _MODULES},
                    "description": [f"Gate control lists of {node} in lab {schedule.lab.name}"],
                    "content-data": content_data(ports),
                }
            },
            indent=1,
        )
        + "\n"
        for node, ports in gates.ports.items()
        if node in schedule.lab.switches
    }


def content_data(ports: tuple[PortGates, ...]) -> dict[str, Any]:
    """Return the configuration of a switch's ports, as for a NETCONF or RESTCONF datastore."""
    return {"ietf-interfaces:interfaces": {"interface": [_interface(port) for port in ports]}}


def _interface(port: PortGates) -> dict[str, Any]:
    return {
        "name": port.interface,
        "type": "iana-if-type:ethernetCsmacd",
        "ieee802-dot1q-bridge:bridge-port": {
            "ieee802-dot1q-sched-bridge:gate-parameter-table": {
                "gate-enabled": True,
                "admin-gate-states": ALL_OPEN,
                "admin-control-list": {
                    "gate-control-entry": [
                        {
                            "index": index,
                            "operation-name": "ieee802-dot1q-sched:set-gate-states",
                            "time-interval-value": entry.interval_ns,
                            "gate-states-value": entry.states,
                        }
                        for index, entry in enumerate(port.entries)
                    ]
                },
                "admin-cycle-time": _cycle_time(port),
                # 64-bit numbers are strings (RFC 7951, 6.1).
                "admin-base-time": {
                    "seconds": str(port.base_time_ns // NS_PER_S),
                    "nanoseconds": port.base_time_ns % NS_PER_S,
                },
                "config-change": True,
                # The constraints of the module compare with these: a list is valid where they are met.
                "supported-list-max": len(port.entries),
                "supported-cycle-max": _cycle_time(port),
                "supported-interval-max": max(entry.interval_ns for entry in port.entries),
            }
        },
    }


def _cycle_time(port: PortGates) -> dict[str, int]:
    return {"numerator": port.cycle_ns, "denominator": NS_PER_S}
