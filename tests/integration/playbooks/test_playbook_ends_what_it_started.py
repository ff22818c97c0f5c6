"""The evaluation role ends its command when the Ansible run that started it ends, for whatever reason."""

from __future__ import annotations

import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

TIED = Path(__file__).parents[3] / "playbooks/roles/evaluation/files/tied.sh"
TIMEOUT_S = 120


@pytest.fixture
def ansible(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Start a program named like Ansible's that runs a command tied to it."""
    started: list[subprocess.Popen[bytes]] = []

    def start(command: str) -> subprocess.Popen[bytes]:
        program = tmp_path / "ansible-playbook"
        program.write_text(f"#!/bin/bash\n{shlex.quote(str(TIED))} {command} &\nwait $!\n", encoding="utf-8")
        program.chmod(0o755)
        started.append(subprocess.Popen([program]))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def eventually(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def test_the_commands_status_is_passed_on() -> None:
    assert subprocess.run([TIED, "bash", "-c", "exit 3"], check=False).returncode == 3


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_command_and_its_children_end_with_ansible(ansible, tmp_path: Path, how: signal.Signals) -> None:
    pids = tmp_path / "pids"
    process = ansible(f"bash -c 'sleep 1000 & echo $! $$ >{pids}; wait'")
    assert eventually(lambda: pids.exists() and pids.read_text().endswith("\n"))
    running = [int(pid) for pid in pids.read_text().split()]
    assert all(psutil.pid_exists(pid) for pid in running)

    process.send_signal(how)
    process.wait()

    assert eventually(lambda: not any(psutil.pid_exists(pid) for pid in running))


def test_a_termination_of_the_wrapper_ends_the_command(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with subprocess.Popen([TIED, "bash", "-c", f"echo $$ >{pid}; exec sleep 1000"]) as wrapper:
        assert eventually(lambda: pid.exists() and pid.read_text().endswith("\n"))
        wrapper.terminate()
        assert wrapper.wait(timeout=TIMEOUT_S) == 130
    assert eventually(lambda: not psutil.pid_exists(int(pid.read_text())))


def test_a_killed_wrapper_takes_the_command_and_its_children_with_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    command = f"sleep 1000 & echo $! $$ >{pids}; wait"
    with subprocess.Popen([TIED, "bash", "-c", command]) as wrapper:
        assert eventually(lambda: pids.exists() and pids.read_text().endswith("\n"))
        running = [int(pid) for pid in pids.read_text().split()]
        assert all(psutil.pid_exists(pid) for pid in running)
        wrapper.kill()
    assert eventually(lambda: not any(psutil.pid_exists(pid) for pid in running))


def test_a_command_that_ends_leaves_nothing_that_waits(tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    done = subprocess.run([TIED, "true", mark], check=False, capture_output=True, timeout=TIMEOUT_S)
    assert done.returncode == 0

    def waiting() -> list[int]:
        return [
            process.pid
            for process in psutil.process_iter(["cmdline"])
            if mark in (process.info["cmdline"] or ())
        ]

    assert eventually(lambda: not waiting())
