"""`ovs-ofctl -O OpenFlow13` reads and fills a board's tables through a proxy, as recorded in `ofctl.yml`."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import ofctl_outcomes
import pytest
from live_harness import needs_namespaces
from ofctl_outcomes import Command
from ofctl_proxy import OfctlProxy

from loko_testbed.live.one_board import TIMEOUT_S, UNHURRIED, BenchmarkBoards, Namespace, board_table

OFCTL = shutil.which("ovs-ofctl")
OPENFLOW_13 = 4
REPLY_S, NO_REPLY_S = 20, 2
"""How long a command may wait for its reply; shorter for commands that never get one."""


def carry_out(typed: Command, inside: Namespace, port: int, timeout_s: int) -> str:
    """Run a command and return its output."""
    verb, *arguments = typed.command.split()
    options = ["-O", "OpenFlow13", "-t", str(timeout_s)]
    command = inside.command(str(OFCTL), *options, verb, f"tcp:127.0.0.1:{port}", *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.mark.namespaces
@pytest.mark.waits
@needs_namespaces
@pytest.mark.skipif(OFCTL is None, reason="ovs-ofctl is not installed: package openvswitch-common")
@pytest.mark.parametrize("mode", ["firmware", "spec"])
def test_commands(mode: str, program: Path, tmp_path: Path) -> None:
    with ExitStack() as open_:
        inside = open_.enter_context(Namespace([]))
        with inside.entered():
            proxy = open_.enter_context(OfctlProxy(OPENFLOW_13))
        board = board_table("s1", f"127.0.0.1:{proxy.board_port}", {}, settings=f'quirks = "{mode}"\n')
        boards = open_.enter_context(BenchmarkBoards(program, inside, tmp_path, board, process=UNHURRIED))
        assert proxy.ready.wait(TIMEOUT_S), boards.log()
        for command in ofctl_outcomes.load():
            answers = command.works(mode) or command.command != "queue-stats"
            shown = carry_out(command, inside, proxy.command_port, REPLY_S if answers else NO_REPLY_S)
            assert command.shown_in(shown) == command.works(mode), f"{command.command}: {shown}{boards.log()}"
        assert proxy.board_sessions == 1, f"the board's entries were to stay: {boards.log()}"
    assert proxy.most_at_once == 2, "`show` opens a second connection"


def test_documentation_tells_the_outcomes() -> None:
    text = ofctl_outcomes.DOCUMENT.read_text()
    assert ofctl_outcomes.written(text) == text, "run 'python tests/clients/ofctl_outcomes.py'"
