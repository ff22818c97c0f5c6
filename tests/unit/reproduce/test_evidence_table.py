"""README's table of evidence is that of the recorded replay, which counts all statements of the documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample_charts import BOXES, chart_result

from loko.document import InputError
from loko_testbed.reproduce.chart import Chart
from loko_testbed.reproduce.claims import judge
from loko_testbed.reproduce.evidence_table import RECORD, main, read_record, recorded, table, with_table
from loko_testbed.reproduce.figure_types.experiments import experiments, select
from loko_testbed.reproduce.verdicts import ClaimCount, EvidenceLadder, evidence_ladder, sentences

ROOT = Path(__file__).parents[3]


def numbers(ladder: EvidenceLadder) -> dict[tuple[str, str, str], int]:
    """Return how many statements there are by paper, level and kind, whatever became of them."""
    return {
        (paper, level, kind): count.tested + count.untested
        for paper, levels in ladder.items()
        for level, kinds in levels.items()
        for kind, count in kinds.items()
    }


def test_the_readme_has_the_table_of_the_recorded_replay() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_table(readme, read_record(ROOT)) == readme


def test_the_recorded_replay_counts_every_statement_of_the_documents() -> None:
    results = []
    for figure in select([], experiments(), "virtual"):
        blank = chart_result(Chart(panels=[BOXES]))
        results.append(
            blank.model_copy(update={"figure": figure.figure, "paper": figure.paper, "claims": judge(figure)})
        )
    stated = numbers(evidence_ladder(sentences(results)))
    made_by = "loko evaluate --out DIR; python -m loko_testbed.reproduce.evidence_table DIR"
    assert numbers(read_record(ROOT)) == stated, f"claims have changed; make the record again: {made_by}"


def test_a_record_is_read_back_and_its_table_has_a_row_for_each_paper_and_kind(tmp_path: Path) -> None:
    count = ClaimCount(hold=2, fail=1, untested=4)
    ladder: EvidenceLadder = {"loko": {"ordinal": {"predicted": count}, "profile": {"ours": count}}}
    path = tmp_path / RECORD
    path.parent.mkdir(parents=True)
    path.write_bytes(recorded(ladder))
    assert read_record(tmp_path) == ladder
    assert json.loads(path.read_text())["loko"]["ordinal"]["predicted"]["hold"] == 2
    [row] = table(ladder).splitlines()[2:]
    assert row == "| loko | predictions |  |  |  | 2 of 3 |  |"


def test_what_is_wrong_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="missing or damaged"):
        read_record(tmp_path)
    with pytest.raises(InputError, match="has no place for the table"):
        with_table("no marks", {})
    for words in ([], [str(tmp_path)]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1
