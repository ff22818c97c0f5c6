"""Run a playbook on this machine, for roles that leave nothing behind."""

from __future__ import annotations

import json
import os
import subprocess

import yaml
from ansible_program import OURS
from disposable_root import CALLBACK, ROOT, Play


def play(folder, words, *, cwd=ROOT, program=OURS):
    """Run a playbook with `folder` for its files and return the outcomes of its tasks."""
    outcomes = folder / "outcomes"
    outcomes.unlink(missing_ok=True)
    surroundings = {
        **os.environ,
        "OUTCOMES": str(outcomes),
        "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACK),
        "ANSIBLE_CALLBACKS_ENABLED": "outcomes",
    }
    command = [str(program), *map(str, words)]
    done = subprocess.run(
        command, cwd=cwd, env=surroundings, capture_output=True, text=True, check=False, timeout=800
    )
    assert outcomes.exists(), done.stdout + done.stderr
    return Play(status=done.returncode, tasks=tuple(json.loads(outcomes.read_text())), output=done.stdout)


def play_each(folder, words, choices, *, program=OURS):
    """Run a playbook once with a host for each choice of variables, such as `runs=1 mode=live`.

    Starting Ansible takes many times as long as one more host.
    """
    inventory = yaml.safe_load((ROOT / "playbooks/inventories/emulator/hosts.yml").read_text())
    [machine] = inventory["testbed"]["hosts"].values()
    inventory["testbed"]["hosts"] = {
        chosen: {**machine, "out": str(folder), **dict(variable.split("=") for variable in chosen.split())}
        for chosen in choices
    }
    hosts = folder / "hosts.json"
    hosts.write_text(json.dumps(inventory))
    return play(folder, ["-i", hosts, *words], program=program)
