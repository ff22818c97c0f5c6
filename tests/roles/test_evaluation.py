"""The role evaluation through its playbook."""

from __future__ import annotations

import json

from roles_play import ROOT, play

EVALUATE = ["evaluate.yml", "--tags", "evaluation", "-e", "mode=virtual", "-e", "figures=table2"]


def test_a_figure_is_replayed_and_check_mode_only_tells_which(tmp_path):
    out = tmp_path / "results"
    told = play(tmp_path, [*EVALUATE, "-e", f"out={out}", "--check"])
    assert told.status == 0, told.output
    assert "evaluation : Would replay (virtual)" in told.changed
    assert "table2" in told.messages()
    assert not out.exists()
    done = play(tmp_path, [*EVALUATE, "-e", f"out={out}"], cwd=ROOT / "playbooks")
    assert done.status == 0, done.output
    assert json.loads((out / "virtual/table2.json").read_text())["figure"] == "table2"
    assert "table2" in done.messages()


def test_a_mode_that_does_not_exist_is_refused_with_those_that_do(tmp_path):
    refused = play(tmp_path, ["evaluate.yml", "--tags", "evaluation", "-e", "mode=quick"])
    assert refused.status == 2
    assert "value of evaluation_mode must be one of: all, virtual, live, hardware" in refused.complaint
