"""How results appear in notebooks, and how libraries of data frames take them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import loko
import loko_testbed
from loko.document import InputError
from loko.notebook_display import MOST_ROWS, html_table
from loko_testbed.reproduce.chart import ChartAxis, ChartCurve, LinePanel

LAB = loko.load_lab("two-switch")
FLOW = loko.load_requests(LAB.path.parent / "flows.yml")[0].flow
MANY = [FLOW._replace(id=f"<f{number}>", udp_source=5100 + number, rate_bps=2e6) for number in range(9)]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> loko_testbed.ReplayedFigure:
    folder = tmp_path_factory.mktemp("results")
    (figure,) = loko_testbed.evaluate("fig17a", quick=True, runs=1, out=folder)
    return figure


def test_a_plan_is_a_table_in_a_notebook() -> None:
    planned = loko.plan(LAB, MANY, scheme="packets")
    assert planned.accepted
    assert planned.refused
    shown = planned._repr_html_()
    assert f"two-switch: {planned.fit} flows fit by packet-granular" in shown
    assert shown.count("<tr>") == 1 + len(MANY)
    assert "&lt;f0&gt;" in shown, "ids are text, not HTML"
    assert "<f0>" not in shown


def test_a_plan_is_a_frame_with_a_row_for_each_flow() -> None:
    planned = loko.plan(LAB, [loko.Request(FLOW, deadline_ns=1e9), *map(loko.Request, MANY)])
    table = pa.table(planned)
    assert table.column("flow").to_pylist() == [FLOW.id, *(flow.id for flow in MANY)]
    accepted = table.filter(table["accepted"])
    assert accepted.column("guarantee_ns").to_pylist() == [one.guarantee_ns for one in planned.accepted]
    assert table.column("deadline_ns").to_pylist() == [1e9, *[None] * len(MANY)]
    refused = pd.DataFrame.from_arrow(planned).query("not accepted")
    assert list(refused["switch"]) == [one.switch for one in planned.refused]


def test_a_service_curve_is_a_table_of_its_terms() -> None:
    service = loko.model("zodiac-fx", packet_sizes_bytes=[306], entries=17)
    shown = service._repr_html_()
    assert all(f"T: {term.name}" in shown for term in service.terms)
    assert f"{service.rate_bps / 1e6:.3f} Mbit/s" in shown


def test_a_long_table_says_how_many_rows_it_leaves_out() -> None:
    assert "and 1,234 more" in html_table("many", ["n"], [["1"]] * (MOST_ROWS + 1_234))
    assert "more" not in html_table("few", ["n"], [["1"]] * MOST_ROWS)


def test_figures_are_replayed_as_by_the_command(replayed: loko_testbed.ReplayedFigure) -> None:
    again = loko_testbed.open_figure("fig17a", replayed.folder)
    assert again.result == replayed.result
    assert replayed.records.num_rows == sum(replayed.points["packets"].to_pylist())
    assert replayed.claims["claim"].to_pylist() == [claim.claim for claim in replayed.result.claims]
    assert (replayed.folder / "report.html").is_file()


def test_a_figure_shows_its_picture_and_its_claims(replayed: loko_testbed.ReplayedFigure) -> None:
    shown = replayed._repr_html_()
    assert shown.startswith("<img")
    assert "data:image/svg+xml" in shown
    assert shown.count("<tr>") == 1 + len(replayed.result.claims)


def test_a_figure_of_ones_own_is_drawn_and_written_nowhere(replayed: loko_testbed.ReplayedFigure) -> None:
    before = {path: path.read_bytes() for path in replayed.folder.rglob("*") if path.is_file()}
    curve = ChartCurve(label="mine", x=[1.0, 2.0], y=[3.0, 4.0])
    panel = LinePanel(x=ChartAxis(label="x"), y=ChartAxis(label="y"), curves=[curve])
    mine = replayed.derive("mine", "My <figure>", [panel], findings={"three_ms": 3.0})
    assert "My &lt;figure&gt;" in mine._repr_html_()
    assert mine.records is replayed.records
    assert mine.result.findings == {"three_ms": 3.0}
    assert not mine.result.claims
    assert {path: path.read_bytes() for path in replayed.folder.rglob("*") if path.is_file()} == before


def test_wrong_names_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fig99"):
        loko_testbed.evaluate("fig99", out=tmp_path)
    with pytest.raises(InputError, match="no figure is named"):
        loko_testbed.evaluate(out=tmp_path)
    with pytest.raises(InputError, match=r"fig17a\.json: cannot be read"):
        loko_testbed.open_figure("fig17a", tmp_path)
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        loko_testbed.evaluat  # noqa: B018


def test_the_package_imports_nothing_before_it_is_asked_for() -> None:
    script = "import sys, loko_testbed; print([name for name in sys.modules if name.startswith('loko')])"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "['loko_testbed']\n"
