"""Run a playbook on this machine, for roles that leave nothing behind."""

from __future__ import annotations

import json
import os
import subprocess

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
