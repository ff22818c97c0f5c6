"""Table II: what is known of the switches, and the ports of the devices that stand for them here."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from loko.switch_model.device import load_device
from loko_testbed.measure.predictability.subject import switch_under_test
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure_types.predictability.document import Predictability, Specifications
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_PRINTED: Final = {"ASIC": "asic", "CPU": "cpu", "firmware": "firmware", "of": "release", "ports": "ports"}
"""Columns of the table, and what the facts call them."""
_GBPS: Final = 1_000_000_000


def compute_specifications(
    figure: Predictability, measures: Specifications, options: Options, progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Print the table, and compare the ports of the devices with it. Nothing is measured."""
    del measures, options, progress
    table: list[list[str | float]] = []
    differ = left_out = 0
    for device in figure.devices:
        title, subject = load_device(device).title, switch_under_test(device)
        printed = [str(fact(figure.paper, f"tab2/{title}/{name}").value) for name in _PRINTED.values()]
        ours = f"{subject.ports}x{subject.link_rate_bps // _GBPS}G"
        first, *uplinks = printed[-1].split(" + ")
        differ += first != ours
        left_out += bool(uplinks)
        table.append([title, *printed, ours])
    columns = ["switch", *_PRINTED, "here"]
    rows = pa.table({name: [row[place] for row in table] for place, name in enumerate(columns)})
    outcome = Outcome(
        chart=None,
        findings={
            "switches": float(len(table)),
            "differing_ports": float(differ),
            "without_uplinks": float(left_out),
        },
        x=AxisLabel(name="switch", unit=""),
        table=TableResult(columns=columns, rows=table),
    )
    return outcome, rows
