"""Figures of one replay that contain equal tasks share the results of these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.transfers import by_port
from loko_testbed.reproduce.figure_types.transfers.compute import FIGURE_TYPE
from loko_testbed.reproduce.figure_types.transfers.transfers import TransferMeasurement
from loko_testbed.reproduce.replay.tasks import compute_tasks, equal_tasks_once, tasks_of
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import NoProgress


@pytest.mark.parametrize(("mode", "computed"), [("virtual", [1, 2, 3]), ("live", [1, 2, 2, 3])])
def test_two_figures_share_equal_tasks_in_virtual_time_only(
    tmp_path: Path, mode: Any, computed: list[int]
) -> None:
    doubled: list[int] = []

    def double(number: int) -> int:
        doubled.append(number)
        return 2 * number

    options = Options(mode=mode, seed=1, out=tmp_path)
    with equal_tasks_once():
        for figure, tasks in (("loko/one", [1, 2]), ("loko/other", [2, 3])):
            with tasks_of(figure, {"document": figure}):
                assert compute_tasks(double, tasks, options, NoProgress()) == [2 * task for task in tasks]
    assert doubled == computed


def test_a_transfer_that_two_figures_show_is_carried_out_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_out = []

    def transferred(task: Any) -> TransferMeasurement:
        carried_out.append(task)
        return TransferMeasurement(
            latency_ms=1,
            latency_max_ms=2,
            payload_bps=1e8,
            retransmissions_pps=0,
            window_packets=3,
            timeouts=0,
        )

    monkeypatch.setattr(by_port, "virtual_transfer", transferred)
    figures = [experiments()[f"slicing/{name}"] for name in ("fig6a", "fig6b")]
    with equal_tasks_once():
        results = list(
            FIGURE_TYPE.compute(figures, Options(mode="virtual", seed=1, out=tmp_path), NoProgress())
        )
    assert len(results) == 2
    assert len(carried_out) == 10  # five rates through two ports
