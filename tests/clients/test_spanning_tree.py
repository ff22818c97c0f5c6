"""os-ken's spanning-tree switch for 1.3 opens a ring of three boards that follow the specification."""

from __future__ import annotations

import itertools
import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from board_network import CONTROLLER_PORT, address, mac
from live_harness import needs_namespaces
from programs import early

from loko_testbed.live.one_board import UNHURRIED, BenchmarkBoards, Namespace, board_table, wait_for

SWITCH = early("os_ken", "os_ken.app.simple_switch_stp_13")
BOARDS = (1, 2, 3)
PINGS = 2
"""From each host to each other one: 12 in all."""
CONVERGENCE_S = 150.0
"""A port listens and learns for 15 s each; busy machines start programs slowly."""
_STATE = re.compile(r"dpid=(\w+): \[port=(\d+)\] \w+ +/ (\w+)")


def states(log: Path) -> list[str]:
    """Return the latest state of each port, as the controller's log has it."""
    latest = {(board, port): state for board, port, state in _STATE.findall(log.read_text())}
    return sorted(latest.values())


@pytest.mark.namespaces
@pytest.mark.waits
@needs_namespaces
@pytest.mark.timeout(400)
def test_a_ring_of_three_converges_and_all_hosts_meet(program: Path, tmp_path: Path) -> None:
    if missing := SWITCH.missing():
        pytest.skip(missing)
    boards = "".join(
        board_table(
            f"s{board}",
            f"127.0.0.1:{CONTROLLER_PORT}",
            {port: f"s{board}-eth{port}" for port in (1, 2, 3)},
            settings=f'mac = "70:b3:d5:6c:0{board}:00"\nopenflow_version = 4\nquirks = "spec"\n',
        )
        for board in BOARDS
    )
    ring = [(f"s{board}-eth2", f"s{board % len(BOARDS) + 1}-eth3") for board in BOARDS]
    log = tmp_path / "controller.log"
    with ExitStack() as stack:
        inside = stack.enter_context(Namespace([*ring, *((f"h{it}", f"s{it}-eth1") for it in BOARDS)]))
        hosts = {board: stack.enter_context(Namespace([])) for board in BOARDS}
        for number, host in hosts.items():
            host.take(f"h{number}", inside, f"{address(number)}/24", mac=mac(number))
        controller = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL"),
                *inside.command(*SWITCH.command(tmp_path, "127.0.0.1", CONTROLLER_PORT)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=stack.enter_context(log.open("wb")),
            stderr=subprocess.STDOUT,
        )
        stack.callback(controller.wait)
        stack.callback(controller.kill)
        stack.enter_context(BenchmarkBoards(program, inside, tmp_path, boards, process=UNHURRIED))
        opened = ["BLOCK", *["FORWARD"] * 8]
        wait_for(lambda: states(log) == opened, "ring with one blocked port", CONVERGENCE_S)
        answered = {
            (source, target): subprocess.run(
                hosts[source].command("ping", "-nqW1", "-i0.2", f"-c{PINGS}", address(target)),
                capture_output=True,
                text=True,
                check=False,
            ).stdout
            for source, target in itertools.permutations(BOARDS, 2)
        }
    assert all(f"{PINGS} received" in text for text in answered.values()), answered
