"""Compares a switch's wiring with its inventory: what was observed, and one line that says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.measure.bench.inventory import ControllerPort, InventoryPort


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """The wiring that the inventory describes."""

    ports: Mapping[int, InventoryPort]
    controller: ControllerPort
    datapath_id: int | None
    """None accepts any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Fates of a few probes. Port numbers are the inventory's, except where they are the switch's."""

    datapath_id: int | None = None
    """Datapath id of the switch that connected; None if none did."""
    control_tap_saw: bool = False
    """Whether the tap on the controller's link saw the messages of controller and switch."""
    arrived_at: Mapping[int, int | None]
    """By port: the port of the switch at which frames from its interface arrived; None if at none."""
    came_out_at: Mapping[int, Set[int]]
    """By port of the switch: the ports at whose interfaces the frames that it sent there appeared."""
    taps_at_entrance: Set[int]
    """Ports whose taps saw the frames sent to port 1."""
    taps_at_exit: Set[int]
    """Ports whose taps saw the frames sent by port 2."""


NOTHING = Observations(
    arrived_at={IN_PORT: None, OUT_PORT: None},
    came_out_at={IN_PORT: frozenset(), OUT_PORT: frozenset()},
    taps_at_entrance=frozenset(),
    taps_at_exit=frozenset(),
)
"""The observations with every cable cut."""


def diagnose(wiring: Wiring, seen: Observations) -> str | None:
    """Return, in one line, the first thing that is wrong and how to mend it; None if nothing is."""
    for examine in (_connection, _exchanged_ports, _cables, _taps):
        if problem := examine(wiring, seen):
            return problem
    return None


def _connection(wiring: Wiring, seen: Observations) -> str | None:
    controller = wiring.controller
    if seen.datapath_id is None:
        return (
            f"no controller connection: no switch connects to {controller.listen}; check the cable of"
            f" {controller.interface} and the controller that the switch is set to"
        )
    if wiring.datapath_id not in (None, seen.datapath_id):
        return (
            f"wrong switch: the one that connects has datapath id {seen.datapath_id:016x}, the inventory says"
            f" {wiring.datapath_id:016x}; correct one of them"
        )
    if not seen.control_tap_saw:
        return (
            f"missing tap: {controller.tap_interface} sees nothing of the controller's connection; put it on"
            f" the link of {controller.interface}"
        )
    return None


def _exchanged_ports(wiring: Wiring, seen: Observations) -> str | None:
    first, second = (wiring.ports[port].interface for port in (IN_PORT, OUT_PORT))
    exchanged = {IN_PORT: OUT_PORT, OUT_PORT: IN_PORT}
    if any(seen.arrived_at[port] == exchanged[port] for port in exchanged) or any(
        exchanged[port] in seen.came_out_at[port] for port in exchanged
    ):
        return (
            f"swapped ports: {first} is connected with port {OUT_PORT} or {second} with port {IN_PORT};"
            f" exchange the cables, or the interfaces in the inventory"
        )
    for port, arrived in seen.arrived_at.items():
        if arrived not in (None, port):
            name = wiring.ports[port].interface
            return f"wrong port: {name} is connected with port {arrived}; put its cable into port {port}"
    return None


def _cables(wiring: Wiring, seen: Observations) -> str | None:
    for port, end in wiring.ports.items():
        to_switch, from_switch = seen.arrived_at[port] == port, port in seen.came_out_at[port]
        if to_switch and from_switch:
            continue
        if not to_switch and not from_switch:
            return f"no link: {end.interface} and port {port} exchange nothing; check their cable"
        there, not_back = (end.interface, f"port {port}") if to_switch else (f"port {port}", end.interface)
        return (
            f"one-way link: frames get from {there} to {not_back} but not back; check the cable of"
            f" port {port} and what is in it"
        )
    return None


def _taps(wiring: Wiring, seen: Observations) -> str | None:
    entrance, way_out = wiring.ports[IN_PORT], wiring.ports[OUT_PORT]
    if OUT_PORT in seen.taps_at_entrance and IN_PORT in seen.taps_at_exit:
        return (
            f"swapped taps: {entrance.tap_interface} sees what leaves port {OUT_PORT},"
            f" {way_out.tap_interface} what goes to port {IN_PORT}; exchange them"
        )
    if IN_PORT not in seen.taps_at_entrance:
        return (
            f"missing tap: {entrance.tap_interface} sees nothing of what {entrance.interface} sends to port"
            f" {IN_PORT}; put it into that cable"
        )
    if OUT_PORT not in seen.taps_at_exit:
        return (
            f"missing tap: {way_out.tap_interface} sees nothing of what port {OUT_PORT} sends to"
            f" {way_out.interface}; put it into that cable"
        )
    return None
