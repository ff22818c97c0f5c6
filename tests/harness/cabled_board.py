"""A stand-in for the real board of the two-switch lab: an emulator outside the lab, cabled with veths."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager

from loko_testbed.instruments.cables import add_cable
from loko_testbed.instruments.programs import require_emulator
from loko_testbed.live.daemon import Daemon
from loko_testbed.live.one_board import UNHURRIED

CARDS = {1: "card1", 2: "card2", 3: "card3", 4: "card4"}
"""For each port of switch s1, the network card of this machine at the other end of its cable."""
SPACE = "loko-test-board"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def board(folder, *, ports=None, powered=True):
    """Run a board with the settings of s1 in a network namespace; its cables end in cards of this machine."""
    subprocess.run(["ip", "netns", "delete", SPACE], check=False, capture_output=True)
    ip("netns", "add", SPACE)
    try:
        for number, card in CARDS.items():
            add_cable(card, f"port{number}", what="a card's cable")
            ip("link", "set", f"port{number}", "netns", SPACE)
            if powered:
                ip("-n", SPACE, "link", "set", f"port{number}", "up")
        if not powered:
            yield
            return
        named = "\n".join(
            f'{port} = "port{cable}"'
            for port, cable in (ports or dict(zip(CARDS, CARDS, strict=True))).items()
        )
        (folder / "board.toml").write_text(
            f'[process]\n{UNHURRIED}ready = "{folder / "ready"}"\n'
            '[[board]]\nname = "s1"\n[board.ports]\n' + named + '\n[board.config]\ncontrol = "network"\n'
            'mac = "70:b3:d5:6c:00:01"\nip_address = "10.0.1.99"\nofchecks = false\n'
        )
        command = ["ip", "netns", "exec", SPACE, str(require_emulator()), "run", "--die-with-parent"]
        process = Daemon(
            "the board", [*command, str(folder / "board.toml")], log=folder / "log", ready=folder / "ready"
        )
        try:
            process.wait_ready(30)
            yield
        finally:
            process.end()
    finally:
        for card in CARDS.values():
            subprocess.run(["ip", "link", "delete", card], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "delete", SPACE], check=False, capture_output=True)


def power_off():
    """Take down the links of all the board's ports, as if it had lost power."""
    for number in CARDS:
        ip("-n", SPACE, "link", "set", f"port{number}", "down")
