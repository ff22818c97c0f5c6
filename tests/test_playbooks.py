"""Every playbook can be read with every inventory, and says what it would do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ANSIBLE = Path(sys.executable).parent / "ansible-playbook"
PLAYBOOKS = sorted(ROOT.glob("playbooks/*.yml"))
INVENTORIES = sorted(ROOT.glob("playbooks/inventories/*"))


def ansible(*words):
    return subprocess.run(
        [ANSIBLE, *map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=280
    )


@pytest.mark.parametrize("inventory", INVENTORIES, ids=lambda path: path.name)
def test_every_playbook_can_be_read_with_every_inventory(inventory):
    done = ansible("-i", inventory, "--syntax-check", *PLAYBOOKS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split(": ")[1] for line in done.stdout.splitlines() if line.startswith("playbook: ")] == [
        str(path) for path in PLAYBOOKS
    ]
    assert "WARNING" not in done.stderr


def test_a_playbook_that_cannot_be_read_is_told(tmp_path):
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("- hosts: testbed\n  roles: [no_such_role]\n")
    done = ansible("-i", INVENTORIES[0], "--syntax-check", wrong)
    assert done.returncode != 0
    assert "no_such_role" in done.stderr


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.stem)
def test_every_playbook_has_tasks_that_can_be_chosen_by_tag(playbook):
    done = ansible("-i", ROOT / "playbooks/inventories/emulator", "--list-tags", playbook)
    assert done.returncode == 0, done.stderr
    assert "TASK TAGS: [" in done.stdout
    assert "TASK TAGS: []" not in done.stdout
