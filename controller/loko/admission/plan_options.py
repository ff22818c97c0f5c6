"""Options of a plan, and the empty admission control that they make for a list of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loko.admission.class_targets import in_classes, with_class_targets
from loko.admission.deadline_targets import followed_target_ns, follows_deadlines
from loko.admission.planning import scenario_of
from loko.admission.protection import Survival
from loko.admission.scheme import Admission
from loko.admission.schemes import SchemeName, SchemeVariant, admission_of, refuse_one_class
from loko.switch_model.calculus import NOTHING, TokenBucket
from loko.switch_model.control_traffic import ControlTraffic
from loko.switch_model.flow import Flow
from loko.switch_model.mix import Mix
from loko.switch_model.scenario import MatchType, OpenFlow, Unknown
from loko.topology.lab import Lab
from loko.topology.requests import Request, deadlines_of


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Whatever a plan depends on beside its flows."""

    lab: Lab
    choice: SchemeVariant
    entries: int | Unknown
    """Entries that each flow table is planned for."""
    match: MatchType
    """The fields that the entries compare (`loko.control.entries.match_of`)."""
    traffic: ControlTraffic
    openflow: OpenFlow = OpenFlow.V1_0
    mix: Mix | None = None
    """The expected mix, if the scheme is optimised for one."""
    control: TokenBucket = NOTHING
    """The paper's token bucket of control traffic."""
    padding: int | None = None
    target_ns: float | None = None
    """The delay target that is given; None: it follows the deadlines of the flows, where it can."""
    is_served: bool = False
    """Whether other flows come later, as to a service: so no target follows the deadlines, and every switch
    is planned for frames of all sizes."""
    template: Flow | None = None
    """A flow of which more may come between any hosts: every switch is planned for its frames and class."""

    def delay_target_ns(self, requests: Sequence[Request]) -> float | None:
        """Return the delay target of a plan of these flows; None if its scheme takes none, or has its own."""
        if self.target_ns is not None or self.is_served:
            return self.target_ns
        if not follows_deadlines(self.lab, self.choice, requests):
            return None
        return followed_target_ns(
            self.lab, requests, lambda target_ns: self._admission(requests, {}, target_ns)
        )

    def admission(
        self, requests: Sequence[Request], target_ns: float | None, survival: Survival | None = None
    ) -> Admission:
        """Return an empty admission control for these flows, with the target of `delay_target_ns`.

        Classes have the targets that their deadlines ask for, with `survival` after each failure as well.
        Raises `InputError` as `admission_of` does.
        """
        return with_class_targets(
            self.lab,
            requests,
            lambda requests, class_targets_ns: self._admission(requests, class_targets_ns, target_ns),
            is_given=self._is_class_given,
            survival=survival,
        )

    def in_classes(
        self, requests: Sequence[Request], most: int, survival: Survival | None = None
    ) -> list[Request]:
        """Return the flows in at most so many traffic classes, that most fit, or most survive.

        Raises `InputError` for schemes without classes.
        """
        refuse_one_class(self.lab, self.choice, f"--classes {most}")
        return in_classes(
            self.lab,
            requests,
            most,
            lambda requests, class_targets_ns: self._admission(requests, class_targets_ns, self.target_ns),
            is_given=self._is_class_given,
            survival=survival,
        )

    @property
    def _is_class_given(self) -> bool:
        """Whether the delay target is that of the highest class. Beside boards, it is that of the boards."""
        return self.target_ns is not None and self.choice.scheme != SchemeName.MIXED

    def _admission(
        self, requests: Sequence[Request], class_targets_ns: Mapping[int, float], target_ns: float | None
    ) -> Admission:
        flows = [request.flow for request in requests]
        further = [] if self.template is None else [self.template]
        lowest = max([*flows, *further], key=lambda flow: flow.traffic_class, default=None)
        scenario = scenario_of(
            flows,
            entries=self.entries,
            mix=self.mix,
            openflow=self.openflow,
            match=self.match,
            anywhere_bytes=[flow.frame_bytes for flow in further],
            lab=None if self.is_served else self.lab,
        )
        if lowest is not None and lowest.traffic_class > 1:
            asked = f"flow '{lowest.id}': traffic_class {lowest.traffic_class}"
            refuse_one_class(self.lab, self.choice, asked)
        return admission_of(
            self.lab,
            self.choice,
            scenario,
            mix=self.mix,
            traffic=self.traffic,
            control=self.control,
            padding=self.padding,
            target_ns=target_ns,
            deadlines_ns=deadlines_of(requests),
            classes=1 if lowest is None else lowest.traffic_class,
            class_targets_ns=class_targets_ns,
        )
