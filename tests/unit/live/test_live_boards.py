"""The emulator's configuration and report, cores, and how a program's failure is reported."""

import signal
import sys
import tomllib
from dataclasses import replace
from ipaddress import IPv4Interface

import pytest

from loko.topology.lab import load_lab
from loko_testbed.instruments.programs import require, run, run_json
from loko_testbed.live.boards import BoardsReport, configuration
from loko_testbed.live.cores import CorePlan
from loko_testbed.live.daemon import Daemon
from loko_testbed.live.messages import controller_address
from loko_testbed.live.network import interface
from loko_testbed.simulation.runner import RunError, Stall

LAB = load_lab("two-switch")


def test_one_configuration_holds_all_boards(tmp_path):
    ports = {"s1": {1: "s1-eth1", 3: "s1-eth3"}, "s2": {3: "s2-eth3"}}
    text = configuration(LAB, ports, controller="127.0.0.1:6633", cpu=1, seed=5, folder=tmp_path)
    data = tomllib.loads(text)
    assert data["process"] == {
        "cpu": 1,
        "scheduling": "deadline",
        "stall_threshold_us": 50,
        "powered_for_ms": 1900,
        "report": str(tmp_path / "report.json"),
        "ready": str(tmp_path / "boards.ready"),
    }
    first, second = data["board"]
    assert first == {
        "name": "s1",
        "profile": "zodiac-fx",
        "controller": "127.0.0.1:6633",
        "seed": 5,
        "console": str(tmp_path / "s1-console"),
        "ports": {"1": "s1-eth1", "3": "s1-eth3"},
        "config": dict(LAB.switches["s1"].config),
    }
    assert (second["name"], second["seed"]) == ("s2", 6)


def test_boards_of_a_relaxed_lab_have_no_core_and_no_priority(tmp_path):
    text = configuration(LAB, {"s1": {1: "a"}}, controller="127.0.0.1:1", cpu=None, seed=5, folder=tmp_path)
    process = tomllib.loads(text)["process"]
    assert (process["scheduling"], process["rest_us"]) == ("other", 1000)
    assert "cpu" not in process


def test_boards_that_connect_by_themselves_are_told_so(tmp_path):
    lab = replace(LAB, controller=IPv4Interface("10.0.1.8/25"))
    ports = {"s1": {1: "s1-eth1", 4: "s1-eth4"}, "s2": {4: "s2-eth4"}}
    address = controller_address(lab)
    first, _ = tomllib.loads(configuration(lab, ports, controller=address, cpu=1, seed=5, folder=tmp_path))[
        "board"
    ]
    assert (first["controller"], first["config"]["control"]) == ("10.0.1.8:6633", "network")
    assert (first["config"]["ip_address"], first["config"]["netmask"]) == ("10.0.1.99", "255.255.255.128")


REPORT = {
    "boards": {"s1": {"counters": {"received": 3}, "connected": True}},
    "lateness_ns": {"count": 9, "p50": 1, "p99": 2, "p999": 3, "max": 4},
    "stalls": {"list": [[100, 60_000]], "truncated": False},
    "interface_losses": {"s1-eth1": 2, "s1-eth2": 0},
    "scheduling": "deadline, core 1",
}


def test_a_report_is_read():
    report = BoardsReport.parse(REPORT)
    assert report.counters == {"s1": {"received": 3}}
    assert report.lateness_ns == {"p50": 1, "p99": 2, "p999": 3, "max": 4}
    assert report.stalls == (Stall(start_ns=100, duration_ns=60_000),)
    assert report.interface_losses == 2


@pytest.mark.parametrize("key", list(REPORT))
def test_a_report_without_a_part_is_refused(key):
    with pytest.raises(RunError, match="report lacks"):
        BoardsReport.parse({name: value for name, value in REPORT.items() if name != key})


def test_the_emulator_gets_the_last_core():
    assert CorePlan.of({0, 1, 2}) == CorePlan(emulator=2, others=frozenset({0, 1}))
    assert CorePlan.of({0, 1}).warning is None


def test_a_single_core_is_shared_with_a_warning():
    plan = CorePlan.of({3})
    assert (plan.emulator, plan.others) == (3, frozenset({3}))
    assert "one core only" in plan.warning


def test_a_relaxed_lab_is_on_all_cores_and_says_what_its_delays_are_worth(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    plan = CorePlan.relaxed_here()
    assert plan.others == {0, 1, 2}
    assert plan.warning.startswith("relaxed: its delays say nothing of the switches")


def test_interfaces_have_mininets_names():
    names = [interface(end, LAB) for link in LAB.links for end in (link.a, link.b)]
    assert names[:2] == ["H1-eth0", "s1-eth1"]
    assert names[-2:] == ["s1-eth3", "s2-eth3"]


def test_a_program_that_ends_is_told_with_its_last_words(tmp_path):
    daemon = Daemon(
        "the program",
        [sys.executable, "-c", "import sys; print('no port'); sys.exit(3)"],
        log=tmp_path / "log",
        ready=tmp_path / "ready",
    )
    with pytest.raises(RunError, match=r"the program ended \(exit status 3\): no port"):
        daemon.wait_ready(20)


def test_a_program_that_is_never_ready_is_told(tmp_path):
    daemon = Daemon("the program", ["sleep", "30"], log=tmp_path / "log", ready=tmp_path / "ready")
    try:
        with pytest.raises(RunError, match=r"the program is not ready after 0\.05 s: empty log"):
            daemon.wait_ready(0.05)
    finally:
        daemon.signal(signal.SIGKILL)
        with pytest.raises(RunError, match="exit status -9"):
            daemon.wait_ready(20)


def test_a_missing_program_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr("loko_testbed.instruments.programs.locate", lambda program: None)
    with pytest.raises(RunError, match=r"'mnexec' is missing: install it with 'apt-get install mininet'"):
        require("mnexec")


def test_a_failing_command_is_an_error():
    with pytest.raises(RunError, match=r"cable: 'ls /nowhere' failed: .*No such file"):
        run(["ls", "/nowhere"], what="cable")


def test_output_that_is_no_json_is_an_error():
    with pytest.raises(RunError, match="printed no JSON"):
        run_json(["echo", "hello"], what="cable")
