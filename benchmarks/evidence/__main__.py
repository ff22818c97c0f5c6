"""``python -m benchmarks.evidence``: random admitted sets, packet by packet; goes on where it stopped."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from enum import StrEnum
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from benchmarks.evidence.attacks import every_attack, kept
from benchmarks.evidence.campaign import (
    BrokenGuaranteeError,
    TrialTask,
    changing_port_trial_of,
    continue_campaign,
    port_trial_of,
    trial_of,
)
from benchmarks.evidence.models import CASES, check_case
from benchmarks.evidence.page import page
from benchmarks.evidence.ports import port_summary
from benchmarks.evidence.record import Journal, PortRecord, R, TrialRecord
from benchmarks.evidence.summary import summary
from benchmarks.measure import ROOT
from loko.document import InputError
from loko_testbed.simulation.worst_case.trial import Trial, narrow_down, run_trial
from loko_testbed.tasks.executor import Executor, Workers
from loko_testbed.tasks.files import lock_folder, output_directory, write_atomically
from loko_testbed.tasks.progress import terminal_bar
from loko_testbed.tasks.provenance import commit

_PAGE: Final = ROOT / "docs" / "evidence.md"
_COPIES: Final = ROOT / "docs" / "measurements"
"""Folder of the results from which the page was made."""
_LINE_EVERY_S: Final = 30


class EvidencePart(StrEnum):
    """Parts of the evidence, each with a result of its own."""

    BOARDS = "boards"
    MODELS = "models"
    PORTS = "ports"
    PORT_CHANGES = "port-changes"


_RESULTS: Final = {
    EvidencePart.BOARDS: "evidence.json",
    EvidencePart.MODELS: "models.json",
    EvidencePart.PORTS: "port-evidence.json",
    EvidencePart.PORT_CHANGES: "port-changes.json",
}


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
    only: Annotated[
        EvidencePart | None,
        typer.Option(
            help="One part: random sets on boards; models of released flows; switches with a queue for each"
            " priority and port, with sets that stay or change. Default: boards and models."
        ),
    ] = None,
    attacks: Annotated[bool, typer.Option(help="Also attack full boards; the page needs it.")] = True,
    write_page: Annotated[
        bool, typer.Option("--page", help="Write docs/evidence.md from the result.")
    ] = False,
) -> None:
    """Judge every packet of random admitted sets. Example: python -m benchmarks.evidence --packets 1e8."""
    try:
        if replay is not None:
            raise typer.Exit(_replay(replay, trial_packets))
        parts = (EvidencePart.MODELS, EvidencePart.BOARDS) if only is None else (only,)
        if write_page and not attacks and EvidencePart.BOARDS in parts:
            raise InputError("--page needs the attacks; leave --no-attacks out")
        workers = Workers(jobs=jobs, executor=executor, scheduler=scheduler)
        workers.refuse_contradiction()
        wanted, folder = _count(packets), output_directory(out)
        for part in parts:
            if part is EvidencePart.MODELS:
                succeeded = _check_models(workers, folder)
            else:
                succeeded = _campaign(part, wanted, trial_packets, seed, workers, folder)
            if not succeeded:
                raise typer.Exit(1)
        repelled = _attack(workers, folder) if EvidencePart.BOARDS in parts and attacks else True
        if EvidencePart.BOARDS not in parts or attacks:
            _write_pages(folder, parts, [folder / "evidence.md", *([_PAGE] if write_page else [])])
        raise typer.Exit(0 if repelled else 1)
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


def _check_models(workers: Workers, out: Path) -> bool:
    """Check all models and write the result; return whether exactly the rules in use hold."""
    with closing(workers.each_done(check_case, range(len(CASES)))) as done:
        cases = [case for _, case in sorted(done, key=itemgetter(0))]
    _write_json(out / _RESULTS[EvidencePart.MODELS], {"cases": cases})
    for case in cases:
        steps = case["counterexample"]
        outcome = "holds" if steps is None else f"violated: {', '.join(steps)}"
        name = f"{case['scheme']}, {case['network']}, {case['rule']}"
        print(f"{'' if case['as_expected'] else 'UNEXPECTED: '}{name}: {case['states']} states, {outcome}")
    return all(case["as_expected"] for case in cases)


def _campaign(  # noqa: PLR0917 - what a campaign consists of
    part: EvidencePart, packets: int, trial_packets: int, seed: int, workers: Workers, out: Path
) -> bool:
    """Carry out missing trials and write the result; return False if a guarantee was broken."""
    head = {"commit": commit(), "seed": seed, "trial_packets": trial_packets}
    begin_s = time.monotonic()
    with lock_folder(out):
        try:
            result = _judged(part, out, head, packets, workers)
        except BrokenGuaranteeError as broken:
            if part is EvidencePart.BOARDS:
                _report_broken(broken, trial_packets, out)
            else:
                print(f"BROKEN: {part}, {broken}", file=sys.stderr)
            return False
    _write(out / _RESULTS[part], result, time.monotonic() - begin_s)
    return True


def _judged(
    part: EvidencePart, out: Path, head: dict[str, Any], packets: int, workers: Workers
) -> dict[str, Any]:
    """Return the summary of a campaign's trials."""
    if part is EvidencePart.BOARDS:
        return summary(
            _run_campaign(out / "trials.jsonl", head, TrialRecord, trial_of, packets, workers), head
        )
    if part is EvidencePart.PORTS:
        journal, carry_out = out / "port-trials.jsonl", port_trial_of
    else:
        journal, carry_out = out / "port-change-trials.jsonl", changing_port_trial_of
    return port_summary(_run_campaign(journal, head, PortRecord, carry_out, packets, workers), head)


def _run_campaign(  # noqa: PLR0917 - what a campaign consists of
    path: Path,
    head: dict[str, Any],
    kind: type[R],
    carry_out: Callable[[TrialTask], R],
    packets: int,
    workers: Workers,
) -> list[R]:
    with Journal(path, head, kind) as journal, _Tell() as tell:
        return continue_campaign(
            journal,
            carry_out,
            packets=packets,
            trial_packets=head["trial_packets"],
            seed=head["seed"],
            tell=tell,
            workers=workers,
        )


def _write_json(path: Path, result: dict[str, Any]) -> None:
    write_atomically(path, (json.dumps(result, indent=1) + "\n").encode())


def _write(path: Path, result: dict[str, Any], seconds: float) -> None:
    _write_json(path, result)
    total = result["total"]
    print(
        f"{total['packets']} packets in {total['trials']} trials: {total['lost']} lost,"
        f" worst delay {total['worst']:.3f} of its guarantee; {seconds:.0f} s"
    )


def _attack(workers: Workers, out: Path) -> bool:
    """Add the attacks on boards to the result; return whether no guarantee was broken."""
    print("attacking full switches ...", file=sys.stderr)
    path = out / _RESULTS[EvidencePart.BOARDS]
    result = json.loads(path.read_text(encoding="utf-8"))
    result["attacks"] = every_attack(lambda text: print(text, file=sys.stderr), workers)
    _write_json(path, result)
    return kept(result["attacks"])


def _write_pages(out: Path, parts: Collection[EvidencePart], pages: Sequence[Path]) -> None:
    """Write the page from the results of these parts in `out`, and from the copies of the others."""
    if _PAGE in pages:
        for part in parts:
            shutil.copyfile(out / _RESULTS[part], _COPIES / _RESULTS[part])
    results = {
        part: json.loads(((out if part in parts else _COPIES) / name).read_text(encoding="utf-8"))
        for part, name in _RESULTS.items()
    }
    text = page(
        results[EvidencePart.BOARDS],
        models=results[EvidencePart.MODELS],
        ports=results[EvidencePart.PORTS],
        port_changes=results[EvidencePart.PORT_CHANGES],
    )
    for path in pages:
        write_atomically(path, text.encode())
    print(f"written: {', '.join(map(str, [*(out / _RESULTS[part] for part in parts), *pages]))}")


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
    failed = run_trial(seed, packets=trial_packets)
    only, most_ns = narrow_down(failed, packets=trial_packets)
    again = run_trial(seed, packets=trial_packets, only=only, most_ns=most_ns)
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
    outcome = run_trial(seed, packets=trial_packets)
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
