"""Run OFTest, Project Floodlight's switch tester: each test with its own board and namespace.

OFTest is written in Python 2.7; `make clients` fetches it. No part of it belongs to the testbed.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from board_network import CONTROLLER_PORT, HOSTS
from programs import INSTALLED

from loko_testbed.live.one_board import EmulatorProcess, Namespace

HOME = INSTALLED / "oftest"
TIMEOUT_S = 600.0
PASSES, FAILS, SKIPPED = "passes", "fails", "skipped"

_PROGRAM, _PYTHON, _LIBRARIES = HOME / "source" / "oft", HOME / "python", HOME / "libraries"
_TIMEOUT_S, _NEGATIVE_TIMEOUT_S = 6.0, 0.2
"""How long OFTest waits for messages that must come, and for those that must not. Its own limits of 2 s and
10 ms are too short where many programs share a core."""
_SKIPPED = re.compile(r"Skipped [1-9]\d* test")
_DONE = re.compile(r"^(?:OK|FAILED \(.*\))$", re.MULTILINE)
_STATED = re.compile(r"^(?:\w*Error|\w*Exception|\w*error): ?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Observed:
    """The outcome of one test."""

    result: str
    """`passes`, `fails` or `skipped`. OFTest itself counts skipped tests as passed."""
    said: str
    """The failed assertion in OFTest's words; empty if there is none."""
    board_log: str


def missing() -> str | None:
    """Return why OFTest cannot run here, and how to fix that; None if it can."""
    if not _PYTHON.exists() or not _PROGRAM.exists():
        return f"{HOME} is not there: run 'make clients' (set-up says why if OFTest cannot be had here)"
    return None


def standard_tests(version: str) -> list[str]:
    """Return the tests that OFTest selects by default for a version of OpenFlow such as `1.0`."""
    with TemporaryDirectory() as folder:  # for its log
        done = subprocess.run(
            _command("--of-version", version, "--list-test-names"),
            env=_environment(),
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    return sorted(done.stdout.split())


def attempt(
    test: str,
    version: str,
    settings: str,
    emulator: Path,
    folder: Path,
    *,
    hosts: Sequence[int] = HOSTS,
) -> Observed:
    """Run one test. The output of OFTest and the board stays in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    interfaces = [(f"h{host}", f"s1-eth{host}") for host in hosts]
    with (
        Namespace(interfaces) as inside,
        EmulatorProcess(
            emulator,
            inside,
            folder,
            CONTROLLER_PORT,
            settings=settings,
            ports={host: f"s1-eth{host}" for host in hosts},
        ) as board,
    ):
        options = [f"--interface={host}@h{host}" for host in hosts]
        command = _command(
            *("--of-version", version, "--host", "127.0.0.1", "--port", str(CONTROLLER_PORT)),
            *("--default-timeout", str(_TIMEOUT_S)),
            *("--default-negative-timeout", str(_NEGATIVE_TIMEOUT_S), "--random-seed", "1"),
            *("--log-dir", str(folder / "oftest"), *options, test),
        )
        killed = ["setpriv", "--pdeathsig", "KILL"]
        done = subprocess.run(
            [*killed, *inside.command(*command)],
            env=_environment(),
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
        (folder / "output").write_text(done.stdout + done.stderr)
        return _observed(test, done.stdout + done.stderr, folder / "oftest", board.log())


def _observed(test: str, output: str, logs: Path, board_log: str) -> Observed:
    assert _DONE.search(output), f"OFTest did not run {test}: {output}"
    if "FAILED (" in output:
        stated = _STATED.findall(output)
        return Observed(FAILS, stated[-1] if stated else output.strip().splitlines()[-1], board_log)
    skipped = any(_SKIPPED.search(log.read_text(errors="replace")) for log in logs.glob("main*"))
    return Observed(SKIPPED if skipped else PASSES, "", board_log)


def _command(*arguments: str) -> list[str]:
    return [str(_PYTHON), str(_PROGRAM), *arguments]


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(_LIBRARIES), "PYTHONDONTWRITEBYTECODE": "1"}
