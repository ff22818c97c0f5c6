"""``python -m benchmarks.page``: make the documentation's pages on benchmarks from their JSON.

No number on them is typed by hand: `docs/fidelity.md` and `docs/scale.md`, with
their pictures, come from `fidelity/fidelity.json` and so on in the folder of results, which are copied to
docs.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Annotated, Any, Final

import typer

from benchmarks.fidelity import figures
from benchmarks.measure import ROOT, MeasuredRow
from benchmarks.scale import GOAL_BOARD_BYTES, GOAL_BOARDS, GOAL_P99_NS

_TEMPLATES: Final = Path(__file__).parent / "templates"
_MIB: Final = 1 << 20


def main(
    results: Annotated[Path, typer.Argument(help="Folder that the benchmarks wrote.")] = Path(
        "results/benchmarks"
    ),
    docs: Annotated[Path, typer.Option(help="Folder of the documentation.")] = ROOT / "docs",
) -> None:
    """Make the pages on fidelity and scale from the benchmarks' results."""
    made = 0
    for name, page in (
        ("fidelity", _fidelity_page),
        ("scale", _scale_page),
    ):
        source = results / name / f"{name}.json"
        if not source.is_file():
            continue
        measured = json.loads(source.read_text(encoding="utf-8"))
        (docs / f"{name}.md").write_text(page(measured, docs / "images"), encoding="utf-8")
        (docs / "measurements").mkdir(exist_ok=True)
        shutil.copyfile(source, docs / "measurements" / f"{name}.json")
        print(f"made: {docs / name}.md")
        made += 1
    if not made:
        print(
            f"page: {results} has no results; measure first: make bench ARGS='fidelity scale'",
            file=sys.stderr,
        )
        raise typer.Exit(2)


def fidelity_rows(results: dict[str, Any]) -> list[MeasuredRow]:
    """Return rows with the errors of processing time, throughput and buffer of each kind of switch."""
    rows: list[MeasuredRow] = []
    for system in results["systems"].values():
        pooled, title = system["all"], system["title"]
        rows += [
            (
                f"{title}: error of the processing time",
                f"p50 {_time(pooled['processing']['p50'])}",
                _tail(pooled["processing"]),
            ),
            (
                f"{title}: error of the throughput",
                f"median {_percent(pooled['throughput']['median'])}",
                f"largest {_percent(pooled['throughput']['max'])}",
            ),
            (
                f"{title}: frames of a burst that pass, too many or too few",
                f"mean {pooled['buffer_frames']['mean']:.2f}",
                f"most {pooled['buffer_frames']['max']}",
            ),
        ]
        if pooled["processing_in_stalls"]["count"]:
            stalled = pooled["processing_in_stalls"]
            rows.append(
                (f"{title}: within stalls of the host", f"p50 {_time(stalled['p50'])}", _tail(stalled))
            )
    return rows


def scale_rows(results: dict[str, Any]) -> list[MeasuredRow]:
    """Return rows with the departure error of each ring, the largest ring within the goal, and memory."""
    rows = [
        (
            f"ring of {run['boards']} boards, links: {run['links']}",
            f"p99 {_time(run['error_ns']['p99'])}",
            f"p50 {_time(run['error_ns']['p50'])}, {run['boards_pps'] / 1e3:.1f} k frames/s through boards",
        )
        for run in results["rings"]
    ]
    rows.append(
        ("boards on one core within 20 us at p99", f"at least {results['most_boards']}", "internal links")
    )
    rows.append(("memory of one more board", f"{results['board_bytes'] / _MIB:.2f} MiB", "after traffic"))
    return rows


def _fidelity_page(results: dict[str, Any], images: Path) -> str:
    figures.draw(results, images)
    systems = results["systems"]
    corners = systems["live"]["corners"]
    values = {
        "machine": _machine(results["machine"]),
        "quick": " This was a quick run with few corners." if results["quick"] else "",
        "corners": len(corners),
        "verdicts": _verdicts(results),
        "systems": _table(
            ("switch", "p50", "p99", "p99.9", "max", "frames", "within stalls"),
            [
                (
                    system["title"],
                    *(_time(system["all"]["processing"][key]) for key in ("p50", "p99", "p999", "max")),
                    f"{system['all']['processing']['count']:,}",
                    f"{system['all']['processing_in_stalls']['count']:,}",
                )
                for system in systems.values()
            ],
        ),
        "rates": _table(
            ("switch", "packets/s", "p50", "p99", "p99.9", "max"),
            [
                (system["title"], rate, *(_time(errors[key]) for key in ("p50", "p99", "p999", "max")))
                for system in systems.values()
                for rate, errors in system["rates"].items()
            ],
        ),
        "capacity": _table(
            ("switch", "throughput, median", "largest", "burst, mean", "most"),
            [
                (
                    system["title"],
                    _percent(system["all"]["throughput"]["median"]),
                    _percent(system["all"]["throughput"]["max"]),
                    f"{system['all']['buffer_frames']['mean']:.2f} frames",
                    f"{system['all']['buffer_frames']['max']} frames",
                )
                for system in systems.values()
            ],
        ),
        "places": _table(
            ("corner", "p_FX", "capacity", *(f"{system['title']}: p50, p99" for system in systems.values())),
            [
                (
                    name,
                    _time(corner["processing_ns"]),
                    f"{corner['capacity_pps']:,.0f} frames/s, {corner['capacity_frames']} frames",
                    *(
                        ", ".join(_time(system["corners"][name]["processing"][key]) for key in ("p50", "p99"))
                        for system in systems.values()
                    ),
                )
                for name, corner in corners.items()
            ],
        ),
    }
    return Template((_TEMPLATES / "fidelity.md").read_text(encoding="utf-8")).substitute(values)


def _verdicts(results: dict[str, Any]) -> str:
    goals, systems = results["goals"], results["systems"]
    virtual, live, stand_in, mininet = (
        systems[name]["all"] for name in ("virtual", "live", "stand-in", "mininet")
    )
    rows = [
        (
            "virtual: exact to the nanosecond",
            f"largest error {_time(virtual['processing']['max'])}",
            _reached(virtual["processing"]["max"] <= goals["virtual_ns"]),
        )
    ]
    for rate, errors in systems["live"]["rates"].items():
        rows.append(
            (
                f"live at {int(rate):,} packets/s: p50 <= 1 us, p99 <= 5 us outside stalls",
                f"p50 {_time(errors['p50'])}, p99 {_time(errors['p99'])}",
                _reached(errors["p50"] <= goals["live_p50_ns"] and errors["p99"] <= goals["live_p99_ns"]),
            )
        )
    if timed := systems.get("timed"):
        p50_ns = timed["all"]["processing"]["p50"]
        rows.append(
            (
                f"timed stand-in: p50 <= {_time(goals['timed_p50_ns'])} outside stalls",
                f"p50 {_time(p50_ns)}",
                _reached(p50_ns <= goals["timed_p50_ns"]),
            )
        )
    for quantile in ("p50", "p99"):
        ratio = stand_in["processing"][quantile] / max(live["processing"][quantile], 1)
        rows.append(
            (
                f"live at least {goals['closer']:.0f} times closer than the stand-in, {quantile}",
                f"{ratio:.0f} times",
                _reached(ratio >= goals["closer"]),
            )
        )
    for what, ours, theirs, shown in (
        ("processing time, p50", stand_in["processing"]["p50"], mininet["processing"]["p50"], _time),
        ("throughput, median", stand_in["throughput"]["median"], mininet["throughput"]["median"], _percent),
        (
            "burst, mean",
            stand_in["buffer_frames"]["mean"],
            mininet["buffer_frames"]["mean"],
            lambda frames: f"{frames:.2f} frames",
        ),
    ):
        rows.append(
            (
                f"stand-in at least as close as plain Mininet: {what}",
                f"{shown(ours)} against {shown(theirs)}",
                _reached(ours <= theirs),
            )
        )
    return _table(("goal", "measured", ""), rows)


def _scale_page(results: dict[str, Any], _: Path) -> str:
    rings = results["rings"]
    paper = [run for run in rings if run["boards"] == GOAL_BOARDS]
    values = {
        "machine": _machine(results["machine"]),
        "verdicts": _table(
            ("goal", "measured", ""),
            [
                *(
                    (
                        f"a ring of {GOAL_BOARDS} boards on one core with p99 <= {_time(GOAL_P99_NS)},"
                        f" {run['links']} links",
                        f"p99 {_time(run['error_ns']['p99'])}",
                        _reached(run["error_ns"]["p99"] <= GOAL_P99_NS),
                    )
                    for run in paper
                ),
                (
                    "under 1 MiB a board",
                    f"{results['board_bytes'] / _MIB:.2f} MiB",
                    _reached(results["board_bytes"] < GOAL_BOARD_BYTES),
                ),
            ],
        ),
        "most": results["most_boards"],
        "rings": _table(
            (
                *("boards", "links", "flows", "frames/s sent", "frames/s through boards"),
                *("p50", "p99", "p99.9", "max", "stalls", "within stalls", "lost in buffers", "memory"),
            ),
            [
                (
                    str(run["boards"]),
                    run["links"],
                    f"{run['admitted_flows']} of {run['requested_flows']}",
                    f"{run['sent_pps']:,.0f}",
                    f"{run['boards_pps']:,.0f}",
                    *(_time(run["error_ns"][key]) for key in ("p50", "p99", "p999", "max")),
                    str(run["stalls"]),
                    str(run["error_in_stalls_ns"]["count"]),
                    str(run["dropped_by_boards"]),
                    f"{run['memory_bytes'] / _MIB:.1f} MiB",
                )
                for run in rings
            ],
        ),
        "hops": rings[0]["hops"],
        "path_boards": rings[0]["hops"] + 1,
    }
    return Template((_TEMPLATES / "scale.md").read_text(encoding="utf-8")).substitute(values)


def _machine(machine: dict[str, str]) -> str:
    return ", ".join(machine.values())


def _reached(reached: bool) -> str:
    return "reached" if reached else "**missed**"


def _time(nanoseconds: float) -> str:
    """Format a time in nanoseconds with a suitable unit."""
    if nanoseconds < 100:
        return f"{nanoseconds:.0f} ns"
    if nanoseconds < 1e6:
        return f"{nanoseconds / 1e3:.1f} us"
    return f"{nanoseconds / 1e6:.2f} ms"


def _percent(share: float) -> str:
    return f"{100 * share:.3f} %"


def _tail(errors: dict[str, int]) -> str:
    return (
        f"p99 {_time(errors['p99'])}, p99.9 {_time(errors['p999'])}, max {_time(errors['max'])}; "
        f"{errors['count']:,} frames"
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    typer.run(main)
