#!/usr/bin/python
"""Ansible module: the configuration of a Zodiac FX by its serial console."""

from __future__ import annotations

import ipaddress
import re
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.zodiac_settings import (
    MAX_VLANS,
    PORTS,
    SETTINGS,
    Changes,
    UnexpectedTextError,
    Vlan,
    changes_to,
    firmware_version,
    parse_config,
    parse_ports,
    parse_vlans,
)
from ansible.module_utils.zodiac_unfinished import UNRESTARTED, UNSAVED, Unfinished

try:
    from ansible.module_utils.zodiac_console import Console, ConsoleError, open_again

    PYSERIAL_ERROR = None
except ImportError:
    PYSERIAL_ERROR = traceback.format_exc()

DOCUMENTATION = r"""
---
module: zodiac_fx
short_description: Configures a Zodiac FX by its serial console
description:
  - Reads firmware version, configuration and VLANs, changes what differs, reads it back, saves it, and
    restarts the board if a change needs that. What is not given stays as it is.
  - A real board at its USB device and an emulated one at its pseudo-terminal are served alike.
  - A run that was interrupted is noted, and the next one finishes it.
requirements:
  - pyserial
options:
  device: {type: str, required: true, description: Serial device of the board.}
  firmware_versions: {type: list, elements: str, default: ["0.84"], description: Accepted firmware versions.}
  timeout_s: {type: float, default: 10, description: How long to wait for an answer.}
  restart_timeout_s: {type: float, default: 30, description: How long to wait for the board after a restart.}
  restart: {type: bool, default: true, description: Whether to restart the board when a change needs it.}
  state_folder: {type: path, default: ~/.local/state/loko-testbed, description: Notes on interrupted runs.}
  name: {type: str, description: Device name.}
  mac_address: {type: str, description: MAC address.}
  ip_address: {type: str, description: IP address.}
  netmask: {type: str, description: Netmask.}
  gateway: {type: str, description: Gateway.}
  controller_address: {type: str, description: IP address of the controller.}
  controller_port: {type: int, description: TCP port of the controller.}
  openflow: {type: bool, description: Whether OpenFlow is switched on.}
  fail_state: {type: str, choices: [secure, safe], description: What happens while the controller is away.}
  openflow_version: {type: int, choices: [0, 1, 4], description: Forced version, 0 for none.}
  ethertype_filter: {type: bool, description: Whether unusual EtherTypes are dropped.}
  vlans:
    type: list
    elements: dict
    description: All VLANs of the board.
    suboptions:
      id: {type: int, required: true, description: VLAN ID.}
      name: {type: str, required: true, description: Name.}
      type: {type: str, required: true, choices: [openflow, native], description: Whose its ports are.}
      tagged: {type: bool, default: false, description: Whether frames leave with a tag.}
      ports: {type: list, elements: int, required: true, description: Its ports.}
author:
  - The Loko testbed's authors
"""

RETURN = r"""
firmware: {type: str, returned: success, description: Firmware version of the board.}
commands: {type: list, returned: success, description: Commands that were needed.}
restarted: {type: bool, returned: success, description: Whether the board was restarted.}
restart_pending: {type: bool, returned: success, description: Whether a change waits for a restart.}
unfinished: {type: bool, returned: success, description: Whether an earlier run had been interrupted.}
"""

EXAMPLES = r"""
- name: Point the board to its controller
  zodiac_fx:
    device: /dev/ttyACM0
    controller_address: 10.0.1.8
"""

ARGUMENTS: dict[str, dict[str, Any]] = {
    "device": {"type": "str", "required": True},
    "firmware_versions": {"type": "list", "elements": "str", "default": ["0.84"]},
    "timeout_s": {"type": "float", "default": 10.0},
    "restart_timeout_s": {"type": "float", "default": 30.0},
    "restart": {"type": "bool", "default": True},
    "state_folder": {"type": "path", "default": "~/.local/state/loko-testbed"},
    "name": {"type": "str"},
    "mac_address": {"type": "str"},
    "ip_address": {"type": "str"},
    "netmask": {"type": "str"},
    "gateway": {"type": "str"},
    "controller_address": {"type": "str"},
    "controller_port": {"type": "int"},
    "openflow": {"type": "bool"},
    "fail_state": {"type": "str", "choices": ["secure", "safe"]},
    "openflow_version": {"type": "int", "choices": [0, 1, 4]},
    "ethertype_filter": {"type": "bool"},
    "vlans": {
        "type": "list",
        "elements": "dict",
        "options": {
            "id": {"type": "int", "required": True},
            "name": {"type": "str", "required": True},
            "type": {"type": "str", "required": True, "choices": ["openflow", "native"]},
            "tagged": {"type": "bool", "default": False},
            "ports": {"type": "list", "elements": "int", "required": True},
        },
    },
}


READINGS = 5
"""A board that says something unasked in the midst of an answer is asked again, at most so often."""

MAC_ADDRESS = re.compile(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")


class InputError(Exception):
    """A value that no board can have; one line."""


def wished_config(parameters: Mapping[str, Any]) -> dict[str, str]:
    """The wished settings as words of the console. Raises `InputError`."""
    wishes = {
        setting.key: parameters[setting.key] for setting in SETTINGS if parameters[setting.key] is not None
    }
    for key, value in wishes.items():
        if isinstance(value, bool):
            wishes[key] = "enabled" if value else "disabled"
    for key in ("ip_address", "netmask", "gateway", "controller_address"):
        if key in wishes:
            try:
                ipaddress.IPv4Address(wishes[key])
            except ValueError:
                raise InputError(f"{key}: {wishes[key]!r} is no IPv4 address such as 10.0.1.99") from None
    if "mac_address" in wishes and not MAC_ADDRESS.fullmatch(wishes["mac_address"]):
        raise InputError(f"mac_address: {wishes['mac_address']!r} is none such as 70:b3:d5:6c:00:01")
    if "controller_port" in wishes and not 1 <= wishes["controller_port"] <= 65_535:
        raise InputError(f"controller_port: {wishes['controller_port']} is none of 1 to 65535")
    if "name" in wishes:
        _check_name("name", wishes["name"])
    return {key: str(value) for key, value in wishes.items()}


def wished_vlans(given: Sequence[Mapping[str, Any]] | None) -> list[Vlan] | None:
    """The wished VLANs. Raises `InputError`."""
    if given is None:
        return None
    vlans = [
        Vlan(vlan["id"], vlan["name"], vlan["type"], vlan["tagged"], frozenset(vlan["ports"]))
        for vlan in given
    ]
    if len(vlans) > MAX_VLANS:
        raise InputError(f"vlans: {len(vlans)} are given, a board holds {MAX_VLANS}")
    ports: set[int] = set()
    for vlan in vlans:
        _check_name(f"vlans, {vlan.id}, name", vlan.name)
        if not 1 <= vlan.id <= 4094 or sum(other.id == vlan.id for other in vlans) > 1:
            raise InputError(f"vlans: ID {vlan.id} is used twice or none of 1 to 4094")
        if not vlan.ports <= set(PORTS) or vlan.ports & ports:
            raise InputError(
                f"vlans, {vlan.id}: a port is none of 1 to 4, or in two VLANs: {sorted(vlan.ports)}"
            )
        ports |= vlan.ports
    return vlans


def _check_name(key: str, name: str) -> None:
    if not re.fullmatch(r"[!-~]{1,15}", name):
        raise InputError(f"{key}: {name!r} must have 1 to 15 characters without blanks")


State = tuple[dict[str, str], list[Vlan]]
"""Configuration of a board: the values of `show config`, and its VLANs."""


class Board:
    """A board behind its console."""

    def __init__(self, console: Console, accepted_versions: Sequence[str]) -> None:
        """Check the firmware's version. Raises `ConsoleError`."""
        self._console = console
        self.firmware = firmware_version(console.command("show version", context=""))
        if self.firmware not in accepted_versions:
            raise ConsoleError(
                f"the board has firmware {self.firmware}, not {' or '.join(accepted_versions)}: install that "
                "one, or set board_firmware_versions if you know that its console is the same"
            )

    def read(self) -> State:
        """Configuration and VLANs, as the board tells them twice in succession.

        Raises `ConsoleError`, and `UnexpectedTextError` if it does not.
        """
        last: State | None = None
        problem = UnexpectedTextError(f"the console tells something else each of {READINGS} times")
        for _ in range(READINGS):
            try:
                current = self._read_once()
            except UnexpectedTextError as error:
                last, problem = None, error
                continue
            if current == last:
                return current
            last = current
        raise problem

    def _read_once(self) -> State:
        ports = parse_ports(self._console.command("show ports", context=""))
        config = parse_config(self._console.command("show config", context="config"))
        return config, parse_vlans(self._console.command("show vlans"), ports)

    def change(self, needed: Changes) -> None:
        """Carry the commands out."""
        for command in needed.commands:
            self._console.command(command.text, context=command.context)

    def save(self) -> None:
        """Write the configuration into the EEPROM."""
        self._console.command("save", context="config")


def _described(config: Mapping[str, str], vlans: Sequence[Vlan]) -> dict[str, Any]:
    return {**config, "vlans": [vlan.as_dict() for vlan in vlans]}


def configure(parameters: Mapping[str, Any], *, check: bool) -> dict[str, Any]:
    """Bring the board to what is wished. Raises `InputError`, `ConsoleError`, `UnexpectedTextError`."""
    config_wish, vlan_wish = wished_config(parameters), wished_vlans(parameters["vlans"])
    device, timeout_s = parameters["device"], parameters["timeout_s"]
    versions = parameters["firmware_versions"]

    def needed(board: Board) -> tuple[Changes, dict[str, Any]]:
        config, vlans = board.read()
        return changes_to(config, vlans, config_wish, vlan_wish), _described(config, vlans)

    unfinished = Unfinished(parameters["state_folder"], device)
    left = unfinished.what

    def opened(*, restarting: bool) -> Console:
        if not restarting:
            return Console(device, timeout_s)
        return open_again(device, timeout_s, within_s=parameters["restart_timeout_s"])

    with opened(restarting=left == UNRESTARTED) as console:
        board = Board(console, versions)
        todo, before = needed(board)
        save = bool(todo.commands) or left == UNSAVED
        restart_needed = todo.needs_restart or left is not None
        restart = restart_needed and parameters["restart"]
        result: dict[str, Any] = {
            "changed": save or restart,
            "firmware": board.firmware,
            "commands": [command.text for command in todo.commands],
            "restarted": False,
            "restart_pending": restart_needed,
            "unfinished": left is not None,
            "board": before,
        }
        if check or not result["changed"]:
            return result
        after = before
        if save:
            unfinished.note(UNSAVED)
            board.change(todo)
            after = _read_back(needed(board))
            board.save()
        if restart_needed:
            unfinished.note(UNRESTARTED)
        if restart:
            console.restart()
            result |= {"restarted": True, "restart_pending": False}
    if restart:
        with opened(restarting=True) as console:
            after = _read_back(needed(Board(console, versions)))
    if not result["restart_pending"]:
        unfinished.done()
    return result | {"diff": {"before": before, "after": after}, "board": after}


def _read_back(changes_and_settings: tuple[Changes, dict[str, Any]]) -> dict[str, Any]:
    left, described = changes_and_settings
    if left.commands:
        commands = ", ".join(command.text for command in left.commands)
        raise ConsoleError(f"the board did not take what it was told; still needed: {commands}")
    return described


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    if PYSERIAL_ERROR:
        module.fail_json(msg=missing_required_lib("pyserial"), exception=PYSERIAL_ERROR)
    try:
        module.exit_json(**configure(module.params, check=module.check_mode))
    except (InputError, ConsoleError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(
            msg=f"{module.params['state_folder']}: cannot keep notes there: {error.strerror}; make room, or"
            " set board_state_folder"
        )
    except UnexpectedTextError as error:
        module.fail_json(msg=f"{module.params['device']}: {error}; is it a Zodiac FX with firmware 0.84?")


if __name__ == "__main__":
    main()
