"""Admission that bounds a whole path where the sum of its ports' bounds is too much.

The limits are the room of each queue and each flow's promise from end to end; a port's target limits nothing.
It is for sets that do not change (docs/port-queues.md, theorem 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from loko.admission import Admitted, Refusal, SchemeConditions, suggest_on_path
from loko.admission.port_queues.admission import PortAdmission, _CountedFlow
from loko.admission.port_queues.conditions import WHOLE_PATH_CONDITIONS
from loko.admission.port_queues.device import HIGHEST_CLASS
from loko.document import InputError
from loko.lazy_mapping import LazyMapping
from loko.switch_model.allocation import WHOLE_PATHS
from loko.switch_model.calculus import PathStep
from loko.switch_model.calculus.whole_path import whole_path_ns
from loko.switch_model.flow import Flow
from loko.switch_model.margin import LimitTest
from loko.switch_model.scenario import Scenario
from loko.topology.lab import Lab
from loko.topology.network import Hop

Ports = tuple[PathStep, ...]
"""The ports of a flow's path, without its host's cable."""


class WholePathAdmission(PortAdmission):
    """Admission by bounds for every port, and for whole paths as a second opinion; see `PortAdmission`.

    A flow is promised its deadline, or the sum of the targets on its path if that is less. Flows stay.
    """

    conditions: ClassVar[SchemeConditions] = WHOLE_PATH_CONDITIONS
    _finds_bounds_late: ClassVar[bool] = False

    def __init__(
        self,
        lab: Lab,
        scenario: Scenario,
        *,
        target_ns: float | None,
        padding: int | None,
        deadlines_ns: Mapping[str, float],
        classes: int = HIGHEST_CLASS,
    ) -> None:
        """Start empty. `deadlines_ns` are those of the flows that will be requested, by id.

        Raises `InputError` as `PortAdmission` does.
        """
        super().__init__(lab, scenario, target_ns=target_ns, padding=padding, classes=classes)
        self._deadlines_ns = deadlines_ns
        self._terms_ns = self._targets
        """By port: its term in the guarantee of a flow without a deadline."""
        self._targets = {name: self._most_ns(name) for name in self._terms_ns}

    @property
    def scheme(self) -> str:
        """Name of the scheme."""
        return f"{super().scheme}-{WHOLE_PATHS}"

    def as_bound_now(self, flow_id: str) -> Admitted:
        """Return an admitted flow with its bound of now in place of its promise: while no flow comes."""
        admitted, state = super().as_bound_now(flow_id), self._state
        whole_ns = self._whole_paths(list(state.flows.values()), state.network.bounds)
        bound_ns = self._beside_ns(admitted) + whole_ns(state.flows[flow_id].steps[1:])
        return admitted._replace(whole_path_ns=min(bound_ns, admitted.guarantee_ns))

    def falls_if_slower(self) -> LimitTest | None:
        """None: to find out takes many times as long as the plan."""
        return None

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None = None) -> None:
        """Raise `InputError`: theorem 4 is proved only for flows that stay."""
        del now_ns, sent_until_ns
        raise InputError(
            f"flow '{flow_id}': {self.scheme} is for flows that stay; to release some, use '{super().scheme}'"
        )

    def _decide(
        self, flow: Flow, path: Sequence[Hop] | None
    ) -> tuple[Admitted | Refusal, _CountedFlow, dict[str, int] | None]:
        answer, counted, bounds = super()._decide(flow, path)
        if isinstance(answer, Admitted) and bounds is not None:
            answer = self._promised(answer, counted, bounds)
            if isinstance(answer, Refusal):
                answer = answer._replace(advice=partial(suggest_on_path, self.check, path))
        return answer, counted, bounds

    def _promised(
        self, fitting: Admitted, counted: _CountedFlow, bounds: Mapping[str, int]
    ) -> Admitted | Refusal:
        """Return the promise to a flow for which every queue has room, or which promise it would break.

        A flow that would be later than its deadline is promised what its path takes. Who asks compares.
        """
        others = list(self._state.flows.values())
        whole_ns = self._whole_paths([*others, counted], bounds)

        def takes_ns(passing: Admitted, ports: Ports, enough_ns: float) -> float:
            beside_ns = self._beside_ns(passing)
            by_port_ns = beside_ns + sum(bounds[step.server] for step in ports)
            return by_port_ns if by_port_ns <= enough_ns else beside_ns + whole_ns(ports)

        ports = counted.steps[1:]
        most_ns = self._beside_ns(fitting) + sum(self._terms_ns[step.server] for step in ports)
        promise_ns = min(most_ns, self._deadlines_ns.get(counted.flow_id, most_ns))
        own_ns = takes_ns(fitting, ports, promise_ns)
        if own_ns > most_ns:
            slowest = max(ports, key=lambda step: bounds[step.server]).server.partition(":")[0]
            return Refusal(fitting.flow, slowest, "delay", 0.0, own_ns, most_ns, "ns")
        for other in others:
            admitted = self._register.admitted[other.flow_id]
            allowed_ns = admitted.guarantee_ns
            other_ns = takes_ns(admitted, other.steps[1:], allowed_ns)
            if other_ns > allowed_ns:
                used_ns = min(self.as_bound_now(other.flow_id).guarantee_ns, allowed_ns)
                quantity = f"delay of flow '{other.flow_id}'"
                switch = admitted.path[0].switch
                numbers = (used_ns, other_ns - used_ns, allowed_ns)
                return Refusal(fitting.flow, switch, quantity, *numbers, "ns")
        promise_ns = max(promise_ns, own_ns)
        return fitting if promise_ns >= fitting.guarantee_ns else fitting._replace(whole_path_ns=promise_ns)

    def _whole_paths(
        self, flows: Sequence[_CountedFlow], bounds: Mapping[str, int]
    ) -> Callable[[Ports], int]:
        """Return what bounds whole paths while these flows send; it finds the bound of each path once."""
        network, sent = self._state.network, [(flow.steps, flow.bucket) for flow in flows]
        return LazyMapping[Ports, int](lambda ports: whole_path_ns(network, ports, sent, bounds)).__getitem__

    def _beside_ns(self, admitted: Admitted) -> float:
        """Return what is part of a guarantee beside the ports: the first wire, and all cables."""
        cables_ns = sum(self._cable_ns(hop.switch) for hop in admitted.path)
        return self._first_wire_ns(admitted.flow) + cables_ns

    def _most_ns(self, name: str) -> float:
        """Return how long a frame may take at a server: in a switch, until a full queue is sent."""
        if name in self._lab.hosts:
            return self._targets[name]
        return self._queue(name).drain_ns(self._class(name))
