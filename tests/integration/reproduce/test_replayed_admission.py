"""Admission figures that are replayed: what they show."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from no_rendering import no_rendering

from loko_testbed.reproduce.chart import BoxPanel
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure_types.experiments import experiments, select
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import ProgressBar


def test_the_picture_shows_the_use_of_each_switch_and_ends_where_no_flow_is_accepted(tmp_path: Path) -> None:
    options = Options(mode="virtual", seed=1, out=tmp_path, quick=True, runs=2)
    with no_rendering(), ProgressBar() as progress:
        (result,) = evaluate(select(["fig20a"], experiments()), options, progress)
    rows = pq.read_table(tmp_path / "fig20a.parquet").to_pylist()
    assert {len(row["rate_uses_percent"]) for row in rows} == {31}
    assert result.chart is not None
    whole, bottleneck = result.chart.panels
    assert isinstance(whole, BoxPanel)
    assert isinstance(bottleneck, BoxPanel)
    of_switches = whole.groups[1]
    assert "each of the 31 switches" in of_switches.label
    for place, box in zip(whole.places, of_switches.boxes, strict=True):
        uses = [use for row in rows if row["hops"] == int(place) for use in row["rate_uses_percent"]]
        assert box is not None
        assert (box.min, box.max) == (min(uses), max(uses))
        assert box.mean == pytest.approx(sum(uses) / len(uses))
    largest = result.findings["largest_rate_use_percent"]
    assert largest == max(box.max for box in of_switches.boxes if box is not None)
    assert [reference.value for reference in whole.references] == [49]
    with_flows = {row["hops"] for row in rows if row["accepted"]}
    assert whole.places == bottleneck.places == [str(hops) for hops in sorted(with_flows)]
    assert 30 not in with_flows
    assert "30 hops" in result.chart.caption
