"""The output of `loko plan --survive`: which flows survive the failures, and what a failure costs them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table

from loko.admission import Admission
from loko.admission.class_targets import class_targets_of
from loko.admission.planning import COLUMNS, Plan
from loko.admission.protection import (
    HelpfulCable,
    MoveTiming,
    ProtectedFlow,
    ProtectedPlan,
    Protection,
    Recovery,
    Survival,
    failures_of,
    most_helpful_cable,
)
from loko.admission.what_if import Changes, changes
from loko.document import InputError
from loko.solvers import Solver, solver_named
from loko.terminal import tell
from loko.topology.lab import Lab
from loko.topology.requests import Request, deadlines_of
from loko.units import in_ms
from loko_testbed.cli.plan_tables import counted, csv_of, print_changes, print_refusals

if TYPE_CHECKING:
    from loko.admission.largest import LargestSet
    from loko.solvers.program import TimeBudget

_FEW: Final = 5
"""So many flows, or failures, are named in a line."""
_PLANNED_AGAIN: Final = 500
"""Up to this many flows are planned again with the cable that would help."""
_TITLES: Final[Mapping[Protection | None, str]] = {
    None: "none",
    Protection.BACKUP: "backup paths",
    Protection.DUPLICATE: "1+1",
}


@dataclass(frozen=True, kw_only=True)
class ProtectionRequest:
    """The options of `loko plan` that `--survive` needs."""

    survive: tuple[str, ...]
    """The failures as the options name them."""
    survival: Survival
    timing: MoveTiming


def protection_request(
    lab: Lab,
    survive: Sequence[str],
    protection: Protection,
    duplicated: Sequence[str] | None,
    timing: MoveTiming,
) -> ProtectionRequest:
    """Return the request that the options make. Raises `InputError`."""
    return ProtectionRequest(
        survive=tuple(survive),
        survival=Survival(
            failures=failures_of(lab, survive), protection=protection, duplicated=tuple(duplicated or ())
        ),
        timing=timing,
    )


@dataclass(frozen=True, kw_only=True)
class ProtectedAnswer:
    """A plan that survives failures, beside the plans to compare it with."""

    request: ProtectionRequest
    unprotected: Plan
    chosen: ProtectedPlan
    other: ProtectedPlan
    """The plan of the other protection, for the comparison."""
    helpful: HelpfulCable | None
    """The cable that would help most of the flows that are cut off."""
    with_cable: ProtectedPlan | None
    """The chosen plan with that cable, which may fail, too; None without one, or if planning again would take
    too long: for too many flows or failures, or for a largest set.
    """
    changes: Changes | None
    """In a what-if, what differs from the chosen protection of the flows as they are."""
    proofs: Mapping[Protection, LargestSet]
    """By protection what is proven of the largest sets; empty if flows are requested in their order."""
    class_targets_ns: Mapping[int, float]
    """Delay targets of traffic classes at ports in the chosen plan, where these follow the deadlines."""

    @classmethod
    def find(
        cls,
        lab: Lab,
        requests: Sequence[Request],
        admissions_of: Callable[[Lab, Sequence[Request], Survival], Callable[[], Admission]],
        request: ProtectionRequest,
        *,
        before: Sequence[Request],
        unprotected: Plan,
        clock: Callable[[], TimeBudget] | None = None,
    ) -> ProtectedAnswer:
        """Plan by both protections. `admissions_of` returns what makes admission controls for requests.

        `before` are the flows as they are, `requests` those as they would be in a what-if, else the same.
        With a `clock`, which returns the time for one search, each plan has the largest set that is found.
        Raises `InputError` as `protect` does.
        """
        proofs: dict[Protection, LargestSet] = {}

        def planned(
            survival: Survival, where: Lab = lab, requests: Sequence[Request] = requests
        ) -> ProtectedPlan:
            make, deadlines_ns = admissions_of(where, requests, survival), deadlines_of(requests)
            flows = [asked.flow for asked in requests]
            if clock is None:
                return survival.plan(where, flows, make, deadlines_ns)
            from loko.admission.protection.largest_protected import (  # noqa: PLC0415 - slow, so only here
                largest_protected,
            )

            found = largest_protected(
                where,
                flows,
                make,
                survival,
                solve=solver_named(Solver.HIGHS),
                clock=clock(),
                deadlines_ns=deadlines_ns,
            )
            proofs[survival.protection] = found.proof
            return found.protected

        def diverted(plan: ProtectedPlan) -> ProtectedPlan:
            return plan if request.timing.port_detection_ns is None else plan.with_groups()

        survival = request.survival
        other = Survival(
            failures=survival.failures,
            protection=next(kind for kind in Protection if kind is not survival.protection),
        )
        earlier: ProtectedPlan | None = None
        if before != requests:
            known = {asked.flow.id for asked in before}
            duplicated = known.intersection(survival.duplicated)
            earlier = planned(replace(survival, duplicated=duplicated), lab, before)
        chosen, flows = diverted(planned(survival)), [asked.flow for asked in requests]
        helpful = most_helpful_cable(lab, flows, survival.failures, chosen.cut_off)
        with_cable: ProtectedPlan | None = None
        if helpful is not None and len(flows) <= _PLANNED_AGAIN and clock is None:
            with suppress(InputError):  # with the cable there may be more failures than a plan covers
                longer = helpful.added_to(lab)
                failures = failures_of(longer, request.survive)
                with_cable = planned(replace(survival, failures=failures), longer)
        return cls(
            request=request,
            unprotected=unprotected,
            chosen=chosen,
            other=diverted(planned(other)),
            helpful=helpful,
            with_cable=with_cable,
            changes=None if earlier is None else changes(earlier, chosen),
            proofs=proofs,
            class_targets_ns=class_targets_of(admissions_of(lab, requests, survival)()),
        )

    def as_values(self) -> dict[str, Any]:
        """Return the plan as plain values, for JSON."""
        timing = self.request.timing
        values = {**self.chosen.plan.as_values(), "survive": self.chosen.as_values(timing)}
        values["comparison"] = [
            {
                "protection": title,
                "accepted": len(plan.accepted),
                "worst_guarantee_ns": worst_ns,
                "most_lost_frames": lost,
            }
            for title, plan, worst_ns, lost in self._comparison()
        ]
        if self.class_targets_ns:
            values["class_targets_ns"] = self.class_targets_ns
        if self.proofs:
            values["largest"] = {kind.value: proof.as_values() for kind, proof in self.proofs.items()}
        if self.changes is not None:
            values["what_if"] = self.changes.as_values()
        if self.helpful is not None:
            values["helpful_cable"] = {
                "a": str(self.helpful.link.a),
                "b": str(self.helpful.link.b),
                "helped": list(self.helpful.helped),
                "accepted_with_it": None if self.with_cable is None else len(self.with_cable.plan.accepted),
            }
        return values

    def as_csv(self) -> str:
        """Return a CSV line for each flow: that of a plan, with its guarantee in all states and its paths."""
        plan, rows = self.chosen.plan, self.chosen.plan.rows()
        for row in rows[: len(plan.accepted)]:
            flow = self.chosen.flows[str(row["flow"])]
            deadline_ns = plan.deadlines_ns.get(flow.working.flow.id)
            slack_ns = None if deadline_ns is None else deadline_ns - flow.guarantee_ns
            path, *further = _paths(flow)
            changed = {"path": path, "further_paths": "; ".join(further)}
            row |= {**changed, "guarantee_ns": flow.guarantee_ns, "slack_ns": slack_ns}
        return csv_of(rows, (*COLUMNS, "further_paths"))

    def _comparison(self) -> list[tuple[str, Plan, float | None, int | None]]:
        """Return, for no protection and for each, the plan, its worst guarantee and the frames lost at most.

        Without protection a failure has no bound on what it costs.
        """
        alone = max((admitted.guarantee_ns for admitted in self.unprotected.accepted), default=None)
        rows: list[tuple[str, Plan, float | None, int | None]] = [
            (_TITLES[None], self.unprotected, alone, None)
        ]
        for protection in Protection:
            found = self.chosen if protection is self.chosen.protection else self.other
            lost = max((each.most_lost_frames for each in found.recoveries(self.request.timing)), default=0)
            rows.append((_TITLES[protection], found.plan, found.worst_guarantee_ns, lost))
        return rows

    def show(self, console: Console) -> None:
        """Print the comparison, the flows of the chosen plan, and what the worst failure costs."""
        console.print(self._comparison_table())
        if self.chosen.flows:
            console.print(self._flows_table())
        survivable = replace(
            self.chosen.plan,
            refused=tuple(
                refusal for refusal in self.chosen.plan.refused if refusal.flow.id not in self.chosen.cut_off
            ),
        )
        print_refusals(survivable)
        self._tell_cut_off()
        self._tell_recovery()
        if self.changes is not None:
            print_changes(self.changes)
        for kind, proof in self.proofs.items():
            tell(f"{_TITLES[kind]}: {proof}")
        tell(f"{self.chosen.plan.fit} survive, by {_TITLES[self.chosen.protection]}")

    def _comparison_table(self) -> Table:
        failures = counted(len(self.chosen.failures), "failure")
        title = f"{self.chosen.plan.lab.name}: {failures}, one at a time"
        table = Table(title=title, title_justify="left")
        table.add_column("protection")
        for column in ("accepted", "longest guarantee ms", "frames lost at most"):
            table.add_column(column, justify="right")
        for title, plan, worst_ns, lost in self._comparison():
            table.add_row(
                title,
                plan.fit,
                in_ms(worst_ns, math.ceil),
                "no bound" if lost is None else f"{lost:,}",
            )
        return table

    def _flows_table(self) -> Table:
        plan = self.chosen.plan
        table = Table(title=f"flows that survive, by {plan.scheme}", title_justify="left")
        for column in ("flow", *(["class"] if plan.has_classes else []), "path", "further paths"):
            table.add_column(column, overflow="fold")
        columns = ["now ms", "guarantee ms", *(["deadline ms"] if plan.deadlines_ns else [])]
        for column in columns:
            table.add_column(column, justify="right", no_wrap=True)
        for flow_id, flow in self.chosen.flows.items():
            working, *further = _paths(flow)
            row = [
                flow_id,
                *([str(flow.working.flow.traffic_class)] if plan.has_classes else []),
                working,
                "; ".join(further),
                in_ms(flow.working.guarantee_ns, math.ceil),
                in_ms(flow.guarantee_ns, math.ceil),
            ]
            if plan.deadlines_ns:
                row.append(in_ms(plan.deadlines_ns.get(flow_id), math.floor))
            table.add_row(*row)
        return table

    def _tell_cut_off(self) -> None:
        cut_off = self.chosen.cut_off
        if not cut_off:
            return
        names = list(dict.fromkeys(name for failures in cut_off.values() for name in failures))
        tell(f"cannot survive: {_few(list(cut_off))}; no path is left after a failure of {_few(names)}")
        if self.helpful is None:
            tell("no single cable between free ports would help")
            return
        link, helped = self.helpful.link, len(self.helpful.helped)
        gain = f"a cable from {link.a} to {link.b} would leave {helped} of these {len(cut_off)} a path"
        if self.with_cable is not None:
            gain += f"; with it {self.with_cable.plan.fit} survive"
        tell(gain)

    def _tell_recovery(self) -> None:
        recoveries = self.chosen.recoveries(self.request.timing)
        moves = [recovery for recovery in recoveries if recovery.moved]
        if moves:
            tell(_described(max(moves, key=_cost), self.request.timing))
        total = sum(len(recovery.moved) for recovery in moves)
        if twice := sum(len(recovery.in_two_rounds) for recovery in moves):
            tell(f"{twice} of {total} moves take two rounds of changes: not all entries fit in beforehand")
        diverted = sum(len(recovery.diversions) for recovery in moves)
        if self.request.timing.port_detection_ns is not None:
            port_ms = in_ms(self.request.timing.port_detection_ns, math.ceil)
            tell(f"switches divert flows by themselves in {diverted} of {total} moves, within {port_ms} ms")
        ended = [recovery for recovery in recoveries if recovery.ended]
        if ended:
            most = max(ended, key=lambda recovery: len(recovery.ended))
            ended_flows = counted(len(most.ended), "flow")
            tell(f"{most.failure.name} ends {ended_flows}, the most of all: it takes their hosts away")


def _cost(recovery: Recovery) -> tuple[float, int]:
    return recovery.outage_ns, recovery.most_lost_frames


def _described(recovery: Recovery, timing: MoveTiming) -> str:
    switch, changes = max(recovery.changes.items(), key=lambda item: item[1], default=("any switch", 0))
    moved, outage_ms = counted(len(recovery.moved), "flow"), in_ms(recovery.outage_ns, math.ceil)
    return (
        f"longest outage: {recovery.failure.name} moves {moved}, with {counted(changes, 'change')} at"
        f" {switch}, {timing.changes_per_s:g} per second: {outage_ms} ms, and up to"
        f" {counted(recovery.most_lost_frames, 'frame')} may be lost; no other frame is late"
    )


def _paths(flow: ProtectedFlow) -> list[str]:
    """Return a flow's paths, the working one first; with ports if the switches do not tell them apart."""
    others = [*flow.backups.values(), *([] if flow.duplicate is None else [flow.duplicate])]
    paths = dict.fromkeys((flow.working.path, *(admitted.path for admitted in others)))
    by_switches = {" ".join(hop.switch for hop in path): path for path in paths}
    if len(by_switches) == len(paths):
        return list(by_switches)
    return [" ".join(f"{hop.switch}:{hop.output_port}" for hop in path) for path in paths]


def _few(names: Sequence[str]) -> str:
    rest = len(names) - _FEW
    return ", ".join(names[:_FEW]) + (f" and {rest} more" if rest > 0 else "")
