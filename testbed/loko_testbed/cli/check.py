"""The command `loko check-schedule`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loko.terminal import tell
from loko.topology.lab import load_lab
from loko.topology.requests import load_documents
from loko_testbed.cli.choices import ColumnsOption
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both
from loko_testbed.reproduce.schedule_check.document import load_schedule, wanted_of
from loko_testbed.reproduce.schedule_check.gates import gate_refutations, load_gates
from loko_testbed.reproduce.schedule_check.verdict import check


def check_schedule(
    lab: Annotated[str, typer.Argument(help="Name or path of a lab, such as two-switch.")],
    flows: Annotated[str, typer.Argument(help="The list of flows that was scheduled.")],
    schedule: Annotated[Path, typer.Argument(help="Output of 'loko schedule --json'.")],
    *,
    columns: ColumnsOption = None,
    cycles: Annotated[
        int, typer.Option(min=0, max=100_000, help="Base periods of the replay; 0: arithmetic only.")
    ] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed for how far hosts are off their slots.")] = 1,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each refutation.")] = False,
) -> None:
    """Try to refute a schedule, by arithmetic and by a replay in the simulator. Status 1 if that succeeds.

    It shares no code with the schedulers.

    Example: loko check-schedule two-switch flows.yml schedule.json
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    network, wanted, document = (
        load_lab(lab),
        wanted_of(load_documents(flows, columns=columns)),
        load_schedule(schedule),
    )
    verdict = check(network, wanted, document, cycles=cycles, seed=seed)
    told = verdict.refutations
    if as_json:
        print_json(verdict.values())
    elif as_csv:
        rows = [{"by": "arithmetic", "refutation": line} for line in verdict.by_arithmetic]
        rows += [{"by": "replay", "refutation": line} for line in verdict.replay.refutations]
        print_csv(["by", "refutation"], rows)
    else:
        for line in told:
            tell(f"refuted: {line}")
        if not told:
            replay_told = f"; {verdict.replay.packets} frames in {cycles} base periods" if cycles else ""
            tell(f"not refuted: {len(document.scheduled)} flows{replay_told}")
    if told:
        raise typer.Exit(1)


def check_gates(
    task: Annotated[Path, typer.Argument(help="Streams, as tsnkit's task file.")],
    topology: Annotated[Path, typer.Argument(help="The network, as tsnkit's topology file.")],
    folder: Annotated[Path, typer.Argument(help="Folder of *GCL.csv, *OFFSET.csv, *ROUTE.csv, *QUEUE.csv.")],
    *,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each refutation.")] = False,
) -> None:
    """Try to refute a gate schedule (802.1Qbv) from tsnkit or others. Status 1 if that succeeds.

    Example: loko check-gates task.csv topo.csv output
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    gates = load_gates(task, topology, folder)
    refutations = gate_refutations(gates)
    if as_json:
        print_json({"refuted": bool(refutations), "refutations": refutations})
    elif as_csv:
        print_csv(["refutation"], ({"refutation": line} for line in refutations))
    else:
        for line in refutations:
            tell(f"refuted: {line}")
        if not refutations:
            tell(f"not refuted: {len(gates.streams)} streams")
    if refutations:
        raise typer.Exit(1)
