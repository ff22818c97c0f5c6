"""Measures CPU noise with the emulator's own program, which polls as it does in a run."""

from __future__ import annotations

import json
import subprocess

from loko_testbed.instruments.programs import require_emulator
from loko_testbed.live.boards import STALL_THRESHOLD_US
from loko_testbed.live.doctor.facts import Noise
from loko_testbed.live.realtime_limit import RealtimeLimit
from loko_testbed.simulation.runner import RunError

_MARGIN_S = 30


def measure(cpu: int, seconds: int) -> Noise:
    """Poll on a core for this many seconds. Lifts the limit for real-time threads meanwhile.

    Raises `RunError` if the emulator is not built, or cannot measure.
    """
    command = [str(require_emulator()), "noise", "--cpu", str(cpu), "--seconds", str(seconds)]
    command += ["--threshold-us", str(STALL_THRESHOLD_US)]
    limit = RealtimeLimit()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=seconds + _MARGIN_S
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"the measurement did not end within {seconds + _MARGIN_S} s") from None
    finally:
        limit.wait()
    return parse(done.returncode, done.stdout, done.stderr)


def parse(status: int, output: str, complaint: str) -> Noise:
    """Parse what the emulator printed. Raises `RunError` if it is not a measurement."""
    if status != 0:
        said = (complaint.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"the emulator cannot measure: {said}: run 'make setup'")
    try:
        data = json.loads(output)
        return Noise(
            scheduling=str(data["scheduling"]),
            duration_ns=int(data["duration_ns"]),
            threshold_ns=int(data["threshold_ns"]),
            stalls=tuple((int(start), int(duration)) for start, duration in data["list"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"the emulator's measurement is not as expected ({error!r}): run 'make setup'"
        ) from None
