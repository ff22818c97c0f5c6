"""Whether a switch suits Loko: its preconditions, measured live on the emulated board and on Open vSwitch."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from loko.document import StrictModel
from loko.switch_model.scenario import TABLE_1_ENTRIES, ActionType, MatchType
from loko.units import NS_PER_US
from loko_testbed.measure.bench.campaign import run
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.inventory import BENCHES, load_inventory
from loko_testbed.measure.bench.live.bench import CONNECT_S
from loko_testbed.measure.bench.live.open_device import open_bench
from loko_testbed.measure.bench.live.self_test import self_test
from loko_testbed.measure.bench.preconditions import preconditions, reduced_parts
from loko_testbed.measure.bench.procedures.dp_time import PROCEDURE as DP_TIME
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.reproduce.analysis import box_of
from loko_testbed.reproduce.chart import BoxGroup, BoxPanel, BoxStatistics, Chart, ChartAxis
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.reproduce.studies.study import Rows, Study

SWITCHES: Final = {"zodiac-fx-live": "emulated Zodiac FX", "openvswitch": "Open vSwitch, userspace datapath"}
SIZE: Final = 306
_SAID: Final = {True: "holds", False: "fails", None: "unknown"}


class DeterminismSize(StrictModel):
    """How much is measured."""

    samples: int
    """Frames of each case."""


class DeterminismTask(NamedTuple):
    """A switch to measure: the name of its inventory."""

    switch: str
    samples: int
    seed: int

    def __str__(self) -> str:
        return SWITCHES[self.switch]


def tasks(size: DeterminismSize, seed: int) -> list[DeterminismTask]:
    """Return both switches."""
    return [DeterminismTask(switch, size.samples, seed) for switch in SWITCHES]


def measure(task: DeterminismTask) -> Rows:
    """Measure a switch like ``loko bench preconditions``; rows are preconditions, then boxes by entries.

    Raises `InputError` or `RunError`.
    """
    parts = reduced_parts(samples=task.samples)
    with (
        tempfile.TemporaryDirectory(prefix="loko-determinism-") as folder,
        open_bench(load_inventory(BENCHES / f"{task.switch}.yml")) as bench,
    ):
        store = SampleStore(Path(folder), {})
        self_test(bench, connect_s=CONNECT_S)
        run(bench.device, parts, store, seed=task.seed, on_part=lambda _: None)
        samples = store.samples(part.key for part in parts)
        wire = bench.device.wire
    rows: Rows = [
        {
            "switch": task.switch,
            "precondition": condition.name,
            "presumed": condition.presumed,
            "measured": condition.measured,
            "holds": condition.holds,
            "entries": None,
            "box_us": None,
        }
        for condition in preconditions(samples, wire)
    ]
    for entries in TABLE_1_ENTRIES:
        case = TableCase(entries=entries, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT)
        box = box_of(samples[DP_TIME.key(case)][SIZE], low=0.1, high=99.9, per=NS_PER_US)
        rows.append(
            {
                "switch": task.switch,
                **dict.fromkeys(("precondition", "presumed", "measured", "holds")),
                "entries": entries,
                "box_us": box.model_dump(),
            }
        )
    return rows


def show(rows: Rows) -> Outcome:
    """Show the processing times of both switches side by side, and which preconditions they fulfil."""
    conditions = [row for row in rows if row["precondition"] is not None]
    return Outcome(
        chart=Chart(
            panels=[
                _panel(title, [row for row in rows if row["switch"] == switch and row["box_us"] is not None])
                for switch, title in SWITCHES.items()
            ],
            columns=2,
        ),
        findings={
            f"{switch.replace('-', '_')}_{word}": float(
                sum(row["holds"] is holds for row in conditions if row["switch"] == switch)
            )
            for switch in SWITCHES
            for word, holds in (("fulfilled", True), ("failed", False))
        },
        x=AxisLabel(name="entries in the table", unit=""),
        table=TableResult(
            columns=["switch", "Loko presumes", "", "measured"],
            rows=[
                [SWITCHES[row["switch"]], row["precondition"], _SAID[row["holds"]], row["measured"]]
                for row in conditions
            ],
        ),
    )


def _panel(title: str, rows: Rows) -> BoxPanel:
    boxes = [BoxStatistics.model_validate(row["box_us"]) for row in rows]
    worst = max(box.whisker_high / box.median for box in boxes)
    return BoxPanel(
        title=f"{title}: p99.9 up to {worst:.2f} times the median",
        x=ChartAxis(label="entries in the table"),
        y=ChartAxis(label=f"processing time, {SIZE} bytes [us]", log=True),
        places=[str(row["entries"]) for row in rows],
        groups=[BoxGroup(label=title, boxes=list(boxes))],
        whiskers="0.1 % and 99.9 %",
    )


STUDY: Final = Study(
    size=DeterminismSize,
    tasks=tasks,
    measure=measure,
    show=show,
    estimate_s={"live": 600.0},
    needs_root=True,
)
