"""The evidence campaign resumes where it was stopped, and its result depends on its seed alone."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

from benchmarks.evidence import __main__ as command
from benchmarks.evidence import attacks
from benchmarks.evidence.__main__ import main
from benchmarks.evidence.models import CASES, IN_USE, cases
from benchmarks.evidence.page import page
from benchmarks.evidence.record import Journal, TrialRecord, campaign_seed, fingerprint, up_to
from benchmarks.evidence.summary import summary
from benchmarks.measure import ROOT
from loko.document import InputError
from loko_testbed.simulation.worst_case.trial import run_trial
from loko_testbed.tasks.executor import each_done

SEED = 5
"""Seed of a campaign that begins with small networks."""
HEAD: dict[str, object] = {"seed": SEED}


@pytest.fixture(scope="module")
def records() -> list[TrialRecord]:
    return [
        TrialRecord.of(number, run_trial(campaign_seed(SEED, number), packets=2_000)) for number in range(4)
    ]


def test_a_journal_forgets_nothing_but_a_line_cut_off(tmp_path: Path, records: list[TrialRecord]) -> None:
    path = tmp_path / "trials.jsonl"
    with Journal(path, HEAD, TrialRecord) as journal:
        for record in (records[2], records[0]):
            journal.add(record)
    whole = path.read_bytes()
    path.write_bytes(whole + records[1].model_dump_json().encode()[:40])  # killed while it wrote
    with Journal(path, HEAD, TrialRecord) as again:
        assert again.records == {0: records[0], 2: records[2]}
        again.add(records[1])
    with Journal(path, HEAD, TrialRecord) as last:
        assert last.records == dict(enumerate(records[:3]))


def test_a_journal_of_another_campaign_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path / "trials.jsonl", HEAD, TrialRecord):
        pass
    with pytest.raises(InputError, match="another campaign"):
        Journal(tmp_path / "trials.jsonl", {"seed": SEED + 1}, TrialRecord)


def test_the_order_of_the_trials_does_not_matter(records: list[TrialRecord]) -> None:
    wanted = records[0].packets + 1
    assert up_to({0: records[0], 3: records[3]}, wanted) is None
    chosen = [up_to({place: records[place] for place in order}, wanted) for order in ([0, 1], [3, 1, 2, 0])]
    assert chosen[0] == chosen[1] == records[:2]
    assert fingerprint(records[:2]) != fingerprint(records[1::-1])


def test_totals_are_those_of_the_groups(records: list[TrialRecord]) -> None:
    totals = summary(records, HEAD)
    for group in ("by_scheme", "by_shape", "by_way", "by_switches"):
        assert sum(of_group["packets"] for of_group in totals[group].values()) == totals["total"]["packets"]


def test_the_command_goes_on(tmp_path: Path) -> None:
    app = Typer()
    app.command()(main)
    arguments = ["--packets", "1", "--trial-packets", "2000", "--seed", str(SEED), "--no-attacks"]
    arguments += ["--only", "boards", "--out", str(tmp_path)]
    results = []
    for jobs in ("2", "1"):
        done = CliRunner().invoke(app, [*arguments, "--jobs", jobs])
        assert done.exit_code == 0, done.output
        results.append(json.loads((tmp_path / "evidence.json").read_text())["fingerprint"])
    assert results[0] == results[1]
    seed = json.loads((tmp_path / "trials.jsonl").read_text().splitlines()[1])["seed"]
    shown = CliRunner().invoke(app, ["--replay", str(seed), "--trial-packets", "2000"])
    assert shown.exit_code == 0
    assert f"seed {seed}" in shown.output


def test_wrong_numbers_are_refused_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    app = Typer()
    app.command()(main)
    done = CliRunner().invoke(app, ["--packets", "many"])
    assert done.exit_code == 2


def test_every_board_that_is_attacked_can_be_planned_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even those faster or slower than equation 6. Otherwise the campaign would end before its page."""
    monkeypatch.setattr(attacks, "_damage", lambda _case: {"worst": 0.0, "lost": 0})
    rows = [attacked() for attacked in attacks._capacity()]
    assert {row["capacity"] for row in rows if not row["told"]} == set(attacks._CAPACITIES)
    assert {row["capacity"] for row in rows if row["told"]} == {
        capacity for capacity in attacks._CAPACITIES if capacity < 1
    }


def test_every_attack_is_a_task_that_other_processes_can_carry_out() -> None:
    """The quickest of the tables gives the same on two processes as on one."""
    rows = [attacked for attacked in attacks._released() if attacked.args[1] == attacks._PAUSES_NS[0]]
    results = dict(each_done(call, rows, jobs=2))
    assert [results[place] for place in range(len(rows))] == [attacked() for attacked in rows]
    for table in (attacks._schemes, attacks._mistakes, attacks._reserved, attacks._capacity):
        for attacked in table():
            again = pickle.loads(pickle.dumps(attacked))
            assert (again.func, len(again.args)) == (attacked.func, len(attacked.args))


def call(attacked: attacks.AttackedSet) -> attacks.AttackRow:
    return attacked()


def test_the_campaign_of_ports_goes_on(tmp_path: Path) -> None:
    app = Typer()
    app.command()(main)
    arguments = ["--only", "ports", "--trial-packets", "300", "--seed", str(SEED), "--out", str(tmp_path)]
    prints = []
    for packets, jobs in (("1", "1"), ("600", "2"), ("600", "1")):
        done = CliRunner().invoke(app, [*arguments, "--packets", packets, "--jobs", jobs])
        assert done.exit_code == 0, done.output
        result = json.loads((tmp_path / "port-evidence.json").read_text())
        assert result["total"]["packets"] >= int(packets)
        prints.append(result["fingerprint"])
    assert prints[0] != prints[1] == prints[2]
    assert sum(group["packets"] for group in result["groups"]) == result["total"]["packets"]
    trials = (tmp_path / "port-trials.jsonl").read_text().splitlines()[1:]
    assert len(trials) == len(set(trials)), "no trial twice"


def test_the_campaign_of_changes_on_ports_and_the_models_each_write_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _search_only(monkeypatch, tuple(case for case in CASES if case.network == "line of five"))
    app = Typer()
    app.command()(main)
    for part, name, expected in (
        ("port-changes", "port-changes.json", "389 packets of 21 flows in 1 trials"),
        ("models", "models.json", "| ports | line of five | in use |"),
    ):
        out = tmp_path / part
        done = CliRunner().invoke(app, ["--only", part, "--packets", "1", "--jobs", "1", "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert json.loads((out / name).read_text(encoding="utf-8"))
        assert expected in " ".join((out / "evidence.md").read_text(encoding="utf-8").split())


def _search_only(monkeypatch: pytest.MonkeyPatch, chosen: tuple[cases.ModelCase, ...]) -> None:
    """Leave out the other models: tests/unit/benchmarks/test_evidence_models.py searches them all."""
    monkeypatch.setattr(cases, "CASES", chosen)
    monkeypatch.setattr(command, "CASES", chosen)


def test_a_campaign_ends_if_a_model_refutes_the_rule_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weaker = next(case for case in CASES if case.rule != IN_USE)
    _search_only(monkeypatch, (replace(weaker, rule=IN_USE),))
    app = Typer()
    app.command()(main)
    done = CliRunner().invoke(app, ["--packets", "1", "--jobs", "1", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "UNEXPECTED: ports, line of five, in use" in done.output
    assert not (tmp_path / "trials.jsonl").exists()


def test_the_page_is_that_of_the_measurements() -> None:
    measurements = ROOT / "docs" / "measurements"
    boards, models, ports, port_changes = (
        json.loads((measurements / name).read_text(encoding="utf-8"))
        for name in ("evidence.json", "models.json", "port-evidence.json", "port-changes.json")
    )
    text = page(boards, models=models, ports=ports, port_changes=port_changes)
    assert text.split() == (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8").split()
