"""A figure replayed in mode `hardware` by the playbook, with an inventory of a bench, and by the command."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
import yaml
from cabled_board import CARDS, board
from disposable_root import ROOT
from live_harness import needs_namespaces
from roles_play import play

pytestmark = [pytest.mark.namespaces, needs_namespaces]

SHORT = ["--runs", "1", "--seconds", "1", "--sender", "simple"]


def evaluate(*words):
    command = [
        sys.executable,
        "-c",
        "from loko_testbed.cli.main import main; main()",
        "evaluate",
        *map(str, words),
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)


def check_result(folder, figure):
    """Check the results of a replay with s1 as a real board. Delays are this machine's, so not judged."""
    result = json.loads((folder / f"{figure}.json").read_text())
    assert result["mode"] == "hardware"
    made = result["provenance"]
    assert made["backend"] == "firmware, hardware"
    assert made["real_boards"]["s1"]["firmware"] == "0.84"
    assert made["real_boards"]["s1"]["mac"] == "70:b3:d5:6c:00:01"
    tested = [claim for claim in result["claims"] if claim["holds"] is not None]
    assert tested
    assert all(claim["here"] != "not measured" for claim in tested)
    rows = pq.read_table(folder / f"{figure}.parquet")
    arrived = rows.num_rows - rows.column("received_ns").null_count
    assert arrived > 0.9 * rows.num_rows > 0
    page = (folder / "report.html").read_text()
    [repeat] = [line for line in page.splitlines() if "--mode hardware --cabling " in line]
    assert "cabling.yml" in repeat
    assert "a real board: firmware 0.84" in page
    assert "Open vSwitch forwards" not in page
    return result


def test_the_playbook_replays_a_figure_with_a_real_board_and_keeps_it(tmp_path):
    inventory = yaml.safe_load((ROOT / "playbooks/inventories/hardware/hosts.yml").read_text())
    inventory["testbed"]["hosts"]["bench"]["testbed_cabling"] = {"s1": CARDS}
    inventory["boards"]["hosts"] = {}
    hosts = tmp_path / "hosts.yml"
    hosts.write_text(yaml.safe_dump(inventory))
    out = tmp_path / "results"
    short = {"points": "admitted", "runs": 1, "seconds": 2}
    chosen = {"mode": "hardware", "figures": "fig17a", "out": str(out), **short}
    words = ["-i", hosts, "playbooks/evaluate.yml", "--tags", "evaluation", "-e", json.dumps(chosen)]
    with board(tmp_path):
        done = play(tmp_path, words)
    said = "s1 is a real board: mac 70:b3:d5:6c:00:01, hardware Zodiac-FX Rev.A, firmware 0.84"
    assert said in done.messages(), done.output
    result = check_result(out / "hardware", "fig17a")
    assert [series["label"] for series in result["series"]] == ["H1->H3", "H3->H1"]
    assert set(result["boards"]) == {"s1", "s2"}
    # Complete points are not run again: the board is gone by now.
    cabling = tmp_path / "cabling.yml"
    cabling.write_text(yaml.safe_dump({"switches": {"s1": CARDS}}))
    same = [word for name, value in short.items() for word in (f"--{name}", value)]
    words = ["fig17a", "--mode", "hardware", *same, "--cabling", cabling, "--out", out / "hardware"]
    again = evaluate(*words)
    assert again.returncode in (0, 1), again.stderr
    assert check_result(out / "hardware", "fig17a")["series"] == result["series"]


def test_a_wrong_cable_is_told_before_anything_is_sent(tmp_path):
    cabling = tmp_path / "cabling.yml"
    cabling.write_text(yaml.safe_dump({"switches": {"s1": CARDS}}))
    out = tmp_path / "results"
    with board(tmp_path, ports={1: 2, 2: 1, 3: 3, 4: 4}):
        done = evaluate("fig17a", "--mode", "hardware", *SHORT, "--cabling", cabling, "--out", out)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert "the cable of card1 is in port 2" in line
    assert not list(out.glob("*.json"))
