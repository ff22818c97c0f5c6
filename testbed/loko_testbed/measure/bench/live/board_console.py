"""Switches OpenFlow off and on at a real Zodiac FX, through its serial console or the user's hands."""

from __future__ import annotations

import os
import sys
import time
import tty
from typing import Final

from loko_testbed.instruments.controller_endpoint import ControllerEndpoint
from loko_testbed.measure.bench.inventory import Hardware
from loko_testbed.simulation.runner import RunError

_TAKE_BACK: Final = b"\x7f" * 63 + b"\r"
"""Deletes what was typed on the console before, so that it is not carried out."""
_PAUSE_S: Final = 0.3
_CONSOLE_S: Final = 20.0
_PEOPLE_S: Final = 600.0


def switch_openflow(inventory: Hardware, endpoint: ControllerEndpoint, *, on: bool) -> None:
    """Have OpenFlow switched on or off, and wait until the connection shows it. Raises `RunError`."""
    word = "enable" if on else "disable"
    if inventory.console is None:
        sys.stderr.write(
            f"{inventory.name}: type 'openflow' and '{word}' at the board's serial console; waiting"
            " (or give the console in the inventory)\n"
        )
        timeout_s = _PEOPLE_S
    else:
        _type(inventory.console, [b"exit\r", b"openflow\r", word.encode() + b"\r", b"exit\r"])
        timeout_s = _CONSOLE_S
    done = endpoint.accept(timeout_s) is not None if on else endpoint.wait_closed(timeout_s)
    if not done:
        where = inventory.console or "the board's serial console"
        shown = "does not connect" if on else "keeps its connection"
        raise RunError(f"{inventory.name}: the board {shown} after '{word}' at {where}: is that its console?")


def _type(console: str, lines: list[bytes]) -> None:
    try:
        device = os.open(console, os.O_RDWR | os.O_NOCTTY)
        try:
            tty.setraw(device)
            for line in (_TAKE_BACK, *lines):
                os.write(device, line)
                time.sleep(_PAUSE_S)
        finally:
            os.close(device)
    except OSError as error:
        raise RunError(f"console {console}: {error.strerror}; see 'console' in the inventory") from None
