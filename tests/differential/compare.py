"""Compare the board with `quirks = "spec"` with Open vSwitch, step by step, on random controllers and hosts.

python tests/differential/compare.py [--seconds N] [--seed N] [--version 1.0]

Trials follow from the seed. The first difference is reduced to the fewest steps that show it, printed, and
written to a file; the status is then 1. Needs neither root nor a kernel module, only the programs of Open
vSwitch.
"""

from __future__ import annotations

import argparse
import itertools
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol

import views
from drawn_trials import ALL_ENTRIES, FIRST_MESSAGES, draw
from emulated import EmulatedSwitch
from open_vswitch import OpenVSwitch, missing
from steps import CLOSED, DOWN, Step, port_mod

VERSIONS = {"1.0": 1, "1.3": 4}
STEPS = 60
"""Steps of a trial: enough for a dozen entries, few enough to look through."""
LATE_S, LATE_TRIES = 0.05, 20
"""How long and how often Open vSwitch is waited for: it sends FLOW_REMOVED some time after a DELETE."""


class Switch(Protocol):
    """Operations that both switches have."""

    def send(self, message: bytes) -> list[bytes]:
        """Send a message; return what came of it."""

    def frame(self, port: int, frame: bytes) -> list[bytes]:
        """Let a frame come in by a port; return what the controller gets of it."""

    def departures(self) -> list[tuple[int, bytes]]:
        """Return the frames that have left since the last call: port and bytes, by ports."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the switches part: the number of the step and what each made of it."""

    step: int
    board: Any
    open_vswitch: Any


class Watched:
    """A switch, its ports' addresses, and what each step leads to."""

    def __init__(self, switch: Switch, version: int, *, has_dummy_ports: bool = False) -> None:
        """Keep frames from and behind dummy ports that the specification keeps there: they do not go down."""
        self._switch, self._version, self._has_dummy_ports = switch, version, has_dummy_ports
        self._config: dict[int, int] = {}
        request, read = views.ADDRESSES[version]
        self._addresses = read(switch.send(request)[0])
        for message in FIRST_MESSAGES[version]:
            switch.send(message)
        switch.departures()

    def take(self, step: Step) -> Any:
        """Return what came of a step, as views that can be compared."""
        if step.kind == "frame":
            closed = self._has_dummy_ports and self._config.get(step.port, 0) & CLOSED
            messages = [] if closed else self._switch.frame(step.port, step.data)
        elif step.kind == "port":
            before = self._config.get(step.port, 0)
            self._config[step.port] = before & ~step.mask | step.config & step.mask
            messages = self._switch.send(port_mod(self._version, step, self._addresses[step.port]))
        else:
            messages = self._switch.send(step.data)
        entries, others = self._entries()
        down = {port for port, config in self._config.items() if self._has_dummy_ports and config & DOWN}
        return (
            [(port, frame.hex()) for port, frame in self._switch.departures() if port not in down],
            views.seen([*messages, *others]),
            views.seen(entries),
        )

    def wait(self, came: Any) -> Any:
        """Return what came of a step, with what comes late."""
        time.sleep(LATE_S)
        frames, messages, _ = came
        entries, others = self._entries()
        return (frames, views.merged(messages, others), views.seen(entries))

    def _entries(self) -> tuple[list[bytes], list[bytes]]:
        answers = self._switch.send(ALL_ENTRIES[self._version])
        entries = [answer for answer in answers if answer[1] == views.STATS_REPLY[self._version]]
        return entries, [answer for answer in answers if answer not in entries]


def first_difference(steps: Sequence[Step], version: int) -> Difference | None:
    """Return where a fresh board and a fresh Open vSwitch part; None if they do the same."""
    with tempfile.TemporaryDirectory() as folder, OpenVSwitch(Path(folder), version) as reference:
        board, other = (
            Watched(EmulatedSwitch(version), version),
            Watched(reference, version, has_dummy_ports=True),
        )
        for number, step in enumerate(steps):
            mine, its = board.take(step), other.take(step)
            for _ in range(LATE_TRIES):
                if mine == its:
                    break
                its = other.wait(its)
            if mine != its:
                return Difference(number, mine, its)
    return None


def reduced(steps: Sequence[Step], version: int) -> list[Step]:
    """Return the steps without those that the last one, which differs, does not need."""
    kept = list(steps)
    length = len(kept) // 2
    while length:
        at = 0
        while at < len(kept) - 1:
            fewer = kept[:at] + kept[min(at + length, len(kept) - 1) :]
            if len(fewer) < len(kept) and (difference := first_difference(fewer, version)):
                kept = fewer[: difference.step + 1]
            else:
                at += length
        length //= 2
    return kept


def described(steps: Sequence[Step], difference: Difference) -> str:
    """Return steps and outcome as text."""
    lines = [f"{number}: {views.step_text(step)}" for number, step in enumerate(steps)]
    pairs = zip(difference.board, difference.open_vswitch, strict=True)
    for name, (mine, its) in zip(("frames", "messages", "entries"), pairs, strict=True):
        if mine != its:
            lines += [f"{name} of the board:        {mine}", f"{name} of Open vSwitch: {its}"]
    return "\n".join(lines)


def main() -> int:
    """Run trials until the time is over or the switches differ."""
    parser = argparse.ArgumentParser(prog="compare.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32), help="random, unless given")
    parser.add_argument("--version", choices=VERSIONS, help="all in turn, unless given")
    parser.add_argument("--replay", type=Path, help="a file that an earlier run wrote")
    parser.add_argument("--out", type=Path, default=Path("results/difference.json"))
    options = parser.parse_args()
    if reason := missing():
        sys.stderr.write(f"compare: {reason}\n")
        return 2
    if options.replay:
        row = json.loads(options.replay.read_text())
        return report([Step.of_json(step) for step in row["steps"]], row["version"], None)
    end = time.monotonic() + options.seconds
    versions = [options.version] if options.version else list(VERSIONS)
    for trial in itertools.count():
        if time.monotonic() >= end:
            break
        version = VERSIONS[versions[trial % len(versions)]]
        steps = draw(Random(f"{options.seed} {trial}"), version, STEPS)
        if difference := first_difference(steps, version):
            print(
                f"compare: seed {options.seed}, trial {trial}, wire version {version}, step {difference.step}"
            )
            return report(reduced(steps[: difference.step + 1], version), version, options.out)
    print(
        f"compare: seed {options.seed}: {trial} trials of {STEPS} steps in {options.seconds} s, no difference"
    )
    return 0


def report(steps: Sequence[Step], version: int, out: Path | None) -> int:
    """Print what differs, if anything; return the exit status."""
    difference = first_difference(steps, version)
    if difference is None:
        print("compare: no difference")
        return 0
    print(described(steps, difference))
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(
            json.dumps({"version": version, "steps": [step.to_json() for step in steps]}, indent=1)
        )
        print(f"compare: again with --replay {out}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
