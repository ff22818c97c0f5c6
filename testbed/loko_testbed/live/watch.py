"""`loko lab watch`: what passes the switches of a lab that is up, second by second.

The rows are computed from two statuses and drawn from them; nothing here asks a lab.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from rich.console import Group
from rich.table import Table

from loko_testbed.live.messages import LabStatus

_LOST: Final = ("dropped_buffer", "dropped_switch", "dropped_return", "dropped_transmit", "dropped_size")
"""Counters of frames that a switch had no room for, or could not carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRow:
    """Counters of a switch between two statuses."""

    switch: str
    received: int
    forwarded: int
    missed: int
    """No entry matched."""
    lost: int
    walk: float | None
    """Entries that a table search compared with a frame, on average; None without a search."""
    queue: int | None
    """Most units of the receive ring in use at once since the lab came up; None of other switches."""


SWITCH_COLUMNS: Final = ("look", "seconds", *(field.name for field in fields(SwitchRow)))
"""Columns of what `--csv` prints: number and length of the interval, then a switch's row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortRow:
    """Frames at a port between two statuses."""

    switch: str
    port: int
    peer: str
    received: int
    sent: int


def switch_rows(before: LabStatus, now: LabStatus) -> list[SwitchRow]:
    """Return what each switch did between two statuses."""
    rows = []
    for name, counters in now.counters.items():
        grown = _grown(before.counters.get(name, {}), counters)
        searches = grown.get("searches", 0)
        rows.append(
            SwitchRow(
                switch=name,
                received=grown.get("received", 0),
                forwarded=grown.get("forwarded", 0),
                missed=grown.get("missed", 0),
                lost=sum(grown.get(counter, 0) for counter in _LOST),
                walk=grown["entries_examined"] / searches if searches else None,
                queue=counters.get("ring_units_peak"),
            )
        )
    return rows


def port_rows(before: LabStatus, now: LabStatus) -> list[PortRow]:
    """Return what passed each port between two statuses."""
    earlier = {(port.switch, port.port): port for port in before.ports}
    return [
        PortRow(
            switch=port.switch,
            port=port.port,
            peer=port.peer,
            received=port.received - was.received,
            sent=port.sent - was.sent,
        )
        for port in now.ports
        if (was := earlier.get((port.switch, port.port)))
    ]


def look(before: LabStatus, now: LabStatus, seconds: float) -> dict[str, Any]:
    """Return what happened between two statuses, `seconds` apart, as plain values."""
    return {
        "lab": now.lab,
        "seconds": seconds,
        "switches": [asdict(row) for row in switch_rows(before, now)],
        "ports": [asdict(row) for row in port_rows(before, now)],
        "connected": now.connected,
        "controller": now.controller,
        "stalls": now.stalls - before.stalls,
    }


def view(before: LabStatus, now: LabStatus, seconds: float) -> Group:
    """Draw the tables of switches and ports, and the stalls, between two statuses `seconds` apart."""
    switches = Table("switch", box=None, title=f"{now.lab}, last {seconds:g} s", title_justify="left")
    for column in ("received", "forwarded", "missed", "lost", "table walk", "queue peak"):
        switches.add_column(column, justify="right")
    for row in switch_rows(before, now):
        switches.add_row(
            row.switch,
            *map(str, (row.received, row.forwarded, row.missed, row.lost)),
            "-" if row.walk is None else f"{row.walk:.1f}",
            "-" if row.queue is None else str(row.queue),
        )
    ports = Table("port", "cable to", box=None)
    for column in ("received", "sent"):
        ports.add_column(column, justify="right")
    for port in port_rows(before, now):
        ports.add_row(f"{port.switch}:{port.port}", port.peer, str(port.received), str(port.sent))
    said = (
        f"{now.connected} of {now.switches} switches connected; controller: {now.controller};"
        f" stalls: {now.stalls - before.stalls}"
    )
    return Group(switches, ports, said)


def _grown(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    return {name: value - before.get(name, 0) for name, value in now.items()}
