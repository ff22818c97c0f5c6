"""Test whether the live emulator's memory grows under frames, messages and sessions, by default for an hour.

``make endurance`` (``python -m benchmarks.endurance``) prints JSON; exit status 1 if memory grew.
One board runs between two veths in a network namespace of its own, with ordinary scheduling, so that it
disturbs no lab.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from os_ken.ofproto import ofproto_v1_0 as of

from benchmarks.builds import build
from benchmarks.machine import describe
from benchmarks.measure import BenchmarkError
from loko_testbed.live.one_board import (
    BenchmarkController,
    BenchmarkTap,
    EmulatorProcess,
    Namespace,
    add_flow,
    message,
    udp_frame,
)
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.progress import ProgressBar

SAMPLE_S = 10
WARM_UP_SHARE = 12
"""The warm-up, in which everything happens once, is one of this many parts of the run (5 min of an hour)."""
MOST_GROWTH_BYTES = 1 << 20
"""Growth allowed per hour, for the C library's allocator. A leak of two bytes per frame makes 1.4 MB."""
ALL_FLOWS = bytes.fromhex("003fffff") + bytes(36) + b"\xff\x00\xff\xff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endurance:
    """The result of a run."""

    seconds: int
    rate_pps: int
    sent: int
    received: int
    sessions: int
    warm_bytes: int
    """Resident memory after the warm-up; `end_bytes` at the end. Medians of a twelfth of the samples."""
    end_bytes: int
    peak_bytes: int
    samples_bytes: list[int]

    @property
    def growth_bytes(self) -> int:
        """Growth of resident memory from the end of the warm-up to the end."""
        return self.end_bytes - self.warm_bytes


def measure(seconds: int = 3600, rate_pps: int = 200) -> Endurance:
    """Run a board for this many seconds. Raises `BenchmarkError` without root."""
    if os.geteuid() != 0:
        raise BenchmarkError("the live emulator needs root; run as root")
    program = build()
    with (
        tempfile.TemporaryDirectory(prefix="loko-endurance-") as folder,
        Namespace([("h1", "s1-eth1"), ("h2", "s1-eth2")]) as namespace,
        BenchmarkController(namespace) as controller,
        BenchmarkTap(namespace, "h1") as sender,
        BenchmarkTap(namespace, "h2") as receiver,
        EmulatorProcess(program, namespace, Path(folder), controller.port, settings="") as emulator,
        ProgressBar() as progress,
    ):
        progress.begin(seconds, 0, "s")
        run = _EnduranceRun(emulator, controller, sender, receiver, rate_pps)
        for second in range(seconds):
            run.one_second(second)
            progress.advance("endurance")
        emulator.end()
    samples = run.samples_bytes
    share = max(1, len(samples) // WARM_UP_SHARE)
    return Endurance(
        seconds=seconds,
        rate_pps=rate_pps,
        sent=run.sent,
        received=run.received,
        sessions=run.sessions,
        warm_bytes=int(statistics.median(samples[share : 2 * share])),
        end_bytes=int(statistics.median(samples[-share:])),
        peak_bytes=max(samples),
        samples_bytes=samples,
    )


class _EnduranceRun:
    """A board with its sender, receiver and controller."""

    def __init__(
        self,
        emulator: EmulatorProcess,
        controller: BenchmarkController,
        sender: BenchmarkTap,
        receiver: BenchmarkTap,
        rate_pps: int,
    ) -> None:
        self._emulator, self._controller = emulator, controller
        self._sender, self._receiver = sender, receiver
        self._rate_pps = rate_pps
        self._begin = time.monotonic()
        self.sent = self.received = self.sessions = 0
        self.samples_bytes: list[int] = []

    def one_second(self, second: int) -> None:
        """Send a second's frames, the first of which matches no entry, and a barrier.

        Now and then request statistics, change entries, or begin a new session.
        """
        if second % 60 == 0:
            self._new_session()
        for number in range(self._rate_pps):
            due = self._begin + second + number / self._rate_pps
            time.sleep(max(0.0, due - time.monotonic()))
            self._sender.send(udp_frame(self.sent, udp_port=5000 if number else 6000))
            self.sent += 1
        if second % 10 == 0:
            request = message(of.OFPT_STATS_REQUEST, 5, bytes((0, of.OFPST_FLOW, 0, 0)) + ALL_FLOWS)
            self._controller.ask(request, of.OFPT_STATS_REPLY)
        if second % 10 == 5:
            entry = add_flow(2, udp_port=7000 + second % 60)
            for command in (b"\x00\x00", b"\x00\x04"):
                self._controller.write(entry[:56] + command + entry[58:])
        self._controller.confirm()
        self.received += len(self._receiver.waiting(outgoing=False))
        self._sender.waiting(outgoing=False)
        if second % SAMPLE_S == SAMPLE_S - 1:
            self.samples_bytes.append(resident_bytes(self._emulator.process.pid))

    def _new_session(self) -> None:
        self._controller.hang_up()
        self._controller.handshake()
        self._controller.write(add_flow(2, udp_port=5000))
        self._controller.confirm()
        self.sessions += 1


def resident_bytes(process: int) -> int:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main(
    seconds: Annotated[int, typer.Option(min=4 * SAMPLE_S, help="How long.")] = 3600,
    rate: Annotated[int, typer.Option(min=1, max=2000, help="Frames a second.")] = 200,
) -> None:
    """Run a live board for an hour and look at its memory. Example: make endurance ARGS='--seconds 300'."""
    try:
        result = measure(seconds, rate)
    except (BenchmarkError, RunError) as error:
        print(f"endurance: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    report = {"machine": describe(), "growth_bytes": result.growth_bytes, **asdict(result)}
    print(json.dumps(report, indent=1))
    if result.growth_bytes > MOST_GROWTH_BYTES * max(1.0, seconds / 3600):
        print(f"endurance: memory grew by {result.growth_bytes} bytes", file=sys.stderr)
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
