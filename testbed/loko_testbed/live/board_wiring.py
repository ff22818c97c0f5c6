"""Checks, before a lab with real boards starts, which boards there are and whether cables are as stated."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing, suppress
from typing import Final

from os_ken.ofproto import ofproto_parser
from os_ken.ofproto import ofproto_v1_0 as of

from loko.control.address import Address
from loko.control.messages import barrier_request, description_request
from loko.control.os_ken_messages import PROTOCOL
from loko.topology.lab import Backend, Lab, Switch
from loko_testbed.instruments.cable_probe import arrival, let_out, probes, refuse_unless_broken
from loko_testbed.instruments.controller_endpoint import ControllerEndpoint
from loko_testbed.instruments.packet_tap import PacketTap
from loko_testbed.live.real_boards import connect_s, silence
from loko_testbed.simulation.runner import RunError

_DESCRIPTION_S: Final = 5.0
_BARRIERS: Final = 8


def self_test_of_boards(lab: Lab, controller: str) -> dict[str, dict[str, str]]:
    """Send probes along every cable of every real board, in place of the controller. Raises `RunError`.

    Returns what the boards say of themselves (`loko_testbed.simulation.runner.RunRecords.real_boards`).

    The cards are in the current network namespace, and nobody listens at the controller's address yet. A
    board in fail state secure has an empty table when it has just connected, so it reports every frame to the
    controller.
    """
    waiting = {switch.datapath_id: switch for switch in lab.behind(Backend.HARDWARE)}
    found_boards: dict[str, dict[str, str]] = {}
    sessions: Counter[int] = Counter()
    if not waiting:
        return found_boards
    deadline = time.monotonic() + connect_s()
    with closing(ControllerEndpoint(*Address.parse(controller, "controller"))) as endpoint:
        while waiting:
            connected = endpoint.accept(max(deadline - time.monotonic(), 0))
            if connected is None:
                names = ", ".join(switch.name for switch in waiting.values())
                raise RunError(silence(names, controller))
            if connected in waiting:
                switch = waiting[connected]
                sessions[connected] += 1
                try:
                    found_boards[switch.name] = _examine(switch, lab, endpoint)
                    del waiting[connected]
                except RunError as error:
                    refuse_unless_broken(endpoint, switch.name, error, sessions[connected])
                    deadline = time.monotonic() + connect_s()
            elif connected not in {switch.datapath_id for switch in lab.switches.values()}:
                raise RunError(
                    f"{lab.path}: a switch with datapath id {connected:016x} connects, which is not in the"
                    " lab: unplug it, or correct datapath_id and the board's MAC address"
                )
    return found_boards


def _examine(switch: Switch, lab: Lab, endpoint: ControllerEndpoint) -> dict[str, str]:
    # Before its TCP has sent some segments, a board that tells of several frames at once breaks its session
    # (docs/quirks.md, 14 and 15).
    for number in range(_BARRIERS):
        endpoint.ask(barrier_request(number), of.OFPT_BARRIER_REPLY)
    described = _describe(switch, endpoint)
    for port, card in switch.cards.items():
        if port == lab.control_port:
            continue
        where = f"{lab.cabling or lab.path}: {switch.name}: port {port} and {card}"
        arrived = arrival(endpoint, card)
        with PacketTap(card) as tap:
            let_out(endpoint, port)
            came_out = probes(tap.read())
        if arrived not in (None, port):
            raise RunError(f"{where}: the cable of {card} is in port {arrived}: exchange cables, or names")
        if arrived is None and not came_out:
            raise RunError(f"{where}: exchange nothing: check their cable")
        if arrived is None or not came_out:
            way = "the board to the card" if arrived is None else "the card to the board"
            raise RunError(f"{where}: frames pass from {way} only: check the cable and what is in it")
    return described


def _describe(switch: Switch, endpoint: ControllerEndpoint) -> dict[str, str]:
    """Return a board's MAC address and, if it answers, what it says in its OpenFlow description."""
    described = {"mac": switch.datapath_id.to_bytes(6, "big").hex(":")}
    with suppress(RunError):  # another firmware may not answer; the cables are what matters
        reply = endpoint.ask(description_request(_BARRIERS), of.OFPT_STATS_REPLY, timeout_s=_DESCRIPTION_S)
        message = ofproto_parser.msg(PROTOCOL, *ofproto_parser.header(reply), reply)
        if message is None:  # no such description
            return described
        told = message.body
        parts = {"hardware": told.hw_desc, "firmware": told.sw_desc, "serial": told.serial_num}
        described |= {what: part.decode("ascii", "replace") for what, part in parts.items()}
    return described
