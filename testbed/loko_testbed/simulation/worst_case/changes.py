"""Sets that change: flows are requested, send and are released, and others replace them, when it hurts most.

Requests and releases go to an admission control that is told the time. What is sent is planned along with
them and transmitted afterwards, with one table that has an entry for every flow that ever lived.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import numpy as np

from loko.admission import Admission, Admitted, Refusal, Suggestion
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.units import NS_PER_MS
from loko_testbed.simulation.traffic import Instants
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.release import LEAD_NS

_STEPS_OF_A_WAIT: Final = 16
_LONGEST_WAIT_NS: Final = 400 * NS_PER_MS
_TAIL_NS: Final = 20 * NS_PER_MS
_AFTER_NS: Final = (0, 1, 100_000, NS_PER_MS, 10 * NS_PER_MS, 30 * NS_PER_MS)
"""Waits from the last frame of a set to its release, and from there to the next requests."""
_LOADS: Final = (0.5, 0.9, 0.99, 0.999, 0.999)
_ROUNDS: Final = 12
_LEAST_RATE_BPS: Final = 1_000


@dataclass(kw_only=True)
class FlowLifetime:
    """A flow from its admission to its release."""

    admitted: Admitted
    since_ns: int
    until_ns: float = math.inf
    offers_ns: list[int] = field(default_factory=list)


class ChangePlan:
    """Plans what happens to a network over time. `now_ns` never goes back."""

    def __init__(self, admission: Admission, *, begin_ns: int = LEAD_NS) -> None:
        """Start without any flow."""
        admission.release_all()
        admission.advance(begin_ns)
        self._admission = admission
        self.now_ns = begin_ns
        self.lives: list[FlowLifetime] = []
        """All flows that were ever admitted, in order."""
        self._passing: Counter[str] = Counter()

    @property
    def entries(self) -> int:
        """Entries that the fullest table needs if it holds all of these flows."""
        return max(self._passing.values(), default=0)

    def wait(self, duration_ns: int) -> None:
        """Let time pass."""
        self.now_ns += duration_ns
        self._admission.advance(self.now_ns)

    def request(self, flow: Flow) -> FlowLifetime | Refusal:
        """Request a flow now."""
        answer = self._admission.request(flow)
        if isinstance(answer, Refusal):
            return answer
        self.lives.append(FlowLifetime(admitted=answer, since_ns=self.now_ns))
        self._passing.update(hop.switch for hop in answer.path)
        return self.lives[-1]

    def request_until_admitted(self, flow: Flow, longest_ns: int) -> FlowLifetime | None:
        """Request a flow repeatedly, so that it comes as soon as it fits. None if that takes too long."""
        begin_ns = self.now_ns
        while isinstance(answer := self.request(flow), Refusal):
            wait_ms = answer.advice.wait_ms if isinstance(answer.advice, Suggestion) else None
            if wait_ms is None or self.now_ns - begin_ns > longest_ns:
                return None
            self.wait(max(wait_ms * NS_PER_MS // _STEPS_OF_A_WAIT, 50_000))
        return answer

    def send(self, life: FlowLifetime, *, first_ns: int, frames: int) -> None:
        """Let a flow send this many frames, as fast as its bucket allows, from `first_ns` or now if later."""
        life.offers_ns += earliest_conforming(
            life.admitted.flow, first_ns=max(first_ns, self.now_ns), frames=frames
        )

    def release(self, life: FlowLifetime) -> None:
        """Release a flow now, or as soon as it has sent all that is planned."""
        if life.offers_ns:
            self.wait(max(0, life.offers_ns[-1] - self.now_ns))
        life.until_ns = self.now_ns
        self._admission.release(life.admitted.flow.id, now_ns=self.now_ns)

    def case(self, case: AdmittedSet) -> AdmittedSet:
        """Return the case with the flows of this history instead of its own."""
        return replace(case, admitted=tuple(life.admitted for life in self.lives))

    def offers(self) -> list[Instants]:
        """Return, for each flow, when its frames are offered."""
        return [np.array(life.offers_ns, dtype=np.int64) for life in self.lives]


def ignore_released(admission: Admission) -> Admission:
    """Make an admission control forget what is released: a deliberate mistake that the attack must notice."""

    def release(flow_id: str, **_: object) -> None:
        admission.cancel(flow_id)

    admission.release = release  # type: ignore[method-assign]
    return admission


def earliest_conforming(flow: Flow, *, first_ns: int, frames: int) -> list[int]:
    """Return the earliest releases that keep to the flow's bucket, which is full at `first_ns`."""
    whole = int(flow.burst_bytes // flow.frame_bytes)
    spacing_ns = flow.frame_bytes * 8e9 / math.floor(flow.rate_bps)
    return [first_ns + math.ceil(max(0, place - whole + 1) * spacing_ns) for place in range(frames)]


def succession(
    admission: Admission,
    *,
    stay: list[Flow],
    first: list[Flow],
    second: list[Flow],
    after_ns: int,
    duration_ns: int,
    delivered: bool = True,
) -> ChangePlan:
    """Let one set of flows replace another, beside flows that stay and send all they may.

    Each flow of the `first` set sends one frame, and is released when that has arrived or, if not
    `delivered`, as soon as it is sent. After `after_ns`, as many flows of the `second` set as fit take their
    place and send one frame each.
    """
    history = ChangePlan(admission)
    staying = [life for flow in stay if isinstance(life := history.request(flow), FlowLifetime)]
    leaving = [life for flow in first if isinstance(life := history.request(flow), FlowLifetime)]
    for life in staying:
        flow = life.admitted.flow
        frames = int(duration_ns * flow.rate_bps / 8e9 / flow.frame_bytes)
        history.send(life, first_ns=history.now_ns, frames=frames)
    for life in leaving:
        history.send(life, first_ns=history.now_ns, frames=1)
    history.wait(_passage(leaving) if delivered else 0)
    for life in leaving:
        history.release(life)
    history.wait(after_ns)
    for flow in second:
        if isinstance(life := history.request(flow), FlowLifetime):
            history.send(life, first_ns=history.now_ns, frames=1)
    return history


def random_history(
    admission: Admission, lab: Lab, sizes: tuple[int, ...], rng: Random, *, entries: int, classes: int = 1
) -> tuple[ChangePlan, int]:
    """Plan round after round: as many flows as fit send bursts that meet, some are released, others come.

    A few flows that stay use up to 99.9 % of the rate that fits beside them. All are in random traffic
    `classes`. Returns the history and how long
    it takes. It ends when the tables cannot hold more flows.
    """
    history = ChangePlan(admission)
    hosts = list(lab.hosts)
    busy = rng.sample(hosts, min(len(hosts), rng.choice((2, 2, 3, 4))))
    maker = _Maker(rng, busy, sizes, classes)
    staying = _stay(history, admission, maker, rng.choice(_LOADS), rng.choice((0, 1, 2, 3)))
    brief: list[FlowLifetime] = []
    for _ in range(_ROUNDS):
        brief += _fill(history, maker, rng, entries)
        if history.entries >= entries:
            break
        meet_ns = history.now_ns + rng.choice((0, 300_000, 3 * NS_PER_MS))
        for life in brief:
            if not life.offers_ns or rng.random() < 0.3:
                flow = life.admitted.flow
                refill_ns = flow.burst_bytes * 8e9 / flow.rate_bps
                if not life.offers_ns or life.offers_ns[-1] + refill_ns <= meet_ns:
                    history.send(life, first_ns=meet_ns, frames=int(flow.burst_bytes // flow.frame_bytes))
        history.wait(max(0, meet_ns - history.now_ns) + rng.choice((*_AFTER_NS, _passage(brief))))
        for life in [life for life in brief if rng.random() < rng.choice((0.5, 1.0))]:
            brief.remove(life)
            history.release(life)
        history.wait(rng.choice(_AFTER_NS))
    until_ns = history.now_ns + _TAIL_NS
    for life in staying:
        flow = life.admitted.flow
        frames = int((until_ns - LEAD_NS) * flow.rate_bps / 8e9 / flow.frame_bytes) + 1
        life.offers_ns = earliest_conforming(flow, first_ns=LEAD_NS, frames=frames)
    return history, until_ns


def _passage(lives: list[FlowLifetime]) -> int:
    return max((math.ceil(life.admitted.guarantee_ns) for life in lives), default=0)


class _Maker:
    """Makes flows between a few hosts, with ids and ports that no other flow has."""

    def __init__(self, rng: Random, hosts: list[str], sizes: tuple[int, ...], classes: int) -> None:
        self._rng, self._hosts, self._sizes, self._classes = rng, hosts, sizes, classes
        self._count = 0

    def flow(self, *, rate_bps: int = _LEAST_RATE_BPS, frames: int = 1) -> Flow:
        """Make a flow between any two of the hosts."""
        self._count += 1
        source, destination = self._rng.sample(self._hosts, 2)
        size = self._rng.choice(self._sizes)
        return Flow(
            f"f{self._count}",
            source,
            destination,
            5000 + self._count,
            6000 + self._count,
            float(rate_bps),
            float(frames * size),
            size,
            1 if self._classes == 1 else self._rng.randint(1, self._classes),
        )


def _stay(
    history: ChangePlan, admission: Admission, maker: _Maker, load: float, count: int
) -> list[FlowLifetime]:
    """Add flows that together use this share of the rate that fits beside a single frame each."""
    lives = []
    for place in range(count):
        wanted = maker.flow()
        least, most = _LEAST_RATE_BPS, 20_000_000
        if isinstance(admission.check(wanted), Refusal):
            continue
        while most - least > _LEAST_RATE_BPS // 10:
            middle = (least + most) // 2
            if isinstance(admission.check(wanted._replace(rate_bps=float(middle))), Refusal):
                most = middle
            else:
                least = middle
        share = load if place == count - 1 else load / count
        life = history.request(wanted._replace(rate_bps=float(max(_LEAST_RATE_BPS, int(share * least)))))
        if isinstance(life, FlowLifetime):
            lives.append(life)
    return lives


def _fill(history: ChangePlan, maker: _Maker, rng: Random, entries: int) -> list[FlowLifetime]:
    """Add as many brief flows as fit; usually wait until the first one fits."""
    lives: list[FlowLifetime] = []
    patient = rng.random() < 0.8
    misses = 0
    while misses < 4 and history.entries < entries:
        flow = maker.flow(rate_bps=rng.choice((1_000, 1_000, 20_000)), frames=rng.choice((1, 1, 2, 4)))
        if patient and not lives:
            life = history.request_until_admitted(flow, _LONGEST_WAIT_NS)
        else:
            answer = history.request(flow)
            life = answer if isinstance(answer, FlowLifetime) else None
        if life is None:
            misses += 1
        else:
            lives.append(life)
    return lives
