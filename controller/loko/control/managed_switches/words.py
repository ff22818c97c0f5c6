"""Settings in words, for every switch that can be configured somehow, such as in a browser."""

from __future__ import annotations

from loko.admission.port_queues.vlans import OTHER_TRAFFIC_VLAN
from loko.control.managed_switches.settings import NetworkSettings, SwitchSettings, dscp_of


def in_words(settings: NetworkSettings) -> str:
    """Return what all switches and hosts are configured to do, a line for each setting."""
    lines = [
        f"lab {settings.lab}: settings of switches without OpenFlow, and of hosts",
        "",
        "every switch: strict priority at every port; trust the PCP of a tag; PAUSE, spanning tree, GVRP and",
        f"MVRP off; other traffic has no tag, and VLAN {OTHER_TRAFFIC_VLAN}",
    ]
    for switch in settings.switches:
        lines += ["", f"switch {switch.name} ({switch.profile.title})", *_of_switch(switch)]
    lines += [
        "",
        "hosts: send each flow with its tag, to a static address (neighbour entry), and frames of all flows",
        "in the order in which they are ready",
    ]
    lines += [
        f"  {one.source.name}: flow {one.flow}: VLAN {one.vlan}, PCP {one.pcp} (or DSCP {one.dscp}),"
        f" to {one.destination.mac} ({one.destination.name}, {one.destination.ip.ip})"
        for one in settings.flows
    ]
    if settings.getting_tags:
        lines += ["", f"hosts that get frames with their tags: {', '.join(settings.getting_tags)}"]
    return "\n".join(lines) + "\n"


def _of_switch(switch: SwitchSettings) -> list[str]:
    told = [(pcp, queue) for pcp, queue in sorted(switch.queues.items(), reverse=True)]
    by_pcp = ", ".join(f"{pcp} to queue {queue}" for pcp, queue in told)
    by_dscp = ", ".join(f"{dscp_of(pcp)} to queue {queue}" for pcp, queue in told)
    lines = [
        f"  queues 0 (lowest) to {switch.queue_count - 1}",
        f"  PCP {by_pcp}; all others to queue 0",
        f"  DSCP {by_dscp}; all others to queue 0; only if the switch tells flows by DSCP",
    ]
    for vlan in switch.vlans:
        ports = ", ".join(map(str, vlan.inputs))
        leaves = "tagged" if vlan.is_tagged else "untagged"
        hosts = ", ".join(f"{host.mac} ({host.name})" for host in vlan.destinations)
        lines.append(
            f"  VLAN {vlan.vlan}: in by port {ports} (tagged), out by port {vlan.output} ({leaves}), with"
            f" static address {hosts}"
        )
    if switch.without_others:
        ports = ", ".join(map(str, switch.without_others))
        lines.append(f"  VLAN {OTHER_TRAFFIC_VLAN}: not at port {ports}, which would close a loop")
    return lines
