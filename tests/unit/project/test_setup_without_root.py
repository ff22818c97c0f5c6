"""A set-up that needs root but cannot get it says so where the user sees it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

STAND_INS = {"id": "echo 12345", "dpkg-query": "exit 1", "df": "echo; echo disk 1 1 100000000"}


@pytest.fixture
def user(tmp_path):
    """A copy of the scripts, and the programs available to a user on a machine without sudo."""
    shutil.copytree(ROOT / "setup", tmp_path / "setup")
    programs = tmp_path / "programs"
    programs.mkdir()
    for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(folder).iterdir():
            link = programs / program.name
            if program.name not in ("sudo", *STAND_INS) and not link.is_symlink():
                link.symlink_to(program)
    for name, body in STAND_INS.items():
        _program(programs / name, body)
    return tmp_path


def _program(path, body):
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


def run(user, *command):
    surroundings = {**os.environ, "PATH": str(user / "programs")}
    surroundings.pop("LOKO_BUILD", None)
    return subprocess.run(command, cwd=user, env=surroundings, capture_output=True, text=True, check=False)


def test_without_sudo_the_last_line_says_what_needs_root(user):
    done = run(user, "setup/packages.sh", "capture")
    assert done.returncode == 1
    assert done.stdout == "setup: installing 2 packages: ethtool tcpdump\n"
    assert done.stderr == (
        "setup: installing packages (ethtool tcpdump) needs root, and sudo is not installed: "
        "run 'make setup' once as root\n"
    )


def test_open_vswitch_too(user):
    done = run(user, "setup/openvswitch.sh")
    assert done.returncode == 1
    assert done.stderr == (
        "setup: installing openvswitch-switch needs root, and sudo is not installed: "
        "run 'make setup' once as root\n"
    )


@pytest.mark.parametrize(
    "said",
    [
        "sudo: a terminal is required to read the password; either use the -S option",
        "sudo: a password is required",
        "me is not in the sudoers file.",
    ],
)
def test_a_sudo_that_refuses_is_told(user, said):
    _program(user / "programs/sudo", f"echo {said!r} >&2; exit 1")
    done = run(user, "setup/packages.sh", "capture")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "setup: this needs root, and sudo refuses: "
        "run 'sudo -v' first, or 'make setup' once as root; then repeat"
    )
    assert done.stderr.count("\n") == 1
