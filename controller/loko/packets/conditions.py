"""The conditions of packet-granular guarantees (docs/packet-granular.md)."""

from __future__ import annotations

from typing import Final

from loko.conditions import Condition, of_one_server

FLOWS_STAY: Final = Condition(
    id="flows-stay",
    text="The flows stay as they are: the joint bound does not cover flows that leave while others send.",
)

CONDITIONS: Final = of_one_server()
JOINT_CONDITIONS: Final = of_one_server(FLOWS_STAY)
