"""The command `loko bench predictability`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from loko.document import InputError
from loko.switch_model.device import load_device, profile_names
from loko.terminal import tell
from loko_testbed.cli.bench.workers import ExecutorOption, JobsOption, SchedulerOption, workers_of
from loko_testbed.cli.for_programs import print_csv, refuse_both
from loko_testbed.measure.bench.software_switches import named_switches as software_switches
from loko_testbed.measure.predictability.campaign import (
    HOST_PART,
    QUICK,
    CampaignSize,
    document,
    parts,
    run_campaign,
    verdicts,
)
from loko_testbed.measure.predictability.marks import WORDS, thresholds
from loko_testbed.measure.predictability.subject import SwitchUnderTest
from loko_testbed.reproduce.verdict_page import page
from loko_testbed.tasks.executor import Executor
from loko_testbed.tasks.files import lock_folder, output_directory, write_atomically
from loko_testbed.tasks.progress import ProgressBar

REPORT: Final = "report.html"
_RESULTS: Final = Path("results") / "predictability"


def judge_predictability(
    *,
    device: Annotated[
        str,
        typer.Option(
            help=f"A profile of a switch: name or path; or live: {', '.join(software_switches.NAMES)}.",
            autocompletion=profile_names,
        ),
    ] = "ideal-1g",
    out: Annotated[
        Path | None, typer.Option(help="Folder of the verdict. Default: results/predictability/DEVICE.")
    ] = None,
    packets: Annotated[
        int | None,
        typer.Option(
            min=100,
            max=1_000_000,
            help=f"Frames of each scenario of PT. Default: {CampaignSize().packets}, in real time"
            f" {software_switches.SIZE.packets}.",
        ),
    ] = None,
    also: Annotated[
        str | None,
        typer.Option(
            help="A profile of the same switch with another setting, to judge its buffers with it, too."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small campaign of the same parts.")] = False,
    jobs: JobsOption = None,
    executor: ExecutorOption = Executor.PROCESSES,
    scheduler: SchedulerOption = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print verdict.json.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each dimension.")] = False,
) -> None:
    """Judge whether a switch is fit for guarantees: a row of table I of the predictability study.

    From outside: processing time (PT), priority queueing (PQ), throughput (TP), flow
    management (FM) and buffers (BM). What is measured already is not measured again.

    A profile is measured in virtual time. A software switch is measured live, in a network that this makes
    for it: that needs root.

    Example: loko bench predictability --device dell-s3048-on --quick
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    folder = out or _RESULTS / Path(device).stem
    is_live = device in software_switches.NAMES
    workers = workers_of(jobs, executor, scheduler, real_time=is_live)
    if is_live:
        if also is not None:
            raise InputError(f"--also {also}: a live switch is measured as it is: leave it out")
        subject = software_switches.outline(device)
        size = software_switches.QUICK_SIZE if quick else software_switches.SIZE
        size = size if packets is None else replace(size, packets=packets)
    else:
        subject = None
        size = QUICK if quick else CampaignSize()
        size = size if packets is None or quick else replace(size, packets=packets)
    todo = parts(device, size, seed, subject=subject, also=also)
    with ExitStack() as stack:
        stack.enter_context(lock_folder(output_directory(folder)))
        live = stack.enter_context(software_switches.open_switch(device)) if is_live else None
        bar = stack.enter_context(ProgressBar())
        results = run_campaign(todo, folder, workers=workers, progress=bar, live=live)
    judged = verdicts(results, thresholds(), live=subject)
    text = json.dumps(document(Path(device).stem, judged), indent=1)
    write_atomically(folder / "verdict.json", text.encode())
    again = ["loko", "bench", "predictability", "--device", device, "--seed", str(seed)]
    again += ["--quick"] if quick else ["--packets", str(size.packets)]
    again += ["--also", also] if also else []
    title = software_switches.TITLES[device] if is_live else load_device(device).title
    mode = _mode(subject, size, results)
    html = page(
        json.loads(text),
        title,
        results,
        packets=size.packets,
        seed=seed,
        command=shlex.join(again),
        mode=mode,
    )
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
    if subject is not None:
        tell(f"measured {mode}")
    table = Table("", "mark", "because", box=None)
    for name, verdict in judged.items():
        table.add_row(name, f"{verdict.mark.value} {WORDS[verdict.mark]}", "; ".join(verdict.reasons))
    Console().print(table)
    tell(f"numbers: {folder / 'verdict.json'}, report: {folder / REPORT}")


def _mode(live: SwitchUnderTest | None, size: CampaignSize, results: Mapping[str, Any]) -> str:
    """Return how a switch was measured, in words."""
    if live is None:
        return "in virtual time"
    full = CampaignSize()
    return (
        f"live, with {live.ports} lines of {live.link_rate_bps / 1e6:g} Mbit/s, made by tc, and with fewer"
        f" frames than in virtual time: {size.packets} in each scenario of PT in place of {full.packets},"
        f" {size.bursts} bursts in place of {full.bursts},"
        f" at most {size.most_entries} entries in place of {full.most_entries};"
        f" {results[HOST_PART].remark}"
    )
