"""Shared by the tests of the role `board`: an emulated board on a pseudo-terminal, and the role's module."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import ansible.module_utils

from loko_testbed.live.one_board import UNHURRIED, wait_for

ROOT = Path(__file__).parents[2]
ROLE = ROOT / "playbooks/roles/board"


def role_module() -> ModuleType:
    """Import the role's Ansible module, with its helpers on the path where Ansible would put them."""
    helpers = str(ROLE / "module_utils")
    if helpers not in ansible.module_utils.__path__:
        ansible.module_utils.__path__.append(helpers)
    name = "zodiac_fx"
    if name not in sys.modules:
        specification = importlib.util.spec_from_file_location(name, ROLE / "library/zodiac_fx.py")
        assert specification is not None
        assert specification.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def parameters(console: Path, state: Path, **wishes: Any) -> dict[str, Any]:
    """Return the module's arguments as Ansible passes them: `wishes`, defaults, and None for the rest."""
    arguments = role_module().ARGUMENTS
    defaults = {key: value["default"] for key, value in arguments.items() if "default" in value}
    own = {"device": str(console), "timeout_s": 5.0, "state_folder": str(state)}
    return dict.fromkeys(arguments) | defaults | own | wishes


class BoardAtPseudoTerminal:
    """A running emulator with one board that has a console and an EEPROM but no network interfaces."""

    def __init__(self, program: Path, folder: Path, controller_port: int = 1) -> None:
        self.program, self.folder = program, folder
        self.console, self.eeprom = folder / "s1-console", folder / "s1.eeprom"
        self.config = folder / "boards.toml"
        self.config.write_text(
            f'[process]\n{UNHURRIED}ready = "{folder / "ready"}"\n'
            f'[[board]]\nname = "s1"\ncontroller = "127.0.0.1:{controller_port}"\n'
            f'console = "{self.console}"\neeprom = "{self.eeprom}"\n'
        )
        self.switch_on()

    def switch_on(self) -> None:
        with (self.folder / "log").open("ab") as log:
            command = [self.program, "run", "--die-with-parent", self.config]
            self.process = subprocess.Popen(command, stderr=log)
        ready = self.folder / "ready"
        wait_for(lambda: ready.exists() or self.process.poll() is not None, "a board", timeout_s=30)
        assert self.process.poll() is None, self.log()

    def switch_off(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(30)
        (self.folder / "ready").unlink(missing_ok=True)

    def log(self) -> str:
        return (self.folder / "log").read_text()
