"""The workflow for GitHub Actions calls targets that exist and uses no keys unknown to Actions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / ".github/workflows/ci.yml").read_text()
WORKFLOW = yaml.safe_load(TEXT)
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

WORKFLOW_KEYS = {"name", True, "permissions", "concurrency", "jobs", "env", "defaults"}
"""YAML 1.1 reads `on` as a boolean."""
JOB_KEYS = {
    "name",
    "if",
    "needs",
    "runs-on",
    "container",
    "timeout-minutes",
    "strategy",
    "steps",
    "env",
    "permissions",
}
STEP_KEYS = {"name", "if", "uses", "with", "run", "env", "id", "shell", "working-directory"}
EVENTS = {"push", "pull_request", "schedule", "workflow_dispatch"}
CONTEXTS = {
    "github.workflow",
    "github.event_name",
    "github.ref",
    *(f"matrix.{name}" for name in ("target", "packages", "variables", "arguments")),
}
"""Contexts that expressions may refer to; of the matrix, only keys that it has."""


def test_every_job_and_step_has_known_keys_only():
    assert {"name", "permissions", "jobs", True} <= set(WORKFLOW) <= WORKFLOW_KEYS
    assert set(WORKFLOW[True]) <= EVENTS
    for job in WORKFLOW["jobs"].values():
        assert set(job) <= JOB_KEYS
        assert job["timeout-minutes"] <= 120
        for step in job["steps"]:
            assert set(step) <= STEP_KEYS
            assert ("uses" in step) != ("run" in step)


def matrix_of(job):
    """Return the entries of a job's matrix, one dictionary for each run of the job."""
    matrix = job.get("strategy", {}).get("matrix", {})
    return [{"target": target} for target in matrix.get("target", ())] + list(matrix.get("include", ()))


def called(job):
    targets = {entry["target"] for entry in matrix_of(job)}
    for step in job["steps"]:
        targets |= set(re.findall(r"\bmake ([a-z-]+)", step.get("run", "")))
    return targets


def test_every_target_that_is_called_is_there():
    every = set().union(*map(called, WORKFLOW["jobs"].values()))
    assert {"setup", "lint", "rust", "python", "live", "smoke"} <= every <= TARGETS


def test_what_takes_long_or_depends_on_chance_is_run_every_night_and_only_then():
    nightly = [job for job in WORKFLOW["jobs"].values() if "if" in job]
    gate = WORKFLOW["jobs"]["test"]
    assert "if" not in gate
    assert set().union(*map(called, nightly)) == {
        "setup",
        "oftest",
        "switch-tester",
        "roles",
        "anywhere",
        "evidence",
        "differential",
        "fuzz",
        "random",
        "audit",
        "vagrant-smoke",
        "deb",
        "service-image",
        "replay-image",
        "test-wheel",
    }
    for job in nightly:
        assert called(job) & called(gate) == {"setup"}
        assert "github.event_name == 'schedule'" in job["if"]
    assert WORKFLOW[True]["schedule"]


def test_the_oldest_ansible_runs_on_the_debian_that_has_it():
    job = WORKFLOW["jobs"]["oldest-ansible"]
    assert job["container"] == "debian:12"
    assert called(job) == {"setup", "oldest-ansible"}


def test_the_switch_testers_run_on_the_debian_whose_python_suits_them_and_in_both_modes():
    job = WORKFLOW["jobs"]["testers"]
    assert job["container"] == {"image": "debian:12", "options": "--privileged"}
    oftest = [entry["arguments"] for entry in matrix_of(job) if entry["target"] == "oftest"]
    assert oftest == ["--mode firmware", "--mode spec"]


def test_no_step_gets_the_credentials_of_the_checkout():
    checkouts = [
        step
        for job in WORKFLOW["jobs"].values()
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert len(checkouts) == len(WORKFLOW["jobs"])
    for step in checkouts:
        assert step["with"]["persist-credentials"] is False


def test_actions_are_pinned_to_a_commit_that_the_version_is_told_of():
    used = re.findall(r"uses: (.*)", TEXT)
    assert used
    for action in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


@pytest.mark.parametrize("expression", sorted(set(re.findall(r"\$\{\{ *(.*?) *\}\}", TEXT))))
def test_expressions_name_what_is_there(expression):
    called_functions = re.findall(r"\b(\w+)\(", expression)
    assert set(called_functions) <= {"hashFiles"}
    for pattern in re.findall(r"'([^']*)'", expression):
        assert list(ROOT.glob(pattern)), pattern
    words = re.sub(r"'[^']*'", "", expression)
    assert set(re.findall(r"\b\w+\.\w+\b", words)) <= CONTEXTS


def test_every_target_tells_what_it_does():
    makefile = (ROOT / "Makefile").read_text()
    told = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert told == TARGETS
