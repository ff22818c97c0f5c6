"""The output of `loko replay --survive`: what failures cost in virtual time, beside what the plan states."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

from loko.admission.protection import NetworkFailure, ProtectedPlan
from loko.document import InputError
from loko.terminal import tell
from loko.units import NS_PER_S, in_ms
from loko_testbed.cli.plan_tables import counted
from loko_testbed.simulation.failures.protected_lab import Cut, ProtectedLab
from loko_testbed.simulation.failures.sending import all_that_they_may, meeting_bursts
from loko_testbed.simulation.failures.verdict import FailureVerdict, Fate, FlowVerdict, judge
from loko_testbed.simulation.worst_case.release import LEAD_NS
from loko_testbed.tasks.progress import ProgressBar

_MOST_SECONDS: Final = 3_600


def cuts_of(
    failures: Sequence[NetworkFailure], texts: Sequence[str] | None, *, seconds: float
) -> tuple[Cut, ...]:
    """Return the failures that options such as ``s1:3-s2:3@0.5`` name, or all of them after `seconds`.

    A failure is named as in the plan; the word ``cable`` or ``switch`` may be left out. Raises `InputError`.
    """
    named = {name: failure for failure in failures for name in _names(failure)}
    if not texts:
        return tuple(Cut(failure=failure, at_ns=round(seconds * NS_PER_S)) for failure in failures)
    cuts = []
    for text in texts:
        name, _, written = text.rpartition("@")
        try:
            at_s = float(written)
        except ValueError:
            at_s = math.nan
        if not 0 <= at_s <= _MOST_SECONDS:
            raise InputError(
                f"--cut {text}: give what fails and the second, at most {_MOST_SECONDS:,}, such as"
                f" '{next(iter(named))}@0.5'"
            )
        if name not in named:
            (close,) = difflib.get_close_matches(name, named, n=1, cutoff=0)
            raise InputError(
                f"--cut {text}: --survive covers no failure '{name}'; name one, such as '{close}'"
            )
        cuts.append(Cut(failure=named[name], at_ns=max(round(at_s * NS_PER_S), LEAD_NS)))
    return tuple(cuts)


def _names(failure: NetworkFailure) -> tuple[str, str]:
    return failure.name, failure.name.removeprefix("cable ").removeprefix("switch ")


@dataclass(frozen=True, kw_only=True)
class ProtectedReplay:
    """Runs with failures, two for each."""

    plan: ProtectedPlan
    verdicts: tuple[FailureVerdict, ...]

    @classmethod
    def run(
        cls, protected: ProtectedLab, cuts: Iterable[Cut], *, seconds: float, seed: int
    ) -> ProtectedReplay:
        """Run each failure twice: hosts send all that they may, then bursts that meet. Raises `RunError`.

        Hosts go on sending for this many `seconds` after the flows have moved.
        """
        verdicts = []
        cuts = tuple(cuts)
        with ProgressBar() as progress:
            progress.begin(2 * len(cuts), 0)
            for cut in cuts:
                recovery = protected.recovery(cut.failure)
                outage_ns = 0.0 if recovery is None else recovery.outage_ns
                duration_ns = round(cut.at_ns + outage_ns + seconds * NS_PER_S)
                rng = np.random.default_rng(seed)
                for releases in (
                    all_that_they_may(protected, duration_ns=duration_ns),
                    meeting_bursts(protected, cut, rng, duration_ns=duration_ns),
                ):
                    records = protected.run(releases, cut, seed=seed, duration_ns=duration_ns)
                    verdicts.append(judge(protected, cut, records))
                    progress.advance(cut.failure.name)
        return cls(plan=protected.plan, verdicts=tuple(verdicts))

    @property
    def failed(self) -> bool:
        """Whether something was worse than the plan states, or a board complained."""
        return any(verdict.broken or verdict.events for verdict in self.verdicts)

    def as_values(self) -> dict[str, Any]:
        """Return the runs as plain values, for JSON."""
        return {"lab": self.plan.plan.lab.name, "runs": [asdict(verdict) for verdict in self.verdicts]}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each flow of each run, for CSV."""
        return [
            {"run": number, "failure": verdict.failure, **asdict(flow)}
            for number, verdict in enumerate(self.verdicts, 1)
            for flow in verdict.flows
        ]

    def show(self, console: Console) -> None:
        """Print the worst of each flow beside what is stated, and what was broken."""
        runs = counted(len(self.verdicts), "run")
        has_classes, failures = self.plan.plan.has_classes, {verdict.failure for verdict in self.verdicts}
        fails = "a failure" if len(failures) > 1 else f"a failure of {min(failures)}"
        title = f"{self.plan.plan.lab.name}: {runs} with {fails}, against the plan"
        table = Table(title=title, title_justify="left")
        of_several = ["worst after"] if len(failures) > 1 else []
        for column in ("flow", *(["class"] if has_classes else []), "", *of_several):
            table.add_column(column, overflow="fold")
        for column in ("sent", "lost", "at most", "late", "longest ms", "guarantee ms"):
            table.add_column(column, justify="right")
        for number, (flow_id, flow) in enumerate(self.plan.flows.items()):
            of_flow = [(verdict.failure, verdict.flows[number]) for verdict in self.verdicts]
            failure, worst = max(of_flow, key=lambda run: _cost(run[1]))
            table.add_row(
                flow_id,
                *([str(worst.traffic_class)] if has_classes else []),
                worst.fate,
                *([failure] if of_several else []),
                f"{worst.sent:,}",
                f"{worst.lost:,}",
                "all" if worst.most_lost is None else f"{worst.most_lost:,}",
                f"{sum(each.late for _, each in of_flow):,}",
                in_ms(max(each.worst for _, each in of_flow) * flow.guarantee_ns, math.ceil),
                in_ms(flow.guarantee_ns, math.ceil),
            )
        console.print(table)
        if self.plan.plan.refused:
            tell(f"do not survive, and sent nothing: {len(self.plan.plan.refused)}")
        if has_classes:
            self._tell_classes()
        broken = {(verdict.failure, flow.flow) for verdict in self.verdicts for flow in verdict.broken}
        packets = sum(verdict.packets for verdict in self.verdicts)
        if not broken:
            tell(f"{packets:,} packets: none was late, and no flow lost more than the plan states")
        for failure, flow_id in sorted(broken):
            tell(f"broken after {failure}: {flow_id}")
        for event in dict.fromkeys(event for verdict in self.verdicts for event in verdict.events):
            tell(event)

    def _tell_classes(self) -> None:
        """Print for each traffic class what was lost and late in all runs together."""
        flows = [flow for verdict in self.verdicts for flow in verdict.flows if flow.fate is not Fate.ENDS]
        for traffic_class in sorted({flow.traffic_class for flow in flows}):
            of_class = [flow for flow in flows if flow.traffic_class == traffic_class]
            sent, lost = (sum(flow.sent for flow in of_class), sum(flow.lost for flow in of_class))
            most, late = (sum(flow.most_lost or 0 for flow in of_class), sum(flow.late for flow in of_class))
            fate = f"{lost:,} of at most {most:,} lost, {late:,} late"
            tell(f"class {traffic_class}: {sent:,} frames sent, {fate}")


def _cost(flow: FlowVerdict) -> tuple[bool, bool, int, float]:
    return not flow.kept, flow.fate is not Fate.ENDS, flow.lost, flow.worst
