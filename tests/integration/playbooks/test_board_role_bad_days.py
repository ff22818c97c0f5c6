"""The role `board` when it is interrupted: it is killed, or the board falls silent or sends unasked lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from board_role import parameters, role_module
from console_relay import ConsoleRelay

pytest_plugins = ["board_role_fixtures"]
pytestmark = [pytest.mark.live, pytest.mark.waits]

role = role_module()

WISHES = {
    "name": "s1",
    "ip_address": "10.0.2.99",
    "netmask": "255.255.0.0",
    "gateway": "10.0.2.1",
    "controller_address": "10.0.2.8",
    "controller_port": 6653,
    "openflow": True,
    "openflow_version": 1,
    "fail_state": "safe",
    "vlans": [
        {"id": 100, "name": "Openflow", "type": "openflow", "tagged": False, "ports": [1, 2]},
        {"id": 300, "name": "Controller", "type": "native", "tagged": False, "ports": [3, 4]},
    ],
}
LOOKING = {"", "show version", "show ports", "config", "show config", "show vlans", "exit"}
"""Commands that change nothing."""

RUN = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from board_role import role_module
role_module().configure(json.loads(sys.argv[2]), check=False)
"""


@pytest.fixture
def relay(board, tmp_path):
    made = ConsoleRelay(board.console, tmp_path / "relay")
    yield made
    made.unplug()


@pytest.fixture
def wanted(relay, tmp_path):
    """The arguments of the role."""
    return parameters(relay.console, tmp_path / "state", **WISHES)


def test_check_mode_types_nothing_that_changes_the_board(relay, wanted, tmp_path):
    answer = role.configure(wanted, check=True)
    assert answer["changed"]
    assert "set ip-address 10.0.2.99" in answer["commands"]
    assert "show config" in relay.commands()
    assert set(relay.commands()) <= LOOKING
    assert not (tmp_path / "state").exists()


def test_a_second_run_only_looks(relay, wanted):
    first = role.configure(wanted, check=False)
    assert first["changed"]
    assert {"save", "restart"} <= set(relay.commands())
    relay.typed.clear()
    second = role.configure(wanted, check=False)
    assert (second["changed"], second["unfinished"]) == (False, False)
    assert set(relay.commands()) <= LOOKING


@pytest.mark.parametrize("lines_between", [1, 3, 7])
def test_lines_that_nobody_asked_for_are_no_answers(relay, wanted, lines_between):
    relay.lines_between = lines_between
    first = role.configure(wanted, check=False)
    assert first["restarted"]
    assert (first["firmware"], first["board"]["controller_address"]) == ("0.84", "10.0.2.8")
    assert first["board"]["vlans"] == WISHES["vlans"]
    assert not role.configure(wanted, check=False)["changed"]


@pytest.mark.parametrize(
    "last_typed",
    [
        b"set ip-addr",
        b"\rset of-controller 10.0.2.8\r",
        b"\radd vlan-port 300 4\r",
        b"\rsave\r",
        b"\rrestart\r",
    ],
    ids=["in a line", "in the network", "before saving", "while it saves", "while it restarts"],
)
def test_what_a_killed_run_left_is_finished_by_the_next(board, relay, wanted, last_typed):
    path = [*sys.path, str(Path(__file__).parent)]
    with subprocess.Popen([sys.executable, "-c", RUN, json.dumps(path), json.dumps(wanted)]) as killed:

        def kill(typed):
            if typed.endswith(last_typed):
                os.kill(killed.pid, signal.SIGKILL)

        relay.on_typed = kill
        assert killed.wait(120) == -signal.SIGKILL
    relay.on_typed = lambda typed: None
    told = role.configure(wanted, check=True)
    assert (told["changed"], told["unfinished"]) == (True, True)
    mended = role.configure(wanted, check=False)
    assert (mended["restarted"], mended["restart_pending"]) == (True, False)
    met = relay.met
    board.switch_off(signal.SIGKILL)
    board.switch_on()
    relay.wait_for_next(met)
    kept = role.configure(wanted, check=False)
    assert (kept["changed"], kept["unfinished"]) == (False, False)


def test_a_board_that_goes_mute_is_named_and_mended_when_it_speaks_again(relay, wanted):
    hasty = wanted | {"timeout_s": 1.0}
    relay.deaf_after = b"set netmask"
    with pytest.raises(role.ConsoleError, match=r"nothing answers within 1 s.*power") as caught:
        role.configure(hasty, check=False)
    assert str(relay.console) in str(caught.value)
    assert "\n" not in str(caught.value)
    relay.deaf_after = b""
    mended = role.configure(wanted | {"timeout_s": 5.0}, check=False)
    assert (mended["unfinished"], mended["restarted"]) == (True, True)


def test_a_restart_that_was_not_wanted_is_made_up_for_when_it_is(wanted):
    assert role.configure(wanted | {"restart": False}, check=False)["restart_pending"]
    again = role.configure(wanted | {"restart": False}, check=False)
    assert (again["changed"], again["restart_pending"]) == (False, True)
    done = role.configure(wanted, check=False)
    assert (done["changed"], done["restarted"], done["commands"]) == (True, True, [])


def test_notes_that_cannot_be_kept_are_told_before_anything_is_changed(relay, wanted, tmp_path):
    (tmp_path / "state").touch()
    with pytest.raises(OSError, match="state"):
        role.configure(wanted, check=False)
    assert set(relay.commands()) <= LOOKING
