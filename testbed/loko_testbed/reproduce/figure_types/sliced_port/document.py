"""The document of a figure of all queues of a sliced port."""

from __future__ import annotations

from typing import Literal

from loko_testbed.reproduce.figure import IN_TASKS
from loko_testbed.reproduce.finding_checks import FindingFigure
from loko_testbed.simulation.options import Options


class SlicedPortFigure(FindingFigure):
    """Rates, bursts and latencies of all queues, for several kinds of flow, alone and beside each other."""

    supported_options = IN_TASKS
    kind: Literal["sliced_port"]
    switches: dict[str, str]
    """Sliced switches in virtual time, of `labs/slicing/devices`, by the prefix of their findings."""

    def shorter(self, _options: Options) -> str:
        """See `Figure.shorter`. The queues are always measured in full."""
        return ""
