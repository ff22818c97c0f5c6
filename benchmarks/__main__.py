"""``python -m benchmarks``: measure, print a table, and write ``results/benchmarks/benchmarks.{json,md}``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import (
    admission,
    captures,
    delay_bounds,
    replay,
    schedule,
    service,
    table_1,
    throughput,
)
from benchmarks.machine import describe
from benchmarks.measure import BenchmarkError, MeasuredRow, Spread
from loko.document import InputError
from loko_testbed.simulation.runner import RunError


class Benchmark(StrEnum):
    """The benchmarks that can be run."""

    THROUGHPUT = "throughput"
    REPLAY = "replay"
    TABLE_1 = "table-1"
    CAPTURES = "captures"
    SERVICE = "service"
    ADMISSION = "admission"
    SCHEDULE = "schedule"
    DELAY_BOUNDS = "delay-bounds"


def main(
    parts: Annotated[
        list[Benchmark] | None, typer.Argument(help="What to measure; nothing: everything.")
    ] = None,
    *,
    repetitions: Annotated[int, typer.Option(min=1, help="Turns of simulator and peer.")] = 5,
    quick: Annotated[bool, typer.Option(help="Schedules, captures: fewer, a smaller file.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the JSON and the Markdown.")] = Path(
        "results/benchmarks"
    ),
) -> None:
    """Measure speed, where there are any beside peers: make bench ARGS='throughput --repetitions 9'."""
    console = Console()
    measures: dict[Benchmark, Callable[[], tuple[dict[str, Any], list[MeasuredRow]]]] = {
        Benchmark.THROUGHPUT: lambda: _throughput(repetitions),
        Benchmark.REPLAY: _replay,
        Benchmark.TABLE_1: _table_1,
        Benchmark.SERVICE: lambda: _service(repetitions),
        Benchmark.ADMISSION: lambda: _admission(repetitions),
        Benchmark.DELAY_BOUNDS: lambda: _delay_bounds(out),
    }
    measures[Benchmark.SCHEDULE] = lambda: schedule.measure(quick=quick, tell=console.print)
    measures[Benchmark.CAPTURES] = lambda: _captures(quick=quick)
    out.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {"machine": describe()}
    rows: list[MeasuredRow] = []
    failed = False
    for part in parts or list(Benchmark):
        console.print(f"measuring: {part} …")
        try:
            values, more = measures[part]()
        except (BenchmarkError, InputError, RunError) as error:
            print(f"bench: {part}: {error}", file=sys.stderr)
            failed = True
            continue
        result[part.value] = values
        rows += more
    console.print(_table(rows))
    (out / "benchmarks.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (out / "benchmarks.md").write_text(_markdown(result["machine"], rows), encoding="utf-8")
    console.print(f"written: {out}/benchmarks.json, {out}/benchmarks.md")
    if failed:
        raise typer.Exit(1)


def _throughput(repetitions: int) -> tuple[dict[str, Any], list[MeasuredRow]]:
    result = throughput.measure(repetitions=repetitions)
    versions, gain = result.versions, result.builds
    rows = [
        ("simulator, packets a CPU second", *_thousands(result.simulator)),
        ("the same with boards in OpenFlow 1.3", *_thousands(result.simulator13)),
        ("OpenFlow 1.3 : 1.0", f"{versions.median:.2f}", f"{versions.low:.2f} .. {versions.high:.2f}"),
        ("OpenFlow 1.0 in the build of the tests", *_thousands(result.tested)),
        ("shipped build : that of the tests", f"{gain.median:.2f}", f"{gain.low:.2f} .. {gain.high:.2f}"),
    ]
    rows += [
        (
            "through the generic switch (ideal-1g), packets a CPU second",
            f"{result.one_generic.median / 1e3:,.0f} k",
            f"goal 2,000 k; {result.one_generic.low / 1e3:,.0f} .. {result.one_generic.high / 1e3:,.0f} k",
        ),
        ("through two in a row", *_thousands(result.generic)),
    ]
    rows += [
        (f"ring of {boards:,} boards, packets a CPU second", *_thousands(speed))
        for boards, speed in result.rings.items()
    ]
    if result.peer and result.ratio and result.by_hand and result.by_hand_ratio:
        rows.append((f"{result.peer_name}, packets a CPU second", *_thousands(result.peer)))
        if result.one_peer:
            rows.append((f"{result.peer_name}, through one node", *_thousands(result.one_peer)))
        ratio = result.ratio
        rows.append(("simulator : ns-3", f"{ratio.median:.1f}", f"{ratio.low:.1f} .. {ratio.high:.1f}"))
        generics = {
            "through the generic switch : ns-3 through one node": result.one_generic_ratio,
            "through two in a row : ns-3": result.generic_ratio,
        }
        rows += [
            (name, f"{ratio.median:.1f}", f"{ratio.low:.1f} .. {ratio.high:.1f}")
            for name, ratio in generics.items()
            if ratio
        ]
        ratio = result.by_hand_ratio
        rows.append(("ns-3's event loop by hand, packets a CPU second", *_thousands(result.by_hand)))
        rows.append(
            (
                "simulator : ns-3 by hand",
                f"{ratio.median:.2f}",
                f"goal 1.5; {ratio.low:.2f} .. {ratio.high:.2f}",
            )
        )
    else:
        rows.append(("ns-3", "left out", "not installed: apt-get install libns3-dev g++"))
    return asdict(result), rows


def _replay() -> tuple[dict[str, Any], list[MeasuredRow]]:
    result = replay.measure()
    rows: list[MeasuredRow] = [
        ("every figure at the paper's scale", f"{result.wall_s:.0f} s", f"on {replay.CORES} cores"),
        ("its CPU time", f"{result.cpu_s:.0f} s", ""),
        ("its peak memory", f"{result.peak_memory_bytes / 2**20:.0f} MiB", "all processes together"),
    ]
    rows += [(f"of this: {figures}", f"{seconds:.1f} s", "") for figures, seconds in result.figures_s.items()]
    return asdict(result), rows


def _table_1() -> tuple[dict[str, Any], list[MeasuredRow]]:
    usage = table_1.measure()
    goal = f"on {table_1.CORES} cores; the goal is {table_1.GOAL_S} s"
    rows = [
        ("all of Table 1, 12,096 combinations x 100 frames", f"{usage.wall_s:.0f} s", goal),
        ("its CPU time", f"{usage.cpu_s:.0f} s", ""),
        ("its peak memory", f"{usage.peak_memory_bytes / 2**20:.0f} MiB", "all processes together"),
    ]
    values = {"wall_s": usage.wall_s, "cpu_s": usage.cpu_s, "peak_memory_bytes": usage.peak_memory_bytes}
    return values, rows


def _captures(*, quick: bool) -> tuple[dict[str, Any], list[MeasuredRow]]:
    result = captures.measure(file_bytes=captures.GIGABYTE // (10 if quick else 1))
    speed, mib = result.megabytes_per_second, 2**20
    rows = [
        (
            f"captures: ERF of {result.file_bytes / 1e9:.2f} GB, {result.frames / 1e6:.1f} million frames",
            f"{speed.median:.1f} MB/s",
            f"{speed.low:.1f} .. {speed.high:.1f}",
        ),
        (
            "captures: peak memory",
            f"{result.peak_memory_bytes / mib:.0f} MiB",
            f"{result.small_file_memory_bytes / mib:.0f} MiB for a hundredth of the file",
        ),
    ]
    return asdict(result), rows


def _service(repetitions: int) -> tuple[dict[str, Any], list[MeasuredRow]]:
    measured = service.measure(repetitions=repetitions)
    rows = []
    for what, speed in (("refusals", measured.refusals), ("accept-install-remove cycles", measured.cycles)):
        rows.append((f"REST: {what} a second", *_plain(speed.per_s)))
        each = ", ".join(f"{name} {cpu_ms:.2f}" for name, cpu_ms in speed.cpu_ms.items())
        rows.append(("its CPU time", f"{sum(speed.cpu_ms.values()):.2f} ms", each))
    return asdict(measured), rows


def _admission(repetitions: int) -> tuple[dict[str, Any], list[MeasuredRow]]:
    measured = admission.measure(repetitions=repetitions)
    rows = []
    peers = {
        "Loko": measured.loko,
        "packet-granular": measured.packets,
        "authors' library (Java)": measured.peer,
    }
    for name, peer in peers.items():
        if peer is None:
            rows.append((name, "left out", "needs mvn and a JDK"))
            continue
        for what, rate in (("request-release cycles", peer.cycles_per_s), ("refusals", peer.refusals_per_s)):
            rows.append((f"{name}: {what} a second", *_plain(rate)))
    rows += [
        (f"bound of a whole path of {hops} ports, CPU time", f"{spread.median:.1f} ms", "")
        for hops, spread in measured.whole_path_ms.items()
    ]
    survive, times = measured.surviving_s, measured.surviving_ratio
    what = f"{admission.SURVIVING} flows on {admission.CHIPS} chips that survive any cable"
    rows += [
        (f"{what}, CPU time", f"{survive.median:.2f} s", f"{survive.low:.2f} .. {survive.high:.2f}"),
        ("with all bounds", f"{times.median:.1f} times", f"{times.low:.1f} .. {times.high:.1f}"),
    ]
    if measured.peer:
        ratio = measured.loko.cycles_per_s.median / measured.peer.cycles_per_s.median
        rows.append(("Loko : authors' library, cycles", f"{ratio:.2f}", "medians, in turns"))
    return asdict(measured), rows


def _delay_bounds(out: Path) -> tuple[dict[str, Any], list[MeasuredRow]]:
    answers = delay_bounds.measure()
    (out / "delay-bounds.md").write_text(delay_bounds.table(answers), encoding="utf-8")
    rows: list[MeasuredRow] = [
        (f"{question}: {tool}", *delay_bounds.answer_and_time(answer))
        for tool, given in answers.items()
        for question, answer in given.items()
    ]
    rows += [(tools, "left out", reason) for tools, reason in delay_bounds.left_out().items()]
    values = {
        tool: {question: answer._asdict() for question, answer in given.items()}
        for tool, given in answers.items()
    }
    return values, rows


def _plain(rate: Spread) -> tuple[str, str]:
    return f"{rate.median:,.0f}", f"{rate.low:,.0f} .. {rate.high:,.0f}"


def _thousands(value: Spread) -> tuple[str, str]:
    return f"{value.median / 1e3:,.0f} k", f"{value.low / 1e3:,.0f} .. {value.high / 1e3:,.0f} k"


def _table(rows: list[MeasuredRow]) -> Table:
    table = Table("measured", "value", "range")
    for row in rows:
        table.add_row(*row)
    return table


def _markdown(machine: dict[str, str], rows: list[MeasuredRow]) -> str:
    lines = [f"Machine: {', '.join(machine.values())}.", "", "| measured | value | range |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    typer.run(main)
