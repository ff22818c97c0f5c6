"""The output of `loko plan --headroom`: how many more flows fit between hosts, and what limits them first."""

from __future__ import annotations

import math
from typing import Final

from rich.console import Console
from rich.table import Table

from loko.admission.headroom import MOST_MORE, Headroom
from loko.terminal import tell
from loko.topology.requests import Request
from loko.units import in_ms, readable
from loko_testbed.cli.plan_tables import counted

_MOST_ROWS: Final = 20
_FEW_LIMITS: Final = 5


def print_headroom(console: Console, found: Headroom, scheme: str) -> None:
    """Print the pairs with the least headroom, and what limits how many pairs."""
    table = Table(title=f"more flows of {_described(found.template)}, by {scheme}", title_justify="left")
    table.add_column("from, to", overflow="fold")
    table.add_column("switches", overflow="fold")
    for column in ("pairs", "more"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("limited first by", overflow="fold")
    for row in found.rows[:_MOST_ROWS]:
        source, destination = row.switches
        table.add_row(
            f"{row.source} {row.destination}",
            source if source == destination else f"{source} {destination}",
            f"{row.pairs:,}",
            _number(row.more),
            "" if row.limit is None else row.limit.excess,
        )
    console.print(table)
    if rest := found.rows[_MOST_ROWS:]:
        tell(f"{counted(len(rest), 'further row')}, each with {_number(rest[0].more)} or more: see --json")
    _tell_limits(found)
    if found.asked < found.pairs:
        tell(
            f"{found.asked:,} of {found.pairs:,} pairs of hosts, spread over the lab, were asked within"
            " the --time-limit"
        )


def _tell_limits(found: Headroom) -> None:
    limits = found.limits
    for limit in limits[:_FEW_LIMITS]:
        least, most = _number(limit.least), _number(limit.most)
        more = least if limit.least == limit.most else f"{least} to {most}"
        hint = f"; {limit.hint}" if limit.hint else ""
        tell(
            f"{limit.quantity} at {limit.switch} limits {limit.pairs:,} of {counted(found.asked, 'pair')}:"
            f" {more} more{hint}"
        )
    if rest := limits[_FEW_LIMITS:]:
        pairs = counted(sum(limit.pairs for limit in rest), "pair")
        tell(f"{counted(len(rest), 'other limit')} for {pairs}: see --json")
    if found.unlimited:
        tell(f"{counted(found.unlimited, 'pair')}: {MOST_MORE:,} or more")


def _number(more: int) -> str:
    return f"{more:,}" + ("+" if more == MOST_MORE else "")


def _described(template: Request) -> str:
    flow = template.flow
    (rate,), unit = readable((flow.rate_bps,), "bit/s")
    described = f"{rate} {unit}, bursts of {flow.burst_bytes:g} bytes, frames of {flow.frame_bytes} bytes"
    described += f", class {flow.traffic_class}" if flow.traffic_class > 1 else ""
    if template.deadline_ns is None:
        return described
    return f"{described}, deadline {in_ms(template.deadline_ns, math.floor)} ms"
