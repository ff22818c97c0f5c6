"""Running labs are found even if their files are damaged, and no user can keep root from its labs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest
from typer.testing import CliRunner

from loko.document import InputError
from loko.topology.lab import load_lab
from loko_testbed.cli import lab as commands
from loko_testbed.cli.smoke import main as smoke
from loko_testbed.live import background, exclusion, permission, state
from loko_testbed.live.background import BackgroundLab, up
from loko_testbed.live.exclusion import claim, claim_name
from loko_testbed.simulation.runner import RunError

LISTEN = """
import socket, sys, time
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
time.sleep(1000)
"""
"""Listens on a Unix socket, as the first process in a lab's tree does."""

DAMAGED = ["", "{", "[]", "null", '{"name": "one"}', '{"pid": "many", "path": "", "started": 1}', "\0\0\0"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder that stands in for /run/loko."""
    place = tmp_path / "loko"
    for module in (state, background, commands):
        monkeypatch.setattr(module, "LABS", place)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(permission, "_trial_failure", lambda: None)
    monkeypatch.setattr(exclusion, "_PATIENCE_S", 0.0)
    return place


@pytest.fixture
def running(folder):
    """Start a lab `one`: an outermost process, with a child that listens on the lab's socket."""
    folder.mkdir(mode=0o700)
    inner = [sys.executable, "-c", LISTEN, str(folder / "one.socket")]
    with subprocess.Popen(["sh", "-c", '"$@"; exit', "sh", *inner]) as outermost:
        try:
            while not (folder / "one.socket").exists() or not psutil.Process(outermost.pid).children():
                time.sleep(0.01)
            time.sleep(0.1)  # until it listens
            yield outermost
        finally:
            for process in psutil.Process(outermost.pid).children(recursive=True):
                process.kill()
            outermost.kill()


@pytest.mark.parametrize("text", DAMAGED)
def test_a_running_lab_whose_description_is_damaged_is_found_by_its_socket_and_noted_anew(
    folder, running, text
):
    (folder / "one.json").write_text(text)
    lab = BackgroundLab.find("one")
    assert lab is not None
    assert lab.pid == running.pid
    assert json.loads((folder / "one.json").read_text())["pid"] == running.pid
    assert [lab.pid for lab in BackgroundLab.all()] == [running.pid]


def test_so_is_one_whose_start_was_killed_before_it_was_noted(folder, running):
    assert [lab.pid for lab in BackgroundLab.all()] == [running.pid]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_description_of_a_lab_that_has_ended_blocks_nothing(folder, text):
    folder.mkdir()
    (folder / "one.json").write_text(text)
    (folder / "one.log").write_text("")
    for arguments in (["status"], ["status", "one"], ["down", "one"]):
        (folder / "one.json").parent.mkdir(exist_ok=True)
        (folder / "one.json").write_text(text)
        done = CliRunner().invoke(commands.lab_app, arguments)
        assert done.exit_code == 0, done.output
        assert "up" in done.output.splitlines()[-1]
    assert not folder.exists()


def test_who_wants_to_run_a_command_in_an_interface_is_told_of_its_host(monkeypatch):
    shells = [SimpleNamespace(what="shell of server", pid=7), SimpleNamespace(what="shell of s1", pid=8)]
    monkeypatch.setattr(BackgroundLab, "processes", lambda _lab: shells)
    lab = BackgroundLab(name="one", path="one/lab.yml", pid=1, started=1.0)
    says = "lab one: 'server:eth1' is an interface: give the command to the whole, 'server'"
    with pytest.raises(InputError, match=says):
        lab.way_into("server:eth1")
    with pytest.raises(InputError, match=r"lab one: has no node 'serve:eth1' to run .*: s1, server\)"):
        lab.way_into("serve:eth1")


def test_a_lab_that_is_starting_is_left_alone(folder):
    folder.mkdir()
    (folder / "one.log").write_text("building")
    assert BackgroundLab.find("one") is None
    assert (folder / "one.log").exists()


def test_a_description_appears_as_a_whole_or_not_at_all(folder, monkeypatch):
    folder.mkdir()
    lab = BackgroundLab(name="one", path="one/lab.yml", pid=os.getpid(), started=1.0)
    lab.note()
    before = (folder / "one.json").read_bytes()

    def full_disk(part, data):
        os.write(os.open(part, os.O_WRONLY | os.O_CREAT), data[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full_disk)
    with pytest.raises(Exception, match="No space left"):
        lab.note()
    assert (folder / "one.json").read_bytes() == before
    assert [file.name for file in folder.iterdir()] == ["one.json"]


def test_without_root_a_lab_is_refused_before_anything_is_made(folder, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(RunError, match=r"needs root: run it with sudo$"):
        up(load_lab("two-switch"), (), allocation="fifth-rate", entries=17)
    done = CliRunner().invoke(commands.lab_app, ["up", "two-switch"])
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == (
        "error: live runs make network namespaces, which needs root: run it with sudo"
    )
    assert not folder.exists()


def test_without_root_the_smoke_run_says_what_to_repeat(monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(SystemExit) as ended:
        smoke()
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "error: live runs make network namespaces, which needs root: run it with sudo\n"
    )


def test_two_claims_exclude_each_other_and_nothing_is_left(folder):
    with claim():
        with pytest.raises(RunError, match="another live lab runs"):
            claim()
        state.remove_if_unused()
        assert folder.exists(), "who holds it keeps it"
    assert not folder.exists()
    with claim():
        pass


def test_relaxed_claims_are_shared_and_exclude_one_for_oneself_as_that_does_them(folder):
    with claim(relaxed=True), claim(relaxed=True):
        with pytest.raises(RunError, match="only labs that were all put up with --relaxed"):
            claim()
        state.remove_if_unused()
        assert folder.exists(), "who holds it keeps it"
    assert not folder.exists()
    with claim(), pytest.raises(RunError, match="another live lab runs"):
        claim(relaxed=True)


def test_a_name_is_claimed_by_one_and_what_a_killed_one_left_is_in_nobodys_way(folder):
    folder.mkdir()
    (folder / "one.starting").touch()
    with claim_name("one"):
        with pytest.raises(RunError, match="lab one is just being put up"), claim_name("one"):
            pass
        with claim_name("two"):
            pass
        assert [file.name for file in folder.iterdir()] == ["one.starting"]
    assert not folder.exists()


def test_a_claim_lasts_as_long_as_a_process_has_it(folder):
    with claim() as claimed:
        waits = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        holder = subprocess.Popen(waits, stdin=subprocess.PIPE, pass_fds=[claimed.fileno()])
    with holder:
        with pytest.raises(RunError, match="another live lab runs"):
            claim()
        holder.kill()
        holder.wait()
        with claim():
            pass


def test_no_name_that_a_user_binds_keeps_root_from_its_labs(folder):
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind("\0loko/live-lab")
        with claim():
            pass


def test_the_folder_of_root_is_closed_to_others(folder):
    with claim():
        assert folder.stat().st_mode & 0o077 == 0
