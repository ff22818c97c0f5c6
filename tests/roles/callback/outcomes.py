"""Ansible callback: write the outcome of each task as JSON to the file named by OUTCOMES."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: outcomes
type: notification
short_description: Outcomes of all tasks as JSON
description: For tests.
"""


class CallbackModule(CallbackBase):
    """Records tasks as they end."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "outcomes"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self):
        super().__init__()
        self.tasks = []

    def _note(self, result, outcome):
        values = result._result
        outcome = "changed" if outcome == "ok" and values.get("changed") else outcome
        self.tasks.append(
            {
                "host": result._host.get_name(),
                "task": result._task.get_name(),
                "outcome": outcome,
                "msg": str(values.get("msg", "")),
            }
        )

    def v2_runner_on_ok(self, result):
        self._note(result, "ok")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._note(result, "ignored" if ignore_errors else "failed")

    def v2_runner_on_unreachable(self, result):
        self._note(result, "failed")

    def v2_playbook_on_stats(self, stats):
        Path(os.environ["OUTCOMES"]).write_text(json.dumps(self.tasks))
