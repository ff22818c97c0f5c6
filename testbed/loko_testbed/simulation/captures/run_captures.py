"""Captures of a run in virtual time: a file for each switch and host, with an interface for each port."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Final

from loko.document import InputError
from loko.topology.lab import Lab
from loko_testbed.simulation.captures.capture_folder import empty_folder
from loko_testbed.simulation.captures.control_stream import ControlStream, Payload
from loko_testbed.simulation.captures.flow_comments import KnownFlows, KnownPacket
from loko_testbed.simulation.captures.pcapng import CapturedPacket, write_pcapng
from loko_testbed.simulation.captures.places import place_of_port, place_of_session, quirks_of
from loko_testbed.simulation.captures.quirk_comments import (
    frame_of,
    is_of_frame,
    names_a_quirk,
    session_comments,
)
from loko_testbed.simulation.virtual import BoardEvent, CapturedRun, PoweredLab

_CONTROLLER_MAC: Final = bytes.fromhex("0200000000fe")
_CONTROLLER: Final = ipaddress.IPv4Address("10.0.1.8")
_BOARD: Final = ipaddress.IPv4Address("10.0.1.99")
"""Addresses of controller and first board in the control network, as from the factory."""

_Packets = dict[str, dict[str, list[CapturedPacket]]]
"""Packets by node and interface."""


class RunCaptures:
    """Writes the captures of runs of the same flows, each into a folder of its own."""

    def __init__(self, folder: Path, lab: Lab, flows: KnownFlows) -> None:
        """Prepare a folder. Raises `InputError` if it has something already, or cannot be made."""
        self._folder, self._lab, self._flows, self._runs = folder, lab, flows, 0
        empty_folder(folder)

    def write(self, powered: PoweredLab) -> None:
        """Write what was captured of the next run. Raises `InputError` if it cannot be written."""
        self._runs += 1
        write_run(self._folder / f"run-{self._runs}", self._lab, self._flows, powered.captured())


def write_run(folder: Path, lab: Lab, flows: KnownFlows, captured: CapturedRun) -> None:
    """Write what was captured of a run into a new folder. Raises `InputError` if it cannot be written."""
    packets = _packets(lab, flows, captured)
    events = [event for event in captured.events if names_a_quirk(event)]
    sessions = {name: [Payload(*segment) for segment in segments] for name, segments in captured.segments}
    for name in lab.switches:
        of_board = [event for event in events if event.board == name]
        of_session = [event for event in of_board if sessions.get(name) and not is_of_frame(event)]
        _comment_frames(packets.get(name, {}), [event for event in of_board if event not in of_session])
        if session := sessions.get(name):
            place = place_of_session(name)
            packets.setdefault(place.file, {})[place.interface] = _session(lab, name, session, of_session)
    try:
        folder.mkdir(parents=True)
        for node in (*lab.switches, *lab.machines, *packets):
            if node in packets:
                _write(folder / f"{node}.pcapng", packets.pop(node))
    except OSError as error:
        raise InputError(f"--pcap {folder}: cannot be written: {error.strerror}") from None


def _packets(lab: Lab, flows: KnownFlows, captured: CapturedRun) -> _Packets:
    """Return what passed the cables."""
    packets: _Packets = {}
    left_ns: dict[KnownPacket, int] = {}
    for sent_ns, received_ns, source, destination, data in captured.frames:
        packet = flows.packet_of(data)
        comment = arrival = ""
        if packet is not None:
            began_ns = left_ns.setdefault(packet, sent_ns)
            comment = arrival = packet.flow.comment(packet.sequence)
            if destination[0] == packet.flow.destination:
                arrival = packet.flow.arrival(packet.sequence, received_ns - began_ns)
        for end, at_ns, is_outbound, said in (
            (source, sent_ns, True, comment),
            (destination, received_ns, False, arrival),
        ):
            node, interface = place_of_port(lab, *end)
            packets.setdefault(node, {}).setdefault(interface, []).append(
                CapturedPacket(at_ns, 0, is_outbound, data, said)
            )
    return packets


def _comment_frames(at_ports: Mapping[str, list[CapturedPacket]], events: Iterable[BoardEvent]) -> None:
    """Add what a board reported of frames to the comments of those that it received."""
    received = [
        (packet.at_ns, interface, place)
        for interface, packets in at_ports.items()
        for place, packet in enumerate(packets)
        if not packet.is_outbound
    ]
    received.sort()
    frames = [(at_ns, at_ports[interface][place].data) for at_ns, interface, place in received]
    for event in events:
        number = frame_of(event, frames)
        if number is None:
            continue
        _, interface, place = received[number]
        packet = at_ports[interface][place]
        said = f"{packet.comment}; {event.text}" if packet.comment else event.text
        at_ports[interface][place] = packet._replace(comment=said)


def _session(lab: Lab, name: str, session: list[Payload], events: list[BoardEvent]) -> list[CapturedPacket]:
    """Return a control session that needs no cable as the TCP connection of its switch."""
    switch = lab.switches[name]
    own = switch.config.get("ip_address")
    number = list(lab.switches).index(name)
    stream = ControlStream.of(
        board_mac=(switch.datapath_id & 0xFFFF_FFFF_FFFF).to_bytes(6),
        board_ip=ipaddress.IPv4Address(str(own) if own else int(_BOARD) + number).packed,
        controller_mac=_CONTROLLER_MAC,
        controller_ip=_CONTROLLER.packed,
    )
    comments = session_comments(session, events, quirks_of(switch))
    return [
        CapturedPacket(frame.at_ns, 0, frame.is_from_board, frame.data, comments.get(frame.payload, ""))
        for frame in stream.frames(session)
    ]


def _write(path: Path, by_interface: Mapping[str, Iterable[CapturedPacket]]) -> None:
    interfaces = sorted(by_interface)
    merged = [
        packet._replace(interface=number)
        for number, interface in enumerate(interfaces)
        for packet in by_interface[interface]
    ]
    write_pcapng(path, interfaces, sorted(merged, key=attrgetter("at_ns")))
