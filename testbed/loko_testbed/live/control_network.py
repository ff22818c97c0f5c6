"""The network between the controller and the boards' control ports, if the boards connect by themselves.

A Linux bridge has the controller's address; a veth pair leads from it to each board's control port. So a
controller that was set up for boards needs no change for the emulated ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from loko.topology.lab import Backend, Endpoint, Lab
from loko_testbed.instruments.cables import add_cable
from loko_testbed.instruments.programs import run, run_json
from loko_testbed.live.cards import wait_for_carrier
from loko_testbed.live.lab_capture.capture_request import CableTap
from loko_testbed.live.network import interface, refuse_difference
from loko_testbed.simulation.captures.places import CONTROLLER

BRIDGE = "control"


class ControlNetwork:
    """The bridge and its cables, in the current network namespace."""

    def __init__(self, lab: Lab) -> None:
        """Build and verify the network, unless the emulator keeps the sessions. Raises `RunError`."""
        self.lab = lab
        self._cables: dict[str, tuple[str, str]] = {}
        self._cards = [switch.cards[lab.control_port] for switch in lab.behind(Backend.HARDWARE)]
        if lab.controller is None:
            return
        # Neither spanning tree nor snooping: the bridge sends nothing of its own accord.
        kind = ["type", "bridge", "stp_state", "0", "mcast_snooping", "0"]
        _ip("link", "add", "name", BRIDGE, *kind)
        _ip("address", "add", str(lab.controller), "dev", BRIDGE)
        _ip("link", "set", "dev", BRIDGE, "up")
        for switch in lab.behind(Backend.FIRMWARE):
            self._cables[switch.name] = self._cable(switch.name)
        for card in self._cards:
            _ip("link", "set", "dev", card, "master", BRIDGE)
        self.verify()

    def ports(self, switch: str) -> Mapping[int, str]:
        """Return the interface at a switch's control port, by port number; empty if it has none here."""
        return {self.lab.control_port: self._cables[switch][0]} if switch in self._cables else {}

    def cable_taps(self) -> Iterator[CableTap]:
        """Yield for each cable its two ends, where what comes through it can be captured."""
        for number, name in enumerate(self.lab.switches, start=1):
            if name in self._cables:
                switch = Endpoint(node=name, port=self.lab.control_port)
                controller = Endpoint(node=CONTROLLER, port=number)
                board, plug = self._cables[name]
                yield CableTap(interface=board, namespace=None, source=controller, destination=switch)
                yield CableTap(interface=plug, namespace=None, source=switch, destination=controller)

    def wait_for_cards(self) -> None:
        """Wait until every network card has a link. Raises `RunError`."""
        for card in self._cards:
            wait_for_carrier(card)

    def verify(self) -> None:
        """Compare the network with the lab file. Raises `RunError` at the first difference."""
        if self.lab.controller is None:
            return
        for name in [BRIDGE, *itertools.chain.from_iterable(self._cables.values()), *self._cards]:
            where = f"control network: {name}"
            shown = run_json(["ip", "-json", "address", "show", "dev", name], what=where)[0]
            refuse_difference(where, "state UP", "UP", "UP" if "LOWER_UP" in shown["flags"] else "DOWN")
            addresses = [f"{entry['local']}/{entry['prefixlen']}" for entry in shown["addr_info"]]
            expected = [str(self.lab.controller)] if name == BRIDGE else []
            refuse_difference(where, "addresses", expected, addresses)

    def _cable(self, switch: str) -> tuple[str, str]:
        board = interface(Endpoint(node=switch, port=self.lab.control_port), self.lab)
        plug = f"ctl-{switch}"
        add_cable(board, plug, what="control network")
        _ip("link", "set", "dev", plug, "master", BRIDGE)
        return board, plug


def _ip(*arguments: str) -> None:
    run(["ip", *arguments], what="control network")
