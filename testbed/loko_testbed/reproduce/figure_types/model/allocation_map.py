"""The allocation of a switch for each frame size and table size (figure 14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, get_args

import pyarrow as pa

from loko.switch_model.allocation import Allocation, allocate, scheme_named
from loko.switch_model.scenario import loko_scenario
from loko.switch_model.service_curve import service_curve
from loko.switch_model.split import split
from loko_testbed.reproduce.chart import Chart, ChartAxis, FindingPlace, HeatPanel
from loko_testbed.reproduce.figure import FixedScheme
from loko_testbed.reproduce.figure_types.model.document import AllocationMap
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel

_KB: Final = 1024
"""Bytes per kB as table 2 uses the unit."""

Cells = Mapping[tuple[int, int], Allocation]
"""Allocations by entries and frame size."""

_WHITE: Final = "white: not feasible, the buffer leaves no burst of one frame"
_SHOWN: Final[Mapping[str, tuple[str, str, Callable[[Allocation], float]]]] = {
    "delay": ("ms", "guaranteed delay [ms]", lambda cell: cell.delay_ns / 1e6),
    "burst": ("kb", "maximum burst [kB of 1024 bytes]", lambda cell: cell.max_burst_bytes / _KB),
    "rate": ("mbps", "maximum rate [Mbit/s]", lambda cell: cell.max_rate_bps / 1e6),
}
"""For each value of a cell its unit in findings, its name on the scale of colours, and how to get it."""


def compute(figure: AllocationMap) -> tuple[Outcome, pa.Table]:
    """Compute the allocation of every cell. Raises `InputError` if the profile gives no worst case."""
    cells = allocations(figure, figure.allocation)
    findings = _findings(cells)
    if figure.split is not None:
        findings |= _split_findings(cells, figure.split)
    if figure.compared_with is not None:
        findings |= _differences(cells, allocations(figure, figure.compared_with))
    every = [cell for scheme in get_args(FixedScheme) for cell in allocations(figure, scheme).values()]
    chart = Chart(
        panels=[_panel(figure, cells, name, every) for name in _SHOWN],
        columns=1,
        caption="" if all(cell.feasible for cell in cells.values()) else _WHITE,
    )
    outcome = Outcome(
        chart=chart,
        findings=findings,
        x=AxisLabel(name="packet size", unit="bytes"),
    )
    return outcome, _rows(cells)


def allocations(figure: AllocationMap, scheme: str) -> Cells:
    """Return the allocation of every cell under a scheme."""
    profile = figure.loaded_profile()
    return {
        (entries, size): allocate(
            service_curve(profile, loko_scenario(entries=entries, packet_sizes_bytes=(size,))),
            scheme_named(scheme),
        )
        for entries in figure.entries
        for size in figure.packet_sizes_bytes
    }


def _panel(figure: AllocationMap, cells: Cells, name: str, every: Sequence[Allocation]) -> HeatPanel:
    """Return a heatmap whose colours reach over all of `every`, so that those of both schemes compare."""
    unit, title, value = _SHOWN[name]
    reach = [value(cell) for cell in every if cell.feasible]
    return HeatPanel(
        x=ChartAxis(label="packet size [bytes]"),
        y=ChartAxis(label="flow entries"),
        findings=[
            FindingPlace(finding=f"{name}_at_{entries}_entries_{size}_bytes_{unit}", of="cell", x=x, y=y)
            for y, entries in enumerate(figure.entries)
            for x, size in enumerate(figure.packet_sizes_bytes)
        ],
        value=ChartAxis(label=title, log=True, low=min(reach), high=max(reach)),
        x_values=[float(size) for size in figure.packet_sizes_bytes],
        y_values=[float(entries) for entries in figure.entries],
        cells=[
            [
                value(cell) if (cell := cells[entries, size]).feasible else None
                for size in figure.packet_sizes_bytes
            ]
            for entries in figure.entries
        ],
    )


def _findings(cells: Cells) -> dict[str, float]:
    findings: dict[str, float] = {
        "feasible_cells": float(sum(cell.feasible for cell in cells.values())),
        "infeasible_cells": float(sum(not cell.feasible for cell in cells.values())),
    }
    for size in dict.fromkeys(size for _, size in cells):
        capacity_bytes = next(cell.service.capacity_bytes for (_, of), cell in cells.items() if of == size)
        findings[f"buffer_of_{size}_bytes_packets"] = capacity_bytes / size
    for (entries, size), cell in cells.items():
        if cell.feasible:
            place = f"at_{entries}_entries_{size}_bytes"
            findings |= {f"{name}_{place}_{unit}": value(cell) for name, (unit, _, value) in _SHOWN.items()}
    return findings


def _split_findings(cells: Cells, ratio: float) -> dict[str, float]:
    """Return findings on the bursts that equation 8 gives the flows of section 6.1 in each cell."""
    shares = {place: split(cell, ratio=ratio) for place, cell in cells.items()}
    findings = {"infeasible_cells_of_four_flows": float(sum(not share.feasible for share in shares.values()))}
    for (entries, size), share in shares.items():
        if cells[entries, size].feasible:
            bursts = [bucket.burst_bytes for bucket in (share.first, share.second) if bucket.rate_bps]
            findings[f"burst_of_a_flow_at_{entries}_entries_{size}_bytes_bytes"] = min(bursts)
    return findings


def _differences(cells: Cells, others: Cells) -> dict[str, float]:
    """Return the least gain of burst and the least loss of rate over the other scheme."""
    both = [(cells[place], other) for place, other in others.items() if other.feasible]
    return {
        "least_gain_of_burst_bytes": min(near.max_burst_bytes - two.max_burst_bytes for near, two in both),
        "least_loss_of_rate_mbps": min(two.max_rate_bps - near.max_rate_bps for near, two in both) / 1e6,
        "cells_made_feasible": float(
            sum(cell.feasible and not others[place].feasible for place, cell in cells.items())
        ),
    }


def _rows(cells: Cells) -> pa.Table:
    return pa.table(
        {
            "entries": [entries for entries, _ in cells],
            "packet_size_bytes": [size for _, size in cells],
            "feasible": [cell.feasible for cell in cells.values()],
            "delay_ns": [cell.delay_ns for cell in cells.values()],
            "max_burst_bytes": [cell.max_burst_bytes for cell in cells.values()],
            "max_rate_bps": [cell.max_rate_bps for cell in cells.values()],
        }
    )
