"""The role `lab` starts a lab once, shows it, and shuts it down, even if an earlier run left it."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager

import psutil
import pytest
from live_harness import Machine, needs_namespaces, wait_until
from roles_play import ROOT, play, play_each
from served_lab import LOKO

from loko_testbed.live.background import BackgroundLab

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.waits,
    needs_namespaces,
    pytest.mark.usefixtures("relaxed"),
    pytest.mark.timeout(900),  # runs Ansible many times
]

LAB = ["playbooks/lab.yml", "-e", "{lab: bench, lab_relaxed: true}"]
ANY_UP = ["playbooks/lab.yml", "-e", "{state: up, lab_relaxed: true}"]
UP, DOWN = [*LAB, "-e", "state=up"], [*LAB, "-e", "state=down"]


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):
    before = Machine.now()
    yield
    if BackgroundLab.find("bench"):
        play(tmp_path, ["playbooks/teardown.yml"])
    wait_until(lambda: Machine.now() == before, "the machine is as before")


def test_up_once_and_down_once_whatever_was_left_and_check_mode_only_tells(tmp_path):
    def changes(words):
        result = play(tmp_path, words)
        assert result.status == 0, result.output
        return result.changed

    subprocess.run([LOKO, "lab", "up", "bench", "--relaxed"], cwd=ROOT, check=True)
    lab = BackgroundLab.find("bench")
    assert lab is not None
    tree = psutil.Process(lab.pid).children(recursive=True)
    os.kill(lab.pid, 9)
    psutil.wait_procs(tree, timeout=20)
    with left_by_somebody_else():
        assert changes([*UP, "--check"]) == ["lab : Would put up bench"]
        assert BackgroundLab.find("bench") is None
        assert changes(UP) == ["lab : Put up bench"]
        again = play_each(tmp_path, ANY_UP, ["lab=bench", "lab=nowhere"])
        shown, refused = again.on("lab=bench"), again.on("lab=nowhere")
        assert (shown.changed, shown.with_outcome("failed")) == ([], []), again.output
        assert "bench" in shown.messages()
        assert "error: lab 'nowhere': no such name and no such file" in refused.complaint
        assert changes([*DOWN, "--check"]) == ["lab : Would take it down"]
        assert BackgroundLab.find("bench") is not None
        assert changes(["playbooks/teardown.yml"]) == ["lab : Take it down"]
        assert BackgroundLab.find("bench") is None


@contextmanager
def left_by_somebody_else():
    """A namespace with the name of one of the lab's hosts: it is not in the way, and is left alone."""
    subprocess.run(["ip", "netns", "add", "H1"], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "netns", "delete", "H1"], check=True)
