"""The workflow of GitHub Actions calls targets that exist and has no key that Actions does not know."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

JOB_KEYS = {"name", "if", "needs", "runs-on", "timeout-minutes", "strategy", "steps", "env", "permissions"}
STEP_KEYS = {"name", "if", "uses", "with", "run", "env", "id", "shell", "working-directory"}


def test_every_job_and_step_has_known_keys_only():
    assert {"name", "permissions", "jobs"} <= set(WORKFLOW)
    assert True in WORKFLOW, "'on' is a boolean of YAML 1.1"
    for job in WORKFLOW["jobs"].values():
        assert set(job) <= JOB_KEYS
        assert job["timeout-minutes"] <= 120
        for step in job["steps"]:
            assert set(step) <= STEP_KEYS
            assert ("uses" in step) != ("run" in step)


def test_every_target_that_is_called_is_there():
    called = set()
    for job in WORKFLOW["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        called |= set(matrix.get("target", ()))
        for step in job["steps"]:
            called |= set(re.findall(r"\bmake ([a-z-]+)", step.get("run", "")))
    assert {"setup", "lint", "unit", "smoke", "vagrant-smoke"} <= called <= TARGETS


def test_every_target_tells_what_it_does():
    makefile = (ROOT / "Makefile").read_text()
    told = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert told == TARGETS
