"""Figure 7b: processing time of FlowMod Delete and Modify (section 3.2.3), and the entries that they add.

In virtual time, a board that follows the specification is measured as well: there, a Modify that matches
nothing adds its entry, and one that matches something does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from loko.units import NS_PER_US
from loko_testbed.measure.bench.procedures.messages import (
    ENTRIES,
    ENTRIES_ADDED,
    PROCEDURE,
    FlowModCommand,
    Hit,
    barrier,
    entries_added,
    flow_search,
    flow_searches,
    without_reply,
)
from loko_testbed.measure.bench.virtual import VirtualDevice
from loko_testbed.reproduce.analysis import linearity
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, FindingPlace, LinePanel
from loko_testbed.reproduce.figure_types.bench.document import ControlPlane
from loko_testbed.reproduce.figure_types.bench.measured import Measured, Times, messages_shown, rows_of
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult

_HITS: Final[tuple[Hit, ...]] = ("all", "none")
_COMMANDS: Final[tuple[FlowModCommand, ...]] = ("delete", "modify", "delete-strict", "modify-strict")
_STRICT: Final[dict[FlowModCommand, FlowModCommand]] = {"delete": "delete-strict", "modify": "modify-strict"}
_SPECIFICATION_SAMPLES: Final = 20
_SPECIFICATION_ENTRIES: Final = (17, 65, 113)
"""Sizes below that of a full table, which has no room for an entry that a Modify adds."""

Mean = Callable[[FlowModCommand, Hit, int], float]
"""Returns the mean processing time in microseconds of a command on this many entries."""


def _evaluate(figure: ControlPlane, measured: Measured) -> tuple[Outcome, pa.Table]:
    """Compute mean times."""
    options, times = measured.options, measured.times
    mean = _means(times)
    findings = {
        **_findings(mean),
        "entries_added": float(times[ENTRIES_ADDED][0]),
        "late_barriers": float(measured.left_out),
    }
    table = TableResult(columns=_COLUMNS, rows=_rows("firmware", mean, ENTRIES))
    if options.mode == "virtual":
        device = VirtualDevice(measured.device.form, {"quirks": "spec"}, seed=options.seed)
        ideal = _of_specification(device, options.seed)
        findings["spec_entries_added"] = float(
            entries_added(device, flow_search("modify", "none", _SPECIFICATION_ENTRIES[0]))
        )
        findings |= _of_one_kind("spec_", ideal, ("",), _SPECIFICATION_ENTRIES)
        table = TableResult(
            columns=_COLUMNS, rows=[*table.rows, *_rows("specification", ideal, _SPECIFICATION_ENTRIES)]
        )
    outcome = Outcome(
        chart=_chart(mean, figure.count(quick=options.quick)),
        findings=findings,
        x=AxisLabel(name="number of entries", unit=""),
        table=table,
    )
    return outcome, rows_of({search.key: times[search.key] for search in flow_searches()})


def _means(times: Times) -> Mean:
    return lambda command, hit, entries: float(times[PROCEDURE.key(command, hit, entries)].mean()) / NS_PER_US


def _findings(mean: Mean) -> dict[str, float]:
    lines = [[mean(command, hit, entries) for entries in ENTRIES] for command in _COMMANDS for hit in _HITS]
    numbers = list(map(float, ENTRIES))
    findings = {
        "linearity_min": min(linearity(numbers, line)[1] for line in lines),
        "largest_ms": max(map(max, lines)) / 1000,
        "delete_over_largest_modify": mean("delete", "all", ENTRIES[-1])
        / max(mean("modify", "all", entries) for entries in ENTRIES),
        "loose_over_strict_min": min(
            mean(loose, hit, entries) / mean(strict, hit, entries)
            for loose, strict in _STRICT.items()
            for hit in _HITS
            for entries in ENTRIES
        ),
        "all_over_none_min": min(
            mean(command, "all", entries) / mean(command, "none", entries)
            for command in _COMMANDS
            for entries in ENTRIES
        ),
    }
    return findings | _of_one_kind("", mean, ("", "-strict"), ENTRIES)


def _of_one_kind(prefix: str, mean: Mean, kinds: tuple[str, ...], sizes: tuple[int, ...]) -> dict[str, float]:
    """Compare Delete with Modify: the least ratios over all sizes, and that of the largest table."""

    def quotient(kind: str, hit: Hit, entries: int) -> float:
        delete, modify = _pair(kind)
        return mean(delete, hit, entries) / mean(modify, hit, entries)

    return {
        f"{prefix}all_delete_over_modify_min": min(
            quotient(kind, "all", entries) for kind in kinds for entries in sizes
        ),
        f"{prefix}all_delete_over_modify_largest_table": min(
            quotient(kind, "all", sizes[-1]) for kind in kinds
        ),
        f"{prefix}none_modify_over_delete_min": min(
            1 / quotient(kind, "none", entries) for kind in kinds for entries in sizes
        ),
    }


def _pair(kind: str) -> tuple[FlowModCommand, FlowModCommand]:
    return ("delete-strict", "modify-strict") if kind else ("delete", "modify")


def _of_specification(device: VirtualDevice, seed: int) -> Mean:
    p_br = barrier(device, samples=_SPECIFICATION_SAMPLES, seed=seed)
    times: Times = {
        PROCEDURE.key(command, hit, entries): without_reply(
            device,
            flow_search(command, hit, entries, always_fresh=True),
            barrier=p_br,
            samples=_SPECIFICATION_SAMPLES,
            seed=seed,
        ).values
        for command in _pair("")
        for hit in _HITS
        for entries in _SPECIFICATION_ENTRIES
    }
    return _means(times)


_COLUMNS: Final = ["board", "entries", "all_delete_us", "all_modify_us", "none_delete_us", "none_modify_us"]


def _rows(board: str, mean: Mean, sizes: tuple[int, ...]) -> list[list[str | float]]:
    return [
        [board, float(entries), *(mean(command, hit, entries) for hit in _HITS for command in _pair(""))]
        for entries in sizes
    ]


def _chart(mean: Mean, samples: int) -> Chart:
    """Return the chart as in the paper: markers mean that no entry matches; strict commands are dashed."""
    curves = [
        ChartCurve(
            label=f"{command.replace('-', ', ')}, {hit}",
            x=list(map(float, ENTRIES)),
            y=[mean(command, hit, entries) / 1000 for entries in ENTRIES],
            marker=hit == "none",
            dashed=command.endswith("-strict"),
        )
        for hit in _HITS
        for command in _COMMANDS
    ]
    panel = LinePanel(
        x=ChartAxis(label="number of entries"),
        y=ChartAxis(label="mean processing time [ms]", low=0),
        findings=[FindingPlace(finding="largest_ms")],
        curves=curves,
    )
    return Chart(panels=[panel], caption=f"{samples} samples a point; markers: none is hit")


FLOW_SEARCHES: Final = messages_shown(_evaluate, ENTRIES_ADDED, subjects=flow_searches)
