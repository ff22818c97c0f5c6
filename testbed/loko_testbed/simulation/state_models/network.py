"""Model of a network in which flows come and go, whatever their senders do within their token buckets.

Time is counted in ticks. A server sends a frame per tick, in the order of arrival. Within a tick, in any
order, frames arrive from the servers before, and flows are requested, send all that their token buckets hold,
and are released. An admission rule decides on requests. A guarantee is violated when more frames wait at a
server than its limit: the last one of them is late, or lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from loko_testbed.simulation.state_models.explorer import ExplorationResult, explore

RuleState = TypeVar("RuleState")
"""The state of an admission rule. It must be hashable."""
_Value = TypeVar("_Value")
_Frames = tuple[tuple[int, ...], ...]
"""By server, frames in the order of arrival: the numbers of their flows."""


class ModelFlow(NamedTuple):
    """A flow of the model."""

    name: str
    path: tuple[int, ...]
    burst: int
    period: int = 0
    """Ticks until a bucket that is not full gets its next token; 0: it never does."""
    leaves: bool = False
    """Whether it may be released. It may be requested again when it does not count any more."""
    at_once: bool = False
    """Whether it always sends as soon as it is admitted: this keeps the number of states small."""

    def before(self, server: int) -> tuple[int, ...]:
        """Return the servers on its path before this one."""
        return self.path[: self.path.index(server)]


class Rule(Protocol[RuleState]):
    """An admission rule."""

    @property
    def flows(self) -> Sequence[ModelFlow]:
        """The flows that may be requested, by number."""

    @property
    def limits(self) -> Sequence[int]:
        """By server, the most frames that may wait."""

    def initial(self) -> RuleState:
        """Return the state before the first request."""

    def admit(self, state: RuleState, number: int) -> RuleState | None:
        """Return the state with a further flow; None if the rule refuses it."""

    def release(self, state: RuleState, number: int) -> RuleState:
        """Return the state after the release of a flow, which sends nothing from then on."""

    def tick(self, state: RuleState) -> RuleState:
        """Return the state a tick later."""

    def is_draining(self, state: RuleState, number: int) -> bool:
        """Return whether the flow is released and still counts."""


class ModelBucket(NamedTuple):
    """The token bucket of an admitted flow."""

    tokens: int
    waited: int = 0
    """Ticks since the last token came, or since the bucket was full."""

    def tick(self, flow: ModelFlow) -> ModelBucket:
        """Return the bucket a tick later."""
        if not flow.period or self.tokens == flow.burst:
            return ModelBucket(self.tokens)
        if self.waited + 1 == flow.period:
            return ModelBucket(self.tokens + 1)
        return ModelBucket(self.tokens, self.waited + 1)


_Buckets = tuple[ModelBucket | None, ...]


class KnownRuleState(Generic[RuleState]):
    """A state of a rule, compared by identity: comparing and hashing what it holds would take long."""

    def __init__(self, held: RuleState) -> None:
        """Take the state itself, of which there must be no other such object in this search."""
        self.held = held


class NetworkState(NamedTuple, Generic[RuleState]):
    """A state of the model."""

    queues: _Frames
    arriving: _Frames
    """Frames that arrive in this tick from the servers before."""
    buckets: _Buckets
    """By flow; None: it is not admitted."""
    rule: KnownRuleState[RuleState]


def check(rule: Rule[RuleState]) -> ExplorationResult:
    """Search the states of a network under a rule for one in which a guarantee is violated."""
    empty = ((),) * len(rule.limits)
    steps = _Steps(rule)
    initial = NetworkState(empty, empty, (None,) * len(rule.flows), steps.known(rule.initial()))
    return explore(initial, steps, partial(_is_violation, rule.limits))


def _is_violation(limits: Sequence[int], state: NetworkState[RuleState]) -> bool:
    return any(map(int.__gt__, map(len, state.queues), limits))


class _FlowStep(NamedTuple, Generic[RuleState]):
    """A step of a flow, possible whatever is in the queues."""

    label: str
    sent: tuple[int, ...]
    """The frames that its first server gets."""
    server: int
    buckets: _Buckets
    """Those after it, like `rule`."""
    rule: KnownRuleState[RuleState]


class _Steps(Generic[RuleState]):
    """All steps from a state. Many states share the rule's state and buckets, so what follows is cached.

    Searches visit states by the hundred thousand, so each is made directly: `_replace` takes longer.
    """

    def __init__(self, rule: Rule[RuleState]) -> None:
        self._rule, self._flows = rule, rule.flows
        self.known = cache(KnownRuleState[RuleState])
        self._admit, self._release = cache(self._rule_admits), cache(self._rule_releases)
        self._tick_rule, self._tick_buckets = cache(self._rule_ticks), cache(self._buckets_after_tick)
        self._flow_steps = cache(self._flow_steps_with)

    def __call__(self, state: NetworkState[RuleState]) -> Iterator[tuple[str, NetworkState[RuleState]]]:
        queues, arriving, buckets, rule = state
        if not any(arriving):
            yield "tick", self._tick(state)
        else:
            for server, frames in enumerate(arriving):
                if frames:
                    received = _appended(queues, server, frames), _with(arriving, server, ())
                    yield f"{server} receives", NetworkState(*received, buckets, rule)
        for label, sent, server, buckets_after, rule_after in self._flow_steps(buckets, rule):
            filled = _appended(queues, server, sent) if sent else queues
            yield label, NetworkState(filled, arriving, buckets_after, rule_after)

    def _flow_steps_with(
        self, buckets: _Buckets, rule: KnownRuleState[RuleState]
    ) -> tuple[_FlowStep[RuleState], ...]:
        """Return the steps of the flows, in their order."""
        steps = []
        for number, (flow, bucket) in enumerate(zip(self._flows, buckets, strict=True)):
            server = flow.path[0]
            if bucket is None:
                is_draining = flow.leaves and self._rule.is_draining(rule.held, number)
                admitted = None if is_draining else self._admit(rule, number)
                if admitted is not None:
                    sent = (number,) * flow.burst if flow.at_once else ()
                    after = _with(buckets, number, ModelBucket(flow.burst - len(sent)))
                    steps.append(_FlowStep(f"{flow.name} is admitted", sent, server, after, admitted))
                continue
            if bucket.tokens:
                sent = (number,) * bucket.tokens
                after = _with(buckets, number, ModelBucket(0, bucket.waited))
                steps.append(_FlowStep(f"{flow.name} sends", sent, server, after, rule))
            if flow.leaves:
                after = _with(buckets, number, None)
                released = self._release(rule, number)
                steps.append(_FlowStep(f"{flow.name} is released", (), server, after, released))
        return tuple(steps)

    def _rule_admits(self, state: KnownRuleState[RuleState], number: int) -> KnownRuleState[RuleState] | None:
        admitted = self._rule.admit(state.held, number)
        return None if admitted is None else self.known(admitted)

    def _rule_releases(self, state: KnownRuleState[RuleState], number: int) -> KnownRuleState[RuleState]:
        return self.known(self._rule.release(state.held, number))

    def _rule_ticks(self, state: KnownRuleState[RuleState]) -> KnownRuleState[RuleState]:
        return self.known(self._rule.tick(state.held))

    def _buckets_after_tick(self, buckets: _Buckets) -> _Buckets:
        return tuple(bucket and bucket.tick(flow) for flow, bucket in zip(self._flows, buckets, strict=True))

    def _tick(self, state: NetworkState[RuleState]) -> NetworkState[RuleState]:
        arriving = state.arriving
        for server, queue in enumerate(state.queues):
            if queue:
                path = self._flows[queue[0]].path
                onward = path[path.index(server) + 1 :]
                if onward:
                    arriving = _appended(arriving, onward[0], queue[:1])
        queues = tuple([queue[1:] for queue in state.queues])
        return NetworkState(queues, arriving, self._tick_buckets(state.buckets), self._tick_rule(state.rule))


def _appended(queues: _Frames, server: int, frames: tuple[int, ...]) -> _Frames:
    return _with(queues, server, queues[server] + frames)


def _with(values: tuple[_Value, ...], place: int, value: _Value) -> tuple[_Value, ...]:
    return (*values[:place], value, *values[place + 1 :])
