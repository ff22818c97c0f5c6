"""The evidence: the same trials in every run and on any number of processes, and judgements that can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from no_rendering import no_rendering

from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.study.document import StudyFigure
from loko_testbed.reproduce.result import FigureResult
from loko_testbed.reproduce.studies import attacks, models, random_sets
from loko_testbed.reproduce.studies.attacks import AttackTask
from loko_testbed.reproduce.studies.study import Rows
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.state_models import CASES, IN_USE, cases
from loko_testbed.tasks.progress import NoProgress

SEED = 5
"""Seed of trials that begin with small networks."""
SHORT_TRIALS = 27
"""Seed of a trial with failures of boards, and one of chips with 12,000 packets; others have a million."""
SHORT = AttackTask(table="", place=0, generations=1, seconds=0.5, seed=1)


def evaluated(name: str, out: Path, **options: int) -> FigureResult:
    out.mkdir(exist_ok=True)
    figure = experiments()[f"studies/{name}"]
    assert isinstance(figure, StudyFigure)
    chosen = {"seed": SEED, "quick": True} | options
    with no_rendering():
        [result] = evaluate([figure], Options(mode="virtual", out=out, **chosen), NoProgress())
    return result


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> FigureResult:
    return evaluated("randomsets", tmp_path_factory.mktemp("one"), jobs=1)


def test_random_sets_are_the_same_on_any_number_of_processes(tmp_path: Path, boards: FigureResult) -> None:
    again = evaluated("randomsets", tmp_path, jobs=2)
    assert again == boards
    assert boards.findings["trials"] == 4
    assert [claim.holds for claim in boards.claims] == [True] * len(boards.claims)
    assert [guarantee.verdict for guarantee in boards.guarantees] == ["kept"]
    assert boards.notes[-1].where == "SHA-256 of all trials"


def test_every_group_has_all_packets(boards: FigureResult) -> None:
    assert boards.table is not None
    packets = [int(str(row[3]).replace(",", "")) for row in boards.table.rows]
    assert sum(packets) == len(random_sets._GROUPS) * boards.findings["packets"]


def test_fewer_trials_are_the_first_of_more(tmp_path: Path) -> None:
    few = evaluated("portsets", tmp_path / "few", runs=1)
    more = evaluated("portsets", tmp_path / "more", runs=2)
    assert (few.findings["trials"], more.findings["trials"]) == (1, 2)
    assert 0 < few.findings["packets"] < more.findings["packets"]
    assert few.notes[-1] != more.notes[-1]


def test_failures_cost_no_more_than_stated(tmp_path: Path) -> None:
    result = evaluated("failuresets", tmp_path, seed=SHORT_TRIALS)
    assert [claim.holds for claim in result.claims] == [True] * len(result.claims)
    assert result.findings["failures"] > 2 * result.findings["trials"], "the instant is searched"
    assert result.table is not None
    packets = [int(str(row[3]).replace(",", "")) for row in result.table.rows]
    assert sum(packets) == result.findings["packets"]


def test_a_broken_guarantee_is_reported() -> None:
    [task] = random_sets.tasks(random_sets.RandomSetsSize(part="ports", runs=1, packets=300), 1)
    [row] = random_sets.measure(task)
    shown = random_sets.show([{**row, "broken": 1, "worst": 1.1}])
    assert [guarantee.verdict for guarantee in shown.guarantees] == ["broken"]
    assert (shown.findings["broken"], shown.findings["worst"]) == (1, 1.1)


def test_a_trial_is_repeated_by_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    seed = random_sets.campaign_seed(SEED, 0)
    assert random_sets.repeat(seed, 2_000)
    assert capsys.readouterr().out.startswith(f"seed {seed}: ")
    for words in ([], ["many"]):
        with pytest.raises(SystemExit, match="2"):
            random_sets._main(words)


def test_every_board_that_is_attacked_can_be_planned_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even those faster or slower than equation 6. Otherwise the campaign would end before its page."""
    monkeypatch.setattr(attacks, "_damage", lambda _case, _task: {"worst": 0.0, "lost": 0})
    rows = [attacked(SHORT) for attacked in attacks._capacity()]
    assert {row["capacity"] for row in rows if not row["told"]} == set(attacks._CAPACITIES)
    assert {row["capacity"] for row in rows if row["told"]} == {
        capacity for capacity in attacks._CAPACITIES if capacity < 1
    }


def test_attacks_are_judged_where_a_guarantee_must_be_kept() -> None:
    """The quickest of the tables: flows that take the place of released ones."""
    tasks = attacks.tasks(attacks.AttacksSize(table="released", generations=1, seconds=1), 1)
    rows: Rows = [row for task in tasks[:2] for row in attacks.measure(task)]
    assert [row["forgets"] for row in rows] == [True, False]
    shown = attacks.show(rows)
    assert shown.findings["worst"] <= 1 < shown.findings["worst_otherwise"]
    assert attacks.show([row | {"lost": 3} for row in rows]).findings["lost_packets"] == 3


def test_a_rule_in_use_that_is_refuted_is_unexpected(monkeypatch: pytest.MonkeyPatch) -> None:
    size = models.ModelsSize(networks=("line of five",))
    first = models.tasks(size, 1)[0]
    assert models.show(models.measure(first)).findings["unexpected"] == 0
    weaker = next(case for case in CASES if case.rule != IN_USE)
    monkeypatch.setattr(cases, "CASES", (replace(weaker, rule=IN_USE),))
    assert models.show(models.measure(first)).findings["unexpected"] == 1
