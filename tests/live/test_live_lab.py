"""The live lab starts without stray frames, reports errors, and leaves nothing behind however it ends."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import typer
from disposable_root import ROOT
from live_harness import Machine, admitted, descendants, left, named, needs_namespaces, wait_until
from typer.testing import CliRunner

from loko.control.messages import features_request, hello
from loko.document import LABS
from loko.topology.lab import load_lab
from loko_testbed.cli.doctor import doctor
from loko_testbed.cli.lab import lab_app
from loko_testbed.instruments.emulator import emulator
from loko_testbed.instruments.network_namespace import namespace_of
from loko_testbed.live.background import BackgroundLab
from loko_testbed.live.boards import STALL_THRESHOLD_US
from loko_testbed.live.confinement import Confinement
from loko_testbed.live.containerlab import deployment
from loko_testbed.live.cores import NOT_JUDGED
from loko_testbed.live.permission import NEW_TREE
from loko_testbed.live.runner import LiveRunner
from loko_testbed.live.watch import port_rows, switch_rows
from loko_testbed.simulation.runner import RunError

pytestmark = [pytest.mark.namespaces, needs_namespaces]
waits = pytest.mark.waits

SETTING, TRAFFIC = admitted()
FLOWS = [admitted.flow for admitted in SETTING.admitted()]

app = typer.Typer()
app.add_typer(lab_app, name="lab")
app.command("doctor")(doctor)


@pytest.fixture
def machine():
    """Check that the machine is unchanged after the test."""
    before = Machine.now()
    yield before
    wait_until(lambda: Machine.now() == before, f"the machine is as before: {before} but {Machine.now()}")


def command(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


RUN_FOR_EVER = """
import signal, sys
sys.path[:0] = {path!r}
from live_harness import admitted
from loko_testbed.live.runner import LiveRunner
setting, traffic = admitted()
with LiveRunner(setting.lab, setting.admitted()) as runner:
    print("up", flush=True)
    runner.run(traffic, seconds=100, seed=1)
"""


@contextmanager
def run_for_ever():
    """Start an evaluating process and wait until it is in the middle of a run."""
    script = RUN_FOR_EVER.format(path=[*sys.path, str(Path(__file__).parent)])
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)

    def sending() -> bool:
        return sum(name == "mgen" for name, _ in named(process.pid)) == len(TRAFFIC)

    with process:
        try:
            assert process.stdout.readline() == "up\n"
            wait_until(sending, "mgen runs in every sending host")
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
def test_nothing_is_left_when_the_evaluation_is_killed_in_a_run(machine, number):
    with run_for_ever() as process:
        tree = descendants(process.pid)
        names = {name for name, _ in named(process.pid)}
        assert {"unshare", "mgen", "tcpdump", "zodiac-fx", "bash"} <= names
        process.send_signal(number)
        process.wait(timeout=30)
    wait_until(lambda: not left(tree), f"all of {len(tree)} processes have ended: {left(tree)}")
    wait_until(lambda: Machine.now() == machine, "the machine is as before")


def test_while_a_lab_is_up_a_second_one_is_refused_and_nothing_is_left_at_the_end(machine, monkeypatch):
    """Remains of other labs that were killed do not matter either."""
    monkeypatch.setattr("loko_testbed.live.exclusion._PATIENCE_S", 0.1)
    before = descendants(os.getpid())
    with LiveRunner(SETTING.lab, FLOWS) as runner:
        assert len(runner.run(TRAFFIC, seconds=0.5, seed=1)) > 0
        result = command("lab", "up", "two-switch")
        assert result.exit_code == 2
        assert "another live lab runs on this machine" in result.output
        tree = [process for process in descendants(os.getpid()) if process not in before]
        assert "zodiac-fx" in {name for name, _ in named(os.getpid())}
    assert not left(tree)


@waits
def test_a_lab_that_is_up_is_shown_carries_no_stray_frame_and_goes_down_without_its_file(
    relaxed, machine, tmp_path
):
    folder = tmp_path / "bench"
    folder.mkdir()
    text = (LABS / "two-switch" / "lab.yml").read_text().replace("name: two-switch", "name: bench")
    (folder / "lab.yml").write_text(text)
    flows = LABS / "two-switch" / "flows.yml"
    try:
        result = command("lab", "up", folder, "--flows", flows, "--relaxed")
        assert result.exit_code == 0, result.output
        assert f"warning: relaxed: {NOT_JUDGED}\n" in result.output
        time.sleep(1)
        result = command("lab", "status", "bench", "--json")
        assert result.exit_code == 0, result.output
        [view] = json.loads(result.output)
        assert (view["status"]["connected"], view["status"]["switches"]) == (2, 2)
        assert view["status"]["scheduling"] == f"other; {NOT_JUDGED}"
        for counters in view["status"]["counters"].values():
            assert counters["received"] == 0, "a stray frame"
        shown = {line["what"] for line in view["processes"]}
        assert {"zodiac-fx", "shell of H1", "shell of s2", "loko.control"} <= shown
        result = command("lab", "up", folder)
        assert result.exit_code == 2
        assert "lab bench is up already" in result.output
        shutil.rmtree(folder)
    finally:
        tree = descendants(view["pid"]) if "view" in locals() else []
        result = command("lab", "down", folder)
    assert result.output == "lab bench is down\n"
    assert not left(tree)
    assert command("lab", "status", "bench").output == "lab bench is not up\n"


@waits
def test_relaxed_labs_are_up_together_as_the_page_says_and_each_ends_by_itself(apart, machine, monkeypatch):
    """They use the same host and interface names, addresses and ports."""
    monkeypatch.setattr("loko_testbed.live.exclusion._PATIENCE_S", 0.1)
    section = (
        (ROOT / "docs" / "live-lab.md").read_text().split("## Several labs at once")[1].split("\n## ")[0]
    )
    lines = [line.split() for line in section.splitlines() if line.startswith("    ")]
    assert [line[:4] for line in lines] == [["sudo", "loko", "lab", "up"]] * 2
    try:
        for _, _, *words in lines:
            result = command(*words)
            assert result.exit_code == 0, result.output
        labs = {lab.name: lab for lab in BackgroundLab.all()}
        assert set(labs) == {"bench", "two-switch"}
        trees = {name: descendants(lab.pid) for name, lab in labs.items()}
        namespaces = {namespace_of(int(lab.way_into("H1")[-1])).readlink() for lab in labs.values()}
        assert len(namespaces) == 2
        alone = command("lab", "up", LABS / "ring" / "five.yml")
        assert alone.exit_code == 2
        assert "only labs that were all put up with --relaxed can be up together" in alone.output
        psutil.Process(labs["bench"].pid).kill()
        wait_until(lambda: not left(trees["bench"]), "the lab has ended with its outermost process")
        assert left(trees["two-switch"]) == trees["two-switch"]
        status = labs["two-switch"].status()
        assert (status.connected, status.switches) == (2, 2)
    finally:
        for name in ("two-switch", "bench"):
            command("lab", "down", name)


@waits
def test_commands_run_in_the_hosts_of_a_lab_that_is_up(relaxed, machine):
    def loko(*words: str, said: str = ""):
        call = [sys.executable, "-c", "from loko_testbed.cli.main import main; main()", "lab", *words]
        return subprocess.run(call, input=said, capture_output=True, text=True, timeout=60, check=False)

    none = command("lab", "exec", "two-switch", "H1", "true")
    assert (none.exit_code, none.stderr.count("\n")) == (2, 1)
    assert "lab two-switch is not up: start it with 'loko lab up two-switch'" in none.stderr
    assert "no lab is up" in command("lab", "shell", "H1").stderr
    try:
        assert command("lab", "up", "two-switch", "--relaxed").exit_code == 0
        for host, address in (("H1", "10.0.0.1/24"), ("H3", "10.0.0.3/24")):
            told = loko("exec", "two-switch", host, "ip", "-4", "-o", "address", "show", "scope", "global")
            assert (told.returncode, told.stderr) == (0, "")
            assert address in told.stdout
        assert loko("exec", "two-switch", "H1", "sh", "-c", "exit 7").returncode == 7
        for words in (("shell", "H2"), ("shell", "two-switch", "H2")):
            told = loko(*words, said="ip -4 address show scope global; exit 5\n")
            assert told.returncode == 5
            assert "10.0.0.2/24" in told.stdout
        ping = loko("exec", "two-switch", "H1", "ping", "-c", "1", "-W", "1", "10.0.0.3")
        assert ping.returncode == 1
        assert "100% packet loss" in ping.stdout
        assert ping.stderr.startswith("note: the lab's controller lets only its admitted flows pass")
        assert "UDP from H1 port" in ping.stderr
        for words, says in (
            (("exec", "two-switch", "H9", "true"), "has no node 'H9' to run commands in (nodes: H1, H2"),
            (("exec", "two-switch", "H1", "no-such-program"), "no-such-program: there is no such program"),
        ):
            wrong = command("lab", *words)
            assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)
            assert says in wrong.stderr
    finally:
        command("lab", "down", "two-switch")


@waits
def test_a_lab_takes_a_controller_of_ones_own_and_can_be_watched(relaxed, machine):
    """The controller is outside the lab. When it ends first, the boards report that."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    for words, says in (
        (("--controller", "tcp:6633"), "--controller 'tcp:6633' is not an address and a port such as"),
        (("--no-controller", "--controller", "tcp:[::1]:6633"), "--no-controller and --controller: give one"),
        (("--no-controller", "--flows", "flows.yml"), "--flows: are for Loko's own controller"),
    ):
        wrong = command("lab", "up", "two-switch", "--relaxed", *words)
        assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)
        assert says in wrong.stderr
    try:
        up = command("lab", "up", "two-switch", "--relaxed", "--controller", f"tcp:127.0.0.1:{port}")
        assert up.exit_code == 0, up.output
        assert f"controller: tcp:127.0.0.1:{port} of this machine\n" in up.output
        boards = []
        listening.settimeout(30)
        while len(boards) < 2:
            board, _ = listening.accept()
            board.settimeout(30)
            if board.recv(8)[:2] not in (b"\x01\x00", b"\x04\x00"):  # HELLO
                board.close()  # somebody who looks for a server that had this port before
                continue
            board.sendall(hello(1))
            board.sendall(features_request(2))
            boards.append(board)
        [lab] = BackgroundLab.all()
        wait_until(lambda: lab.status().connected == 2, "both boards are connected")
        ping = [
            sys.executable,
            "-c",
            "from loko_testbed.cli.main import main; main()",
            "lab",
            "exec",
            "two-switch",
        ]
        ping += ["H1", "ping", "-c", "1", "-W", "1", "10.0.0.3"]
        told = subprocess.run(ping, capture_output=True, text=True, timeout=60, check=False)
        assert told.stderr == (
            "note: all switches have a controller; what passes is up to its entries (docs/live-lab.md)\n"
        )
        before = lab.status()
        subprocess.run(ping, capture_output=True, timeout=60, check=False)
        now = lab.status()
        grown = {row.peer: (row.received, row.sent) for row in port_rows(before, now) if row.switch == "s1"}
        assert grown["H1"] == (1, 0)
        first = next(row for row in switch_rows(before, now) if row.switch == "s1")
        assert (first.received, first.forwarded, first.missed, first.lost) == (1, 0, 1, 0)
        assert first.walk == 0, "the table is empty"
        watched = command("lab", "watch", "two-switch", "--interval", "0.1", "--count", "2")
        assert (watched.exit_code, watched.output.count("table walk")) == (0, 2)
        assert max(map(len, watched.output.splitlines())) <= 80
        times = ("--interval", "0.1", "--count", "2")
        looks = command("lab", "watch", "two-switch", *times, "--json").output.splitlines()
        assert [[row["switch"] for row in json.loads(look)["switches"]] for look in looks] == [
            ["s1", "s2"]
        ] * 2
        assert json.loads(looks[0])["connected"] == 2
        rows = list(
            csv.DictReader(command("lab", "watch", "two-switch", *times, "--csv").output.splitlines())
        )
        assert [(row["look"], row["switch"], row["received"]) for row in rows] == [
            (look, switch, "0") for look in "12" for switch in ("s1", "s2")
        ]
        for board in boards:
            board.close()
        wait_until(lambda: lab.status().connected == 0, "the boards know that the controller has ended")
    finally:
        listening.close()
        command("lab", "down", "two-switch")


@waits
def test_a_lab_comes_up_without_a_quirk(relaxed, machine):
    """Without `newest-hello`, the HELLO of a board names all its versions."""
    wrong = command("lab", "up", "two-switch", "--relaxed", "--without-quirk", "newest-helo")
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)
    assert "--without-quirk, s1: config: no quirk is called `newest-helo`; the nearest are newest-hello" in (
        wrong.stderr
    )
    words = ("--relaxed", "--without-quirk", "newest-hello", "--without-quirk", "flood-is-all")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"tcp:127.0.0.1:{listening.getsockname()[1]}"
        try:
            up = command("lab", "up", "two-switch", "--controller", address, *words)
            assert up.exit_code == 0, up.output
            for _ in range(2):
                listening.settimeout(30)
                board, _ = listening.accept()
                with board:
                    board.settimeout(30)
                    assert board.recv(16).startswith(b"\x04\x00\x00\x10"), "HELLO with a list of versions"
        finally:
            command("lab", "down", "two-switch")


@waits
def test_a_controller_can_run_inside_of_a_lab(relaxed, machine):
    try:
        up = command("lab", "up", "two-switch", "--relaxed", "--no-controller")
        assert up.exit_code == 0, up.output
        assert "controller: none yet; switches look for one at 127.0.0.1:6633, inside the lab\n" in up.output
        inside = [
            sys.executable,
            "-c",
            "from loko_testbed.cli.main import main; main()",
            "lab",
            "exec",
            "two-switch",
        ]
        [lab] = BackgroundLab.all()
        listen = (
            "import socket; s = socket.create_server(('127.0.0.1', 6633)); print(s.accept()[0].recv(8)[1])"
        )
        told = subprocess.run(
            [*inside, "s1", sys.executable, "-c", listen],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert told.stdout == "0\n", "a board says HELLO"
        ping = subprocess.run(
            [*inside, "H1", "ping", "-c", "1", "-W", "1", "10.0.0.3"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "without one they forward nothing; controller: none yet" in ping.stderr
        assert lab.status().flows == ()
    finally:
        command("lab", "down", "two-switch")


@waits
def test_what_a_crash_left_does_not_stop_the_next_lab(relaxed, machine):
    assert command("lab", "up", "two-switch", "--relaxed").exit_code == 0
    [running] = BackgroundLab.all()
    tree = descendants(running.pid)
    psutil.Process(running.pid).kill()
    wait_until(lambda: not left(tree), "all processes have ended with the outermost")
    try:
        assert command("lab", "up", "two-switch", "--relaxed").exit_code == 0
    finally:
        assert command("lab", "down", "two-switch").exit_code == 0


@waits
def test_an_emulator_that_dies_in_a_run_is_told(relaxed):
    with LiveRunner(SETTING.lab, FLOWS, cores=relaxed) as runner:
        [boards] = [process for name, process in named(os.getpid()) if name == "zodiac-fx"]
        boards.kill()
        with pytest.raises(RunError, match=r"the emulator ended \(exit status -9\)"):
            runner.run(TRAFFIC, seconds=0.1, seed=1)


@waits
def test_a_lab_process_that_dies_is_told(relaxed):
    with LiveRunner(SETTING.lab, FLOWS, cores=relaxed) as runner:
        [outer] = [process for name, process in named(os.getpid()) if name == "unshare"]
        tree = descendants(outer.pid)
        outer.kill()
        wait_until(lambda: not left(tree), "the tree has ended with its outermost process")
        with pytest.raises(RunError, match="the lab ended by itself"):
            runner.status()


@waits
def test_flows_that_do_not_fit_are_the_controllers_refusal(relaxed):
    greedy = [flow._replace(rate_bps=50 * flow.rate_bps) for flow in FLOWS]
    with pytest.raises(RunError, match=r"the controller ended \(exit status 1\): .*refused"):
        LiveRunner(SETTING.lab, greedy, cores=relaxed).__enter__()


@waits
def test_a_lab_file_that_vanished_is_wrong_input(relaxed, tmp_path):
    path = shutil.copy(LABS / "two-switch" / "lab.yml", tmp_path / "lab.yml")
    lab = load_lab(path).as_printed()
    path.unlink()
    with pytest.raises(RunError, match=r"lab\.yml"):
        LiveRunner(lab, FLOWS, cores=relaxed).__enter__()


@waits
def test_without_root_one_line_says_so(apart, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(RunError, match="needs root: run it with sudo"):
        Confinement.start()
    result = command("lab", "up", "two-switch")
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    result = command("doctor", "--quick", "--json")
    assert result.exit_code == 1
    first = json.loads(result.stdout)["findings"][0]
    assert (first["what"], first["level"]) == ("root", "missing")


@waits
def test_without_the_emulator_one_line_says_so(apart, monkeypatch, machine):
    monkeypatch.setenv("LOKO_EMULATOR", "/nowhere/zodiac-fx")
    result = command("lab", "up", "two-switch")
    assert result.exit_code == 2
    assert "the emulator is not built: run 'make setup'" in result.output


@waits
def test_without_containerlab_one_line_says_so_and_nothing_is_left(apart, machine, monkeypatch):
    monkeypatch.setattr(deployment, "locate", lambda name: None)
    result = command("lab", "up", LABS / "ring" / "five.yml", "--builder", "containerlab")
    assert result.exit_code == 2
    assert result.output == ("error: the program 'containerlab' is missing: 'make containerlab' builds it\n")
    result = command("lab", "up", LABS / "ring" / "five.yml", "--builder", "containerlab", "--relaxed")
    assert result.exit_code == 2
    assert "--builder containerlab: its boards want the machine; leave --relaxed out" in result.output
    result = command("lab", "down", LABS / "ring" / "five.yml", "--builder", "containerlab")
    assert result.exit_code == 2
    assert "the program 'docker' is missing: apt-get install docker.io" in result.output


def test_the_doctor_finds_that_live_runs_are_possible_here_and_judges_what_it_measured(machine):
    result = command("doctor", "--quick", "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == (0 if told["trusted"] else 1)
    findings = {finding["what"]: finding for finding in told["findings"]}
    assert findings["zodiac-fx"]["found"] == str(emulator())
    assert not [finding for finding in findings.values() if finding["level"] == "missing"]
    noise = told["facts"]["noise"]
    assert noise["duration_ns"] >= 1e9
    assert noise["scheduling"].startswith("deadline") == told["facts"]["deadline"]
    assert noise["threshold_ns"] == STALL_THRESHOLD_US * 1000
    assert all(duration > noise["threshold_ns"] for _, duration in noise["stalls"])


def test_the_doctor_tells_one_line_for_each_finding(monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    result = command("doctor", "--quick")
    told = result.stdout.splitlines()
    assert any(line.split()[1:3] == ["CPU", "noise"] for line in told)
    assert "live" in told[-1].lower()


VERIFY = """
import subprocess
from loko.topology.lab import load_lab
from loko_testbed.instruments.network_namespace import set_up_namespace
from loko_testbed.live.network import LiveNetwork
set_up_namespace("the test")
network = LiveNetwork(load_lab("two-switch"))
subprocess.run([*network.inside("H1"), *{disturbance!r}], check=True)
network.verify()
"""


@waits
@pytest.mark.parametrize(
    ("disturbance", "complaint"),
    [
        (
            ["tc", "qdisc", "add", "dev", "H1-eth0", "root", "pfifo"],
            "shaping should be ['noqueue'] but is ['pfifo']",
        ),
        (["ethtool", "-K", "H1-eth0", "tx", "on"], "tx-checksumming should be False but is True"),
        (
            ["ip", "address", "add", "10.9.9.9/24", "dev", "H1-eth0"],
            "addresses should be ['10.0.0.1/24'] but is",
        ),
        (["ip", "link", "set", "H1-eth0", "down"], "state UP should be UP but is DOWN"),
    ],
    ids=["shaping", "offload", "address", "down"],
)
def test_a_network_that_is_not_as_asked_for_is_refused(disturbance, complaint):
    done = subprocess.run(
        [*NEW_TREE, sys.executable, "-c", VERIFY.format(disturbance=disturbance)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert f"RunError: H1: port 1 (H1-eth0): {complaint}" in done.stderr.splitlines()[-1]
