"""Settings as commands of switches with software derived from FASTPATH, such as NETGEAR's and Hirschmann's.

Grammar: NETGEAR, "ProSAFE M4100 and M7100 Managed Switches, CLI Manual" (VLAN and QoS commands); Hirschmann,
"PowerMICE, Reference Manual Command Line Interface", section 5.3 ("Class of Service (CoS) Commands").
"""

from __future__ import annotations

from loko.admission.port_queues.vlans import OTHER_TRAFFIC_VLAN
from loko.control.managed_switches.settings import (
    DSCP_VALUES,
    LOWEST_QUEUE,
    PCP_VALUES,
    SwitchSettings,
    dscp_of,
)


def fastpath_commands(switch: SwitchSettings, *, slot: str = "0", by_dscp: bool = False) -> str:
    """Return the commands of one switch, from the privileged prompt on.

    Ports are called SLOT/PORT. `by_dscp` tells flows by their DSCP, not by their PCP.

    A VLAN of flows has only its output port as a member. So frames leave by it, whether or not the switch
    knows their destination; ports without ingress filter accept them.
    """
    vlans = [str(vlan.vlan) for vlan in switch.vlans]
    lines = ["vlan database", *(f"vlan {vlan}" for vlan in vlans), "exit", "configure", "no spanning-tree"]
    if by_dscp:
        queues = {dscp_of(pcp): queue for pcp, queue in switch.queues.items()}
        lines += [
            f"classofservice ip-dscp-mapping {dscp} {queues.get(dscp, LOWEST_QUEUE)}"
            for dscp in range(DSCP_VALUES)
        ]
    else:
        lines += [
            f"classofservice dot1p-mapping {pcp} {switch.queues.get(pcp, LOWEST_QUEUE)}"
            for pcp in range(PCP_VALUES)
        ]
    lines += [
        f"classofservice trust {'ip-dscp' if by_dscp else 'dot1p'}",
        f"cos-queue strict {' '.join(map(str, range(switch.queue_count)))}",
    ]
    for port in switch.ports:
        out = [vlan for vlan in switch.vlans if vlan.output == port]
        lines += [f"interface {slot}/{port}", "no vlan ingressfilter"]
        for vlan in out:
            lines.append(f"vlan participation include {vlan.vlan}")
            lines.append(f"{'' if vlan.is_tagged else 'no '}vlan tagging {vlan.vlan}")
        if port in switch.without_others:
            lines.append(f"vlan participation exclude {OTHER_TRAFFIC_VLAN}")
        lines.append("exit")
    return "\n".join([*lines, "exit"]) + "\n"
