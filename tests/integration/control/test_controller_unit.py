"""The systemd unit that the role `controller` writes: its contents, and that the program accepts them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import psutil
import pytest
import yaml
from reserved_port import ReservedPort
from served_lab import LOKO, TIMEOUT_S, wait_for

from loko.user_error import NOT_NOW, WRONG_INPUT

ROLE = Path(__file__).resolve().parents[3] / "playbooks" / "roles" / "controller"


def unit(**values: object) -> str:
    """Render the unit like Ansible, with `trim_blocks`."""
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    template = jinja2.Template((ROLE / "templates" / "loko.service.j2").read_text(), trim_blocks=True)
    return template.render({**defaults, "controller_service_program": LOKO, **values}) + "\n"


def settings(text: str) -> dict[str, list[str]]:
    settings: dict[str, list[str]] = {}
    for line in text.replace("\\\n", "").splitlines():
        if (parts := line.partition("="))[1] and not line.startswith("#"):
            settings.setdefault(parts[0], []).append(parts[2])
    return settings


def words(command: str, **specifiers: str) -> list[str]:
    """Split a command line as systemd does (systemd.service(5))."""
    words = []
    for quoted, plain in re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', command):
        word = re.sub(r"\\(.)", r"\1", quoted) or plain
        for letter, value in specifiers.items():
            word = re.sub(f"(?<!%)((?:%%)*)%{letter}", lambda match, to=value: match[1] + to, word)
        words.append(word.replace("%%", "%").replace("$$", "$"))
    return words


def test_it_has_a_watchdog_and_ends_the_service_alone() -> None:
    said = settings(unit(controller_service_watchdog_s=45))
    assert said["Type"] == ["notify"]
    assert said["WatchdogSec"] == ["45"]
    assert said["Restart"] == ["always"]
    assert said["RestartPreventExitStatus"] == ["2"]
    assert said["KillMode"] == ["mixed"]
    assert said["DynamicUser"] == ["true"]
    assert "User" not in said


PACKAGED = ROLE.parents[2] / "setup" / "service" / "loko@.service"


def is_started_again(said: dict[str, list[str]], status: int) -> bool:
    """Return whether systemd starts a unit again, and never gives it up, after an exit with this status.

    systemd.service(5), `Restart=` and `RestartPreventExitStatus=`; systemd.unit(5), `StartLimitIntervalSec=`.
    """
    prevented = {number for text in said.get("RestartPreventExitStatus", []) for number in text.split()}
    is_limited = said.get("StartLimitIntervalSec") != ["0"]
    return said["Restart"] == ["always"] and str(status) not in prevented and not is_limited


@pytest.mark.parametrize("text", [unit(), PACKAGED.read_text()], ids=["role", "package"])
def test_faults_of_the_environment_are_tried_again_and_wrong_input_is_not(text: str) -> None:
    said = settings(text)
    assert is_started_again(said, NOT_NOW)
    assert is_started_again(said, 1)
    assert not is_started_again(said, WRONG_INPUT)


def test_what_is_given_reaches_the_program_as_it_is() -> None:
    given = ["--rest", "0.0.0.0:8080", "--allow-host", 'a "b" \\ 100% $HOME', "%S"]
    said = settings(
        unit(
            controller_service_lab="/a path/lab.yml",
            controller_service_options=given,
            controller_service_token_file="/etc/loko/token",
            controller_service_user="loko",
        )
    )
    [command] = said["ExecStart"]
    program, serve, lab, *options = words(command, S="/state", d="/credentials")
    assert (program, serve, lab) == (LOKO, "serve", "/a path/lab.yml")
    assert options[4:-2] == given
    assert options[:4] == ["--log-format", "json", "--store", "/state/loko/flows.sqlite"]
    assert options[-2:] == ["--token-file", "/credentials/token"]
    assert said["LoadCredential"] == ["token:/etc/loko/token"]
    assert said["User"] == ["loko"]
    assert "DynamicUser" not in said


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"controller_service_user": "daemon", "controller_service_options": ["--emulate", "100%"]},
        {"controller_service_token_file": "/etc/loko/token"},
    ],
)
def test_systemd_understands_it(tmp_path: Path, values: dict[str, Any]) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    path = tmp_path / "loko.service"
    path.write_text(unit(**values))
    command = ["systemd-analyze", "verify", "--man=no", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if "loko.service" in line]
    assert complaints == []


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket at which systemd would receive notifications."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(TIMEOUT_S)
        yield listening


def test_the_service_tells_systemd_that_it_is_ready_lives_and_ends(
    tmp_path: Path, manager: socket.socket
) -> None:
    ports = ReservedPort(), ReservedPort()
    options = ["--rest", f"127.0.0.1:{ports[0].number}", "--listen", f"127.0.0.1:{ports[1].number}"]
    [command] = settings(unit(controller_service_options=options))["ExecStart"]
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            words(command, S=str(tmp_path)), env={**os.environ, **environment}, stdout=log, stderr=log
        )
    try:
        assert manager.recv(100) == b"READY=1"
        assert [manager.recv(100) for _ in range(5)] == [b"WATCHDOG=1"] * 5
        psutil.Process(process.pid).suspend()  # as if it hung
        manager.settimeout(3)
        with pytest.raises(TimeoutError):
            receive_forever(manager)
        psutil.Process(process.pid).resume()
        manager.settimeout(TIMEOUT_S)
        assert manager.recv(100) == b"WATCHDOG=1"
        process.terminate()
        wait_for(lambda: manager.recv(100) == b"STOPPING=1", "the end to be told")
        assert process.wait(timeout=TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait()
        for port in ports:
            port.release()


def receive_forever(manager: socket.socket) -> None:
    while True:
        manager.recv(100)
