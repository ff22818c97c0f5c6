"""One replay: the flows that a system has accepted, and what somebody does to them.

The runner of figures carries it, as a task of its own. It is no point of `evaluation.replay`: a controller
sends heartbeats meanwhile, and a row is kept of each flow, not of each packet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.analysis import box_of
from evaluation.chart import BoxStatistics
from evaluation.kinds.duel.accepted import Promised, single_frames
from evaluation.kinds.duel.document import Arena, DuelFigure
from evaluation.planned_control import all_that_may_be_sent
from evaluation.replay.point import seed_of
from evaluation.runner import RunError, RunRecords
from evaluation.traffic import Bucket, RandomBursts, Sender, Sends, TimeTriggered
from evaluation.virtual import VirtualRunner
from loko.control_traffic import HEARTBEAT
from loko.flow import Flow
from loko.lab import load_lab
from loko.network import Routed, RoutedFlow, shortest_path

_DRAIN_NS: Final = 200_000_000
_FIRST_HEARTBEATS_NS: Final = 1_000_000, 1_000_000_000
_QUEUE_FRAMES: Final = 160
"""Room before a bucket, as in the other figures."""
WHISKERS: Final = "1 % and 99 %"

ALONE: Final = "alone"
"""The system that accepts nothing, so best effort is alone."""

Deed = Literal["none", "rogue", "drift", "best-effort"]
Role = Literal["other", "doer", "best-effort"]


class Scenario(NamedTuple):
    """What somebody does: a sender breaks its contract, or has a bad clock, or nobody knows it."""

    deed: Deed
    size: float = 0.0
    """Of a rogue, how many times its rate; of a drift, ppm; of best effort, kbit/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A system on a lab in a scenario. Its result depends on nothing else."""

    figure: DuelFigure
    arena: Arena
    system: str
    """As names of findings have it."""
    promised: tuple[Promised, ...]
    """What it has accepted; nothing if it is `ALONE`."""
    scenario: Scenario
    seconds: float
    seed: int


class FlowRow(NamedTuple):
    """What became of a flow's frames. Delays are between the taps, from first bit to first bit."""

    arena: str
    system: str
    deed: str
    size: float
    flow: str
    role: Role
    """Whether it is of the flow, or of the host, that does the deed."""
    frames: int
    lost: int
    late: int
    guarantee_ns: float
    """0: none was given."""
    min_delay_ns: int
    mean_delay_ns: float
    max_delay_ns: int
    """All three 0 if no frame arrived."""


class Carried(NamedTuple):
    """What a replay found."""

    rows: list[FlowRow]
    over_guarantee: BoxStatistics | None
    """Of all frames that were promised anything and arrived: their delays over their guarantees."""


def carry_out(replay: Replay) -> Carried:
    """Replay. Raises `InputError` or `RunError` in one line."""
    figure, ends = replay.figure, replay.arena.best_effort
    lab = load_lab(replay.arena.lab)
    promised = replay.promised
    stray = single_frames(
        figure, replay.arena.requests, ends.source, ends.destination, rate_kbps=figure.rate_kbps
    )
    routed: list[Routed] = [*promised, RoutedFlow(stray, shortest_path(lab, ends.source, ends.destination))]
    chance = np.random.default_rng(_seed(replay))
    duration_ns = round(replay.seconds * 1e9)
    with VirtualRunner(lab, routed, entries=figure.entries) as runner:
        powered = runner.powered(seed=int(chance.integers(2**62)))
    first_ns = {name: int(chance.integers(*_FIRST_HEARTBEATS_NS)) for name in lab.switches}
    traffic = _sent(replay, chance)
    if replay.scenario.deed == "best-effort":  # first, so that its chances do not depend on the others
        sends = _bursts(stray, replay.scenario.size * 1e3, is_shaped=False)
        traffic = [Sender.of(replay.arena.requests, stray, sends), *traffic]
    records = powered.run(
        traffic,
        duration_ns=duration_ns,
        planned=all_that_may_be_sent(lab, HEARTBEAT, duration_ns=duration_ns, first_ns=first_ns),
        drain_ns=_DRAIN_NS,
    )
    if records.events:
        raise RunError(records.events[0])
    return _judged(replay, stray, records)


def _seed(replay: Replay) -> int:
    """The same for every system, so that all meet the same chances."""
    return seed_of(replay.seed, replay.figure.name, replay.arena.key, replay.scenario)


def _sent(replay: Replay, chance: np.random.Generator) -> list[Sender]:
    """Every flow sends as promised, but for what the scenario has done.

    A rogue sends so many times its rate at random instants; one with a slot does not look for it. A host
    whose clock is fast sends more often by as much: bucket and slots are counted by its own clock.
    """
    figure, promised, (deed, size) = replay.figure, replay.promised, replay.scenario
    duration_ns, guard_ns = round(replay.seconds * 1e9), round(figure.guard_us * 1e3)
    found = []
    for number, one in enumerate(promised):
        fast = 1.0
        sends: Sends
        if deed == "drift" and one.flow.source == promised[0].flow.source:
            fast += size / 1e6
        if deed == "rogue" and number == 0:
            sends = _bursts(one.flow, size * one.flow.rate_bps)
        elif one.turn is None:
            sends = _bursts(one.flow, fast * one.flow.rate_bps)
        else:
            turn = one.turn
            slots = TimeTriggered(
                offset_ns=turn.every_ns + turn.offset_ns, period_ns=turn.every_ns, clock_rate=fast
            )
            count = slots.instants_ns(duration_ns).size
            sends = replace(slots, off_ns=guard_ns * chance.choice([-1, 0, 1], count))
        found.append(Sender.of(number, one.flow, sends))
    return found


def _bursts(flow: Flow, rate_bps: float, *, is_shaped: bool = True) -> RandomBursts:
    """Single frames at random instants, at this rate on the mean, through a bucket of it if there is one."""
    return RandomBursts(
        bucket=Bucket(rate_bps=rate_bps, burst_bytes=flow.burst_bytes) if is_shaped else None,
        offered_rate_bps=rate_bps,
        burst_bytes=flow.burst_bytes,
        queue_bytes=_QUEUE_FRAMES * flow.frame_bytes,
    )


def _judged(replay: Replay, stray: Flow, records: RunRecords) -> Carried:
    rows: list[FlowRow] = []
    ratios: list[NDArray[np.float64]] = []
    every = [(number, one.flow, one.guarantee_ns) for number, one in enumerate(replay.promised)]
    if replay.scenario.deed == "best-effort":
        every.append((replay.arena.requests, stray, 0.0))
    for number, flow, guarantee_ns in every:
        mine = records.flow == number
        received_ns = records.received_ns[mine]
        arrived = received_ns >= 0
        delay_ns = (received_ns - records.sent_ns[mine])[arrived]
        if guarantee_ns:
            ratios.append(delay_ns / guarantee_ns)
        rows.append(
            FlowRow(
                arena=replay.arena.key,
                system=replay.system,
                deed=replay.scenario.deed,
                size=replay.scenario.size,
                flow=flow.id,
                role=_role(replay, number),
                frames=int(mine.sum()),
                lost=int((~arrived).sum()),
                late=int((delay_ns > guarantee_ns).sum()) if guarantee_ns else 0,
                guarantee_ns=guarantee_ns,
                min_delay_ns=int(delay_ns.min()) if delay_ns.size else 0,
                mean_delay_ns=float(delay_ns.mean()) if delay_ns.size else 0.0,
                max_delay_ns=int(delay_ns.max()) if delay_ns.size else 0,
            )
        )
    every_ratio = np.concatenate(ratios) if ratios else np.empty(0)
    return Carried(rows=rows, over_guarantee=box_of(every_ratio) if every_ratio.size else None)


def _role(replay: Replay, number: int) -> Role:
    promised = replay.promised
    if number == replay.arena.requests:
        return "best-effort"
    deed = replay.scenario.deed
    if deed == "rogue":
        return "doer" if number == 0 else "other"
    if deed == "drift":
        return "doer" if promised[number].flow.source == promised[0].flow.source else "other"
    return "other"
