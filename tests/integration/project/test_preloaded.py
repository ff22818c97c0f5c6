"""A preloaded program is a process like any other: its arguments, streams, environment, status, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import preloaded
import pytest
from live_harness import needs_namespaces
from preloaded import PreloadedProgram

TIMEOUT_S = 60


def repeat() -> int:
    """Print what the program was started with, and the line that it reads."""
    print(sys.argv, os.environ.get("PRELOADED"), Path.cwd(), sys.stdin.readline().strip())
    print("wrong", file=sys.stderr)
    return 3


def wait_for_ever() -> None:
    print("ready", flush=True)
    time.sleep(TIMEOUT_S)


def namespaces() -> str:
    return " ".join(str(Path(f"/proc/thread-self/ns/{kind}").readlink()) for kind in ("net", "mnt"))


def print_namespaces() -> None:
    print(namespaces())


_OUTSIDE = namespaces()


def test_it_has_arguments_streams_environment_folder_and_status_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out, error = tmp_path / "out", tmp_path / "error"
    environment = {**os.environ, "PRELOADED": "yes"}
    program = PreloadedProgram(repeat, "repeat", 7, out=out, error=error, environment=environment, reads=True)
    assert program.poll() is None
    assert program.stdin is not None
    program.stdin.write(b"a line\n")
    program.stdin.close()
    assert program.wait(TIMEOUT_S) == program.poll() == 3
    assert out.read_text() == f"['repeat', '7'] yes {tmp_path} a line\n"
    assert error.read_text() == "wrong\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_by_signals_and_holds_no_file_of_the_test(tmp_path: Path, number: int) -> None:
    reader, writer = os.pipe()
    program = PreloadedProgram(wait_for_ever, "wait", out=tmp_path / "out")
    os.close(writer)
    assert os.read(reader, 1) == b"", "nobody else can write"
    os.close(reader)
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(0.01)
    program.send_signal(number)
    assert program.wait(TIMEOUT_S) == -number


def test_a_command_sees_what_the_test_asks_for() -> None:
    done = preloaded.loko("model", "no-such-device")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")


@pytest.mark.namespaces
@pytest.mark.waits
@needs_namespaces
@pytest.mark.usefixtures("apart")
def test_it_runs_on_the_private_machine_of_the_test(tmp_path: Path) -> None:
    program = PreloadedProgram(print_namespaces, "print", out=tmp_path / "out")
    assert program.wait(TIMEOUT_S) == 0
    assert (tmp_path / "out").read_text() == f"{namespaces()}\n" != f"{_OUTSIDE}\n"
