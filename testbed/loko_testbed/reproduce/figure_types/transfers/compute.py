"""Send transfers over TCP through sliced ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from loko_testbed.reproduce.figure_types import FigureType
from loko_testbed.reproduce.figure_types.transfers import beside_iperf3, by_port
from loko_testbed.reproduce.figure_types.transfers.document import TransfersBesideIperf3, TransfersByPort
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import Progress

_Transfers = TransfersByPort | TransfersBesideIperf3


def compute(figure: _Transfers, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Send what the figure shows. Raises `RunError`."""
    if isinstance(figure, TransfersByPort):
        return by_port.compute(figure, options, progress)
    return beside_iperf3.compute(figure, options, progress)


def _parameters(figure: _Transfers, options: Options) -> Mapping[str, Any]:
    if isinstance(figure, TransfersByPort):
        return by_port.parameters(figure, options)
    return beside_iperf3.parameters(figure)


def _estimate_s(figure: _Transfers) -> dict[str, float]:
    if isinstance(figure, TransfersByPort):
        return by_port.estimate_s(figure)
    return beside_iperf3.estimate_s(figure)


FIGURE_TYPE: Final = FigureType(
    documents=(TransfersByPort, TransfersBesideIperf3),
    compute=OneByOne(compute, _parameters),
    estimate_s=_estimate_s,
)
