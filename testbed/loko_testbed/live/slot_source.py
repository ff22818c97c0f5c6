"""Sends frames in slots, in real time: one `zodiac-fx slots` for all hosts, each in its namespace.

One program polls the clock for all hosts, so they do not keep each other from it where they share a core.
Frames leave by UDP sockets: a packet ring would bypass the queueing discipline, and with it the taps.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from loko.schedule.sources import STALL_THRESHOLD_US, WATCH_NS, slots_file
from loko.topology.frame import frame_of
from loko.topology.lab import Lab
from loko_testbed.instruments.emulator import emulator
from loko_testbed.instruments.programs import require
from loko_testbed.instruments.timeouts import scaled_timeout
from loko_testbed.live.realtime_limit import RealtimeLimit
from loko_testbed.simulation.runner import RunError, SlotsKept
from loko_testbed.simulation.traffic import Sender, TimeTriggered

if TYPE_CHECKING:
    from loko_testbed.live.network import LiveNetwork

LEAD_NS: Final = 500_000_000
"""Time from the start of the program to the first slot, in which it opens its sockets."""
_DRAIN_S: Final = 5.0
_COLUMNS: Final = 4
"""Columns of the program's rows: slot, handed over, taken, received."""
_NEVER: Final = -1


class SlotProgram:
    """A running `zodiac-fx slots`. It ends with this process; then the real-time limit is restored."""

    def __init__(self, file: Path, *, is_heard: bool) -> None:
        """Start the program with this file. `is_heard`: its standard output and error are pipes to read."""
        self._limit = RealtimeLimit()
        self.process = subprocess.Popen(
            [require("setpriv"), "--pdeathsig", "KILL", "--", str(emulator()), "slots", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if is_heard else subprocess.DEVNULL,
            stderr=subprocess.PIPE if is_heard else None,
            text=True,
            pass_fds=self._limit.descriptors,
        )
        self._limit.hand_over()

    def end(self) -> None:
        """End the program if it still runs, and wait until the machine's real-time limit is restored."""
        self.process.kill()
        self.process.wait()
        self._limit.wait()


class SlotSource:
    """The program with its flows. It ends by itself when the last slot is over."""

    def __init__(
        self, network: LiveNetwork, traffic: Sequence[Sender], *, start_ns: int, seconds: float, folder: Path
    ) -> None:
        """Start the program; slots count from `start_ns` since 1970. Raises `RunError` as `refuse_slots`."""
        refuse_slots(traffic)
        self._flows = tuple(traffic)
        self._rows = folder / "slots.rows"
        self._seconds = seconds
        file = folder / "slots.toml"
        file.write_text(self._configuration(network, start_ns), encoding="utf-8")
        self._program = SlotProgram(file, is_heard=True)

    def cancel(self) -> None:
        """End sending, whatever has happened."""
        self._program.end()

    def wait(self) -> Mapping[int, SlotsKept]:
        """Wait for the end; return how each flow kept its slots. Raises `RunError` if the program failed."""
        try:
            told, said = self._program.process.communicate(timeout=scaled_timeout(self._seconds + _DRAIN_S))
        except subprocess.TimeoutExpired:
            self.cancel()
            raise RunError("the source of the slots does not end: leave the machine alone") from None
        self._program.end()
        if self._program.process.returncode != 0:
            raise RunError(f"slots: {(said.strip().splitlines() or ['no message'])[-1]}")
        stalls = len(json.loads(told)["stalls"])
        rows = np.fromfile(self._rows, dtype="<i8").reshape(-1, len(self._flows), _COLUMNS)
        kept = {}
        for place, flow in enumerate(self._flows):
            due_ns, begun_ns, *_ = rows[:, place].T
            late_ns = (begun_ns - due_ns)[due_ns != _NEVER]
            kept[flow.flow] = SlotsKept.of(late_ns, stalls=stalls)
        return kept

    def _configuration(self, network: LiveNetwork, start_ns: int) -> str:
        hosts = dict.fromkeys(flow.source for flow in self._flows)
        outlets = {host: Outlet(network.interface(host), network.namespace(host)) for host in hosts}
        period_ns = _shortest_ns(self._flows)
        run: dict[str, str | int] = {
            "periods": -(-round(self._seconds * 1e9) // period_ns),
            "start_ns": start_ns,
            "rows": str(self._rows),
        }
        return slot_configuration(network.lab, self._flows, outlets, run)


class Outlet(NamedTuple):
    """Where a host's frames leave."""

    interface: str
    namespace: Path


def slot_configuration(
    lab: Lab,
    traffic: Sequence[Sender],
    outlets: Mapping[str, Outlet],
    run: Mapping[str, str | int] = MappingProxyType({}),
) -> str:
    """Return the configuration of `zodiac-fx slots` for flows that send in slots.

    `run` says where it begins and how it ends; without it, slots are those of the wall clock, and the program
    runs until it is ended.
    """
    head = {
        "path": "sockets",
        "period_ns": _shortest_ns(traffic),
        "watch_ns": WATCH_NS,
        "scheduling": "fifo",
        "stall_threshold_us": STALL_THRESHOLD_US,
        **run,
    }
    flows: list[dict[str, str | int]] = [
        {
            "source": outlets[flow.source].interface,
            "namespace": str(outlets[flow.source].namespace),
            "offset_ns": flow.sends.offset_ns,
            "period_ns": flow.sends.period_ns,
            "number": flow.flow,
            "frame": frame_of(lab, flow).hex(),
        }
        for flow in traffic
        if isinstance(flow.sends, TimeTriggered)
    ]
    return slots_file(head, flows)


def _shortest_ns(traffic: Sequence[Sender]) -> int:
    return min(flow.sends.period_ns for flow in traffic if isinstance(flow.sends, TimeTriggered))


def start_instant_ns() -> int:
    """Return an instant, in ns since 1970, by which a source that is started now will be ready."""
    return time.time_ns() + round(scaled_timeout(LEAD_NS / 1e9) * 1e9)


def refuse_slots(traffic: Sequence[Sender]) -> None:
    """Raise `RunError` for what a real clock and real hosts cannot do."""
    shaped = {flow.source for flow in traffic if not isinstance(flow.sends, TimeTriggered)}
    for flow in traffic:
        sends = flow.sends
        if not isinstance(sends, TimeTriggered):
            continue
        if flow.source in shaped:
            raise RunError(
                f"{flow.where}: {flow.source} also sends by a token bucket, in which frames of slots would"
                " wait; let another host send it"
            )
        if sends.clock_rate != 1 or sends.off_ns.size:
            raise RunError(
                f"{flow.where}: its clock is to be wrong, and the hosts of a live lab have this machine's;"
                " choose --mode virtual"
            )
        if not 0 <= sends.offset_ns < sends.period_ns:
            raise RunError(f"{flow.where}: its slot begins after its period; lower offset_ns")
