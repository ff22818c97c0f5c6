"""Faucet stacks three boards into one switch, and reroutes around a broken stack cable.

The boards run without the firmware's quirks: when they connect at once, two replies may share a segment
(quirk 14).
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench import START_PATIENCE_S
from board_network import CONTROLLER_PORT, address
from live_harness import needs_namespaces
from programs import faucet

from loko_testbed.instruments.network_namespace import listens
from loko_testbed.live.one_board import UNHURRIED, BenchmarkBoards, Namespace, board_table, wait_for

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.waits,
    needs_namespaces,
]

BOARDS = (1, 2, 3)
WAY_S = 60.0
"""Time for Faucet to find its stack or to notice a broken cable; it checks every few seconds."""


def next_to(board: int) -> int:
    """Return the board at the other end of this board's port 3, which is that board's port 2."""
    return board % len(BOARDS) + 1


class Stack:
    """The boards with a host each, controlled by Faucet."""

    def __init__(self, inside: Namespace, hosts: dict[int, Namespace]) -> None:
        self._inside, self._hosts = inside, hosts

    def reaches(self, source: int, target: int) -> bool:
        """Return whether any of three echo requests is answered."""
        command = ["ping", "-q", "-i", "0.2", "-c", "3", "-W", "1", address(target)]
        asking = subprocess.run(self._hosts[source].command(*command), check=False, stdout=subprocess.DEVNULL)
        return asking.returncode == 0

    def wait_for_way(self, source: int, target: int) -> None:
        """Wait until an echo request is answered."""
        wait_for(lambda: self.reaches(source, target), f"way from {source} to {target}", WAY_S)

    def cut(self, board: int) -> None:
        """Disconnect the cable at port 3 and flush the hosts' neighbour tables."""
        self._inside.run("ip", "link", "set", f"s{board}-eth3", "down")
        for host in self._hosts.values():
            host.run("ip", "neighbour", "flush", "all")


@pytest.fixture
def stack(program: Path, tmp_path: Path) -> Iterator[Stack]:
    controller = faucet("faucet-stack.yaml")
    if missing := controller.missing():
        pytest.skip(missing)
    ends = [(f"h{board}", f"s{board}-eth1") for board in BOARDS]
    cables = [(f"s{board}-eth3", f"s{next_to(board)}-eth2") for board in BOARDS]
    with ExitStack() as open_:
        inside = open_.enter_context(Namespace([*ends, *cables]))
        hosts = {board: open_.enter_context(Namespace([])) for board in BOARDS}
        for board, host in hosts.items():
            host.take(f"h{board}", inside, f"{address(board)}/24")
        log = open_.enter_context((tmp_path / "controller.log").open("wb"))
        command = controller.command(tmp_path, "127.0.0.1", CONTROLLER_PORT)
        running = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *inside.command(*command)], stdout=log, stderr=log
        )
        open_.callback(running.wait)
        open_.callback(running.kill)
        wait_for(lambda: listens(inside.pid, CONTROLLER_PORT), "Faucet that listens", START_PATIENCE_S)
        tables = "".join(
            board_table(
                f"s{board}",
                f"127.0.0.1:{CONTROLLER_PORT}",
                {port: f"s{board}-eth{port}" for port in (1, 2, 3)},
                seed=board,
                settings=f'mac = "70:b3:d5:6c:00:0{board}"\nquirks = "spec"\n',
            )
            for board in BOARDS
        )
        open_.enter_context(BenchmarkBoards(program, inside, tmp_path, tables, process=UNHURRIED))
        yield Stack(inside, hosts)


def test_hosts_of_all_boards_reach_each_other_also_when_a_cable_breaks(stack: Stack) -> None:
    for source, target in itertools.combinations(BOARDS, 2):
        stack.wait_for_way(source, target)
    stack.cut(1)
    stack.wait_for_way(1, 2)
    stack.cut(3)
    assert not stack.reaches(1, 2), "a board without cables is reached by nobody"
    stack.wait_for_way(2, 3)
