"""Every playbook and inventory can be read, and reports what it would do."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_program import OURS

ROOT = Path(__file__).resolve().parents[3]
PLAYBOOKS = [ROOT / "evaluate.yml", *sorted(ROOT.glob("playbooks/*.yml"))]
INVENTORIES = sorted(ROOT.glob("playbooks/inventories/*"))


def ansible(*words, cwd=ROOT, command=(OURS,)):
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    return subprocess.run(
        [*command, *map(str, words)],
        cwd=cwd,
        env={**surroundings, "COLUMNS": "10000"},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def test_every_playbook_and_inventory_can_be_read_and_there_are_tasks_to_choose_by_tag():
    inventories = [f"--inventory={inventory}" for inventory in INVENTORIES]
    done = ansible(*inventories, "--list-tags", *PLAYBOOKS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    told = re.split(r"^playbook: (.*)$", done.stdout, flags=re.MULTILINE)[1:]
    tags = dict(zip(told[::2], told[1::2], strict=True))
    assert list(tags) == [str(path) for path in PLAYBOOKS]
    for path, of_playbook in tags.items():
        assert "TASK TAGS: [" in of_playbook, path
        assert "TASK TAGS: []" not in of_playbook, path


def test_a_playbook_that_cannot_be_read_is_told(tmp_path):
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("- hosts: testbed\n  roles: [no_such_role]\n")
    done = ansible("-i", INVENTORIES[0], "--list-tags", wrong)
    assert done.returncode != 0
    assert "no_such_role" in done.stderr


@pytest.mark.parametrize("folder", [ROOT, ROOT / "playbooks"], ids=["root", "playbooks"])
def test_the_users_own_sentence_replays_on_the_emulator_from_either_folder(folder):
    done = ansible("evaluate.yml", "--list-hosts", cwd=folder)
    assert done.returncode == 0, done.stderr
    replay = done.stdout.split("(testbed): Replay the evaluation")[1]
    assert "hosts (1):\n      emulator" in replay


def test_the_settings_of_both_folders_are_the_same():
    read = {}
    for folder in (ROOT, ROOT / "playbooks"):
        settings = configparser.ConfigParser()
        settings.read(folder / "ansible.cfg")
        for name in ("inventory", "library"):
            settings["defaults"][name] = str(folder / settings["defaults"][name])
        read[folder] = {section: dict(settings[section]) for section in settings.sections()}
    assert read[ROOT] == read[ROOT / "playbooks"]


def test_without_an_inventory_the_evaluation_is_refused_and_says_which_to_give(tmp_path):
    done = ansible(ROOT / "evaluate.yml", "-e", "mode=virtual", cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert "No machine to replay on" in done.stdout + done.stderr
    assert f"Give -i {ROOT}/playbooks/inventories/emulator" in done.stdout + done.stderr
    assert "Install the testbed" not in done.stdout


def test_a_limit_that_leaves_only_boards_is_refused():
    done = ansible("evaluate.yml", "-i", ROOT / "playbooks/inventories/hardware", "--limit", "s1")
    assert done.returncode == 2, done.stdout
    assert "what --limit leaves of it, has no host in the group 'testbed'" in done.stdout


def test_tags_that_leave_the_replay_out_are_no_success():
    done = ansible("evaluate.yml", "--tags", "host_tuning")
    assert done.returncode == 2, done.stdout
    assert "Nothing was replayed" in done.stdout
    assert "provision.yml" in done.stdout


OLDER = """
import sys
import ansible.release
ansible.release.__version__ = "2.13.13"
from ansible.cli.playbook import main
main(["ansible-playbook", *sys.argv[1:]])
"""


def test_an_older_ansible_is_told_that_it_is_too_old_before_anything_else():
    done = ansible("evaluate.yml", command=(sys.executable, "-c", OLDER))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Ansible 2.13.13 is too old: this needs ansible-core 2.14 or newer" in done.stdout
    assert "Install the testbed" not in done.stdout
