"""The access list of a lab's OpenFlow port."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from loko.control.access import AccessList, Network, SwitchAccess
from loko.topology.lab import Backend, Lab, Switch


def access_list(lab: Lab, *, listen: str | None) -> AccessList:
    """Return from where the switches of a lab may connect to an address at which is listened.

    That is what the lab's file says (`addresses`). Without it, a real board may connect from its `ip_address`
    only; any other switch also from this machine, where it is emulated; and if it has no `ip_address` either,
    from anywhere. If `listen` is None, the network is a live lab's own, in which are only its switches: then
    all that are not real may connect from anywhere.
    """
    return AccessList(
        {
            switch.datapath_id: SwitchAccess(
                name=switch.name,
                networks=_networks(switch, listen),
                is_local=switch.addresses is None and switch.backend is not Backend.HARDWARE,
                certificate=switch.certificate,
            )
            for switch in lab.switches.values()
        }
    )


def _networks(switch: Switch, listen: str | None) -> tuple[Network, ...] | None:
    if switch.addresses is not None:
        return switch.addresses
    own = switch.config.get("ip_address")
    if switch.backend is not Backend.HARDWARE and listen is None:
        return None
    if own is None:
        return () if listen is not None and is_loopback(listen) else None
    return (ip_network(str(own)),)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address at which is listened."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
