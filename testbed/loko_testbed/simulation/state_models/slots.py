"""The rule of slots (docs/service.md, "Slots instead of admission") in ticks, and rules that are too weak.

All flows share a path. A frame is on it from its departure until its latest arrival. The guarantee is
violated when two frames are on the path at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import NamedTuple

from loko_testbed.simulation.state_models.explorer import ExplorationResult, explore


class ModelPhase(Enum):
    """Phases of a flow."""

    OUT = "out"
    IN = "in"
    DRAINING = "draining"


class SlotFlow(NamedTuple):
    """A flow: it has a slot unless it is out."""

    phase: ModelPhase = ModelPhase.OUT
    slot: int = 0
    has_sent: bool = False
    """Whether it has sent in this period."""
    age: int = 0
    """Ticks since its removal began, or began again."""


class SlotState(NamedTuple):
    """A state of the model."""

    now: int
    """Ticks since the base period began."""
    flows: tuple[SlotFlow, ...]
    on_path: tuple[int, ...]
    """By frame on the path, the ticks until its latest arrival."""


@dataclass(frozen=True, kw_only=True)
class SlotRule:
    """How long a slot is, and when that of a released flow is free."""

    slots: int = 2
    flows: int = 3
    longest: int = 2
    """Ticks that a frame takes at most."""
    guard: int = 1
    """By how many ticks a host may send before or after its slot begins."""
    counted_guards: int = 2
    """By how many guards a slot is longer than a frame takes."""
    keeps: bool = True
    """Whether a released flow keeps its slot for the length of a slot; else it is free at once."""
    waits_again: bool = True
    """Whether a restart of the service begins that wait anew; else the slot is free after the restart."""

    @property
    def length(self) -> int:
        """The length of a slot."""
        return self.longest + self.counted_guards * self.guard

    def is_free(self, state: SlotState, slot: int) -> bool:
        """Return whether no flow has the slot."""
        return all(flow.phase is ModelPhase.OUT or flow.slot != slot for flow in state.flows)

    def may_send(self, now: int, slot: int) -> bool:
        """Return whether the slot begins now, give or take the guard."""
        period = self.slots * self.length
        since = (now - slot * self.length) % period
        return since <= self.guard or period - since <= self.guard


def check(rule: SlotRule) -> ExplorationResult:
    """Search the states of flows with slots under a rule for one in which the guarantee is violated."""
    return explore(SlotState(0, (SlotFlow(),) * rule.flows, ()), partial(_steps, rule), _is_violation)


def _is_violation(state: SlotState) -> bool:
    return len(state.on_path) > 1


def _steps(rule: SlotRule, state: SlotState) -> Iterator[tuple[str, SlotState]]:
    yield "tick", _tick(rule, state)
    yield "restart", state._replace(flows=tuple(_restarted(rule, flow) for flow in state.flows))
    for number, flow in enumerate(state.flows):
        if flow.phase is ModelPhase.OUT:
            for slot in filter(partial(rule.is_free, state), range(rule.slots)):
                yield f"{number} gets slot {slot}", _with(state, number, SlotFlow(ModelPhase.IN, slot))
        elif flow.phase is ModelPhase.IN:
            if rule.may_send(state.now, flow.slot) and not flow.has_sent:
                sent = _with(state, number, flow._replace(has_sent=True))
                yield f"{number} sends", sent._replace(on_path=(*state.on_path, rule.longest))
            released = flow._replace(phase=ModelPhase.DRAINING) if rule.keeps else SlotFlow()
            yield f"{number} is released", _with(state, number, released)


def _restarted(rule: SlotRule, flow: SlotFlow) -> SlotFlow:
    if flow.phase is not ModelPhase.DRAINING:
        return flow
    return flow._replace(age=0) if rule.waits_again else SlotFlow()


def _tick(rule: SlotRule, state: SlotState) -> SlotState:
    now = (state.now + 1) % (rule.slots * rule.length)
    flows = []
    for flow in state.flows:
        if flow.phase is not ModelPhase.DRAINING:
            flows.append(flow._replace(has_sent=flow.has_sent and rule.may_send(now, flow.slot)))
        elif flow.age + 1 == rule.length:
            flows.append(SlotFlow())
        else:
            flows.append(flow._replace(age=flow.age + 1))
    on_path = tuple(left - 1 for left in state.on_path if left > 1)
    return SlotState(now, tuple(flows), on_path)


def _with(state: SlotState, number: int, flow: SlotFlow) -> SlotState:
    return state._replace(flows=(*state.flows[:number], flow, *state.flows[number + 1 :]))
