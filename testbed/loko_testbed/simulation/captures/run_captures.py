"""Captures of a run in virtual time: a file for each switch and host, with an interface for each port."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from loko.admission import Admitted
from loko.document import InputError
from loko.topology.lab import Lab
from loko.units import NS_PER_MS
from loko_testbed.simulation.captures.control_stream import ControlStream, Payload
from loko_testbed.simulation.captures.pcapng import CapturedPacket, write_pcapng
from loko_testbed.simulation.virtual import SEQUENCE_OFFSET, CapturedRun, PoweredLab

_CONTROLLER_MAC: Final = bytes.fromhex("0200000000fe")
_CONTROLLER: Final = ipaddress.IPv4Address("10.0.1.8")
_BOARD: Final = ipaddress.IPv4Address("10.0.1.99")
"""Addresses of controller and first board in the control network, as from the factory."""
_ADDRESSES: Final = struct.Struct("!4s4sHH")
_ADDRESSES_AT: Final = 26
"""IPv4 addresses and UDP ports follow each other in a frame without tags and options."""
_ETHERTYPE_IPV4: Final = b"\x08\x00"
_IP_WITHOUT_OPTIONS: Final = 0x45
_UDP: Final = 17

_FlowKey = tuple[bytes, bytes, int, int]


class _Identity(NamedTuple):
    """A packet of an admitted flow."""

    admitted: Admitted
    sequence: int


class RunCaptures:
    """Writes the captures of runs of an admitted set, each into a folder of its own."""

    def __init__(self, folder: Path, lab: Lab, admitted: Sequence[Admitted]) -> None:
        """Prepare a folder. Raises `InputError` if it has something already, or cannot be made."""
        self._folder, self._lab, self._runs = folder, lab, 0
        self._flows: Mapping[_FlowKey, Admitted] = {
            (
                lab.hosts[accepted.flow.source].ip.packed,
                lab.hosts[accepted.flow.destination].ip.packed,
                accepted.flow.udp_source,
                accepted.flow.udp_destination,
            ): accepted
            for accepted in admitted
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise InputError(f"--pcap {folder}: has files already; choose a new or empty folder")
        except OSError as error:
            raise InputError(f"--pcap {folder}: cannot be used: {error.strerror}") from None

    def write(self, powered: PoweredLab) -> None:
        """Write what was captured of the next run. Raises `InputError` if it cannot be written."""
        self._runs += 1
        folder = self._folder / f"run-{self._runs}"
        captured = powered.captured()
        packets = self._packets(captured)
        self._add_control(captured, packets)
        try:
            folder.mkdir()
            for node in (*self._lab.switches, *self._lab.machines, *packets):
                if node in packets:
                    _write(folder / f"{node}.pcapng", packets.pop(node))
        except OSError as error:
            raise InputError(f"--pcap {folder}: cannot be written: {error.strerror}") from None

    def _packets(self, captured: CapturedRun) -> dict[str, dict[str, list[CapturedPacket]]]:
        """Return the packets by node and interface."""
        packets: dict[str, dict[str, list[CapturedPacket]]] = {}
        left_ns: dict[tuple[str, int], int] = {}
        for sent_ns, received_ns, source, destination, data in captured.frames:
            identity = self._identity(data)
            comment = arrival = ""
            if identity is not None:
                admitted, sequence = identity
                began_ns = left_ns.setdefault((admitted.flow.id, sequence), sent_ns)
                comment = arrival = (
                    f"flow {admitted.flow.id}, packet {sequence}, guarantee {_ms(admitted.guarantee_ns)} ms"
                )
                if destination[0] == admitted.flow.destination:
                    delay_ns = received_ns - began_ns
                    late = ", LATE" if delay_ns > admitted.guarantee_ns else ""
                    arrival = f"{comment}, arrived after {_ms(delay_ns)} ms{late}"
            for end, at_ns, is_outbound, said in (
                (source, sent_ns, True, comment),
                (destination, received_ns, False, arrival),
            ):
                node, interface = self._place(*end)
                packets.setdefault(node, {}).setdefault(interface, []).append(
                    CapturedPacket(at_ns, 0, is_outbound, data, said)
                )
        return packets

    def _place(self, node: str, port: int) -> tuple[str, str]:
        """Return the file and the interface of an end of a cable."""
        host = self._lab.hosts.get(node)
        return (node, f"{node}:{port}") if host is None else (host.machine, host.device)

    def _identity(self, frame: bytes) -> _Identity | None:
        """Return which packet of the admitted flows a frame is, if it is one."""
        if (
            len(frame) < SEQUENCE_OFFSET + 4
            or frame[12:14] != _ETHERTYPE_IPV4
            or frame[14] != _IP_WITHOUT_OPTIONS
            or frame[23] != _UDP
        ):
            return None
        admitted = self._flows.get(_ADDRESSES.unpack_from(frame, _ADDRESSES_AT))
        if admitted is None:
            return None
        return _Identity(admitted, int.from_bytes(frame[SEQUENCE_OFFSET : SEQUENCE_OFFSET + 4]))

    def _add_control(
        self, captured: CapturedRun, packets: dict[str, dict[str, list[CapturedPacket]]]
    ) -> None:
        """Add the control sessions that need no cable, each as a TCP connection of its switch."""
        for number, (name, segments) in enumerate(captured.segments):
            switch = self._lab.switches[name]
            own = switch.config.get("ip_address")
            stream = ControlStream.of(
                board_mac=(switch.datapath_id & 0xFFFF_FFFF_FFFF).to_bytes(6),
                board_ip=ipaddress.IPv4Address(str(own) if own else int(_BOARD) + number).packed,
                controller_mac=_CONTROLLER_MAC,
                controller_ip=_CONTROLLER.packed,
            )
            frames = stream.frames([Payload(*segment) for segment in segments])
            if session := [
                CapturedPacket(frame.at_ns, 0, frame.is_from_board, frame.data, "") for frame in frames
            ]:
                packets.setdefault(name, {})[f"{name}:openflow"] = session


def _write(path: Path, by_interface: Mapping[str, Iterable[CapturedPacket]]) -> None:
    interfaces = sorted(by_interface)
    merged = [
        packet._replace(interface=number)
        for number, interface in enumerate(interfaces)
        for packet in by_interface[interface]
    ]
    write_pcapng(path, interfaces, sorted(merged, key=lambda packet: packet.at_ns))


def _ms(value_ns: float) -> str:
    return f"{value_ns / NS_PER_MS:.6f}"
