"""Compute figures of the model."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.model import allocation_map, packet_rates, service_curve
from loko_testbed.reproduce.figure_types.model.document import (
    AllocationMap,
    PacketRates,
    ServiceCurve,
)
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress


def compute(
    figure: ServiceCurve | AllocationMap | PacketRates, _options: Options, _progress: Progress
) -> tuple[Outcome, pa.Table]:
    """Compute the figure. Raises `InputError` if the profile gives no worst case."""
    if isinstance(figure, ServiceCurve):
        outcome, rows = service_curve.compute(figure)
    elif isinstance(figure, PacketRates):
        outcome, rows = packet_rates.compute(figure)
    else:
        outcome, rows = allocation_map.compute(figure)
    return outcome.model_copy(update={"profile": figure.profile}), rows


FIGURE_TYPE: Final = FigureType(
    documents=(ServiceCurve, AllocationMap, PacketRates),
    compute=OneByOne(compute),
    estimate_s=lambda _: {"virtual": 1.0, "live": 1.0},
)
