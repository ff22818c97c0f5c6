"""A lab of a real board and an emulated one. The real one is played by an emulator outside, behind veths."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager

import pytest
import yaml
from live_harness import Machine, admitted, needs_root, wait_until

from evaluation.live.daemon import Daemon
from evaluation.live.programs import require_emulator
from evaluation.live.runner import LiveRunner
from evaluation.runner import RunError
from loko.lab import load_lab

pytestmark = [pytest.mark.namespaces, needs_root, pytest.mark.xdist_group("live")]

SETTING, TRAFFIC = admitted()
CARDS = {1: "card1", 2: "card2", 3: "card3", 4: "card4"}


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def board(folder, *, ports=None, powered=True):
    """A board with the settings of s1, in a namespace of its own; its cables end in cards of this machine."""
    space = "loko-test-board"
    subprocess.run(["ip", "netns", "delete", space], check=False, capture_output=True)
    ip("netns", "add", space)
    try:
        for number, card in CARDS.items():
            ip("link", "add", card, "type", "veth", "peer", "name", f"port{number}", "netns", space)
            if powered:
                ip("-n", space, "link", "set", f"port{number}", "up")
        if not powered:
            yield
            return
        named = "\n".join(
            f'{port} = "port{cable}"'
            for port, cable in (ports or dict(zip(CARDS, CARDS, strict=True))).items()
        )
        (folder / "board.toml").write_text(
            f'[process]\nscheduling = "other"\nready = "{folder / "ready"}"\n'
            '[[board]]\nname = "s1"\n[board.ports]\n' + named + '\n[board.config]\ncontrol = "network"\n'
            'mac = "70:b3:d5:6c:00:01"\nip_address = "10.0.1.99"\nofchecks = false\n'
        )
        command = ["ip", "netns", "exec", space, str(require_emulator()), "run", "--die-with-parent"]
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
        subprocess.run(["ip", "netns", "delete", space], check=False, capture_output=True)


def mixed(folder, **changes):
    """The lab of two switches whose s1 is a real board."""
    path = folder / "cabling.yml"
    path.write_text(yaml.safe_dump({"switches": {"s1": CARDS | changes}}))
    return load_lab("two-switch", path)


def test_frames_pass_a_real_and_an_emulated_board_and_the_cards_are_given_back(tmp_path):
    before = Machine.now()
    with board(tmp_path), LiveRunner(mixed(tmp_path), SETTING.admitted()) as runner:
        status = runner.status()
        assert (status.connected, status.switches) == (2, 2)
        assert "real boards: s1" in status.scheduling
        records = runner.run(TRAFFIC, seconds=1, seed=1)
    assert len(records) > 0
    arrived = (records.received_ns >= 0).mean()
    assert arrived > 0.9, f"only {arrived:.0%} of the packets came through"
    wait_until(lambda: Machine.now() == before, "the machine is as before")


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ({"ports": {1: 2, 2: 1, 3: 3, 4: 4}}, "port 1 and card1: the cable of card1 is in port 2"),
        ({"ports": {1: 1, 2: 2, 4: 4}}, "port 3 and card3: exchange nothing: check their cable"),
        ({"ports": {1: 1, 2: 2, 4: 3}}, "s1: no connection to the controller at 10.0.1.8:6633 within"),
        ({"powered": False}, "card1: no link within .* is the board powered"),
    ],
    ids=["swapped", "cut", "no controller", "no power"],
)
def test_a_board_that_is_cabled_wrongly_or_silent_is_told_before_anything_runs(how, complaint, tmp_path):
    with board(tmp_path, **how), pytest.raises(RunError, match=complaint) as caught:
        LiveRunner(mixed(tmp_path), SETTING.admitted()).__enter__()
    assert "\n" not in str(caught.value)


def test_a_card_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RunError, match="s1: port 1: this machine has no network card card1"):
        LiveRunner(mixed(tmp_path), SETTING.admitted()).__enter__()
