"""``python -m benchmarks.evidence``: random admitted sets, packet by packet; goes on where it stopped."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from benchmarks.evidence.attacks import every_attack, kept
from benchmarks.evidence.campaign import BrokenGuaranteeError, Task, carry_on, port_trial_of, trial_of
from benchmarks.evidence.page import page
from benchmarks.evidence.ports import port_summary
from benchmarks.evidence.record import Journal, PortRecord, R, TrialRecord
from benchmarks.evidence.summary import summary
from benchmarks.measure import ROOT
from evaluation.adversary.trial import Trial, narrowed, trial
from evaluation.executor import Executor, Workers
from evaluation.files import alone_in, output_directory, write_atomically
from evaluation.progress import terminal_bar
from evaluation.provenance import commit
from loko.document import InputError

_PAGE: Final = ROOT / "docs" / "evidence.md"
_RESULT: Final = "evidence.json"
_PORT_RESULT: Final = "port-evidence.json"
_COPIES: Final = ROOT / "docs" / "measurements"
"""Folder of the results from which the page was made."""
_LINE_EVERY_S: Final = 30


def main(  # noqa: PLR0917 - options of the command line
    packets: Annotated[str, typer.Option(help="Packets in all, such as 1e8; what is there counts.")] = "1e9",
    trial_packets: Annotated[
        int, typer.Option(min=1, help="Packets of a trial at most; low rates have fewer.")
    ] = 1_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the campaign: it fixes every trial.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    executor: Annotated[
        Executor, typer.Option(help="Where trials are computed: here, or on a Dask cluster.")
    ] = Executor.PROCESSES,
    scheduler: Annotated[
        str | None, typer.Option(help="The Dask scheduler's, such as tcp://10.0.0.1:8786.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the journal and the results.")] = Path(
        "results/evidence"
    ),
    replay: Annotated[
        int | None, typer.Option(help="Carry out one trial, by its own seed, and show it.")
    ] = None,
    ports: Annotated[
        bool,
        typer.Option("--ports", help="Judge switches with a queue for each priority and port, nothing else."),
    ] = False,
    attacks: Annotated[bool, typer.Option(help="Also attack full switches; the page needs it.")] = True,
    write_page: Annotated[
        bool, typer.Option("--page", help="Write docs/evidence.md from the result.")
    ] = False,
) -> None:
    """Judge every packet of random admitted sets. Example: python -m benchmarks.evidence --packets 1e8."""
    try:
        if replay is not None:
            raise typer.Exit(_replay(replay, trial_packets))
        if write_page and not attacks and not ports:
            raise InputError("--page needs the attacks; leave --no-attacks out")
        workers = Workers(jobs=jobs, executor=executor, scheduler=scheduler)
        workers.refuse_contradiction()
        folder = output_directory(out)
        if ports:
            if not _port_campaign(_count(packets), trial_packets, seed, workers, folder):
                raise typer.Exit(1)
            if write_page:
                shutil.copyfile(folder / _PORT_RESULT, _COPIES / _PORT_RESULT)
                write_atomically(_PAGE, page(_copy(_RESULT), _copy(_PORT_RESULT)).encode())
            raise typer.Exit(0)
        if not _campaign(_count(packets), trial_packets, seed, workers, folder):
            raise typer.Exit(1)
        if attacks:
            raise typer.Exit(_attacks(folder, workers, write_page=write_page))
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


def _campaign(packets: int, trial_packets: int, seed: int, workers: Workers, out: Path) -> bool:
    """Carry out missing trials and write the result; return False if a guarantee was broken."""
    head = _head(seed, trial_packets)
    begin_s = time.monotonic()
    with alone_in(out):
        try:
            records = _carried(out / "trials.jsonl", head, TrialRecord, trial_of, packets, workers)
        except BrokenGuaranteeError as broken:
            _report_broken(broken, trial_packets, out)
            return False
    _write(out / _RESULT, summary(records, head), time.monotonic() - begin_s)
    return True


def _port_campaign(packets: int, trial_packets: int, seed: int, workers: Workers, out: Path) -> bool:
    """Do the same on switches with queues for each port."""
    head = _head(seed, trial_packets)
    begin_s = time.monotonic()
    with alone_in(out):
        try:
            records = _carried(out / "port-trials.jsonl", head, PortRecord, port_trial_of, packets, workers)
        except BrokenGuaranteeError as broken:
            print(f"BROKEN: ports, {broken}", file=sys.stderr)
            return False
    _write(out / _PORT_RESULT, port_summary(records, head), time.monotonic() - begin_s)
    return True


def _head(seed: int, trial_packets: int) -> dict[str, Any]:
    return {"commit": commit(), "seed": seed, "trial_packets": trial_packets}


def _carried(  # noqa: PLR0917 - what a campaign consists of
    path: Path,
    head: dict[str, Any],
    kind: type[R],
    carry_out: Callable[[Task], R],
    packets: int,
    workers: Workers,
) -> list[R]:
    with Journal(path, head, kind) as journal, _Tell() as tell:
        return carry_on(
            journal,
            carry_out,
            packets=packets,
            trial_packets=head["trial_packets"],
            seed=head["seed"],
            tell=tell,
            workers=workers,
        )


def _write(path: Path, result: dict[str, Any], seconds: float) -> None:
    write_atomically(path, (json.dumps(result, indent=1) + "\n").encode())
    total = result["total"]
    print(
        f"{total['packets']} packets in {total['trials']} trials: {total['lost']} lost,"
        f" worst delay {total['worst']:.3f} of its guarantee; {seconds:.0f} s"
    )


def _copy(name: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((_COPIES / name).read_text(encoding="utf-8"))
    return values


def _attacks(out: Path, workers: Workers, *, write_page: bool) -> int:
    """Add the attacks to the result, and write the page; return the exit status."""
    print("attacking full switches ...", file=sys.stderr)
    result = json.loads((out / _RESULT).read_text(encoding="utf-8"))
    result["attacks"] = every_attack(lambda text: print(text, file=sys.stderr), workers)
    write_atomically(out / _RESULT, (json.dumps(result, indent=1) + "\n").encode())
    pages = [out / "evidence.md", *([_PAGE] if write_page else [])]
    for path in pages:
        write_atomically(path, page(result, _copy(_PORT_RESULT)).encode())
    if write_page:
        shutil.copyfile(out / _RESULT, _COPIES / _RESULT)
    print(f"written: {out / _RESULT}, {', '.join(map(str, pages))}")
    return 0 if kept(result["attacks"]) else 1


class _Tell:
    """Shows progress: by a bar on a terminal, else by a line now and then."""

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


def _report_broken(broken: BrokenGuaranteeError, trial_packets: int, out: Path) -> None:
    seed = broken.record.seed
    print(f"BROKEN: {broken}; narrowing it down ...", file=sys.stderr)
    failed = trial(seed, packets=trial_packets)
    only, most_ns = narrowed(failed, packets=trial_packets)
    again = trial(seed, packets=trial_packets, only=only, most_ns=most_ns)
    record = {
        "seed": seed,
        "record": broken.record.model_dump(mode="json"),
        "flows": [failed.drawn.case.flows[number]._asdict() for number in sorted(only)],
        "duration_ns": most_ns,
        "verdict": [str(flow) for flow in again.verdict.broken] + list(again.verdict.events),
    }
    path = out / f"broken-{seed}.json"
    write_atomically(path, (json.dumps(record, indent=1) + "\n").encode())
    _show(again)
    print(f"seen again with: python -m benchmarks.evidence --replay {seed}; narrowed down in {path}")


def _replay(seed: int, trial_packets: int) -> int:
    outcome = trial(seed, packets=trial_packets)
    _show(outcome)
    return 1 if outcome.failed else 0


def _show(outcome: Trial) -> None:
    drawn, case = outcome.drawn, outcome.drawn.case
    print(
        f"seed {drawn.seed}: {case.scheme}, {drawn.shape} of {drawn.switches} switches,"
        f" {case.entries} entries, frames of {', '.join(map(str, drawn.sizes))} bytes,"
        f" {outcome.way} for {outcome.duration_ns / 1e9:.2f} s"
    )
    verdicts = {verdict.flow: verdict for verdict in outcome.verdict.flows}
    for admitted in case.admitted:
        verdict = verdicts.get(admitted.flow.id)
        if verdict is None:
            continue
        path = " ".join(hop.switch for hop in admitted.hops)
        print(
            f"  {admitted.flow.id}: {admitted.flow.rate_bps:.0f} bit/s,"
            f" {admitted.flow.burst_bytes:.0f} bytes,"
            f" {admitted.flow.burst_bytes:.0f} bytes, by {path}; {verdict.sent} sent,"
            f" {verdict.lost} lost, worst {verdict.worst:.3f}"
            f" of {admitted.guarantee_ns / 1e6:.3f} ms{'' if verdict.kept else '  BROKEN'}"
        )
    for event in outcome.verdict.events:
        print(f"  {event}")


if __name__ == "__main__":
    typer.run(main)
