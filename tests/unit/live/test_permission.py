"""Whether live labs can be made is found out by trying, not by the user id."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TRIAL = [sys.executable, "-m", "loko_testbed.live.permission"]

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.waits,
    pytest.mark.skipif(os.geteuid() != 0, reason="takes capabilities from root"),
]


@pytest.mark.parametrize(
    ("withheld", "said"),
    [("sys_admin", "Operation not permitted"), ("sys_admin,-net_admin,-sys_nice", "Operation not permitted")],
)
def test_root_without_the_capabilities_of_containers_is_told_in_one_line(withheld: str, said: str) -> None:
    done = run("setpriv", f"--bounding-set=-{withheld}", *TRIAL)
    assert done.returncode == 2
    assert done.stderr.startswith("error: live runs make network namespaces, which root may not do here (")
    assert said in done.stderr
    assert "a container with --privileged" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_command_that_needs_a_lab_is_refused_there_with_the_same_line() -> None:
    refused = run(
        "setpriv",
        "--bounding-set=-net_admin",
        str(Path(sys.executable).with_name("loko")),
        "lab",
        "up",
        "two-switch",
    )
    assert refused.returncode == 2
    assert refused.stderr == run("setpriv", "--bounding-set=-net_admin", *TRIAL).stderr


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
