"""The conditions of a schedule's bounds (docs/tssdn.md)."""

from __future__ import annotations

from typing import Final

from loko.topology.conditions import Condition, of_one_server

HOSTS_KEEP_SLOTS: Final = Condition(
    id="hosts-keep-slots",
    text="Each host sends one frame in each period of a flow, in the flow's slot, and is never off it by more"
    " than the schedule's guard.",
)

CONDITIONS: Final = of_one_server(HOSTS_KEEP_SLOTS)
