"""The command `loko replay`: flows on a lab in virtual time, against what is guaranteed to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from loko.admission.planning import Plan
from loko.admission.protection import MoveTiming, ProtectedPlan, Protection, failures_of
from loko.admission.schemes import default_scheme, variant_of
from loko.control.entries import default_entries
from loko.document import InputError
from loko.notebook_api import plan, plan_for_failures
from loko.switch_model.control_traffic import CHANGES_PER_S
from loko.terminal import tell
from loko.topology.lab import Lab, load_lab
from loko.topology.requests import load_requests
from loko.units import NS_PER_MS, in_ms
from loko_testbed.cli.choices import (
    DETECTION_MS,
    AllocationOption,
    ClassesOption,
    ColumnsOption,
    DetectionOption,
    DuplicateOption,
    PortDetectionOption,
    ProtectionOption,
    SurviveOption,
    TargetOption,
    move_timing,
    refuse_idle_target,
    refuse_together,
    refuse_without_survive,
    scheme_option,
)
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both
from loko_testbed.cli.protected_replay import ProtectedReplay, cuts_of
from loko_testbed.simulation.failures.protected_lab import Cut, ProtectedLab
from loko_testbed.simulation.runner import RunError
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.delivery import (
    DeliveryResult,
    FlowResult,
    judge_delivery,
    random_burst_senders,
    timed_senders,
    transmit,
)
from loko_testbed.simulation.worst_case.other_traffic import allowed_beside
from loko_testbed.simulation.worst_case.release import LEAD_NS, aimed_pattern, refill_ns, release_instants

if TYPE_CHECKING:
    from loko_testbed.simulation.captures.run_captures import RunCaptures

_LARGEST_LOAD = 4.0
"""Offered rate over a flow's rate: so high that the flow sends all that its token bucket lets through."""

_LONGEST_ROUND_NS = 100_000_000
"""From one instant at which bursts meet to the next."""
_SHORTEST_ROUND_NS = 10_000_000


def replay_twice(
    lab: Lab, planned: Plan, *, seconds: float, seed: int, captures: RunCaptures | None = None
) -> list[DeliveryResult]:
    """Two runs: hosts send all that they may, then bursts that meet at the switches. Raises `RunError`.

    Where guarantees allow for traffic of low priority, it fills every port beside the flows. `captures` gets
    what passed the cables.
    """
    case = AdmittedSet(
        lab=lab, scheme=planned.scheme, admitted=planned.accepted, entries=default_entries(lab)
    )
    duration_ns = round(seconds * 1e9)
    others = allowed_beside(case, duration_ns=duration_ns)
    for switch in () if others is None else others.unfilled:
        tell(f"{switch}: no port or entry is free for other traffic, so flows have it to themselves")
    every_ns = _LONGEST_ROUND_NS
    if others is not None:  # chips are done with a burst before the buckets are full again
        every_ns = min(every_ns, max(_SHORTEST_ROUND_NS, round(refill_ns(case))))
    aimed_ns = range(LEAD_NS, max(duration_ns, LEAD_NS + 1), every_ns)
    rng = np.random.default_rng(seed)
    meeting = release_instants(case, aimed_ns, [aimed_pattern(case, rng) for _ in aimed_ns])
    return [
        judge_delivery(
            case,
            transmit(
                case,
                senders,
                seed=seed,
                duration_ns=duration_ns,
                others=others,
                capture=None if captures is None else captures.write,
            ),
        )
        for senders in (random_burst_senders(case, load=_LARGEST_LOAD), timed_senders(case, meeting))
    ]


def replay(
    lab: Annotated[str, typer.Argument(help="Name or path of a lab, such as two-switch.")],
    flows: Annotated[
        str, typer.Argument(help="List of flows: YAML, JSON, CSV or a workbook; - is standard input.")
    ],
    *,
    columns: ColumnsOption = None,
    scheme: Annotated[str | None, scheme_option("Admission scheme. Default: as for 'loko plan'.")] = None,
    allocation: AllocationOption = None,
    classes: ClassesOption = None,
    target_ms: TargetOption = None,
    seconds: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=3600,
            help="Of each of two runs; with --survive: before the failure, and again after the moves.",
        ),
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is random.")] = 1,
    survive: SurviveOption = None,
    protection: ProtectionOption = Protection.BACKUP,
    duplicate: DuplicateOption = None,
    detect_ms: DetectionOption = DETECTION_MS,
    port_detect_ms: PortDetectionOption = None,
    cut: Annotated[
        list[str] | None,
        typer.Option(
            help="With --survive: what fails and when, in seconds, such as s1:3-s2:3@0.5; repeat it for"
            " several, in runs of their own. Default: each of the failures, after --seconds."
        ),
    ] = None,
    pcap: Annotated[
        Path | None,
        typer.Option(help="Folder for captures: for each run a pcapng file of each switch and host."),
    ] = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each flow of a run.")] = False,
) -> None:
    """Replay the flows that fit a lab in virtual time, and compare every packet with its guarantee.

    In one run every host sends all that it may, in another the bursts of all flows meet at the switches.
    Status 1 if a guarantee was broken.

    Example: loko replay two-switch flows.yml --seconds 2

    With --survive one thing fails in each run, and the flows move as 'loko plan' with these options says.

    Example: loko replay two-switch flows.yml --seconds 0.1 --pcap captures

    Example: loko replay chip-ring flows.yml --target-ms 0.1

    Example: loko replay plant flows.yml --survive cables=1 --cut s1:2-s2:3@0.5
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    the_lab = load_lab(lab)
    requests = load_requests(flows, the_lab, columns=columns)
    choice = variant_of(the_lab, scheme or default_scheme(the_lab), allocation)
    refuse_idle_target(the_lab, target_ms, [choice])
    target_ns = None if target_ms is None else round(target_ms * NS_PER_MS)
    if survive:
        refuse_together({"--survive": True, "--pcap": pcap is not None})
        failures = failures_of(the_lab, survive)
        survivable = plan_for_failures(
            the_lab,
            requests,
            failures,
            protection=protection,
            duplicated=duplicate or (),
            scheme=scheme,
            allocation=allocation,
            classes=classes,
            target_ns=target_ns,
        )
        timing = move_timing(detect_ms=detect_ms, port_detect_ms=port_detect_ms, changes_per_s=CHANGES_PER_S)
        if port_detect_ms is not None:
            survivable = survivable.with_groups()
        cuts = cuts_of(failures, cut, seconds=seconds)
        _replay_failures(survivable, timing, cuts, seconds=seconds, seed=seed, as_json=as_json, as_csv=as_csv)
        return
    refuse_without_survive(
        duplicate=duplicate,
        protection=protection,
        detect_ms=detect_ms,
        port_detect_ms=port_detect_ms,
        cut=cut,
    )
    planned = plan(
        the_lab, requests, scheme=scheme, allocation=allocation, classes=classes, target_ns=target_ns
    )
    if not planned.accepted:
        raise InputError(f"{flows}: none of its flows fits; 'loko plan' with these options says why")
    try:
        captures = None if pcap is None else _captures(pcap, the_lab, planned)
        results = replay_twice(the_lab, planned, seconds=seconds, seed=seed, captures=captures)
    except RunError as error:
        raise InputError(str(error)) from None
    if as_json:
        print_json({"lab": the_lab.name, "runs": [asdict(result) for result in results]})
    elif as_csv:
        names = ["run", *(field.name for field in fields(FlowResult))]
        rows = ({"run": run} | asdict(flow) for run, result in enumerate(results, 1) for flow in result.flows)
        print_csv(names, rows)
    else:
        _print(planned, results)
    if any(result.broken or result.events for result in results):
        raise typer.Exit(1)


def _replay_failures(
    survivable: ProtectedPlan,
    timing: MoveTiming,
    cuts: Sequence[Cut],
    *,
    seconds: float,
    seed: int,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Replay a plan that survives failures, and print it. Exits with status 1 if it did not hold."""
    lab = survivable.plan.lab
    if not survivable.flows:
        raise InputError(f"{lab.name}: none of the flows survives; 'loko plan' with these options says why")
    protected = ProtectedLab(plan=survivable, timing=timing, entries=default_entries(lab))
    try:
        replayed = ProtectedReplay.run(protected, cuts, seconds=seconds, seed=seed)
    except RunError as error:
        raise InputError(str(error)) from None
    if as_json:
        print_json(replayed.as_values())
    elif as_csv:
        rows = replayed.rows()
        print_csv(list(rows[0]), rows)
    else:
        replayed.show(Console())
    if replayed.failed:
        raise typer.Exit(1)


def _captures(folder: Path, lab: Lab, planned: Plan) -> RunCaptures:
    from loko_testbed.simulation.captures.flow_comments import KnownFlows  # noqa: PLC0415
    from loko_testbed.simulation.captures.run_captures import RunCaptures  # noqa: PLC0415 - imports dpkt

    return RunCaptures(folder, lab, KnownFlows.admitted(lab, planned.accepted))


def _print(planned: Plan, results: list[DeliveryResult]) -> None:
    table = Table(title=f"{planned.lab.name}: in virtual time, against the guarantee", title_justify="left")
    for column in ("flow", "sent", "lost", "longest ms", "guarantee ms"):
        table.add_column(column, justify="left" if column == "flow" else "right")
    for number, admitted in enumerate(planned.accepted):
        of_flow = [result.flows[number] for result in results]
        table.add_row(
            admitted.flow.id,
            str(sum(carried.sent for carried in of_flow)),
            str(sum(carried.lost for carried in of_flow)),
            in_ms(max(carried.worst for carried in of_flow) * admitted.guarantee_ns, math.ceil),
            in_ms(admitted.guarantee_ns, math.ceil),
        )
    console = Console()
    console.print(table)
    broken = {late.flow for result in results for late in result.broken}
    if planned.refused:
        console.print(f"refused, and sent nothing: {len(planned.refused)}")
    console.print("every guarantee was kept" if not broken else f"broken: {', '.join(sorted(broken))}")
    for event in dict.fromkeys(event for result in results for event in result.events):
        tell(event)
