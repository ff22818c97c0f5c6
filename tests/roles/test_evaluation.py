"""The role `evaluation`, run through its playbook."""

from __future__ import annotations

import json

from ansible_program import OURS
from live_harness import needs_namespaces
from roles_play import ROOT, play, play_each

EVALUATE = ["evaluate.yml", "--tags", "evaluation", "-e", "mode=virtual", "-e", "figures=table2"]


def test_a_figure_is_replayed(tmp_path):
    out = tmp_path / "results"
    done = play(tmp_path, [*EVALUATE, "-e", f"out={out}"], cwd=ROOT / "playbooks")
    assert done.status == 0, done.output
    assert json.loads((out / "virtual/table2.json").read_text())["figure"] == "table2"
    assert "table2" in done.messages()


REPLAYED = {
    "figures=table2 mode=virtual": {"virtual": "table2"},
    "rings=5,31": {"live": "fivelive, ringlive"},
    "rings=31 figures=fig17a": {"virtual": "fig17a", "live": "fig17a, ringlive"},
    "rings=31 mode=virtual": {"virtual": "ringlive"},
    "rings=5 mode=live figures=fig3a": {"live": "fig3a, fivelive"},
    "figures=fig17a": {"virtual": "fig17a", "live": "fig17a"},
    "mode=all": {"virtual": "every figure", "live": "fig15, fig17a, fig17b"},
}


@needs_namespaces
def test_check_mode_only_tells_what_is_replayed_in_which_mode(tmp_path):
    done = play_each(tmp_path, ["evaluate.yml", "--tags", "evaluation", "--check"], REPLAYED)
    assert done.status == 0, done.output
    told = {
        chosen: {
            task["task"].split("(")[1].rstrip(")"): task["msg"]
            for task in done.on(chosen).tasks
            if task["task"].startswith("evaluation : Would replay") and task["outcome"] == "changed"
        }
        for chosen in REPLAYED
    }
    assert told == REPLAYED
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


WRONG = {
    "figures=fig99": "figures=fig99: there is no figure fig99",
    "figures=table2,tssdn/fig17a": "there is no figure tssdn/fig17a",
    "rings=5,7": "rings=5,7: there are rings of 5 and of 31 boards",
    "runs=0": "runs=0: give a whole number from 1",
    "runs=many": "runs=many: give a whole number from 1",
    "seconds=nan": "seconds=nan: give a number from 0.01 to 3600",
    "seconds=7200": "seconds=7200: give a number from 0.01 to 3600",
    "seed=-1": "seed=-1: give a whole number from 0",
    "mode=quick": "value of evaluation_mode must be one of: all, virtual, live, hardware",
    "points=some": "value of evaluation_points must be one of: all, admitted",
    "mode=virtual backend=ovs": "backend=ovs: exists in real time only",
    "mode=virtual framework=ryu": "framework=ryu: exists in real time only",
}
"""Variables that no run can have, and what is said about them."""


def check_refusal(refused, said):
    assert said in refused.complaint
    assert refused.changed == []
    roles = {task["task"].partition(" : ")[0] for task in refused.tasks if " : " in task["task"]}
    assert roles == {"evaluation"}, "nothing of provisioning was tried"


def test_wrong_variables_are_refused_before_anything_is_installed(tmp_path):
    refused = play_each(tmp_path, ["evaluate.yml", "--check"], WRONG)
    assert refused.status == 2
    for chosen, said in WRONG.items():
        check_refusal(refused.on(chosen), said)


ONLY_VIRTUAL = "figures=fig17a runs=1 seconds=0.05"
NOT_HERE = "figures=fig17a mode=live"


@needs_namespaces
def test_where_root_may_not_make_namespaces_only_live_runs_are_left_out_or_refused(tmp_path):
    """As in a container to which Docker gives few capabilities; and not in check mode."""
    wrong, said = next(iter(WRONG.items()))
    words, choices = ["evaluate.yml", "--tags", "evaluation"], [ONLY_VIRTUAL, NOT_HERE, wrong]
    done = play_each(tmp_path, words, choices, program=confined(tmp_path))
    assert done.status == 2
    left_out = done.on(ONLY_VIRTUAL)
    assert left_out.with_outcome("failed") == [], left_out
    assert (
        "LEFT OUT: the short live run: live runs make network namespaces, which root may not do"
        in left_out.messages()
    )
    assert (tmp_path / "virtual/fig17a.json").exists()
    refusal = "which root may not do here (unshare: unshare failed: Operation not permitted)"
    assert refusal in done.on(NOT_HERE).complaint
    check_refusal(done.on(wrong), said)


def confined(folder):
    """Return a program that runs Ansible without the capability to make namespaces."""
    program = folder / "ansible-playbook"
    program.write_text(f'#!/bin/sh\nexec setpriv --bounding-set=-sys_admin "{OURS}" "$@"\n')
    program.chmod(0o755)
    return program
