"""Write docs/evidence.md from a campaign's JSON. No number on the page is typed by hand."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template
from typing import Any, Final

_TEMPLATE: Final = Path(__file__).parents[1] / "templates" / "evidence.md"
_COLUMNS: Final = 120


def page(
    results: dict[str, Any], *, models: dict[str, Any], ports: dict[str, Any], port_changes: dict[str, Any]
) -> str:
    """Return the text of the page for results on boards, models, and switches with queues."""
    total, attacks = results["total"], results["attacks"]
    text = Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        packets=_count(total["packets"]),
        passages=_count(total["passages"]),
        trials=_count(total["trials"]),
        flows=_count(total["flows"]),
        hours=f"{total['hours']:.0f}",
        lost=_count(total["lost"]),
        broken=_count(total["broken"]),
        worst=f"{total['worst']:.3f}",
        commit=results["commit"],
        seed=results["seed"],
        fingerprint=results["fingerprint"],
        machine=", ".join(results["machine"].values()),
        groups=_groups(results),
        tightest=_tightest(results["tightest"]),
        schemes=_schemes(attacks["schemes"]),
        mistakes=_mistakes(attacks["mistakes"]),
        released=_released(attacks["released"]),
        reserved=_reserved(attacks["reserved"]),
        capacity=_capacity(attacks["capacity"]),
        note=results.get("note", ""),
        models=_models(models["cases"]),
        model_states=_count(sum(case["states"] for case in models["cases"])),
        **_of_ports("port", ports),
        **_of_ports("change", port_changes),
    )
    return "\n\n".join(map(_filled, text.rstrip("\n").split("\n\n"))) + "\n"


def _filled(paragraph: str) -> str:
    if paragraph.startswith(("|", "#", "    ", "- ")):
        return paragraph
    return textwrap.fill(paragraph, _COLUMNS, break_long_words=False, break_on_hyphens=False)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _groups(results: dict[str, Any]) -> str:
    titles = {
        "by_scheme": "",
        "by_shape": "",
        "by_way": "hosts send: ",
        "by_sizes": "frames: ",
        "by_control": "controller: ",
    }
    rows = []
    for key, title in titles.items():
        for name, group in results[key].items():
            rows.append(
                (
                    f"{title}{name}",
                    _count(group["trials"]),
                    _count(group["packets"]),
                    _count(group["lost"]),
                    _count(group["broken"]),
                    f"{group['worst']:.3f}",
                )
            )
    heads = ("", "trials", "packets", "lost", "flows not kept", "longest delay / guarantee")
    return _table(heads, rows)


def _of_ports(prefix: str, result: dict[str, Any]) -> dict[str, str]:
    """Return the values of a campaign on switches with queues, by their names in the template."""
    total = result["total"]
    values = {name: _count(total[name]) for name in ("packets", "flows", "trials", "lost", "broken")} | {
        "worst": f"{total['worst']:.3f}",
        "commit": result["commit"],
        "seed": result["seed"],
        "fingerprint": result["fingerprint"],
        "machine": ", ".join(result["machine"].values()),
        "groups": _port_groups(result["groups"]),
    }
    return {f"{prefix}_{name}": value for name, value in values.items()}


def _port_groups(groups: list[dict[str, Any]]) -> str:
    return _table(
        ("switch", "network", "trials", "flows", "packets", "lost", "longest delay / bound"),
        (
            (
                group["device"],
                group["shape"],
                _count(group["trials"]),
                _count(group["flows"]),
                _count(group["packets"]),
                _count(group["lost"]),
                f"{group['worst']:.3f}",
            )
            for group in groups
        ),
    )


def _tightest(records: list[dict[str, Any]]) -> str:
    rows = (
        (
            str(record["seed"]),
            record["scheme"],
            f"{record['shape']} of {record['switches']}",
            ", ".join(map(str, record["sizes"])),
            str(record["entries"]),
            record["way"],
            f"{record['worst']:.3f}",
        )
        for record in records
    )
    return _table(("seed", "scheme", "network", "bytes", "entries", "sent as", "delay / guarantee"), rows)


def _schemes(rows: list[dict[str, Any]]) -> str:
    return _table(
        ("lab", "scheme", "flows", "guarantee", "worst-case search", "random instants", "the paper's bursts"),
        (
            (
                row["lab"],
                row["scheme"],
                str(row["flows"]),
                f"{row['guarantee_ms']:.2f} ms",
                *(_damage(row[way], row[f"{way}_lost"]) for way in ("worst_case", "random", "generator")),
            )
            for row in rows
        ),
    )


def _mistakes(rows: list[dict[str, Any]]) -> str:
    return _table(
        ("scheme", "frames", "entries", "flows too many", "flows", "worst-case search"),
        (
            (
                row["scheme"],
                f"{row['frame_bytes']} bytes",
                str(row["entries"]),
                _too_many(row, rows),
                str(row["flows"]),
                _damage(row["worst"], row["lost"]),
            )
            for row in rows
        ),
    )


def _too_many(row: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    right = next(other for other in rows if other["scheme"] == row["scheme"] and not other["too_many"])
    more = row["flows"] - right["flows"]
    return f"{more} ({100 * more / right['flows']:.0f} %)" if more else "none"


def _released(rows: list[dict[str, Any]]) -> str:
    """Return a table with a row per pause: new flows and damage with the rule, then without it."""
    pairs = zip(
        (row for row in rows if not row["forgets"]), (row for row in rows if row["forgets"]), strict=True
    )
    return _table(
        (
            "scheme",
            "pause",
            "newcomers",
            "worst-case search",
            "newcomers, if forgotten",
            "worst-case search, if forgotten",
        ),
        (
            (
                kept["scheme"],
                f"{kept['after_ms']:g} ms",
                str(kept["newcomers"]),
                _damage(kept["worst"], kept["lost"]),
                str(forgot["newcomers"]),
                _damage(forgot["worst"], forgot["lost"]),
            )
            for kept, forgot in pairs
        ),
    )


def _models(cases: list[dict[str, Any]]) -> str:
    return _table(
        ("scheme", "network", "rule", "states", "outcome"),
        (
            (
                case["scheme"],
                case["network"],
                case["rule"],
                _count(case["states"]),
                "holds"
                if case["counterexample"] is None
                else f"refuted by {len(case['counterexample'])} steps",
            )
            for case in cases
        ),
    )


def _reserved(rows: list[dict[str, Any]]) -> str:
    return _table(
        ("scheme", "interruptions", "flows that share the rate", "worst-case search"),
        (
            (
                row["scheme"],
                "reserved" if row["reserved"] else "not reserved, as printed",
                f"{row['flows']} of {row['rate_kbps']:.1f} kbit/s",
                _damage(row["worst"], row["lost"]),
            )
            for row in rows
        ),
    )


def _capacity(rows: list[dict[str, Any]]) -> str:
    return _table(
        ("true capacity / equation 6", "scheme", "flows that share the rate", "worst-case search"),
        (
            (
                f"{row['capacity']:.2f}",
                row["scheme"] + (", planned for this" if row["told"] else ""),
                f"{row['flows']} of {row['rate_kbps']:.1f} kbit/s",
                _damage(row["worst"], row["lost"]),
            )
            for row in rows
        ),
    )


def _damage(worst: float, lost: int) -> str:
    text = f"{worst:.3f}" if worst < 10 else f"{worst:.1f}"
    if lost:
        return f"**{text}, {_count(lost)} lost**"
    return f"**{text}**" if worst > 1 else text


def _count(number: int) -> str:
    return f"{number:,}".replace(",", " ")
