"""The conditions of packet-granular guarantees (docs/packet-granular.md)."""

from __future__ import annotations

from typing import Final

from loko.topology.conditions import FLOWS_STAY, of_one_server

CONDITIONS: Final = of_one_server()
JOINT_CONDITIONS: Final = of_one_server(FLOWS_STAY)
