"""Taps at the hosts of a lab that is up, as long as it is served: `loko serve LAB --live` runs them.

A packet socket at each host's interface sees what the host sends after its shaper, and what it receives, with
the kernel's time stamps. Frames are recognised by IP identification and the beginning of what they carry.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Final

from loko.document import InputError
from loko.program_options import OneLineParser
from loko.switch_model.flow import Flow
from loko.terminal import tell_error, user_errors_end
from loko.topology.frame import HEADERS_BYTES, frame_of
from loko.topology.lab import Lab, load_lab
from loko_testbed.instruments.network_namespace import namespace_of
from loko_testbed.instruments.packet_tap import PacketTap, packet_socket
from loko_testbed.live.background import BackgroundLab
from loko_testbed.live.capture import BYTE_NS, PREAMBLE_AND_GAP_BYTES
from loko_testbed.live.generator import open_sink
from loko_testbed.live.interfaces import device_of
from loko_testbed.live.shaping import FCS_BYTES
from loko_testbed.live.sidecars.program import report, run_sidecar
from loko_testbed.live.sidecars.senders import ConformingSender, FlowsInPlace, SendSlots, with_source_port
from loko_testbed.live.sidecars.taps import Taps
from loko_testbed.live.slot_source import Outlet, SlotProgram, slot_configuration
from loko_testbed.simulation.runner import RunError
from loko_testbed.simulation.traffic import Sender, TimeTriggered
from loko_testbed.simulation.virtual import SEQUENCE_OFFSET

_REPORT_S: Final = 0.25
_SETTLED_NS: Final = 5_000_000
"""Frames stamped longer ago than this have reached the packet socket."""
_KEPT_BYTES: Final = HEADERS_BYTES + 40
_RECEIVE_BUFFER_BYTES: Final = 8 << 20
_UDP: Final = 17

FiveTuple = tuple[bytes, bytes, bytes]
"""Source address, destination address, and both ports together, as they are on the wire."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A frame at a tap."""

    at_ns: int
    is_sent: bool
    host: str
    line_bytes: int
    key: FiveTuple
    mark: bytes


@dataclass
class _HostTap:
    """The tap at a host."""

    host: str
    tap: PacketTap
    line_free_ns: int = 0
    pending: list[_Seen] = field(default_factory=list)

    @classmethod
    def at(cls, host: str, namespace: Path, interface: str) -> _HostTap:
        """Open the tap of a host. Raises `RunError`."""
        tap = PacketTap(
            interface,
            needs_stamps=False,
            namespace=namespace,
            kept_bytes=_KEPT_BYTES,
            room_bytes=_RECEIVE_BUFFER_BYTES,
        )
        return cls(host, tap)

    def read(self) -> Iterator[_Seen]:
        """Yield the UDP frames that have come."""
        for at_ns, outgoing, data in self.tap.drain():
            if (
                len(data) < HEADERS_BYTES
                or data[12:14] != b"\x08\x00"
                or data[23] != _UDP
                or data[14] != 0x45
            ):
                continue
            yield _Seen(
                at_ns=at_ns,
                is_sent=outgoing,
                host=self.host,
                line_bytes=14 + int.from_bytes(data[16:18], "big") + FCS_BYTES + PREAMBLE_AND_GAP_BYTES,
                key=(data[26:30], data[30:34], data[34:38]),
                mark=data[18:20] + data[38:],
            )


class HostTaps:
    """The taps of all hosts, joined. The hosts' network namespaces are given by their files."""

    def __init__(self, lab: Lab, namespaces: Mapping[str, Path]) -> None:
        """Open the taps. Raises `RunError`."""
        self._lab = lab
        self._taps = {
            host: _HostTap.at(host, namespace, device_of(lab.hosts[host], lab))
            for host, namespace in namespaces.items()
        }
        self._joined = Taps()
        self._flows: dict[FiveTuple, tuple[Flow, bool]] = {}
        """By what their frames carry: the flows, and whether these are second copies."""

    def set_flows(self, in_place: FlowsInPlace) -> None:
        """Watch these flows from now on, with all their copies."""
        self._flows = {
            self._key(flow._replace(udp_source=udp_source)): (flow, udp_source != flow.udp_source)
            for flow in in_place.flows
            for udp_source in in_place.source_ports(flow)
        }
        self._joined.watch({flow.id for flow in in_place.flows})

    async def run(self) -> None:
        """Report what the taps see until cancelled."""
        while True:
            await asyncio.sleep(_REPORT_S)
            settled_ns = time.time_ns() - _SETTLED_NS
            seen: list[_Seen] = []
            for tap in self._taps.values():
                tap.pending += tap.read()
                seen += [sighting for sighting in tap.pending if sighting.at_ns <= settled_ns]
                tap.pending = [sighting for sighting in tap.pending if sighting.at_ns > settled_ns]
            for sighting in sorted(seen, key=attrgetter("at_ns")):
                self._take(sighting)
            missed = sum(tap.tap.missed() for tap in self._taps.values())
            if missed:  # they must not count as lost
                print(f"the taps missed {missed} frames: the machine is too busy", file=sys.stderr)
                self._joined.purge()
            report(list(self._joined.observations(settled_ns)))

    def _take(self, sighting: _Seen) -> None:
        at_ns = sighting.at_ns
        if sighting.is_sent:  # a veth has no line rate: when a real line would have begun the frame
            tap = self._taps[sighting.host]
            at_ns = max(at_ns, tap.line_free_ns)
            tap.line_free_ns = at_ns + sighting.line_bytes * BYTE_NS
        known = self._flows.get(sighting.key)
        if known is None:
            return
        flow, is_second = known
        if sighting.is_sent and flow.source == sighting.host:
            self._joined.sent(flow.id, sighting.mark, at_ns, is_second=is_second)
        elif not sighting.is_sent and flow.destination == sighting.host:
            self._joined.received(flow.id, sighting.mark, at_ns, is_second=is_second)

    def _key(self, flow: Flow) -> FiveTuple:
        hosts = self._lab.hosts
        ports = struct.pack("!HH", flow.udp_source, flow.udp_destination)
        return hosts[flow.source].ip.packed, hosts[flow.destination].ip.packed, ports


class SlotSenders:
    """Sends the flows that have slots, by the wall clock: one source for all hosts."""

    def __init__(self, lab: Lab, namespaces: Mapping[str, Path], folder: Path) -> None:
        """`folder` is for the configuration of the source."""
        self._lab, self._namespaces, self._folder = lab, namespaces, folder
        self._sending: Sequence[tuple[Flow, SendSlots]] = ()
        self._program: SlotProgram | None = None

    def set_flows(self, wanted: Sequence[tuple[Flow, SendSlots]]) -> None:
        """Let these flows send from now on, and no others. This restarts the source, which takes 0.2 s."""
        if wanted == self._sending:
            return
        self.end()
        self._sending = wanted
        if wanted:
            file = self._folder / "slots.toml"
            file.write_text(self._source(wanted), encoding="utf-8")
            self._program = SlotProgram(file, is_heard=False)

    def end(self) -> None:
        """No flow sends any more."""
        if self._program is not None:
            self._program.end()
            self._program = None

    def _source(self, wanted: Sequence[tuple[Flow, SendSlots]]) -> str:
        traffic = [
            Sender.of(
                number, flow, TimeTriggered(offset_ns=send_slot.offset_ns, period_ns=send_slot.period_ns)
            )
            for number, (flow, send_slot) in enumerate(wanted)
        ]
        outlets = {
            host: Outlet(device_of(self._lab.hosts[host], self._lab), namespace)
            for host, namespace in self._namespaces.items()
        }
        return slot_configuration(self._lab, traffic, outlets)


class HostSenders:
    """Sends the worst conforming traffic of the flows from their hosts."""

    def __init__(self, lab: Lab, namespaces: Mapping[str, Path], folder: Path) -> None:
        """`folder` is for the configuration of a source."""
        self._lab = lab
        self._namespaces = namespaces
        self._slots = SlotSenders(lab, namespaces, folder)
        self._in_place = FlowsInPlace([])
        self._running: dict[str, tuple[Flow, asyncio.Task[None]]] = {}
        self._sinks: dict[tuple[str, int], socket.socket] = {}
        self._number = 0

    def set_flows(self, in_place: FlowsInPlace) -> None:
        """Let these flows send from now on, and no others."""
        self._in_place = in_place
        flows, send_slots, _ = in_place
        slotted = [(flow, send_slots[flow.id]) for flow in flows if flow.id in send_slots]
        for flow, _ in slotted:
            self._sink(flow.destination, flow.udp_destination)
        self._slots.set_flows(slotted)
        wanted = {flow.id: flow for flow in flows if flow.id not in send_slots}
        for name, (flow, task) in list(self._running.items()):
            if wanted.get(name) != flow:
                task.cancel()
                del self._running[name]
        for name, flow in wanted.items():
            if name not in self._running:
                self._number += 1
                self._running[name] = (flow, asyncio.create_task(self._send(flow, self._number)))

    async def _send(self, flow: Flow, number: int) -> None:
        """Send whole frames, not datagrams: other flows, or a sink, may have the same UDP port here."""
        with contextlib.ExitStack() as open_:
            self._sink(flow.destination, flow.udp_destination)
            device = device_of(self._lab.hosts[flow.source], self._lab)
            here = open_.enter_context(packet_socket(device, 0, namespace=self._namespaces[flow.source]))
            sender = ConformingSender(
                flow,
                frame_of(self._lab, flow),
                number=number,
                sequence_offset=SEQUENCE_OFFSET,
                now_ns=time.monotonic_ns(),
            )
            while True:
                now_ns = time.monotonic_ns()
                if now_ns < sender.next_ns:
                    await asyncio.sleep((sender.next_ns - now_ns) / 1e9)
                    continue
                frame = sender.begin(now_ns)[1]
                for udp_source in self._in_place.source_ports(flow):
                    with contextlib.suppress(OSError):  # its cable may be pulled, and come back
                        here.send(with_source_port(frame, udp_source))

    def end(self) -> None:
        """No flow sends any more."""
        self._slots.end()

    def _sink(self, host: str, port: int) -> None:
        """Open a socket that takes the frames, unless one exists, or another program has the port."""
        machine = self._lab.hosts[host].machine
        if (machine, port) not in self._sinks:
            with contextlib.suppress(OSError):
                self._sinks[machine, port] = open_sink(self._namespaces[host], port)


async def _run(lab: Lab, namespaces: Mapping[str, Path], *, traffic: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        watch, senders = HostTaps(lab, namespaces), HostSenders(lab, namespaces, Path(folder))

        def hear(in_place: FlowsInPlace) -> None:
            watch.set_flows(in_place)
            if traffic:
                senders.set_flows(in_place)

        try:
            await run_sidecar(watch.run(), hear)
        finally:
            senders.end()


def main() -> int:
    """Watch the flows that the standard input names, until it is closed. Return the exit status."""
    parser = OneLineParser(description="Watch the flows that the standard input names, until it is closed.")
    parser.add_argument("lab", help="Name or path of a lab that is up.")
    parser.add_argument("--traffic", action="store_true", help="Let the hosts send, too.")
    chosen = parser.parse_args()
    network = load_lab(chosen.lab)
    running = BackgroundLab.find(network.name)
    if running is None:
        raise InputError(f"lab {network.name} is not up: start it with 'loko lab up'")
    shells = {line.what.removeprefix("shell of "): line.pid for line in running.processes()}
    try:
        missing = [name for name in network.machines if name not in shells]
        if missing:
            raise RunError(f"lab {network.name}: no shell of {', '.join(missing)}")
        namespaces = {name: namespace_of(shells[host.machine]) for name, host in network.hosts.items()}
        asyncio.run(_run(network, namespaces, traffic=chosen.traffic))
    except RunError as error:
        tell_error(error)
        return 1
    return 0


if __name__ == "__main__":
    with user_errors_end(), contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
