"""The command `loko plan`: which flows fit a lab, with which guarantee, and why the others do not."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from loko.admission import Admission, StatedCondition, Terms
from loko.admission.baselines import Epsilon
from loko.admission.class_targets import class_targets_of
from loko.admission.headroom import Headroom
from loko.admission.headroom import headroom as headroom_of
from loko.admission.plan_options import PlanOptions
from loko.admission.planning import Plan
from loko.admission.planning import plan as make_plan
from loko.admission.port_queues import most_classes
from loko.admission.port_queues.device import planned_entries
from loko.admission.protection import Protection, Survival
from loko.admission.schemes import (
    SchemeName,
    SchemeVariant,
    bounds_by_switch,
    conditions_of,
    default_scheme,
    has_classes,
    reserved_of,
    scheme_name,
    scheme_versions,
    takes_target,
    variant_of,
)
from loko.admission.what_if import Changes, changed, changes
from loko.control.dialect import refuse_version
from loko.control.entries import default_entries, match_of
from loko.control.vlan_stack import ForwardingMode
from loko.document import InputError
from loko.notebook_api import refuse_unprotectable
from loko.solvers import Solver, solver_named
from loko.solvers.program import TimeBudget
from loko.switch_model.allocation import WHOLE_PATHS
from loko.switch_model.control_traffic import (
    CHANGES_PER_S,
    COMPARISON_S,
    HEARTBEAT,
    NO_MESSAGES,
    ControlTraffic,
    parse_control,
    served_traffic,
)
from loko.switch_model.device import has_shared_server
from loko.switch_model.margin import LimitTest, Margin, margin
from loko.switch_model.scenario import OpenFlow, Unknown
from loko.switch_model.split import echo_traffic
from loko.terminal import tell
from loko.topology.conditions import by_switches
from loko.topology.lab import Lab, load_lab, stays_loaded
from loko.topology.requests import (
    STDIN,
    Request,
    deadlines_of,
    described_request,
    has_lower_class,
    in_class,
    load_requests,
    no_such_flow,
)
from loko.units import NS_PER_MS, NS_PER_S
from loko_testbed.cli.choices import (
    DETECTION_MS,
    AllocationOption,
    ClassesOption,
    ColumnsOption,
    ControlOption,
    DetectionOption,
    DuplicateOption,
    EntriesOption,
    MixOption,
    OpenFlowOption,
    PortDetectionOption,
    ProtectionOption,
    RobustOption,
    SurviveOption,
    TargetOption,
    mix_of,
    move_timing,
    refuse_idle_target,
    refuse_together,
    refuse_without_survive,
    scheme_option,
)
from loko_testbed.cli.for_programs import JsonOption, print_json
from loko_testbed.cli.forwarding import forwarding_values, print_forwarding
from loko_testbed.cli.guarantee_sheet import refuse_sheet, tool_of, write_sheet
from loko_testbed.cli.headroom_tables import print_headroom
from loko_testbed.cli.plan_configuration import is_printed, refuse_configuration, write_configuration
from loko_testbed.cli.plan_tables import as_csv, print_changes, print_comparison, print_plan
from loko_testbed.cli.protected_plan import ProtectedAnswer, ProtectionRequest, protection_request

if TYPE_CHECKING:
    from loko.admission.largest import LargestSet

_HINTED = 2_000
"""Up to this many flows, it is quick to find out how many fit with another scheme, or on slower switches."""
_FEW_IDS: Final = 5
"""So many flows are named in a hint."""
_TIME_LIMIT_S: Final = 10.0


def plan(
    context: typer.Context,
    lab: Annotated[str, typer.Argument(help="Name or path of a lab, such as two-switch.")],
    flows: Annotated[
        str, typer.Argument(help="List of flows: YAML, JSON, CSV or a workbook; - is standard input.")
    ],
    *,
    columns: ColumnsOption = None,
    allocation: AllocationOption = None,
    mix: MixOption = None,
    entries: EntriesOption = None,
    classes: ClassesOption = None,
    scheme: Annotated[
        list[str] | None,
        scheme_option(
            "Admission scheme: the paper's, that of whole packets, that of ports with queues (default where"
            " all switches have them), mixed (default where only some have them), or a baseline's. Repeat it"
            " to see several side by side."
        ),
    ] = None,
    epsilon: Annotated[
        Epsilon, typer.Option(help="QJump's cumulated processing time: one p_FX, or one for each switch.")
    ] = Epsilon.PAPER,
    padding: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Plan as for 'loko serve --padding': this many entries belong to no flow, and nothing else"
            " fills the tables up. Default: padding fills them up.",
        ),
    ] = None,
    target_ms: TargetOption = None,
    openflow: OpenFlowOption = OpenFlow.V1_0,
    robust: RobustOption = False,
    forwarding: Annotated[
        ForwardingMode,
        typer.Option(
            help="How switches forward: by an entry for each flow, or by a stack of VLAN tags that the"
            " sending host puts in front of each frame; then both are shown."
        ),
    ] = ForwardingMode.PER_FLOW,
    control: ControlOption = None,
    changes_per_s: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Plan what 'loko serve' with the same option guarantees, whose own number is"
            f" {CHANGES_PER_S:g}: reserve so many changes of each table. Default: tables stay as they are;"
            f" with --survive {CHANGES_PER_S:g}.",
        ),
    ] = None,
    compare_s: Annotated[
        float,
        typer.Option(min=0, help="With --changes-per-s: how often the service compares tables; 0: never."),
    ] = COMPARISON_S,
    echoes_per_s: Annotated[
        float | None,
        typer.Option(
            help="Reserve as the paper does, for this many EchoRequests a second of 66 bytes each. The"
            " boards' own work is reserved in any case."
        ),
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(help="Plan as if these flows came, too: a further list, requested after the others."),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="Plan as if there were no flow with this id; repeat it for more.")
    ] = None,
    find_largest: Annotated[
        bool,
        typer.Option("--largest", help="Find the largest set of flows that fits, in any order."),
    ] = False,
    time_limit: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=86_400,
            help="Seconds after which --largest returns the best set so far, --headroom the pairs so far.",
        ),
    ] = _TIME_LIMIT_S,
    headroom: Annotated[
        str | None,
        typer.Option(
            help="Also find how many more of a flow fit between each two hosts, and what limits them first:"
            " the id of a flow of the list, or 'rate: 300 kbit/s, burst: 1 frame, frame: 306 bytes'."
        ),
    ] = None,
    survive: SurviveOption = None,
    protection: ProtectionOption = Protection.BACKUP,
    duplicate: DuplicateOption = None,
    detect_ms: DetectionOption = DETECTION_MS,
    port_detect_ms: PortDetectionOption = None,
    sheet: Annotated[
        Path | None,
        typer.Option(help="Also write a guarantee sheet to hand out, as PDF or HTML, by the name's ending."),
    ] = None,
    configuration: Annotated[
        Path | None,
        typer.Option(
            help="Folder: also write there how to configure switches without OpenFlow, in words and as"
            " commands of Linux and of FASTPATH; - prints the words instead of the plan."
        ),
    ] = None,
    by_dscp: Annotated[
        bool, typer.Option("--by-dscp", help="With --configuration: switches tell flows by DSCP, not PCP.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing; the exit status says whether all fit.")
    ] = False,
    as_json: JsonOption = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each flow.")] = False,
) -> None:
    """Show which flows fit a lab, with which guarantee, and why the others do not. Status 1 if one does not.

    Without --control it reserves what our own controller sends to tables that do not change. Flows may
    be written with units, such as rate: 2.3 Mbit/s, burst: 2 frames, deadline: 5 ms (docs/planning.md).

    Example: loko plan two-switch flows.yml --allocation optimised --mix mix.yml
    """
    refuse_together({"--json": as_json, "--csv": csv, "--quiet": quiet})
    refuse_configuration(configuration, {"--json": as_json, "--csv": csv, "--quiet": quiet}, by_dscp=by_dscp)
    files = [flows, *(add or [])]
    if files.count(STDIN) > 1:
        raise InputError("--add -: the standard input is read once; give a file")
    planned = load_lab(lab).robust() if robust else load_lab(lab)
    before = load_requests(flows, planned, columns=columns)
    if not before:
        raise InputError(f"{'standard input' if flows == STDIN else flows}: has no flows; list at least one")
    added = [request for file in add or [] for request in load_requests(file, planned, columns=columns)]
    others = {
        "--survive": bool(survive),
        "--largest": find_largest,
        "--csv": csv,
        "--sheet": sheet is not None,
    }
    asked = _PlanRequest(
        lab=planned,
        before=before,
        requests=changed(before, added=added, without=without or ()),
        mix=mix,
        entries=default_entries(planned) if entries is None else entries,
        control=control,
        echoes_per_s=echoes_per_s,
        changes_per_s=changes_per_s,
        compare_s=compare_s,
        padding=padding,
        openflow=openflow,
        forwarding=forwarding,
        moves_flows=bool(survive),
        finds_largest=find_largest,
        template=None if headroom is None else _template(headroom, (*before, *added), others),
        limit_s=time_limit,
        target_ms=target_ms,
        classes=classes,
    )
    schemes = [scheme_name(name) for name in dict.fromkeys(scheme or [default_scheme(asked.lab)])]
    for switch in asked.lab.switches.values():
        refuse_version(switch, openflow)
    stays_loaded()
    choices = [variant_of(asked.lab, name, allocation, epsilon) for name in schemes]
    for choice in choices:
        asked.refuse_control(choice)
    refuse_idle_target(asked.lab, target_ms, choices)
    asked.refuse_forwarding(choices, sheet)
    if sheet is not None:
        refuse_sheet(sheet, choices)
    if survive:
        refuse_together({"--survive": True, "--sheet": sheet is not None})
        timing = move_timing(
            detect_ms=detect_ms,
            port_detect_ms=port_detect_ms,
            changes_per_s=changes_per_s or CHANGES_PER_S,
        )
        request = protection_request(asked.lab, survive, protection, duplicate, timing)
        protected = asked.protected(choices, request)
        write_configuration([protected.chosen.on_all_paths], configuration, by_dscp=by_dscp, quiet=quiet)
        quiet = quiet or is_printed(configuration)
        _tell_protected(protected, asked, choices[0], as_json=as_json, csv=csv, quiet=quiet)
        return
    refuse_without_survive(
        duplicate=duplicate, protection=protection, detect_ms=detect_ms, port_detect_ms=port_detect_ms
    )
    answers = [asked.answer(choice) for choice in choices]
    if sheet is not None:
        inputs = [("lab", str(asked.lab.path)), *(("flows", file) for file in files)]
        if choices[0].is_optimised and mix is not None:
            inputs.append(("mix", mix))
        write_sheet(sheet, answers[0].plan, answers[0].conditions, inputs, tool_of(context))
    plans = [answer.plan for answer in answers]
    write_configuration(plans, configuration, by_dscp=by_dscp, quiet=quiet)
    if as_json:
        values = [answer.as_values() for answer in answers]
        print_json(values[0] if len(values) == 1 else {"lab": asked.lab.name, "plans": values})
    elif csv:
        typer.echo(as_csv(plans), nl=False)
    elif not (quiet or is_printed(configuration)):
        _print(answers, asked)
    if any(plan.refused for plan in plans):
        raise typer.Exit(1)


def _template(text: str, requests: Sequence[Request], others: Mapping[str, bool]) -> Request:
    """Return the flow that `--headroom` names or describes.

    Raises `InputError`, also if one of the options is given that do not go with it.
    """
    for option, is_given in others.items():
        refuse_together({"--headroom": True, option: is_given})
    if any(mark in text for mark in ",{ "):
        template = described_request("--headroom", text)
    else:
        known = {request.flow.id: request for request in requests}
        if text not in known:
            raise no_such_flow("--headroom", text, list(known))
        template = known[text]
    return template


def _tell_protected(
    protected: ProtectedAnswer,
    asked: _PlanRequest,
    choice: SchemeVariant,
    *,
    as_json: bool,
    csv: bool,
    quiet: bool,
) -> None:
    """Print a plan for failures. Exits with status 1 if a flow does not survive them."""
    terms = asked.terms(choice)
    conditions = conditions_of(choice).stated(terms)
    if as_json:
        told = {"reserved": terms.reserved, "conditions": [condition.as_values() for condition in conditions]}
        print_json({**protected.as_values(), **told})
    elif csv:
        typer.echo(protected.as_csv(), nl=False)
    elif not quiet:
        protected.show(Console())
        _print_class_targets(protected.class_targets_ns, protected.chosen.plan)
        tell(f"reserved of each switch: {terms.reserved}")
        tell(f"holds on condition: {', '.join(condition.id for condition in conditions)}")
    if protected.chosen.refused:
        raise typer.Exit(1)


@dataclass(frozen=True, kw_only=True)
class _SchemePlan:
    """The plan of one scheme."""

    plan: Plan
    choice: SchemeVariant
    terms: Terms
    """Terms of the scheme's conditions, but for the margin."""
    class_targets_ns: Mapping[int, float]
    """Delay targets of traffic classes at ports, where these follow the deadlines."""
    falls: LimitTest | None
    """Tells what falls if switches are slower; None if no flow is accepted, or the scheme cannot say."""
    largest: LargestSet | None
    """The largest set, if it was asked for."""
    headroom: Headroom | None
    """How many more flows fit, if that was asked for."""
    changes: Changes | None
    """In a what-if, or if more flows are to fit, what differs from the plan of the flows as they are."""
    per_flow: Plan | None
    """The plan with an entry for each flow, if `plan` is for another forwarding."""

    @cached_property
    def margin(self) -> Margin | None:
        """How much slower the switches may be."""
        return None if self.falls is None else margin(self.falls)

    @property
    def conditions(self) -> tuple[StatedCondition, ...]:
        """The conditions on which its guarantees hold, or a baseline's would."""
        return conditions_of(self.choice).stated(replace(self.terms, margin=self.margin))

    def as_values(self) -> dict[str, Any]:
        values = {
            **self.plan.as_values(),
            "openflow": self.terms.openflow.value,
            "reserved": self.terms.reserved,
            "conditions": [condition.as_values() for condition in self.conditions],
            "robust": self.plan.lab.is_robust,
            "margin": None if self.margin is None else self.margin.as_values(),
        }
        if (bounds := bounds_by_switch(self.plan.lab, self.choice)) is not None:
            values["bounds"] = bounds
        if self.class_targets_ns:
            values["class_targets_ns"] = self.class_targets_ns
        if versions := scheme_versions([self.choice.scheme]):
            values["versions"] = versions
        if self.largest is not None:
            values["largest"] = self.largest.as_values()
        if self.headroom is not None:
            values["headroom"] = self.headroom.as_values()
        if self.changes is not None:
            values["what_if"] = self.changes.as_values()
        if self.per_flow is not None:
            values |= forwarding_values(self.plan, self.per_flow)
        return values


@dataclass(frozen=True, kw_only=True)
class _PlanRequest:
    """Options of the command line for every scheme."""

    lab: Lab
    before: tuple[Request, ...]
    """The flows as they are."""
    requests: tuple[Request, ...]
    """The flows as they would be."""
    mix: str | None
    entries: int | Unknown
    control: list[str] | None
    echoes_per_s: float | None
    changes_per_s: float | None
    compare_s: float
    padding: int | None
    openflow: OpenFlow
    forwarding: ForwardingMode
    moves_flows: bool
    """Whether the controller moves flows after a failure, and so changes tables."""
    target_ms: float | None
    classes: int | None
    """The most traffic classes to put the flows in, if that is to be found."""
    finds_largest: bool
    """Whether to search for the largest set."""
    template: Request | None
    """The flow of which to find how many more fit."""
    limit_s: float
    """How long either may take."""

    @property
    def has_one_class(self) -> bool:
        """Whether all flows are in the highest class because nobody asked for others."""
        return self.classes is None and not has_lower_class(self.requests)

    @property
    def traffic(self) -> ControlTraffic:
        """Limits of the controller's messages."""
        if self.changes_per_s is not None:
            others = parse_control(self.control or ())
            return served_traffic(self.changes_per_s, others, compare_s=self.compare_s)
        if self.moves_flows:
            return served_traffic(CHANGES_PER_S, parse_control(self.control or ()), compare_s=0)
        silent = NO_MESSAGES if self.echoes_per_s is not None else HEARTBEAT
        return silent if self.control is None else parse_control(self.control)

    def refuse_control(self, choice: SchemeVariant) -> None:
        """Raise `InputError` if the scheme cannot reserve for this control traffic."""
        if self.echoes_per_s is not None and self.control is not None:
            raise InputError("--echoes-per-s reserves as the paper does; leave --control out, or the other")
        if self.echoes_per_s is not None and self.changes_per_s is not None:
            raise InputError(
                "--echoes-per-s reserves as the paper does; leave --changes-per-s out, or the other"
            )
        is_printed = choice.scheme == SchemeName.LOKO
        knows = choice.reserves_control and (is_printed or self.echoes_per_s is None)
        told = (self.echoes_per_s, self.control, self.changes_per_s)
        if not knows and any(option is not None for option in told):
            raise InputError(f"--scheme {choice.scheme}: does not know this control traffic; leave it out")

    def refuse_forwarding(self, choices: Sequence[SchemeVariant], sheet: Path | None) -> None:
        """Raise `InputError` for options that do not go with the forwarding."""
        if self.forwarding is ForwardingMode.VLAN_STACK:
            if self.template is not None:
                raise InputError("--headroom: for an entry for each flow only; leave --forwarding out")
            from loko.control.stack_admission import refuse_stacks  # noqa: PLC0415 - slow, so only here

            for choice in choices:
                refuse_stacks(choice, sheet=sheet, padding=self.padding)

    def answer(self, choice: SchemeVariant) -> _SchemePlan:
        """Plan by one scheme. Raises `InputError`."""
        if self.classes is not None:
            return self._in_classes(choice, self.classes).answer(choice)
        if (self.finds_largest or self.template is not None) and not choice.is_monotone:
            raise InputError(
                f"{'--largest' if self.finds_largest else '--headroom'}: for {choice.option} nobody knows"
                " whether a subset of what fits also fits; leave one of them out"
            )
        target_ns = self._target_ns(choice, self.requests)
        admission = self._admission(choice, self.requests, target_ns)
        result, found = self._found(admission, self.requests, target_ns)
        return _SchemePlan(
            plan=result,
            choice=choice,
            terms=self.terms(choice),
            class_targets_ns=class_targets_of(admission),
            falls=_falls_of(admission, result),
            largest=found,
            headroom=self._headroom(admission),
            changes=self._changes(choice, result),
            per_flow=None
            if self.forwarding is ForwardingMode.PER_FLOW
            else replace(self, forwarding=ForwardingMode.PER_FLOW).answer(choice).plan,
        )

    def protected(self, choices: Sequence[SchemeVariant], request: ProtectionRequest) -> ProtectedAnswer:
        """Plan for failures, by the only scheme. Raises `InputError` if there are several."""
        if len(choices) > 1:
            raise InputError("--survive: compares protections of one scheme; give --scheme once")
        if self.forwarding is ForwardingMode.VLAN_STACK:
            raise InputError("--survive: for an entry for each flow only; leave --forwarding out")
        if self.echoes_per_s is not None:
            raise InputError("--survive: reserves for the changes of tables, too; leave --echoes-per-s out")
        if self.changes_per_s == 0:
            raise InputError("--changes-per-s 0: no flow moves then; give --survive more, or leave it out")
        choice = choices[0]
        refuse_unprotectable(choice)
        if self.classes is not None:
            return self._in_classes(choice, self.classes, request.survival).protected(choices, request)
        target_ns = self._target_ns(choice, self.requests)

        def admissions_of(
            lab: Lab, requests: Sequence[Request], survival: Survival
        ) -> Callable[[], Admission]:
            options = replace(self, lab=lab)._options(choice)
            is_before = requests != self.requests
            followed_ns = self._target_ns(choice, requests) if is_before else target_ns
            return lambda: options.admission(requests, followed_ns, survival)

        return ProtectedAnswer.find(
            self.lab,
            self.requests,
            admissions_of,
            request,
            before=self.before,
            unprotected=self._found(
                self._admission(choice, self.requests, target_ns), self.requests, target_ns
            )[0],
            clock=self._clock if self.finds_largest else None,
        )

    def terms(self, choice: SchemeVariant) -> Terms:
        """Return what the conditions of a scheme are stated for, but for the margin."""
        return Terms(
            lab=self.lab,
            reserved=reserved_of(self.lab, choice, self.traffic),
            entries=planned_entries(self.lab, self.entries),
            padding=self._padding,
            openflow=self.openflow,
            entry_per_flow=self.forwarding is ForwardingMode.PER_FLOW,
        )

    def by_packets(self) -> Plan | None:
        """Plan the same flows by whole packets; None if that scheme cannot plan them."""
        try:
            return self._plan(SchemeVariant(scheme=SchemeName.PACKETS), self.requests)
        except InputError:
            return None

    def unserved(self, answer: _SchemePlan) -> list[str]:
        """Return the flows with a deadline that fit here, but not beside what `loko serve` reserves."""
        accepted = {admitted.flow.id for admitted in answer.plan.accepted}
        in_time = accepted & deadlines_of(self.requests).keys()
        is_other = self.changes_per_s is None and self.echoes_per_s is None
        if not (in_time and is_other and answer.choice.reserves_control):
            return []
        target_ns = answer.plan.target_ns
        target_ms = self.target_ms if target_ns is None else target_ns / NS_PER_MS
        served = replace(self, changes_per_s=CHANGES_PER_S, target_ms=target_ms)
        try:
            plan = served._plan(answer.choice, self.requests)
        except InputError:
            return []
        return [refusal.flow.id for refusal in plan.refused if refusal.flow.id in in_time]

    def _in_classes(self, choice: SchemeVariant, most: int, survival: Survival | None = None) -> _PlanRequest:
        """Return the request with the flows in at most so many classes. Raises `InputError`."""
        classed = self._options(choice).in_classes(self.requests, most, survival)
        of_flow = {request.flow.id: request.flow.traffic_class for request in classed}

        def as_classed(request: Request) -> Request:
            return in_class(request, of_flow.get(request.flow.id, request.flow.traffic_class))

        return replace(
            self,
            requests=tuple(classed),
            before=tuple(map(as_classed, self.before)),
            template=None if self.template is None else as_classed(self.template),
            classes=None,
        )

    def _plan(self, choice: SchemeVariant, requests: Sequence[Request]) -> Plan:
        target_ns = self._target_ns(choice, requests)
        return self._planned(self._admission(choice, requests, target_ns), requests, target_ns)

    def _planned(self, admission: Admission, requests: Sequence[Request], target_ns: float | None) -> Plan:
        requested = [request.flow for request in requests]
        planned = make_plan(self.lab, requested, admission, deadlines_ns=deadlines_of(requests))
        return replace(planned, target_ns=target_ns)

    def _found(
        self, admission: Admission, requests: Sequence[Request], target_ns: float | None
    ) -> tuple[Plan, LargestSet | None]:
        """Return the plan and, if it was asked for, the largest set that it is of."""
        if not self.finds_largest:
            return self._planned(admission, requests, target_ns), None
        from loko.admission.largest import largest  # noqa: PLC0415 - slow, so only here

        found = largest(
            self.lab,
            [request.flow for request in requests],
            admission,
            solve=solver_named(Solver.HIGHS),
            clock=self._clock(),
            deadlines_ns=deadlines_of(requests),
        )
        return found.plan, found

    def _headroom(self, admission: Admission) -> Headroom | None:
        """Return how many more flows fit beside those that are admitted, if that was asked for."""
        if self.template is None:
            return None
        return headroom_of(self.lab, admission, self.template, clock=self._clock())

    def _clock(self) -> TimeBudget:
        return TimeBudget(
            now_ns=time.monotonic_ns, end_ns=time.monotonic_ns() + round(self.limit_s * NS_PER_S)
        )

    def _changes(self, choice: SchemeVariant, result: Plan) -> Changes | None:
        """Compare with the plan of the flows as they are; None if this is no what-if.

        Switches that are planned for the frames of a template, too, may take longer.
        """
        is_what_if = self.requests != self.before
        if not is_what_if and self.template is None:
            return None
        today = replace(self, template=None)
        target_ns = today._target_ns(choice, self.before)
        before, _ = today._found(today._admission(choice, self.before, target_ns), self.before, target_ns)
        found = changes(before, result)
        return found if is_what_if or found.has_any else None

    def _target_ns(self, choice: SchemeVariant, requests: Sequence[Request]) -> float | None:
        """Return the delay target, if the scheme takes one: as given, else as the deadlines ask for."""
        options = self._options(choice)
        is_stack = self.forwarding is ForwardingMode.VLAN_STACK
        return options.target_ns if is_stack else options.delay_target_ns(requests)

    def _given_target_ns(self, choice: SchemeVariant) -> float | None:
        if self.target_ms is None or not takes_target(self.lab, choice):
            return None
        target_ns = self.target_ms * NS_PER_MS
        # Plans by Loko advise whole nanoseconds.
        return round(target_ns) if choice.scheme == SchemeName.LOKO else target_ns

    def _admission(
        self, choice: SchemeVariant, requests: Sequence[Request], target_ns: float | None
    ) -> Admission:
        if self.forwarding is ForwardingMode.VLAN_STACK:
            from loko.control.stack_admission import stack_admission  # noqa: PLC0415 - slow, so only here

            return stack_admission(
                self.lab,
                choice,
                [request.flow for request in requests],
                openflow=self.openflow,
                traffic=self.traffic,
                echoes_per_s=self.echoes_per_s or 0.0,
            )
        return self._options(choice).admission(requests, target_ns)

    def _options(self, choice: SchemeVariant) -> PlanOptions:
        return PlanOptions(
            lab=self.lab,
            choice=choice,
            entries=self.entries,
            match=match_of(self.lab),
            traffic=self.traffic,
            openflow=self.openflow,
            mix=mix_of(self.lab, choice, self.mix),
            control=echo_traffic(self.echoes_per_s or 0.0),
            padding=self._padding,
            target_ns=self._given_target_ns(choice),
            is_served=self.changes_per_s is not None,
            template=None if self.template is None else self.template.flow,
        )

    @property
    def _padding(self) -> int | None:
        """Entries that no frame hits. A service keeps those of its lab, and adds none."""
        return self.lab.padding if self.padding is None and self.changes_per_s is not None else self.padding


def _falls_of(admission: Admission, result: Plan) -> LimitTest | None:
    """Return what tells what falls of a plan if switches are slower, if the scheme can, and soon."""
    if len(result.accepted) > _HINTED:
        return None
    if admission.admitted.keys() != {accepted.flow.id for accepted in result.accepted}:
        admission.release_all()
        for accepted in result.accepted:
            admission.request(accepted.flow, accepted.path)
    return admission.falls_if_slower()


def _print(answers: Sequence[_SchemePlan], asked: _PlanRequest) -> None:
    console = Console()
    first = answers[0]
    ids = [request.flow.id for request in asked.requests]
    if first.per_flow is not None:
        print_forwarding(console, ids, first.plan, first.per_flow, asked.entries)
    elif len(answers) == 1:
        print_plan(console, first.plan)
    else:
        print_comparison(
            console, ids, [answer.plan for answer in answers], [answer.changes for answer in answers]
        )
    for answer in answers:
        said = f"{answer.plan.scheme}: " if len(answers) > 1 else ""
        if answer.largest is not None:
            tell(f"{said}{answer.largest}")
        if answer.headroom is not None:
            print_headroom(console, answer.headroom, answer.plan.scheme)
        if answer.changes is not None and len(answers) == 1:
            if asked.template is not None:
                frames = f"frames of {asked.template.flow.frame_bytes} bytes at every switch"
                tell(f"beside the plan of today's flows alone, this one is for {frames}:")
            print_changes(answer.changes)
    if len(answers) > 1:
        for answer in answers:
            _print_terms(answer, f"{answer.plan.scheme}: ", asked)
        return
    if (
        len(asked.requests) <= _HINTED
        and not asked.finds_largest
        and asked.forwarding is ForwardingMode.PER_FLOW
    ):
        _print_hints(first, asked)
    _print_terms(first, "", asked)
    if asked.openflow is not OpenFlow.V1_0:
        tell(f"for sessions of OpenFlow {asked.openflow.value} alone")


def _print_hints(answer: _SchemePlan, asked: _PlanRequest) -> None:
    """Print what another scheme would admit, and what the service would refuse."""
    is_lokos = answer.choice.scheme == SchemeName.LOKO and asked.echoes_per_s is None
    if answer.plan.refused and is_lokos:
        more = asked.by_packets()
        if more is not None and len(more.accepted) > len(answer.plan.accepted):
            tell(f"with --scheme packets: {more.fit} fit")
    is_late = any(refusal.quantity.startswith("delay") for refusal in answer.plan.refused)
    if has_classes(answer.choice) and asked.has_one_class and is_late:
        if answer.choice == SchemeVariant(scheme=SchemeName.PORTS):
            tell(f"with --allocation {WHOLE_PATHS} more may fit, if the flows stay")
        profiles = [switch.profile for switch in asked.lab.switches.values()]
        of_ports = [most_classes(profile) for profile in profiles if not has_shared_server(profile)]
        if min(of_ports, default=1) > 1:
            tell("with --classes 2 more may fit: those with later deadlines wait in a lower queue")
    if unserved := asked.unserved(answer):
        others = f" and {len(unserved) - _FEW_IDS} more" if len(unserved) > _FEW_IDS else ""
        tell(
            f"'loko serve' would refuse {', '.join(unserved[:_FEW_IDS])}{others}: it also reserves changes of"
            f" tables; plan with --changes-per-s {CHANGES_PER_S:g}, or serve with fewer"
        )


def _in_digits(target_ms: float) -> str:
    """Return a target to the nanosecond, as options take it."""
    return f"{target_ms:.6f}".rstrip("0").rstrip(".")


def _print_class_targets(class_targets_ns: Mapping[int, float], plan: Plan, said: str = "") -> None:
    """Print the targets of traffic classes that follow the deadlines, as options of a service."""
    if not class_targets_ns:
        return
    words = [
        f"--class-target-ms {each}={_in_digits(target_ns / NS_PER_MS)}"
        for each, target_ns in sorted(class_targets_ns.items())
    ]
    flows = [admitted.flow for admitted in plan.accepted]
    flows += [refusal.flow for refusal in plan.refused]
    lowest = max(flow.traffic_class for flow in flows)
    if lowest not in class_targets_ns:  # its target is that of a full queue
        words.insert(0, f"--classes {lowest}")
    tell(f"{said}targets of ports follow the deadlines, class by class: {' '.join(words)}")


def _print_terms(answer: _SchemePlan, said: str, asked: _PlanRequest) -> None:
    """Print on which terms a plan holds; of conditions their ids, which `--json` and `--sheet` explain."""
    lab = answer.plan.lab
    if answer.plan.baseline:
        tell(f"{answer.plan.scheme}: {answer.plan.baseline}")
    if answer.plan.target_ns is not None and asked.target_ms is None:
        target_ms = _in_digits(answer.plan.target_ns / NS_PER_MS)
        tell(f"{said}each switch's target follows the deadlines: --target-ms {target_ms}")
    _print_class_targets(answer.class_targets_ns, answer.plan, said)
    if (bounds := bounds_by_switch(lab, answer.choice)) is not None:
        for alike in by_switches(lab, lambda switch: bounds[switch.name]):
            tell(f"{said}bounded by what it is: {alike}")
    tell(f"{said}reserved of each switch: {answer.terms.reserved}")
    if answer.margin is not None:
        tell(f"{said}slower switches: {answer.margin.describe(is_robust=lab.is_robust)}")
    if lab.is_robust and not answer.plan.baseline:
        tell(f"{said}for every device within the ranges of the profiles")
    ids = ", ".join(condition.id for condition in answer.conditions)
    tell(f"{said}{'assumes' if answer.plan.baseline else 'holds on condition'}: {ids}")
