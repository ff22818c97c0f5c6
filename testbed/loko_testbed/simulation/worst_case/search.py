"""Worst-case search: a local search for the release pattern that hurts an admitted set most.

Many candidates share one simulated network. Each gets a round of its own, after which all buckets are full
and all boards idle again. Rounds are whole periods of the boards' timers apart, so that a candidate meets the
timers at the same phase in every round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from loko.switch_model.device import Profile
from loko.topology.ring import Setting
from loko_testbed.simulation.planned_control import all_that_may_be_sent
from loko_testbed.simulation.runner import RunRecords
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.delivery import DRAIN_NS, runner_of, timed_senders
from loko_testbed.simulation.worst_case.other_traffic import allowed_beside
from loko_testbed.simulation.worst_case.release import (
    LEAD_NS,
    BurstPattern,
    aimed_pattern,
    refill_ns,
    release_instants,
    scattered_pattern,
    sustained_pattern,
    vary,
)

POPULATION: Final = 48
_ELITE: Final = 8
_SCALES_NS: Final = (1_000.0, 10_000.0, 100_000.0, 1_000_000.0)
_SCATTER_NS: Final = 20_000_000
_SUSTAINED_S: Final = 8.0
"""Many periods of the timers, whose work adds up if a switch is used up to its last bit."""
_LEAD_WITHOUT_BOARDS_NS: Final = 2_000_000
"""As `LEAD_NS`, for switches that are done with a burst sooner."""
_SUSTAINED_WITHOUT_BOARDS_S: Final = 0.1
_TIMERS_SPREAD_NS: Final = 3_000_000
"""Timers run at most this long after the instant that the bursts aim at."""


@dataclass(frozen=True, kw_only=True, order=True)
class Damage:
    """How much a pattern hurts. Ordered by frames lost, then by the longest delay over its guarantee."""

    lost: int
    worst: float
    late: int = field(default=0, compare=False)
    """Frames that took longer than guaranteed."""
    packets: int = field(default=0, compare=False)
    """Frames that were sent."""


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The worst pattern that a search found, and what is needed to reproduce it."""

    damage: Damage
    bursts: BurstPattern
    seed: int
    """Seed of the network, which decides the phases of main loops and timers."""
    history: tuple[tuple[int, float], ...]
    """(patterns tried, longest delay over its guarantee so far)."""


def search_worst_case(case: AdmittedSet, *, generations: int, seed: int) -> SearchResult:
    """Search critical instants, worse in each generation, and try one long greedy phase. Deterministic."""

    def next_ones(best: Sequence[BurstPattern], rng: np.random.Generator) -> list[BurstPattern]:
        # Part of each generation is new, so that no local optimum traps the search.
        fresh = POPULATION // 4 if best else POPULATION
        more = [aimed_pattern(case, rng) for _ in range(fresh)]
        while len(more) < POPULATION:
            parent = best[int(rng.integers(len(best)))]
            more.append(vary(parent, rng, scale_ns=float(rng.choice(_SCALES_NS))))
        return more

    best_found = _search(case, next_ones, generations=generations, seed=seed, aim_timers=True)
    greedy = sustained_pattern(case, seconds=_SUSTAINED_S if _boards(case) else _SUSTAINED_WITHOUT_BOARDS_S)
    damage = damage_of(case, [greedy], seed=best_found.seed)[0]
    if damage <= best_found.damage:
        return best_found
    last = (best_found.history[-1][0] + 1, max(damage.worst, best_found.history[-1][1]))
    return replace(best_found, damage=damage, bursts=greedy, history=(*best_found.history, last))


def random_search(case: AdmittedSet, *, generations: int, seed: int) -> SearchResult:
    """Try the same number of patterns, each with bursts at independent random instants."""

    def next_ones(_best: Sequence[BurstPattern], rng: np.random.Generator) -> list[BurstPattern]:
        return [scattered_pattern(case, rng, within_ns=_SCATTER_NS) for _ in range(POPULATION)]

    return _search(case, next_ones, generations=generations, seed=seed, aim_timers=False)


_Next = Callable[[Sequence[BurstPattern], np.random.Generator], list[BurstPattern]]


def _search(
    case: AdmittedSet, next_ones: _Next, *, generations: int, seed: int, aim_timers: bool
) -> SearchResult:
    rng = np.random.default_rng(seed)
    ranked: list[tuple[Damage, int, BurstPattern]] = []
    history: list[tuple[int, float]] = []
    worst = 0.0
    for generation in range(generations):
        candidates = next_ones([bursts for _, _, bursts in ranked], rng)
        # Try half of the best again with other phases of the boards.
        candidates = [bursts for _, _, bursts in ranked[: _ELITE // 2]] + candidates
        network_seed = int(rng.integers(1 << 62))
        damages = damage_of(case, candidates, seed=network_seed, aim_timers=aim_timers)
        ranked += [(damage, network_seed, bursts) for damage, bursts in zip(damages, candidates, strict=True)]
        ranked = sorted(ranked, key=lambda scored: scored[0], reverse=True)[:_ELITE]
        worst = max(worst, *(damage.worst for damage in damages))
        history.append(((generation + 1) * POPULATION, worst))
    damage, network_seed, bursts = ranked[0]
    return SearchResult(damage=damage, bursts=bursts, seed=network_seed, history=tuple(history))


def damage_of(
    case: AdmittedSet, candidates: Sequence[BurstPattern], *, seed: int, aim_timers: bool = True
) -> list[Damage]:
    """Measure what each candidate does, each in a round of its own, beside other traffic where that may be.

    With `aim_timers` the boards' timers run when the bursts meet.
    """
    boards = _boards(case)
    timers_ns = {profile.cpu.timers.period_ns.value for profile in boards.values()}
    period_ns = math.lcm(*timers_ns)
    lead_ns = LEAD_NS if boards else _LEAD_WITHOUT_BOARDS_NS
    rng = np.random.default_rng(seed)
    anchor_ns = period_ns // 2
    settings: dict[str, Mapping[str, Setting]] = {}
    for name, profile in boards.items() if aim_timers else ():
        late_ns = int(rng.integers(-_TIMERS_SPREAD_NS // 3, _TIMERS_SPREAD_NS))
        settings[name] = {
            "timer_phase_ns": anchor_ns + late_ns,
            "loop_phase_ns": int(rng.integers(profile.cpu.loop_ps.value // 1000)),
        }
    tail_ns = max(int(bursts.following.max(initial=0)) for bursts in candidates) * max(
        flow.frame_bytes * 8e9 / flow.rate_bps for flow in case.flows
    )
    round_ns = math.ceil((2 * lead_ns + refill_ns(case) + tail_ns) / period_ns) * period_ns
    others = allowed_beside(case, duration_ns=lead_ns + period_ns + (len(candidates) + 1) * round_ns)
    with runner_of(case, others) as runner:
        powered = runner.powered(seed=seed, settings=settings)
    # A run's instants count from its start, phases from power-up.
    first_ns = lead_ns + (anchor_ns - powered.now_ns - lead_ns) % period_ns
    rounds_ns = [first_ns + number * round_ns for number in range(len(candidates))]
    duration_ns = rounds_ns[-1] + round_ns
    control_ns = {name: int(rng.integers(first_ns)) for name in case.lab.switches}
    senders = timed_senders(case, release_instants(case, rounds_ns, candidates), observed=True)
    records = powered.run(
        [*senders, *(() if others is None else others.senders)],
        duration_ns=duration_ns,
        planned=all_that_may_be_sent(case.lab, case.control, duration_ns=duration_ns, first_ns=control_ns),
        drain_ns=DRAIN_NS,
    )
    return _damages(case, records, first_ns - lead_ns, round_ns, len(candidates))


def _damages(
    case: AdmittedSet, records: RunRecords, begin_ns: int, round_ns: int, count: int
) -> list[Damage]:
    guarantees = np.array([admitted.guarantee_ns for admitted in case.admitted])
    place = np.clip((records.sent_ns - begin_ns) // round_ns, 0, count - 1)
    lost = np.bincount(place[records.received_ns < 0], minlength=count)
    ratio = (records.received_ns - records.sent_ns) / guarantees[records.flow]
    worst = np.zeros(count)
    np.maximum.at(worst, place, ratio)
    late, packets = np.bincount(place[ratio > 1], minlength=count), np.bincount(place, minlength=count)
    return [
        Damage(
            lost=int(lost[index]),
            worst=float(worst[index]),
            late=int(late[index]),
            packets=int(packets[index]),
        )
        for index in range(count)
    ]


def _boards(case: AdmittedSet) -> dict[str, Profile]:
    """Return the profiles of the switches whose phases are known, by name."""
    return {
        name: switch.profile
        for name, switch in case.lab.switches.items()
        if isinstance(switch.profile, Profile)
    }
