"""The largest set of flows that survive failures, whatever the order in which they are requested.

As for sets without protection (`loko.admission.largest`), an integer program proposes and the admission
controls of all states decide. A flow is admitted with one working path, and for each failure that hits it
with one backup path, or with one pair of paths for its two copies. The program has the shared capacities of
each state. A refusal in a state becomes a row: certain requests do not fit together in any state. So no set
that survives is larger than the program's bound.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from loko.admission.answer import Admitted
from loko.admission.largest import LargestSet, conflicting, without_vlans
from loko.admission.protection.planner import (
    MOST_WORKING_PATHS,
    FailedState,
    ProtectedAdmission,
    ProtectedPlan,
    Protection,
)
from loko.admission.protection.replacement import ChosenPaths, Path
from loko.admission.protection.survival import Survival
from loko.admission.routing import on_path, paths
from loko.admission.scheme import Admission, ResourceDemand
from loko.admission.second_path import on_second_path
from loko.solvers.program import IntegerProgram, Solve, TimeBudget
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab

_WHOLE: Final = 10_000_000
"""A capacity in units of a row. Demands are rounded down to whole units, so that no row is too strict."""
_ROUNDING: Final = 1e-6
"""How much too small a solver's bound may be."""
_CONFLICTS_AT_ONCE: Final = 8
"""The most refusals of one proposal that become rows."""


class LargestProtectedSet(NamedTuple):
    """The largest set that was found, with all its paths, and what is proven about others."""

    protected: ProtectedPlan
    proof: LargestSet


def largest_protected(
    lab: Lab,
    flows: Sequence[Flow],
    make_admission: Callable[[], Admission],
    survival: Survival,
    *,
    solve: Solve,
    clock: TimeBudget,
    deadlines_ns: Mapping[str, float] = MappingProxyType({}),
) -> LargestProtectedSet:
    """Look for the largest set that survives until it is proven, or until the clock has run out.

    The result is never smaller than what survives in the given order. The admission control must be
    monotonic, as for `loko.admission.largest.largest`. Raises `InputError` as `protect` does.
    """
    planner = ProtectedAdmission(lab, make_admission, survival.failures)
    search = _ProtectedSearch(flows, planner, survival, deadlines_ns)
    search.improve(solve, clock)
    return LargestProtectedSet(
        protected=search.best,
        proof=LargestSet(
            plan=search.best.plan,
            in_order=search.in_order,
            bound=search.bound,
            is_by_few_paths=search.is_by_few_paths,
            most_paths=MOST_WORKING_PATHS,
            lacks_vlans=search.lacks_vlans,
        ),
    )


class _Request(NamedTuple):
    """A path on which a flow or its second copy counts."""

    flow: Flow
    """For a second path, the flow under the id of `on_second_path`."""
    path: Path


@dataclass(frozen=True)
class _Choice:
    """A flow on one working path. With 1+1, also on one path of its second copies."""

    flow: Flow
    working: Path
    second: Path | None
    variable: int
    backups: dict[str, dict[Path, int]] = field(default_factory=dict)
    """By failure and path, the variable of the backup path."""


class _ProtectedSearch:
    """A program that learns from what the states refuse, and the best set so far."""

    def __init__(
        self,
        flows: Sequence[Flow],
        planner: ProtectedAdmission,
        survival: Survival,
        deadlines_ns: Mapping[str, float],
    ) -> None:
        self._flows, self._planner = flows, planner
        self._protection, self._kinds = survival.protection, survival.kinds(flows)
        self._deadlines_ns = deadlines_ns
        self.best = planner.plan(flows, self._protection, self._kinds, deadlines_ns=deadlines_ns)
        self.in_order = len(self.best.flows)
        self.bound = len(flows) - len(self.best.cut_off)
        self.is_by_few_paths = self.lacks_vlans = False
        self._program = IntegerProgram()
        self._choices: list[_Choice] = []
        self._demands: dict[_Request, tuple[ResourceDemand, ...]] = {}
        self._variables: defaultdict[tuple[str | None, _Request], list[int]] = defaultdict(list)
        """By state and request, the variables with which the request is made there; None: in every state."""

    def improve(self, solve: Solve, clock: TimeBudget) -> None:
        """Propose sets and learn from refusals, until no larger set is possible or time is up."""
        if len(self.best.flows) == self.bound:
            return
        self._write_program()
        if not self._choices:
            self.bound = 0
        while len(self.best.flows) < self.bound and clock.remaining_s > 0:
            answer = solve(self._program, time_limit_s=clock.remaining_s)
            self.bound = min(self.bound, math.floor(answer.bound + _ROUNDING))
            if answer.values is None:
                return
            proposed = self._proposed(answer.values)
            rows = self._learn(proposed, clock)
            self._take(proposed)
            if not rows and len(self.best.flows) < len(proposed):
                self.lacks_vlans = True  # No row says so: the same set would be proposed again.
                return

    def _take(self, proposed: Mapping[str, ChosenPaths]) -> None:
        """Plan with what of a proposal is granted, then with all other flows on any paths."""
        planned = self._plan_first(proposed)
        granted = {flow_id: paths for flow_id, paths in proposed.items() if flow_id in planned.flows}
        if len(granted) < len(proposed):
            planned = self._plan_first(granted)
        if len(planned.flows) > len(self.best.flows):
            self.best = planned

    def _plan_first(self, chosen: Mapping[str, ChosenPaths]) -> ProtectedPlan:
        flows = sorted(self._flows, key=lambda flow: flow.id not in chosen)
        return self._planner.plan(
            flows, self._protection, self._kinds, chosen, deadlines_ns=self._deadlines_ns
        )

    def _write_program(self) -> None:
        for admission in self._planner.admissions:
            admission.release_all()
        choices_of: defaultdict[tuple[object, ...], list[list[int]]] = defaultdict(list)
        for flow in self._flows:
            if flow.id in self.best.cut_off:
                continue
            few = islice(paths(self._planner.lab, flow.source, flow.destination), MOST_WORKING_PATHS + 1)
            self.is_by_few_paths = self.is_by_few_paths or len(list(few)) > MOST_WORKING_PATHS
            working_paths = self._planner.working_paths(flow)
            choices = [choice for path in working_paths for choice in self._choices_on(flow, path)]
            self._choices += choices
            asked = self._kinds[flow.id], self._deadlines_ns.get(flow.id)
            alike = (flow.source, flow.destination, *flow[5:], *asked)
            if choices:
                choices_of[alike].append([choice.variable for choice in choices])
        for variables in chain.from_iterable(choices_of.values()):
            self._program.row("one choice", variables, high=1)
        for first, second in chain.from_iterable(map(pairwise, choices_of.values())):
            # Of flows that only id and ports tell apart, the first ones are admitted.
            signs = [1] * len(first) + [-1] * len(second)
            self._program.row("in order", [*first, *second], signs, low=0)
        for state in self._planner.states:
            self._write_capacities(state.failure.name)

    def _write_capacities(self, name: str) -> None:
        """Add rows for what flows may take together after a failure."""
        rows: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        for (state, request), variables in self._variables.items():
            if state in {None, name}:
                for demand in self._demands[request]:
                    units = int(_WHOLE * demand.amount / demand.capacity)
                    rows[demand.server, demand.quantity].update(dict.fromkeys(variables, units))
        for units_of in rows.values():
            self._program.row("capacity", units_of.keys(), units_of.values(), high=_WHOLE)

    def _choices_on(self, flow: Flow, path: Path) -> Iterator[_Choice]:
        """Yield the ways to admit a flow on a working path, if it is granted there alone."""
        request = _Request(flow, path)
        if not self._fits_alone(flow, request):
            return
        hit = self._planner.hitting(flow, path)
        copy = on_second_path(flow)
        if self._kinds[flow.id] is Protection.DUPLICATE and hit:
            for second in self._planner.second_paths(flow, path):
                second_copy = _Request(copy, second)
                if self._fits_alone(flow, second_copy):
                    choice = _Choice(flow, path, second, self._program.variable(gain=1))
                    self._variables[None, request].append(choice.variable)
                    self._variables[None, second_copy].append(choice.variable)
                    yield choice
            return
        backups = {
            state.failure.name: [
                backup
                for backup in self._planner.backup_paths(flow, path, state.failure)
                if self._fits_alone(flow, _Request(copy, backup))
            ]
            for state in hit
        }
        if not all(backups.values()):
            return
        choice = _Choice(flow, path, None, self._program.variable(gain=1))
        self._variables[None, request].append(choice.variable)
        for name, candidates in backups.items():
            choice.backups[name] = {backup: self._program.variable() for backup in candidates}
            for backup, variable in choice.backups[name].items():
                self._variables[name, _Request(copy, backup)].append(variable)
            variables = [*choice.backups[name].values(), choice.variable]
            self._program.row("one backup", variables, [1] * len(candidates) + [-1], low=0, high=0)
        yield choice

    def _fits_alone(self, flow: Flow, request: _Request) -> bool:
        """Return whether a request is granted in an empty network, and note what it takes there."""
        if request not in self._demands:
            working = self._planner.working
            answer = on_path(working, request.path, self._deadlines_ns.get(flow.id), flow)
            if not isinstance(answer, Admitted):
                return False
            self._demands[request] = tuple(working.demands(answer))
        return True

    def _proposed(self, values: Sequence[int]) -> dict[str, ChosenPaths]:
        """Return the paths of each flow of a proposal."""
        return {
            choice.flow.id: ChosenPaths(
                working=choice.working,
                second=choice.second,
                backups={
                    name: next(path for path, variable in candidates.items() if values[variable])
                    for name, candidates in choice.backups.items()
                },
            )
            for choice in self._choices
            if values[choice.variable]
        }

    def _learn(self, proposed: Mapping[str, ChosenPaths], clock: TimeBudget) -> int:
        """Request a proposal in every state. Refusals become rows: some requests do not fit together.

        Returns how many rows there are.
        """
        rows = 0
        for state in self._planner.states:
            with without_vlans(state.admission):
                rows += self._learn_in(state, proposed, clock, most=_CONFLICTS_AT_ONCE - rows)
        return rows

    def _learn_in(
        self, state: FailedState, proposed: Mapping[str, ChosenPaths], clock: TimeBudget, *, most: int
    ) -> int:
        admission, name = state.admission, state.failure.name
        granted: list[_Request] = []
        refused: list[_Request] = []
        for request in self._requests(proposed, name):
            answer = admission.request(request.flow, request.path)
            (granted if isinstance(answer, Admitted) else refused).append(request)
        granted.sort(key=self._greatest_part)
        rows = 0
        for request in refused:
            if rows >= most or not clock.remaining_s:
                break
            in_the_way = conflicting(admission, request.flow, request.path, granted)
            self._exclude([request, *(granted[place] for place in in_the_way)], name)
            rows += 1
        return rows

    def _requests(self, proposed: Mapping[str, ChosenPaths], name: str) -> Iterator[_Request]:
        """Yield what is requested after a failure."""
        for flow in self._flows:
            if (chosen := proposed.get(flow.id)) is not None:
                yield _Request(flow, chosen.working)
                second = chosen.backups.get(name, chosen.second)
                if second is not None:
                    yield _Request(on_second_path(flow), second)

    def _greatest_part(self, request: _Request) -> float:
        return max((demand.amount / demand.capacity for demand in self._demands[request]), default=0.0)

    def _exclude(self, conflict: Sequence[_Request], name: str) -> None:
        """Add a row that forbids requests that do not fit together after a failure."""
        factors: Counter[int] = Counter()
        for request in conflict:
            for state in (None, name):
                factors.update(self._variables.get((state, request), ()))
        self._program.row("conflict", factors.keys(), factors.values(), high=len(conflict) - 1)
