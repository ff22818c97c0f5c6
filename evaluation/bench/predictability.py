"""The command `loko bench predictability`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from evaluation.bench.verdict_page import page
from evaluation.files import write_atomically
from evaluation.predictability.campaign import QUICK, Size, carried_out, document, parts, verdicts
from evaluation.predictability.marks import WORDS, thresholds
from evaluation.progress import ProgressBar
from loko.commands.for_programs import print_csv, refuse_both
from loko.device import load_device

REPORT: Final = "report.html"
_RESULTS: Final = Path("results") / "predictability"


def judge_predictability(
    *,
    device: Annotated[str, typer.Option(help="A profile of a switch: name or path.")] = "ideal-1g",
    out: Annotated[
        Path | None, typer.Option(help="Folder of the verdict. Default: results/predictability/DEVICE.")
    ] = None,
    packets: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="Frames of each scenario of PT.")
    ] = Size().packets,
    quick: Annotated[bool, typer.Option("--quick", help="A small campaign of the same parts.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="How many parts are measured at a time.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print verdict.json.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each dimension.")] = False,
) -> None:
    """Judge whether a switch is fit for guarantees: a row of table I of the predictability study.

    In virtual time, from outside: processing time (PT), priority queueing (PQ), throughput (TP), flow
    management (FM) and buffers (BM). What is measured already is not measured again.

    Example: loko bench predictability --device dell-s3048-on --quick
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    folder = out or _RESULTS / Path(device).stem
    size = QUICK if quick else Size(packets=packets)
    todo = parts(device, size, seed)
    with ProgressBar() as bar:
        bar.begin(len(todo), 0, "parts")
        results = carried_out(todo, folder, jobs=jobs, tell=lambda part: bar.advance(part.name))
    judged = verdicts(results, thresholds())
    text = json.dumps(document(Path(device).stem, judged), indent=1)
    write_atomically(folder / "verdict.json", text.encode())
    again = ["loko", "bench", "predictability", "--device", device, "--seed", str(seed)]
    again += ["--quick"] if quick else ["--packets", str(packets)]
    title = load_device(device).title
    html = page(json.loads(text), title, todo, results, command=shlex.join(again))
    write_atomically(folder / REPORT, html.encode())
    if as_json:
        typer.echo(text)
        return
    if as_csv:
        rows = (
            {"dimension": name, "mark": verdict.mark.value, "reasons": "; ".join(verdict.reasons)}
            for name, verdict in judged.items()
        )
        print_csv(["dimension", "mark", "reasons"], rows)
        return
    table = Table("", "mark", "because", box=None)
    for name, verdict in judged.items():
        table.add_row(name, f"{verdict.mark.value} {WORDS[verdict.mark]}", "; ".join(verdict.reasons))
    Console().print(table)
    typer.echo(f"numbers: {folder / 'verdict.json'}, report: {folder / REPORT}")
