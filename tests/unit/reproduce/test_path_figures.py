"""Figures of paths: the picture says whether it was made in virtual or in real time."""

from __future__ import annotations

from pathlib import Path

import pytest

from loko_testbed.reproduce.chart import LinePanel
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure_types.experiments import experiments, select
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import ProgressBar


@pytest.mark.parametrize("name", ["fivelive", "ringlive"])
def test_a_picture_of_virtual_time_says_so_and_has_every_path_length(name: str, tmp_path: Path) -> None:
    options = Options(mode="virtual", seed=1, out=tmp_path, runs=1, seconds=0.1)
    with ProgressBar() as progress:
        (result,) = evaluate(select([name], experiments()), options, progress)
    assert "real time" not in result.title
    assert result.chart is not None
    (panel,) = result.chart.panels
    assert isinstance(panel, LinePanel)
    assert panel.title == "computed in virtual time, not sent in real time"
    lengths = [point.x for series in result.series for point in series.points]
    assert [curve.x for curve in panel.curves] == [lengths] * 2
