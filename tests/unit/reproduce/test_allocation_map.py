"""Figure 14 and the service curves of sections 4 and 6, as figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from loko_testbed.reproduce.claims import judge
from loko_testbed.reproduce.figure_types import figure_type_named
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import NoProgress

FIGURES = experiments()


@pytest.mark.parametrize("name", ["fig14a", "fig14b", "sec4", "sec6"])
def test_every_claim_holds(name: str, tmp_path: Path) -> None:
    figure = FIGURES[f"loko/{name}"]
    options = Options(mode="virtual", seed=1, out=tmp_path)
    (result,) = figure_type_named(figure.kind).compute([figure], options, NoProgress())
    claims = judge(figure, series=[], table=result.table, findings=result.findings)
    assert len(claims) == len(figure.claims)
    assert [claim.claim for claim in claims if not claim.holds] == []


def test_cells_without_a_burst_of_one_frame_stay_white(tmp_path: Path) -> None:
    figure = FIGURES["loko/fig14a"]
    options = Options(mode="virtual", seed=1, out=tmp_path)
    (result,) = figure_type_named(figure.kind).compute([figure], options, NoProgress())
    assert result.chart is not None
    for panel in result.chart.panels:
        assert panel.kind == "heatmap"
        white = sum(cell is None for row in panel.cells for cell in row)
        assert white == result.findings["infeasible_cells"]
    assert result.findings["infeasible_cells"] + result.findings["feasible_cells"] == 63
