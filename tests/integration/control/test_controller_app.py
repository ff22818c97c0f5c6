"""The controller as a program, with scripted boards on loopback."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from in_process import in_process
from preloaded import PreloadedProgram
from reserved_port import ReservedPort
from scripted_board import FEATURES_REQUEST, HELLO, ScriptedBoard
from typer.testing import CliRunner

from loko.control.__main__ import admitted_tables, main
from loko.control.entries import EVALUATION_ENTRIES
from loko.document import LABS
from loko.terminal import user_errors_end
from loko.topology.lab import load_lab
from loko.topology.requests import load_flows
from loko_testbed.cli.main import app
from loko_testbed.live.emulation.__main__ import main as boards_main

DATAPATHS = (0x000070B3D56C0001, 0x000070B3D56C0002)
FLOWS = [
    {
        "id": f"{source}-{destination}",
        "source": source,
        "destination": destination,
        "udp_source": 5000,
        "udp_destination": 5001,
        "rate_bps": 590_000.0,
        "burst_bytes": 440.0,
        "frame_bytes": 306,
    }
    for source, destination in (("H1", "H3"), ("H3", "H1"), ("H2", "H4"), ("H4", "H2"))
]


TIMEOUT_S = 120
"""Loading the program takes a second, and much longer on a busy machine."""


def wait_for(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


class Controller:
    def __init__(self, folder: Path, *extra: str, flows: object = FLOWS) -> None:
        self.port = ReservedPort()
        self.address = ("127.0.0.1", self.port.number)
        self.ready = folder / "ready.json"
        self.log = folder / "log"
        self.boards: list[ScriptedBoard] = []
        (folder / "flows.json").write_text(json.dumps(flows))
        arguments = ["--lab", "two-switch", "--flows", str(folder / "flows.json"), "--ready", str(self.ready)]
        arguments += ["--listen", f"127.0.0.1:{self.address[1]}", *extra]
        self.process = PreloadedProgram(main, "loko.control", *arguments, out=self.log)

    def board(self, datapath_id: int, **options: Any) -> ScriptedBoard:
        def connected() -> bool:
            nonlocal board
            try:
                board = ScriptedBoard(self.address, datapath_id, **options)
            except ConnectionRefusedError:
                return False
            return True

        board: ScriptedBoard | None = None
        wait_for(connected, "the controller to listen")
        assert board is not None
        self.boards.append(board)
        return board

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=TIMEOUT_S)


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Controller]:
    running = Controller(tmp_path)
    yield running
    running.process.kill()
    running.process.wait()
    running.port.release()
    for board in running.boards:
        assert board.closed.wait(TIMEOUT_S)


def test_sets_up_both_switches_and_ends_cleanly(controller: Controller) -> None:
    first = controller.board(DATAPATHS[0])
    wait_for(lambda: len(first.table) == 17, "17 entries")
    assert not controller.ready.exists()
    second = controller.board(DATAPATHS[1])
    wait_for(controller.ready.exists, "the ready file")
    content = json.loads(controller.ready.read_text())
    assert content["switches"]["s1"] == {"datapath_id": "000070b3d56c0001", "entries": 17}
    assert len(second.table) == second.flow_mods == 17
    # It answers the board's 1.3 with 1.0, asks for the features at once, and writes at most a segment.
    assert {sent[0] for sent in first.messages} == {1}
    assert [sent[1] for sent in first.messages[:2]] == [HELLO, FEATURES_REQUEST]
    assert max(first.largest_read_bytes, second.largest_read_bytes) <= 536
    assert controller.end() == 0
    assert not controller.ready.exists()


@pytest.mark.parametrize(("forwarding", "entries"), [("per-flow", 17), ("vlan-stack", 3)])
def test_sets_up_emulated_boards_in_openflow_1_3(tmp_path: Path, forwarding: str, entries: int) -> None:
    running = Controller(tmp_path, "--openflow", "1.3", "--forwarding", forwarding)
    words = ["boards", "two-switch", "--controller", f"127.0.0.1:{running.address[1]}"]
    boards = PreloadedProgram(boards_main, *words, out=tmp_path / "boards", reads=True)
    try:
        wait_for(running.ready.exists, "the ready file")
        assert json.loads(running.ready.read_text())["switches"]["s2"]["entries"] == entries
        assert running.end() == 0
    finally:
        running.process.kill()
        running.port.release()
        boards.stdin.close()
        assert boards.wait(TIMEOUT_S) == 0  # they end with their standard input


def test_switch_that_vanishes_and_comes_back_is_set_up_again(controller: Controller) -> None:
    boards = [controller.board(datapath_id) for datapath_id in DATAPATHS]
    wait_for(controller.ready.exists, "the ready file")
    boards[0].vanish()
    wait_for(lambda: not controller.ready.exists(), "the ready file to go")
    again = controller.board(DATAPATHS[0])
    wait_for(controller.ready.exists, "the ready file again")
    assert len(again.table) == 17
    assert "s1: disconnected" in controller.log.read_text()


def test_silent_switch_is_closed(controller: Controller) -> None:
    board = controller.board(DATAPATHS[0])
    wait_for(lambda: len(board.table) == 17, "17 entries")
    board.answers = False
    assert board.closed.wait(TIMEOUT_S)
    assert "did not answer" in controller.log.read_text()


def test_unknown_datapath_is_refused_with_a_line(controller: Controller) -> None:
    board = controller.board(0x42)
    assert board.closed.wait(TIMEOUT_S)
    told = "as datapath 0x0000000000000042: no switch of the lab has this id"
    wait_for(lambda: told in controller.log.read_text(), "the line that says why")
    assert board.table == []


def test_board_that_lost_an_entry_gets_it_again_before_it_is_ready(controller: Controller) -> None:
    boards = [controller.board(datapath_id, loses=5) for datapath_id in DATAPATHS]
    wait_for(controller.ready.exists, "the ready file")
    assert [len({entry[:48] for entry in board.table}) for board in boards] == [17, 17]
    assert "its table has 16 entries instead of 17" in controller.log.read_text()


def test_boards_own_echo_is_answered(controller: Controller) -> None:
    board = controller.board(DATAPATHS[0])
    wait_for(lambda: len(board.table) == 17, "17 entries")
    board.ask_echo()
    reply = bytes.fromhex("01030008d2040000")
    wait_for(lambda: reply in board.messages, "the echo reply")


def ended(*arguments: str) -> tuple[int, str]:
    """Return the status and the errors of the program, run in this process."""

    def program() -> None:
        with user_errors_end():
            sys.exit(main())

    done = in_process(program, "loko.control", *arguments)
    return done.returncode, done.stderr


def test_busy_port_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "flows.json").write_text(json.dumps(FLOWS))
    with socket.create_server(("127.0.0.1", 0)) as busy:
        listen = f"127.0.0.1:{busy.getsockname()[1]}"
        words = ["--lab", "two-switch", "--flows", str(tmp_path / "flows.json"), "--listen", listen]
        done = subprocess.run(
            [sys.executable, "-m", "loko.control", *words],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: cannot listen on {listen}: Address already in use")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--lab", "three-switch", "lab 'three-switch': no such name"),
        ("--flows", "/nowhere.yml", "flows '/nowhere.yml': no such file"),
        ("--listen", "6633", "--listen '6633' is not an address and a port"),
        ("--allocation", "half-rate", "'half-rate' is unknown (allowed: full-rate, fifth-rate"),
        ("--ready", "/nowhere/ready", "--ready /nowhere/ready: its folder is missing"),
        ("--paths", "/nowhere.json", "paths '/nowhere.json': no such file"),
    ],
)
def test_wrong_input_is_one_line(tmp_path: Path, option: str, value: str, says: str) -> None:
    (tmp_path / "flows.json").write_text(json.dumps(FLOWS))
    options = {"--lab": "two-switch", "--flows": str(tmp_path / "flows.json")}
    options[option] = value
    status, text = ended(*(part for pair in options.items() for part in pair))
    assert status == 2
    assert says in text
    assert text.count("\n") == 1


@pytest.mark.parametrize(
    ("flow", "ports", "says"),
    [
        ("H1-H3", {"s1": 2}, "flow 'H1-H3': path [s1:2] does not lead from H1 to H3"),
        ("H9-H3", {"s1": 3, "s2": 1}, "paths: there is no flow 'H9-H3'"),
    ],
)
def test_wrong_path_is_one_line(tmp_path: Path, flow: str, ports: dict[str, int], says: str) -> None:
    path = [{"switch": switch, "output_port": port} for switch, port in ports.items()]
    (tmp_path / "flows.json").write_text(json.dumps(FLOWS))
    (tmp_path / "paths.json").write_text(json.dumps({flow: path}))
    options = {"--flows": str(tmp_path / "flows.json"), "--paths": str(tmp_path / "paths.json")}
    words = (part for pair in options.items() for part in pair)
    status, text = ended("--lab", "two-switch", *words)
    assert status == 2
    assert says in text
    assert text.count("\n") == 1


def test_refused_flow_ends_with_status_1(tmp_path: Path) -> None:
    flows = [{**FLOWS[0], "rate_bps": 5e6}]
    (tmp_path / "flows.json").write_text(json.dumps(flows))
    status, text = ended("--lab", "two-switch", "--flows", str(tmp_path / "flows.json"))
    assert status == 1
    assert text.startswith("refused: H1-H3: rate at s1")


@pytest.mark.parametrize(
    ("lab", "flows"),
    [("two-switch/lab.yml", "two-switch/flows.yml"), ("ring/five.yml", "ring/five-flows.yml")],
)
def test_the_controller_admits_the_flows_that_come_with_a_lab(lab: str, flows: str) -> None:
    """`loko lab up` starts the controller with these flows."""
    the_lab = load_lab(LABS / lab)
    requested = load_flows(LABS / flows)
    admitted = admitted_tables(the_lab, requested, None, EVALUATION_ENTRIES)
    assert set(admitted.entries) == set(the_lab.switches)
    assert set(admitted.guarantees_ns) == {flow.id for flow in requested}


@pytest.mark.parametrize(
    ("allocation", "scheme"),
    [("full-rate", "loko"), ("fifth-rate", "loko"), ("packet-granular", "packets")],
)
def test_the_controller_admits_exactly_what_loko_plan_admits(
    tmp_path: Path, allocation: str, scheme: str
) -> None:
    path, two_switch = tmp_path / "flows.json", load_lab("two-switch")

    def fits(rate_bps: int) -> tuple[bool, bool]:
        path.write_text(json.dumps([{**flow, "rate_bps": rate_bps} for flow in FLOWS]))
        words = ["plan", "two-switch", str(path), "--scheme", scheme]
        words += ["--allocation", allocation] if scheme == "loko" else []
        planned = CliRunner().invoke(app, words).exit_code == 0
        try:
            admitted_tables(two_switch, load_flows(path), allocation, EVALUATION_ENTRIES)
        except SystemExit:
            return planned, False
        return planned, True

    low, high = 100_000, 50_000_000
    assert (fits(low), fits(high)) == ((True, True), (False, False))
    while high - low > 1:
        middle = (low + high) // 2
        planned, installed = fits(middle)
        assert planned == installed, f"{middle} bit/s"
        low, high = (middle, high) if planned else (low, middle)
