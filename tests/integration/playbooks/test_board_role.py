"""The role `board` with emulated consoles at pseudo-terminals, which stand for a real board's USB port."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
import serial
import yaml
from board_role import ROOT, BoardAtPseudoTerminal, parameters, role_module

from loko_testbed.live.one_board import wait_for

pytest_plugins = ["board_role_fixtures"]
pytestmark = [pytest.mark.live, pytest.mark.waits]

role = role_module()

PROMPT = b"Zodiac_FX# "
VLANS = [
    {"id": 100, "name": "Openflow", "type": "openflow", "tagged": False, "ports": [1, 2]},
    {"id": 300, "name": "Controller", "type": "native", "tagged": False, "ports": [3, 4]},
]


def configure(board, *, check=False, **wishes):
    return role.configure(parameters(board.console, board.folder / "state", **wishes), check=check)


def say(board, keys, until=PROMPT):
    """Send keys in one open-write-read-close cycle, as many programs do; return the answer up to `until`."""
    with serial.Serial(str(board.console), timeout=10) as port:
        port.write(keys)
        return port.read_until(until)


def test_the_role_configures_once_and_a_power_cycle_keeps_it(board, tmp_path):
    wishes = {
        "board_device": str(board.console),
        "board_state_folder": str(tmp_path / "state"),
        "board_name": "s1",
        "board_ip_address": "10.0.2.99",
        "board_controller_address": "10.0.2.8",
        "board_controller_port": 6653,
        "board_fail_state": "safe",
        "board_openflow_version": 1,
        "board_vlans": VLANS,
    }
    inventory = tmp_path / "boards.yml"
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        **wishes,
    }
    inventory.write_text(yaml.safe_dump({"boards": {"hosts": {"s1": host}}}))

    def play(*options):
        command = ["ansible-playbook", "-i", str(inventory), "playbooks/board.yml", *options]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    assert "changed=1" in play("--check", "--diff")
    assert not board.eeprom.exists()
    assert "changed=1" in play()
    board.switch_off(signal.SIGKILL)
    assert board.console.is_symlink()
    board.switch_on()
    told = play()
    assert "changed=0" in told
    assert "OFCHECKS" in told
    assert "heartbeat" in told


def test_check_mode_changes_nothing(board):
    before = configure(board, check=True)
    assert not before["changed"]
    planned = configure(board, check=True, name="s9", openflow=False)
    assert planned["changed"]
    assert planned["commands"] == ["set name s9", "disable"]
    assert configure(board, check=True)["board"] == before["board"]


def test_every_setting_is_changed_and_changed_back(board):
    wishes = {
        "name": "s9",
        "mac_address": "02:00:00:00:00:0a",
        "ip_address": "10.9.9.9",
        "netmask": "255.255.0.0",
        "gateway": "10.9.0.1",
        "controller_address": "10.9.0.2",
        "controller_port": 6653,
        "openflow": False,
        "fail_state": "safe",
        "openflow_version": 4,
        "ethertype_filter": True,
        "vlans": VLANS,
    }
    first = configure(board, **wishes)
    assert first["restarted"]
    assert first["diff"]["after"]["vlans"] == VLANS
    assert first["board"]["mac_address"] == "02:00:00:00:00:0A"
    second = configure(board, **wishes)
    assert (second["changed"], second["commands"]) == (False, [])
    third = configure(board, openflow=True, fail_state="secure", openflow_version=0, ethertype_filter=False)
    assert third["changed"]
    assert not third["restarted"]


def test_without_a_restart_the_change_is_pending(board):
    result = configure(board, ip_address="10.0.1.98", restart=False)
    assert (result["restarted"], result["restart_pending"]) == (False, True)


@pytest.mark.parametrize(
    "left",
    [
        b"",
        b"\r",
        b"\rfactory rese",
        b"\rconfig\rshow vl",
        b"\rdebug\rtrace\r",
        b"\rupdate\r",
        b"\ropenflow\r\x1b[",
    ],
)
def test_the_prompt_is_found_from_wherever_somebody_has_left(board, left):
    with serial.Serial(str(board.console)) as port:
        port.write(left)
        time.sleep(0.2)
    assert not configure(board, check=True, fail_state="secure")["changed"]
    assert say(board, b"show version\r").count(b"0.84") == 1


def test_the_board_connects_to_the_controller_that_the_console_names(board):
    with socket.create_server(("127.0.0.1", 0)) as controller:
        controller.settimeout(30)
        port = controller.getsockname()[1]
        configure(board, controller_address="127.0.0.1", controller_port=port)
        connection, _ = controller.accept()
        with connection:
            connection.settimeout(10)
            assert connection.recv(8)[:2] == b"\x04\x00"


def test_a_board_that_is_not_there_or_does_not_answer_is_named(board, tmp_path):
    def refusal(**wishes):
        with pytest.raises((role.ConsoleError, role.InputError)) as caught:
            configure(board, timeout_s=0.5, **wishes)
        line = str(caught.value)
        assert "\n" not in line
        return line

    assert "plug the board in" in refusal(device=str(tmp_path / "nowhere"))
    assert "serial device" in refusal(device=str(board.config))
    near, far = pty.openpty()
    try:
        assert "nothing answers" in refusal(device=os.ttyname(far))
        stop = threading.Event()

        def another_device():
            while not stop.wait(0.05):
                os.write(near, b"\r\nswitch login: ")

        thread = threading.Thread(target=another_device)
        thread.start()
        try:
            line = refusal(device=os.ttyname(far))
        finally:
            stop.set()
            thread.join()
        assert "no console of a Zodiac FX" in line
        assert "login" in line
    finally:
        os.close(near)
        os.close(far)
    with serial.Serial(str(board.console), exclusive=True):
        assert "another program" in refusal()


def test_another_firmware_and_wrong_values_are_refused(board):
    for wish, word in [
        ({"firmware_versions": ["0.99"]}, "firmware 0.84, not 0.99"),
        ({"ip_address": "10.0.0"}, "ip_address"),
        ({"mac_address": "02:00"}, "mac_address"),
        ({"name": "sixteen-letters!"}, "15 characters"),
        ({"controller_port": 0}, "controller_port"),
        ({"vlans": [VLANS[0], VLANS[0]]}, "used twice"),
        ({"vlans": [{**VLANS[0], "ports": [5]}]}, "none of 1 to 4"),
    ]:
        with pytest.raises((role.ConsoleError, role.InputError), match=word):
            configure(board, **wish)


def test_a_program_that_does_not_read_holds_nothing_up(board):
    with serial.Serial(str(board.console)) as port:
        port.write(b"\r" + b"help\r" * 50)
        wait_for(lambda: "nobody reads the console" in board.log(), "a line about it", timeout_s=30)
    assert b"0.84" in say(board, b"show version\r", until=b"0.84")


def test_the_terminal_goes_away_with_a_restart_and_comes_back(board):
    say(board, b"\r")
    with serial.Serial(str(board.console), timeout=10) as port:
        device = board.console.readlink()
        port.write(b"restart\r")
        with pytest.raises(serial.SerialException):
            port.read_until(b"never printed")
        assert not board.console.exists()
    wait_for(board.console.exists, "the console", timeout_s=10)
    assert b"help" in say(board, b"\r")
    assert board.console.readlink().parent == device.parent


def test_links_are_removed_at_the_end(program, tmp_path):
    made = BoardAtPseudoTerminal(program, tmp_path)
    assert made.console.is_symlink()
    made.switch_off()
    assert not made.console.is_symlink()


@pytest.mark.parametrize(("what", "word"), [(b"\xff" * 197, "blank"), (b"short", "5 bytes")])
def test_an_eeprom_that_no_board_has_written_is_named(board, what, word):
    board.eeprom.write_bytes(what)
    refused = subprocess.run(
        [board.program, "run", board.config], capture_output=True, text=True, check=False, timeout=60
    )
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert "eeprom" in refused.stderr
    assert word in refused.stderr


def test_a_file_in_the_place_of_the_console_is_left_alone(board, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("kept")
    config: Path = tmp_path / "other.toml"
    config.write_text(board.config.read_text().replace(str(board.console), str(precious)))
    refused = subprocess.run(
        [board.program, "run", config], capture_output=True, text=True, check=False, timeout=60
    )
    assert refused.returncode == 2
    assert "no symbolic link" in refused.stderr
    assert precious.read_text() == "kept"
