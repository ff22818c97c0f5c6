"""``python -m benchmarks.evidence``: random admitted sets, packet by packet; goes on where it stopped."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from benchmarks.evidence.attacks import every_attack, kept
from benchmarks.evidence.campaign import PACKETS_A_TRIAL, BrokenGuaranteeError, carry_on
from benchmarks.evidence.page import page
from benchmarks.evidence.record import Journal
from benchmarks.evidence.summary import summary
from benchmarks.measure import ROOT
from evaluation.adversary.trial import Trial, narrowed, trial
from evaluation.files import alone_in, output_directory, write_atomically
from evaluation.progress import terminal_bar
from evaluation.provenance import commit
from loko.document import InputError

_PAGE: Final = ROOT / "docs" / "evidence.md"
_LINE_EVERY_S: Final = 30


def main(  # noqa: PLR0917 - options of the command line
    packets: Annotated[str, typer.Option(help="Packets in all, such as 1e8; what is there counts.")] = "1e9",
    seed: Annotated[int, typer.Option(min=0, help="Of the campaign: it fixes every trial.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder for the journal and the results.")] = Path(
        "results/evidence"
    ),
    replay: Annotated[
        int | None, typer.Option(help="Carry out one trial, by its own seed, and show it.")
    ] = None,
    write_page: Annotated[
        bool, typer.Option("--page", help="Write docs/evidence.md from the result.")
    ] = False,
) -> None:
    """Judge every packet of random admitted sets. Example: python -m benchmarks.evidence --packets 1e8."""
    try:
        if replay is not None:
            raise typer.Exit(_replay(replay))
        raise typer.Exit(_campaign(_count(packets), seed, jobs, output_directory(out), write_page=write_page))
    except InputError as error:
        print(f"evidence: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        print("evidence: interrupted; the same command goes on", file=sys.stderr)
        raise typer.Exit(130) from None


def _count(text: str) -> int:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1 <= number <= 1e12:
        raise InputError(f"--packets {text}: give a number of packets in 1 .. 1e12, such as 1e8")
    return int(number)


def _campaign(packets: int, seed: int, jobs: int, out: Path, *, write_page: bool) -> int:
    head: dict[str, object] = {"commit": commit(), "seed": seed, "packets_a_trial": PACKETS_A_TRIAL}
    begin_s = time.monotonic()
    with alone_in(out):
        journal = Journal(out / "trials.jsonl", head)
        try:
            with _Tell() as tell:
                records = carry_on(journal, packets=packets, seed=seed, jobs=jobs, tell=tell)
        except BrokenGuaranteeError as broken:
            _report_broken(broken, out)
            return 1
        finally:
            journal.close()
    print("attacking full switches …", file=sys.stderr)
    found = {**summary(records, head), "attacks": every_attack(lambda text: print(text, file=sys.stderr))}
    write_atomically(out / "evidence.json", (json.dumps(found, indent=1) + "\n").encode())
    text = page(found)
    write_atomically(out / "evidence.md", text.encode())
    if write_page:
        write_atomically(_PAGE, text.encode())
    print(
        f"{found['total']['packets']} packets in {len(records)} trials: {found['total']['lost']} lost,"
        f" worst delay {found['total']['worst']:.3f} of its guarantee; {time.monotonic() - begin_s:.0f} s"
    )
    print(f"written: {out}/evidence.json, {out}/evidence.md" + (f", {_PAGE}" if write_page else ""))
    return 0 if kept(found["attacks"]) else 1


class _Tell:
    """Progress: a bar on a terminal, else a line now and then."""

    def __init__(self) -> None:
        self._bar = terminal_bar()
        self._task = self._bar.add_task("packets", total=None, unit="packets")
        self._told_s = time.monotonic()

    def __enter__(self) -> _Tell:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, have: int, wanted: int, left_s: float) -> None:
        self._bar.update(self._task, total=wanted, completed=min(have, wanted))
        if not Console(stderr=True).is_terminal and time.monotonic() - self._told_s > _LINE_EVERY_S:
            self._told_s = time.monotonic()
            print(
                f"{have / 1e6:.0f} of {wanted / 1e6:.0f} million packets, {left_s:.0f} s left",
                file=sys.stderr,
            )


def _report_broken(broken: BrokenGuaranteeError, out: Path) -> None:
    seed = broken.record.seed
    print(f"BROKEN: {broken}; narrowing it down …", file=sys.stderr)
    failed = trial(seed, packets=PACKETS_A_TRIAL)
    only, most_ns = narrowed(failed, packets=PACKETS_A_TRIAL)
    again = trial(seed, packets=PACKETS_A_TRIAL, only=only, most_ns=most_ns)
    found = {
        "seed": seed,
        "record": broken.record.model_dump(mode="json"),
        "flows": [failed.drawn.case.flows[number].model_dump(mode="json") for number in sorted(only)],
        "duration_ns": most_ns,
        "verdict": [str(flow) for flow in again.verdict.broken] + list(again.verdict.events),
    }
    path = out / f"broken-{seed}.json"
    write_atomically(path, (json.dumps(found, indent=1) + "\n").encode())
    _show(again)
    print(f"seen again with: python -m benchmarks.evidence --replay {seed}; narrowed down in {path}")


def _replay(seed: int) -> int:
    found = trial(seed, packets=PACKETS_A_TRIAL)
    _show(found)
    return 1 if found.failed else 0


def _show(found: Trial) -> None:
    drawn, case = found.drawn, found.drawn.case
    print(
        f"seed {drawn.seed}: {case.scheme}, {drawn.shape} of {drawn.switches} switches,"
        f" {case.entries} entries, frames of {', '.join(map(str, drawn.sizes))} bytes,"
        f" {found.way} for {found.duration_ns / 1e9:.2f} s"
    )
    verdicts = {verdict.flow: verdict for verdict in found.verdict.flows}
    for admitted in case.admitted:
        verdict = verdicts.get(admitted.flow.id)
        if verdict is None:
            continue
        path = " ".join(hop.switch for hop in admitted.hops)
        print(
            f"  {admitted.flow.id}: {admitted.flow.rate_bps:.0f} bit/s,"
            f" {admitted.flow.burst_bytes:.0f} bytes, by {path}; {verdict.sent} sent, {verdict.lost} lost, worst {verdict.worst:.3f}"
            f" of {admitted.guarantee_ns / 1e6:.3f} ms{'' if verdict.kept else '  BROKEN'}"
        )
    for event in found.verdict.events:
        print(f"  {event}")


if __name__ == "__main__":
    typer.run(main)
