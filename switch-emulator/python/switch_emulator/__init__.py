"""Emulated Zodiac FX switches in virtual time."""

from switch_emulator.switch_emulator import (
    Board,
    Departures,
    Event,
    Flow,
    Flow13,
    Network,
    Output,
    RunResult,
    TcpResult,
    __version__,
    quirk_names,
)

__all__ = [
    "Board",
    "Departures",
    "Event",
    "Flow",
    "Flow13",
    "Network",
    "Output",
    "RunResult",
    "TcpResult",
    "__version__",
    "quirk_names",
]
