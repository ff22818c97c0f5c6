"""Network cards of this machine in a live lab, cabled to real boards.

A card is moved into the lab's tree and comes back by itself when the tree ends: the kernel returns every card
of a network namespace that ends. The MAC address that a host gave it, and switched-off offloads, stay until
the next reboot.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from pathlib import Path

from loko.topology.lab import Backend, Lab
from loko_testbed.instruments.cables import link_flags, set_up
from loko_testbed.instruments.network_namespace import namespace_of
from loko_testbed.instruments.programs import run
from loko_testbed.instruments.timeouts import scaled_timeout
from loko_testbed.simulation.runner import RunError

_NAMESPACE_S = 5.0
_CARRIER_S = 10.0
"""How long to wait for a link: two ends agree on a rate within some seconds."""
_POLL_S = 0.05


def hand_in(lab: Lab, pid: int) -> None:
    """Move a lab's cards into the network namespace of a tree that has just started. Raises `RunError`."""
    cards = _cards(lab)
    if not cards:
        return
    there = {name for _, name in socket.if_nameindex()}
    for card, where in cards.items():
        if card not in there:
            raise RunError(
                f"{where}: this machine has no network card {card}: 'ip -brief link' lists those it has;"
                " another lab may have taken it ('loko lab status')"
            )
    _wait_for_namespace(pid)
    for card, where in cards.items():
        run(["ip", "link", "set", "dev", card, "netns", str(pid)], what=where)


def prepare(lab: Lab) -> None:
    """Set up the cards in the tree: no addresses or offloads, and a link. Raises `RunError`."""
    cards = _cards(lab)
    for card, where in cards.items():
        run(["ip", "address", "flush", "dev", card], what=where)
        set_up(card, what=where)
    for card in cards:
        wait_for_carrier(card)


def wait_for_carrier(card: str, *, prefix: Sequence[str] = ()) -> None:
    """Wait until the card has a link. Raises `RunError`."""
    limit_s = scaled_timeout(_CARRIER_S)
    deadline = time.monotonic() + limit_s
    while "LOWER_UP" not in link_flags(card, prefix=prefix):
        if time.monotonic() > deadline:
            raise RunError(
                f"{card}: no link within {limit_s:g} s: is the board powered, and the cable in both ends?"
            )
        time.sleep(_POLL_S)


def _cards(lab: Lab) -> dict[str, str]:
    """Return every card of the lab, with the place in the lab's file for error messages."""
    return {
        card: f"{lab.cabling or lab.path}: {switch.name}: port {port}"
        for switch in lab.behind(Backend.HARDWARE)
        for port, card in switch.cards.items()
    }


def _wait_for_namespace(pid: int) -> None:
    """Wait until the tree has its network namespace, which its first process makes after its start."""
    here = Path("/proc/self/ns/net").readlink()
    deadline = time.monotonic() + _NAMESPACE_S
    while namespace_of(pid).readlink() == here:
        if time.monotonic() > deadline:
            raise RunError("the lab's network namespace does not appear: see 'loko doctor'")
        time.sleep(_POLL_S)
