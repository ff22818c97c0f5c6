"""The document of a comparison of OpenFlow versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from loko.switch_model.scenario import TABLE_1_ENTRIES
from loko_testbed.reproduce.figure import SIMULATED, FixedScheme
from loko_testbed.reproduce.finding_checks import FindingClaim
from loko_testbed.reproduce.flow_figure import FlowEnds, SendingFigure


class Versions(SendingFigure):
    """The guarantees of flows with Loko's tables in both versions of OpenFlow, tested by a replay.

    Guarantees are computed for all table sizes; flows are sent with tables of `entries` entries.
    """

    supported_options = SIMULATED
    kind: Literal["versions"]
    claims: Sequence[FindingClaim] = Field(min_length=1)
    allocation: FixedScheme
    split: float = Field(ge=0)
    """N of equation 8."""
    flows: list[FlowEnds] = Field(min_length=1)
    tables: list[int] = Field(default=list(TABLE_1_ENTRIES), min_length=2)
    """Table sizes in entries for which guarantees are computed."""
