"""`loko replay --survive`: what is printed, and the exit status."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from small_plant import write_plant
from typer.testing import CliRunner

from loko_testbed.cli import protected_replay
from loko_testbed.cli.main import app
from loko_testbed.simulation.failures.verdict import FailureVerdict, judge


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Write a ring of four simple switches and its flows; return the arguments of a replay with failures."""
    lab, flows = write_plant(tmp_path)
    return ["replay", lab, flows, "--survive", "cables=1", "--detect-ms", "100", "--seconds", "0.2"]


def test_each_failure_is_replayed_against_the_plan(words: list[str]) -> None:
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    runs = json.loads(done.stdout)["runs"]
    assert len(runs) == 8, "two for each of four cables"
    planned = CliRunner().invoke(app, ["plan", *words[1:-2], "--json"])
    recoveries = {
        recovery["failure"]: recovery for recovery in json.loads(planned.stdout)["survive"]["recoveries"]
    }
    for run in runs:
        recovery = recoveries.get(run["failure"], {"most_lost_frames": 0, "moved": [], "outage_ns": 0})
        assert sum(flow["most_lost"] for flow in run["flows"]) == recovery["most_lost_frames"]
        assert [flow["flow"] for flow in run["flows"] if flow["fate"] == "moves"] == recovery["moved"]
        assert run["outage_ns"] == recovery["outage_ns"]
        for flow in run["flows"]:
            assert flow["lost"] <= flow["most_lost"]
            assert 0 < flow["worst"] <= 1


def test_one_cable_is_cut_at_an_instant(words: list[str]) -> None:
    done = CliRunner().invoke(app, [*words, "--duplicate", "drive", "--cut", "s1:2-s2:2@0.3", "--csv"])
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(StringIO(done.stdout)))
    assert {row["failure"] for row in rows} == {"cable s1:2-s2:2"}
    drive = [row for row in rows if row["flow"] == "drive"]
    valve = [row for row in rows if row["flow"] == "valve"]
    assert len(drive) == len(valve) == 2
    assert all(row["fate"] == "duplicated" and row["lost"] == "0" for row in drive)
    assert all(row["fate"] == "moves" and int(row["lost"]) > 0 for row in valve)


def test_switches_with_groups_lose_less(words: list[str]) -> None:
    cut = [*words, "--cut", "s1:2-s2:2@0.3", "--json"]
    by_controller = CliRunner().invoke(app, cut)
    diverted = CliRunner().invoke(app, [*cut, "--port-detect-ms", "10"])
    assert (by_controller.exit_code, diverted.exit_code) == (0, 0), diverted.output
    slow, quick = (json.loads(done.stdout)["runs"][0]["flows"] for done in (by_controller, diverted))
    for before, flow in zip(slow, quick, strict=True):
        assert flow["fate"] == "moves"
        assert flow["lost"] < before["lost"]
        assert flow["most_lost"] < before["most_lost"]
    planned = CliRunner().invoke(app, ["plan", *words[1:-2], "--port-detect-ms", "10"])
    assert "switches divert flows by themselves in " in planned.output


def test_the_table_tells_the_worst_of_each_flow(words: list[str]) -> None:
    done = CliRunner().invoke(app, [*words, "--cut", "s1:2-s2:2@0.3"])
    assert done.exit_code == 0, done.output
    assert "none was late, and no flow lost more than the plan states" in done.output


def test_more_losses_than_stated_end_with_status_1(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def worse(*arguments: object) -> FailureVerdict:
        verdict = judge(*arguments)  # type: ignore[arg-type]
        return replace(verdict, flows=tuple(replace(flow, most_lost=0) for flow in verdict.flows))

    monkeypatch.setattr(protected_replay, "judge", worse)
    done = CliRunner().invoke(app, [*words, "--cut", "s1:2-s2:2@0.3"])
    assert done.exit_code == 1
    assert "broken after cable s1:2-s2:2: drive" in done.output


@pytest.mark.parametrize(
    ("cut", "reason"),
    [
        ("s1:2-s2:2", "give what fails and the second"),
        ("s1:2-s2:2@-1", "give what fails and the second"),
        ("s1:9-s2:2@1", "--survive covers no failure 's1:9-s2:2'"),
        ("s2-s3@1", "name one, such as 's2:3-s3:2'"),
    ],
)
def test_wrong_cuts_are_told(words: list[str], cut: str, reason: str) -> None:
    done = CliRunner().invoke(app, [*words, "--cut", cut])
    assert done.exit_code == 2
    assert reason in done.output


@pytest.mark.parametrize("option", ["--cut", "--duplicate"])
def test_options_of_failures_need_survive(words: list[str], option: str) -> None:
    done = CliRunner().invoke(app, [*words[:3], option, "drive"])
    assert done.exit_code == 2
    assert f"{option}: say with --survive" in done.output
