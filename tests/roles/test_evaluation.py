"""The role `evaluation`, run through its playbook."""

from __future__ import annotations

import json
import os

import pytest
from roles_play import ROOT, play

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="what root would replay live")

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


RINGS = ["evaluate.yml", "--tags", "evaluation", "--check"]


@needs_root
@pytest.mark.parametrize(
    ("chosen", "replayed"),
    [
        ("rings=5", {"live": "fivelive"}),
        ("rings=5,31", {"live": "fivelive, ringlive"}),
        ("rings=31 figures=fig17a", {"virtual": "fig17a", "live": "fig17a, ringlive"}),
        ("rings=31 mode=virtual", {"virtual": "ringlive"}),
        ("rings=5 mode=live figures=fig3a", {"live": "fig3a, fivelive"}),
        ("figures=fig17a", {"virtual": "fig17a", "live": "fig17a"}),
        ("mode=all", {"virtual": "every figure", "live": "fig15, fig17a, fig17b"}),
    ],
)
def test_rings_are_replayed_live_by_one_variable(chosen, replayed, tmp_path):
    done = play(tmp_path, [*RINGS, "-e", f"out={tmp_path} {chosen}"])
    assert done.status == 0, done.output
    told = {
        task["task"].split("(")[1].rstrip(")"): task["msg"]
        for task in done.tasks
        if task["task"].startswith("evaluation : Would replay") and task["outcome"] == "changed"
    }
    assert told == replayed


def test_a_ring_that_does_not_exist_is_refused_with_those_that_do(tmp_path):
    refused = play(tmp_path, [*RINGS, "-e", "rings=5,7"])
    assert refused.status == 2
    assert "rings=5,7: there are rings of 5 and of 31 boards" in refused.complaint


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("backend=ovs", "--backend ovs: exists in live runs only"),
        ("framework=ryu", "--framework: for --mode live and hardware only"),
    ],
)
def test_what_virtual_time_does_not_have_is_refused_not_ignored(chosen, said, tmp_path):
    refused = play(tmp_path, [*EVALUATE, "-e", f"out={tmp_path}", "-e", chosen])
    assert refused.status == 2
    assert said in refused.complaint


def test_a_mode_that_does_not_exist_is_refused_with_those_that_do(tmp_path):
    refused = play(tmp_path, ["evaluate.yml", "--tags", "evaluation", "-e", "mode=quick"])
    assert refused.status == 2
    assert "value of evaluation_mode must be one of: all, virtual, live, hardware" in refused.complaint
