"""The program that captures a live lab: ``python -m loko_testbed.live.lab_capture.program REQUEST READY``.

It runs in the lab's tree, beside the switches, and ends with it. What the taps see is in the files some 0.2 s
later, in whole blocks, so that these can be read at any time, however the lab ends.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Final

from loko.program_options import OneLineParser
from loko.terminal import tell_error, user_errors_end
from loko.topology.lab import Lab
from loko_testbed.instruments.packet_tap import PacketTap, TappedFrame
from loko_testbed.live.lab_capture.capture_request import CableTap, CaptureRequest
from loko_testbed.live.lab_capture.held_frames import NO_SWITCH, HeldFrames
from loko_testbed.simulation.captures.flow_comments import KnownFlows
from loko_testbed.simulation.captures.pcapng import CapturedPacket, PcapngFile
from loko_testbed.simulation.captures.places import CapturePlace, place_of_port, place_of_session
from loko_testbed.simulation.runner import RunError
from loko_testbed.simulation.virtual import BoardEvent

_PAUSE_S: Final = 0.02
_KEPT_BYTES: Final = 66_000
"""More than the longest frame, also on a loopback interface."""
_MOST_FRAMES: Final = 10_000
"""Read from a tap before any are written: a flood must not keep the program from writing."""
_LOOPBACK: Final = "lo"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class LabFiles:
    """The files of a lab: one for each node at which anything was captured."""

    def __init__(self, folder: Path, limit_bytes: int, places: Iterator[CapturePlace]) -> None:
        """`places` are all that there can be. `limit_bytes` is the limit of all files together."""
        self._folder, self._left = folder, limit_bytes
        self._limit_bytes = limit_bytes
        self._interfaces: dict[str, list[str]] = {}
        self._numbers: dict[CapturePlace, int] = {}
        for place in sorted(set(places)):
            interfaces = self._interfaces.setdefault(place.file, [])
            self._numbers[place] = len(interfaces)
            interfaces.append(place.interface)
        self._files: dict[str, PcapngFile] = {}

    def write(self, captured: Iterator[tuple[CapturePlace, CapturedPacket]]) -> None:
        """Append packets. Raises `RunError` if the disk refuses them, or if they reach the limit.

        A frame that passed a cable is in the files of both ends, also at the limit.
        """
        by_file: dict[str, list[CapturedPacket]] = {}
        for place, packet in captured:
            by_file.setdefault(place.file, []).append(packet._replace(interface=self._numbers[place]))
        for name, packets in by_file.items():
            self._append(name, packets)
        if self._left < 0:
            raise RunError(
                f"--pcap-limit: the files in {self._folder} have reached {self._limit_bytes / 1e6:,.0f} MB"
            )

    def close(self) -> None:
        """Write nothing more."""
        for file in self._files.values():
            file.close()

    def _append(self, name: str, packets: list[CapturedPacket]) -> None:
        path = self._folder / f"{name}.pcapng"
        try:
            if name not in self._files:
                self._files[name] = PcapngFile(path, self._interfaces[name])
            self._left -= self._files[name].append(packets)
        except OSError as error:
            raise RunError(f"--pcap {path}: cannot be written: {error.strerror}") from None


class EmulatorLogs:
    """Reader of the events of boards that their emulators have logged since the last look."""

    def __init__(self, folder: Path) -> None:
        """The logs are ``boards.log`` in folders of this one; they may be made later."""
        self._folder = folder
        self._read: dict[Path, int] = {}

    def events(self) -> Iterator[BoardEvent]:
        """Yield the events in new whole lines."""
        for path in sorted(self._folder.glob("*/boards.log")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                lines, newline, _ = file.read().rpartition(b"\n")
            self._read[path] = self._read.get(path, 0) + len(lines) + len(newline)
            for line in lines.decode(errors="replace").splitlines():
                with contextlib.suppress(ValueError):  # no line of the emulator's own
                    yield _event(line)


def _event(line: str) -> BoardEvent:
    """Read a line of an emulator's log. Raises `ValueError`."""
    when, board, text = line.split(" ", 2)
    since = datetime.fromisoformat(when) - _EPOCH
    return BoardEvent(since // timedelta(microseconds=1) * 1_000, board.removesuffix(":"), text)


class LabCapture:
    """The taps of a lab, and its files."""

    def __init__(self, request: CaptureRequest) -> None:
        """Open the taps. Raises `RunError`."""
        lab = request.lab
        self._request = request
        self._taps: list[tuple[PacketTap, CableTap | None]] = [
            (_tap(cable.interface, cable.namespace), cable) for cable in request.taps
        ]
        if lab.controller is None:
            self._taps.append((_tap(_LOOPBACK, None), None))
        self._held = HeldFrames(lab)
        self._held.flows = KnownFlows.guaranteed(lab, ((flow, None) for flow in request.flows))
        self._awaits_guarantees = bool(request.flows)
        self._logs = EmulatorLogs(request.log_folder)
        self._files = LabFiles(request.folder.path, request.folder.limit_bytes, _places(lab, request.taps))

    def look(self) -> int:
        """Read taps and logs, and write what need not be held any longer. Raises `RunError`.

        Returns up to when everything has been read.
        """
        self._look_for_guarantees()
        read_ns = time.time_ns()
        for tap, cable in self._taps:
            frames = tap.drain(most=_MOST_FRAMES)
            self._hold(frames, cable)
            if missed := tap.missed():
                self._held.missed(None if cable is None else cable.destination, missed)
            if len(frames) == _MOST_FRAMES:  # there may be more
                read_ns = min(read_ns, frames[-1].at_ns)
        for event in self._logs.events():
            self._held.reported(event)
        self._files.write(self._held.release(read_ns))
        return read_ns

    def end(self) -> None:
        """Write all that has passed until now. Raises `RunError`."""
        now_ns = time.time_ns()
        while self.look() < now_ns:
            pass
        self._files.write(self._held.release())
        self._files.close()

    def _hold(self, frames: Iterable[TappedFrame], cable: CableTap | None) -> None:
        for at_ns, _, data in frames:
            if cable is None:
                self._held.passed_loopback(at_ns, data)
            else:
                self._held.passed(at_ns, cable.source, cable.destination, data)

    def _look_for_guarantees(self) -> None:
        if self._awaits_guarantees and self._request.controller_ready.exists():
            promised: Mapping[str, float] = json.loads(self._request.controller_ready.read_bytes())[
                "guarantees_ns"
            ]
            self._held.flows = KnownFlows.guaranteed(
                self._request.lab, ((flow, promised.get(flow.id)) for flow in self._request.flows)
            )
            self._awaits_guarantees = False


def _tap(interface: str, namespace: Path | None) -> PacketTap:
    return PacketTap(
        interface, needs_stamps=False, is_inbound_only=True, namespace=namespace, kept_bytes=_KEPT_BYTES
    )


def _places(lab: Lab, taps: tuple[CableTap, ...]) -> Iterator[CapturePlace]:
    for end in chain.from_iterable((tap.source, tap.destination) for tap in taps):
        yield place_of_port(lab, end.node, end.port)
    if lab.controller is None:
        yield NO_SWITCH
        yield from map(place_of_session, lab.switches)


def main() -> int:
    """Capture until SIGTERM. Return the exit status: 1 if the disk is full, or the limit is reached."""
    parser = OneLineParser(description="Capture a live lab until SIGTERM.")
    parser.add_argument("request", type=Path, help="File with the request.")
    parser.add_argument("ready", type=Path, help="File to make when capturing has begun.")
    chosen = parser.parse_args()
    request = pickle.loads(chosen.request.read_bytes())  # noqa: S301 (made by the first process of the tree)
    assert isinstance(request, CaptureRequest)
    ends: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ends.append(number))
    try:
        capture = LabCapture(request)
        chosen.ready.touch()
        while not ends:
            capture.look()
            time.sleep(_PAUSE_S)
        capture.end()
    except RunError as error:
        tell_error(error)
        return 1
    return 0


if __name__ == "__main__":
    with user_errors_end():
        sys.exit(main())
