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
    profile_schema,
    quirk_names,
    read_profile,
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
    "profile_schema",
    "quirk_names",
    "read_profile",
]
