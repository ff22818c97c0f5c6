"""Replay the flows that a system has accepted while a sender or a clock misbehaves.

Each replay is a task, carried out by the runner of figures. It is not a point of
`loko_testbed.reproduce.replay`, because a controller sends heartbeats meanwhile, and because one row is kept
per flow, not per packet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loko.switch_model.control_traffic import HEARTBEAT
from loko.switch_model.flow import Flow
from loko.topology.lab import load_lab
from loko.topology.network import Routed, RoutedFlow, shortest_path
from loko_testbed.reproduce.analysis import box_of
from loko_testbed.reproduce.chart import BoxStatistics
from loko_testbed.reproduce.figure_types.comparison.admission import GuaranteedFlow, single_frames
from loko_testbed.reproduce.figure_types.comparison.document import ComparisonFigure, ComparisonLab
from loko_testbed.reproduce.replay.point import seed_of
from loko_testbed.simulation.planned_control import all_that_may_be_sent
from loko_testbed.simulation.runner import RunError, RunRecords
from loko_testbed.simulation.traffic import Bucket, RandomBursts, Sender, Sends, TimeTriggered
from loko_testbed.simulation.virtual import VirtualRunner

_DRAIN_NS: Final = 200_000_000
_FIRST_HEARTBEATS_NS: Final = 1_000_000, 1_000_000_000
_QUEUE_FRAMES: Final = 160
"""Size of the queue before a bucket, as in other figures."""
WHISKERS: Final = "1 % and 99 %"

ALONE: Final = "alone"
"""Key of a system that accepts nothing, so that best-effort traffic is alone."""

DisturbanceKind = Literal["none", "misbehaving", "drift", "best-effort"]
Role = Literal["other", "misbehaving", "best-effort"]


class Disturbance(NamedTuple):
    """A disturbance: a sender that breaks its contract, one whose clock drifts, or best-effort traffic."""

    kind: DisturbanceKind
    size: float = 0.0
    """Size of the disturbance. Misbehaving: factor on its rate; drift: ppm; best effort: kbit/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonReplay:
    """A replay of a system on a lab in a disturbance. Its result depends on nothing else."""

    figure: ComparisonFigure
    comparison_lab: ComparisonLab
    system: str
    """The system's key in names of findings."""
    flows: tuple[GuaranteedFlow, ...]
    """The flows that the system has accepted; empty for `ALONE`."""
    disturbance: Disturbance
    seconds: float
    seed: int


class FlowRow(NamedTuple):
    """The result for one flow. Delays are between the taps, from first bit to first bit."""

    lab: str
    system: str
    disturbance: DisturbanceKind
    size: float
    flow: str
    role: Role
    """``misbehaving``: a flow that misbehaves, or of a host that does; ``best-effort``; else ``other``."""
    frames: int
    lost: int
    late: int
    guarantee_ns: float
    """0: the flow has no guarantee."""
    min_delay_ns: int
    mean_delay_ns: float
    max_delay_ns: int
    """The delays are 0 if no frame arrived."""


class ReplayResult(NamedTuple):
    """The result of a replay."""

    rows: list[FlowRow]
    over_guarantee: BoxStatistics | None
    """Delays over guarantees, of all frames with a guarantee that arrived."""


def run_replay(replay: ComparisonReplay) -> ReplayResult:
    """Carry out a replay. Raises `InputError` or `RunError`."""
    figure, ends = replay.figure, replay.comparison_lab.best_effort
    lab = load_lab(replay.comparison_lab.lab)
    promised = replay.flows
    stray = single_frames(
        figure, replay.comparison_lab.requests, ends.source, ends.destination, rate_kbps=figure.rate_kbps
    )
    routed: list[Routed] = [*promised, RoutedFlow(stray, shortest_path(lab, ends.source, ends.destination))]
    chance = np.random.default_rng(_seed(replay))
    duration_ns = round(replay.seconds * 1e9)
    with VirtualRunner(lab, routed, entries=figure.entries) as runner:
        powered = runner.powered(seed=int(chance.integers(2**62)))
    first_ns = {name: int(chance.integers(*_FIRST_HEARTBEATS_NS)) for name in lab.switches}
    traffic = _sent(replay, chance)
    if (
        replay.disturbance.kind == "best-effort"
    ):  # first, so that its randomness does not depend on the others
        sends = _bursts(stray, replay.disturbance.size * 1e3, is_shaped=False)
        traffic = [Sender.of(replay.comparison_lab.requests, stray, sends), *traffic]
    records = powered.run(
        traffic,
        duration_ns=duration_ns,
        planned=all_that_may_be_sent(lab, HEARTBEAT, duration_ns=duration_ns, first_ns=first_ns),
        drain_ns=_DRAIN_NS,
    )
    if records.events:
        raise RunError(records.events[0])
    return _judged(replay, stray, records)


def _seed(replay: ComparisonReplay) -> int:
    """Return a seed that is the same for every system, so that all meet the same random events."""
    kind, size = replay.disturbance
    # Results in virtual time depend on these very words.
    word = "rogue" if kind == "misbehaving" else kind
    words = f"Scenario(deed={word!r}, size={size!r})"
    return seed_of(replay.seed, "tssdn/duel", replay.comparison_lab.key, words)


def _sent(replay: ComparisonReplay, chance: np.random.Generator) -> list[Sender]:
    """Return senders that conform to what they were promised, except as the disturbance says.

    A misbehaving sender sends a multiple of its rate at random instants, whatever its slot. A host
    whose clock is fast sends proportionally more often, as it counts bucket and slots by its own clock.
    """
    figure, promised, (kind, size) = replay.figure, replay.flows, replay.disturbance
    duration_ns, guard_ns = round(replay.seconds * 1e9), round(figure.guard_us * 1e3)
    sources = []
    for number, flow in enumerate(promised):
        fast = 1.0
        sends: Sends
        if kind == "drift" and flow.flow.source == promised[0].flow.source:
            fast += size / 1e6
        if kind == "misbehaving" and number == 0:
            sends = _bursts(flow.flow, size * flow.flow.rate_bps)
        elif flow.slots is None:
            sends = _bursts(flow.flow, fast * flow.flow.rate_bps)
        else:
            send_slot = flow.slots
            slots = TimeTriggered(
                offset_ns=send_slot.period_ns + send_slot.offset_ns,
                period_ns=send_slot.period_ns,
                clock_rate=fast,
            )
            count = slots.instants_ns(duration_ns).size
            sends = replace(slots, off_ns=guard_ns * chance.choice([-1, 0, 1], count))
        sources.append(Sender.of(number, flow.flow, sends))
    return sources


def _bursts(flow: Flow, rate_bps: float, *, is_shaped: bool = True) -> RandomBursts:
    """Return single frames at random instants with this mean rate, shaped to that rate if `is_shaped`."""
    return RandomBursts(
        bucket=Bucket(rate_bps=rate_bps, burst_bytes=flow.burst_bytes) if is_shaped else None,
        offered_rate_bps=rate_bps,
        burst_bytes=flow.burst_bytes,
        queue_bytes=_QUEUE_FRAMES * flow.frame_bytes,
    )


def _judged(replay: ComparisonReplay, stray: Flow, records: RunRecords) -> ReplayResult:
    rows: list[FlowRow] = []
    ratios: list[NDArray[np.float64]] = []
    every = [(number, flow.flow, flow.guarantee_ns) for number, flow in enumerate(replay.flows)]
    if replay.disturbance.kind == "best-effort":
        every.append((replay.comparison_lab.requests, stray, 0.0))
    for number, flow, guarantee_ns in every:
        mine = records.flow == number
        received_ns = records.received_ns[mine]
        arrived = received_ns >= 0
        delay_ns = (received_ns - records.sent_ns[mine])[arrived]
        if guarantee_ns:
            ratios.append(delay_ns / guarantee_ns)
        rows.append(
            FlowRow(
                lab=replay.comparison_lab.key,
                system=replay.system,
                disturbance=replay.disturbance.kind,
                size=replay.disturbance.size,
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
    return ReplayResult(rows=rows, over_guarantee=box_of(every_ratio) if every_ratio.size else None)


def _role(replay: ComparisonReplay, number: int) -> Role:
    promised = replay.flows
    if number == replay.comparison_lab.requests:
        return "best-effort"
    kind = replay.disturbance.kind
    if kind == "misbehaving":
        return "misbehaving" if number == 0 else "other"
    if kind == "drift":
        return "misbehaving" if promised[number].flow.source == promised[0].flow.source else "other"
    return "other"
