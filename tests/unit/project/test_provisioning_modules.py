"""How the playbooks' modules interpret the output of programs."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def module(path):
    specification = importlib.util.spec_from_file_location(Path(path).stem, ROOT / "playbooks" / path)
    loaded = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = loaded
    specification.loader.exec_module(loaded)
    return loaded


def test_a_failed_step_is_told_by_its_own_last_line():
    reason = module("library/setup_step.py").reason
    assert (
        reason("setup: installing\nlots\nsetup: the disk is full\nmake: *** [x] Error 1\n")
        == "the disk is full"
    )
    assert reason("bash: no such thing\n") == "bash: no such thing"
    assert reason("") == "it said nothing"


ALL = "PTP Hardware Clock: {}\nHardware Receive Filter Modes:\n\tnone\n\tall\n"
SOME = "PTP Hardware Clock: 0\nHardware Receive Filter Modes:\n\tnone\n\tptpv2-event\n"
NONE = "PTP Hardware Clock: none\nHardware Receive Filter Modes: none\n"


@pytest.mark.parametrize(
    ("texts", "advice"),
    [
        ((ALL.format(0), ALL.format(0)), "share one clock: the bench takes the cards' stamps"),
        ((ALL.format(0), ALL.format(1)), "their clocks differ"),
        ((SOME,), "does not stamp every frame; the kernel stamps"),
        ((NONE,), "has no clock; the kernel stamps"),
    ],
)
def test_what_cards_can_stamp(texts, advice):
    stamping = module("roles/capture/library/nic_timestamping.py")
    cards = {f"card{number}": stamping.parse(text) for number, text in enumerate(texts)}
    assert advice in stamping.advise(cards)[-1]


def test_a_setting_has_one_line_in_its_file():
    with_setting = module("roles/host_tuning/library/kernel_setting.py").with_setting
    once = with_setting("# mine\nkernel.a = 1\nkernel.ab = 3\n", "kernel.a", "2")
    assert once == "# mine\nkernel.ab = 3\nkernel.a = 2\n"
    assert sorted(with_setting(once, "kernel.a", "2")) == sorted(once)


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("E: Unable to locate package mgen\n", "no package 'mgen'"),
        (
            "E: Failed to fetch http://x  Temporary failure resolving 'x'\nE: Unable to locate package a\n",
            "no network",
        ),
        ("error: No space left on device (os error 28)\n", "the disk is full"),
        ("E: Could not get lock /var/lib/dpkg/lock-frontend\n", "another program is installing packages"),
        ("error: failed to download from registry\n  dns error: failed to lookup address\n", "no network"),
        ("E: Packages need to be removed but remove is disabled.\n", "set-up removes nothing"),
    ],
)
def test_what_a_log_tells_is_one_line(log, line, tmp_path):
    path = tmp_path / "log"
    path.write_text(log)
    script = f". {shlex.quote(str(ROOT))}/setup/trouble.sh; trouble {path}"
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
    assert line in said
    assert "\n" not in said


def test_a_log_that_tells_nothing_known_is_left_to_be_read(tmp_path):
    path = tmp_path / "log"
    path.write_text("error[E0599]: no associated item named `MAX`\n")
    script = f". {shlex.quote(str(ROOT))}/setup/trouble.sh; trouble {path}"
    assert subprocess.run(["bash", "-c", script], check=False).returncode == 1
