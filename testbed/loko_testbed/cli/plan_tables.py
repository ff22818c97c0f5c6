"""The output of a plan: a table for people, CSV for spreadsheets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from loko.admission import Admitted, Refusal
from loko.admission.planning import COLUMNS, Plan
from loko.admission.what_if import Changes
from loko.terminal import tell
from loko.units import NS_PER_MS, in_ms
from loko_testbed.cli.for_programs import csv_lines

_NO_CHANGE: Final = "nothing changes for the flows that stay"
_FEW: Final = 10
"""Up to this many refusals are printed one by one, and so many groups of them."""
_FEW_TERMS: Final = 3
_NUMBERS: Final = frozenset({"guarantee ms", "deadline ms", "slack ms"})
"""Columns that are never folded. Others are folded but never cut: two ids might begin alike."""
_NOTHING_SMALLER: Final = "no smaller rate or burst beside the flows that are there"


def print_plan(console: Console, result: Plan) -> None:
    """Print what is accepted, what is refused and why, and how many fit."""
    if result.accepted:
        console.print(_accepted(result))
    print_refusals(result)
    tell(f"{result.fit} fit")


def print_refusals(result: Plan) -> None:
    """Print which flows are refused and why: a few one by one, many in groups."""
    if len(result.refused) <= _FEW:
        for refusal in result.refused:
            _print_refusal(f"refused: {refusal}", refusal)
    else:
        _print_groups(result)
    for name, allocation in result.allocations.items():
        if not allocation.feasible:
            tell(f"{name}: nothing can be admitted: {allocation.reason}")


def _accepted(result: Plan) -> Table:
    table = Table(title=f"{result.lab.name}: flows accepted by {result.scheme}", title_justify="left")
    columns = ["flow", *(["class"] if result.has_classes else []), "path", "terms ms", "guarantee ms"]
    if result.deadlines_ns:
        columns += ["deadline ms", "slack ms"]
    for column in columns:
        quantity, unit, _ = column.partition(" ms")
        table.add_column(
            f"{quantity}\nms" if unit else column,  # in two lines: that leaves room for ids
            justify="right" if unit else "left",
            overflow="fold",
            no_wrap=column in _NUMBERS,
        )
    for admitted in result.accepted:
        row = [
            admitted.flow.id,
            *([str(admitted.flow.traffic_class)] if result.has_classes else []),
            " ".join(
                [admitted.flow.source, *(hop.switch for hop in admitted.hops), admitted.flow.destination]
            ),
            _terms(admitted),
            in_ms(admitted.guarantee_ns, math.ceil),
        ]
        if result.deadlines_ns:
            row += [
                in_ms(result.deadlines_ns.get(admitted.flow.id), math.floor),
                in_ms(result.slack_ns(admitted), math.floor),
            ]
        table.add_row(*row)
    return table


def _terms(admitted: Admitted) -> str:
    """Return what each switch adds; for a long path of equal terms, the term and its count.

    Of a path that is bounded as a whole, no part belongs to one switch.
    """
    if admitted.whole_path_ns is not None:
        return "whole path"
    terms = [f"{delay_ns / NS_PER_MS:.3f}" for delay_ns in admitted.delays_ns]
    if len(terms) > _FEW_TERMS and len(set(terms)) == 1:
        return f"{len(terms)} x {terms[0]}"
    return " + ".join(terms)


def _print_groups(result: Plan) -> None:
    """Print refusals grouped by what runs out where, the most frequent first, each with an example."""
    groups: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in result.refused:
        groups.setdefault((refusal.quantity, refusal.switch), []).append(refusal)
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    for (quantity, switch), refused in ranked[:_FEW]:
        first = refused[0]
        full = f", {100 * first.used / first.allowed:.0f} % used" if first.allowed else ""
        count = counted(len(refused), "flow")
        _print_refusal(f"refused: {count}, by {quantity} at {switch}{full}; the first is {first}", first)
    if rest := ranked[_FEW:]:
        count = counted(sum(len(refused) for _, refused in rest), "flow")
        tell(f"refused: {count} at {counted(len(rest), 'other place')}; --csv lists them all")


def counted(count: int, what: str) -> str:
    """Return a number with its noun, such as `1 flow` or `3 flows`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _print_refusal(told: str, refusal: Refusal) -> None:
    is_said = refusal.hint and not refusal.suggestion
    tell(told if is_said else f"{told}; would fit: {refusal.suggestion_text or _NOTHING_SMALLER}")


def print_comparison(
    console: Console,
    flow_ids: Sequence[str],
    results: Sequence[Plan],
    changes: Sequence[Changes | None] | None = None,
) -> None:
    """Print the guarantee of every flow by each scheme, side by side.

    `changes` are those of a what-if, for each result: what was before stands in brackets.
    """
    first = results[0]
    changes = changes or [None] * len(results)
    table = Table(title=f"{first.lab.name}: guarantees in ms by scheme", title_justify="left")
    table.add_column("flow", overflow="fold")
    if first.deadlines_ns:
        table.add_column("deadline ms", justify="right", no_wrap=True)
    for result in results:
        table.add_column(result.scheme, justify="right", no_wrap=True)
    guarantees_ns = [
        {accepted.flow.id: accepted.guarantee_ns for accepted in result.accepted} for result in results
    ]
    for flow_id in flow_ids:
        row = [flow_id]
        if first.deadlines_ns:
            row.append(in_ms(first.deadlines_ns.get(flow_id), math.floor))
        row += [
            (in_ms(granted.get(flow_id), math.ceil) or "refused") + _before(flow_id, change)
            for granted, change in zip(guarantees_ns, changes, strict=True)
        ]
        table.add_row(*row)
    table.add_section()
    blank = [""] if first.deadlines_ns else []
    table.add_row("fit", *blank, *(result.fit for result in results))
    console.print(table)
    told = [change for change in changes if change is not None]
    if any(change.has_any for change in told):
        console.print("in brackets: without the change", highlight=False)
    elif told:
        console.print(_NO_CHANGE, highlight=False)


def _before(flow_id: str, change: Changes | None) -> str:
    if change is None:
        return ""
    if flow_id in change.guarantees_ns:
        return f" ({in_ms(change.guarantees_ns[flow_id][0], math.ceil)})"
    if flow_id in change.accepted_now:
        return " (refused)"
    return " (accepted)" if flow_id in change.refused_now else ""


def print_changes(changes: Changes) -> None:
    """Print what a what-if changes for the present flows."""
    lines = []
    if changes.accepted_now:
        lines.append(f"accepted now: {', '.join(changes.accepted_now)}")
    if changes.refused_now:
        lines.append(f"refused now: {', '.join(changes.refused_now)}")
    lines += [
        f"guarantee of {flow_id}: {in_ms(before_ns, math.ceil)} ms before, {in_ms(now_ns, math.ceil)} ms now"
        for flow_id, (before_ns, now_ns) in changes.guarantees_ns.items()
    ]
    for line in lines or [_NO_CHANGE]:
        tell(line)


def as_csv(results: Sequence[Plan]) -> str:
    """Return a CSV line for each flow, with the reason if refused; for several schemes, the scheme first.

    Beside a baseline, a last column marks its lines.
    """
    columns = (*COLUMNS,) if len(results) == 1 else ("scheme", *COLUMNS)
    if any(result.baseline for result in results):
        columns = (*columns, "baseline")
    rows = [
        {**row, "scheme": result.scheme, "baseline": result.baseline}
        for result in results
        for row in result.rows()
    ]
    return csv_of(rows, columns)


def csv_of(rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> str:
    """Return CSV of the rows of plans, with these columns."""
    return csv_lines(columns, [{**row, "accepted": "yes" if row["accepted"] else "no"} for row in rows])
