"""One random protected set, and a search for the instant at which a failure hurts most.

This is the unit of the evidence: its seed alone reproduces it. Every run is judged, not only the worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

import numpy as np

from loko.admission.protection import (
    MoveTiming,
    NetworkFailure,
    ProtectedPlan,
    Protection,
    failures_of,
    protect,
)
from loko.admission.schemes import SchemeName, admission_of, default_scheme, variant_named
from loko.document import InputError
from loko.switch_model.control_traffic import served_traffic
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow, loko_scenario
from loko.units import NS_PER_MS, NS_PER_S
from loko_testbed.simulation.failures.protected_lab import Cut, ProtectedLab
from loko_testbed.simulation.failures.sending import all_that_they_may, meeting_bursts
from loko_testbed.simulation.failures.verdict import FailureVerdict, judge
from loko_testbed.simulation.traffic import Instants, flow_of
from loko_testbed.simulation.worst_case.port_trial import PROFILES as PORT_PROFILES
from loko_testbed.simulation.worst_case.port_trial import WITH_CLASSES
from loko_testbed.simulation.worst_case.random_cases import random_lab

BOARD: Final = "zodiac-fx"
_BOARD_SCHEMES: Final = ("full-rate", "fifth-rate", "packet-granular")
_SHAPES: Final = ("ring", "cycles")
"""Of the shapes of random labs, those in which some flows have two paths."""
_SURVIVE: Final = ("cables=1", "cables=1", "switches=1", "cables=2")
_MOST_SWITCHES: Final = 6
_ENTRIES: Final = (17, 33, 64)
_SIZES: Final = (64, 128, 306, 790, 1518)
_REQUESTS: Final = 40
_LEAST_RATE_BPS: Final = 10_000
_DETECTION_NS: Final = (0, NS_PER_MS, 20 * NS_PER_MS, 200 * NS_PER_MS)
_CHANGES_PER_S: Final = {True: (20.0, 50.0), False: (200.0, 1_000.0)}
"""By whether there are boards, whose only CPU also forwards."""
_FIRST_CUT_NS: Final = 200_000_000
_TAIL_NS: Final = 300_000_000
"""For which bursts go on once the flows have moved, in runs of the search."""
_TRIES: Final = {True: 16, False: 6}
"""By whether the switches are boards."""
_PORT_DETECTION_NS: Final = (None, 0, NS_PER_MS, 20 * NS_PER_MS)
"""None: chips without groups of type fast failover."""
_SHIFTS_NS: Final = (200.0, 5_000.0, 100_000.0, 2_000_000.0)
_CLASS_TARGETS_NS: Final = (150_000, 400_000)
"""Of the highest class; those below it have a multiple."""
_LONGEST_NS: Final = {True: 200_000_000_000, False: 2_000_000_000}
"""By whether the switches are boards; beside the flows of chips, other traffic fills all cables."""


@dataclass(frozen=True, kw_only=True)
class FailureTrial:
    """A random protected set on a random network, and what became of its packets in all runs."""

    seed: int
    shape: str
    profile: str
    scheme: str
    protection: Protection
    flows: int
    verdicts: tuple[FailureVerdict, ...]


def failure_trial(seed: int, *, packets: int, classes: int = 1, beside_boards: bool = False) -> FailureTrial:
    """Search the worst instant of a failure, and send about this many packets with a failure there.

    With several `classes`, each flow is in a random one, on chips that promise something to all of them. With
    `beside_boards`, every third switch is a board, and chips are the others. The same arguments give the same
    result everywhere.
    """
    rng, (shape, profile, drawn) = _drawn(seed, classes, beside_boards=beside_boards)
    hitting = [failure for failure in drawn.plan.failures if _hits_flows(drawn.plan, failure)]
    failure = rng.choice(hitting or drawn.plan.failures)
    network_seed = rng.getrandbits(63)
    noise = np.random.default_rng(rng.getrandbits(63))
    found, searched = search_worst_instant(
        drawn, failure, noise, seed=network_seed, tries=_TRIES[profile == BOARD]
    )
    rate_pps = sum(flow.rate_bps / 8 / flow.frame_bytes for flow in drawn.sent.flows)
    sending_ns = round(min(packets / rate_pps * NS_PER_S, _LONGEST_NS[profile == BOARD]))
    duration_ns = sending_ns + _end_ns(drawn, found)
    releases = all_that_they_may(drawn, duration_ns=duration_ns)
    records = drawn.run(releases, found, seed=network_seed, duration_ns=duration_ns)
    return FailureTrial(
        seed=seed,
        shape=shape,
        profile=profile,
        scheme=drawn.plan.plan.scheme,
        protection=drawn.plan.protection,
        flows=len(drawn.plan.flows),
        verdicts=(*searched, judge(drawn, found, records)),
    )


def search_worst_instant(
    protected: ProtectedLab,
    failure: NetworkFailure,
    rng: np.random.Generator,
    *,
    seed: int,
    tries: int,
) -> tuple[Cut, tuple[FailureVerdict, ...]]:
    """Search the instant of a failure that hurts most, beside bursts that meet when frames are under way.

    Half of the tries have bursts of their own; the others shift the worst instant so far against its bursts.
    Returns that instant and what became of all packets of all tries.
    """
    verdicts: list[FailureVerdict] = []
    worst: tuple[tuple[bool, float], Cut, Sequence[Instants]] | None = None
    for number in range(tries):
        if worst is None or number % 2 == 0:
            cut = Cut(failure=failure, at_ns=_FIRST_CUT_NS + int(rng.integers(0, 100_000_000)))
            duration_ns = _end_ns(protected, cut)
            releases: Sequence[Instants] = meeting_bursts(protected, cut, rng, duration_ns=duration_ns)
        else:
            _, before, releases = worst
            shift_ns = int(rng.normal(0, rng.choice(_SHIFTS_NS)))
            cut = Cut(failure=failure, at_ns=max(_FIRST_CUT_NS, before.at_ns + shift_ns))
            duration_ns = _end_ns(protected, cut)
        records = protected.run(releases, cut, seed=seed, duration_ns=duration_ns)
        verdicts.append(judge(protected, cut, records))
        damage = bool(verdicts[-1].broken), verdicts[-1].worst
        if worst is None or damage > worst[0]:
            worst = damage, cut, releases
    assert worst is not None, "there is at least one try"
    return worst[1], tuple(verdicts)


def _hits_flows(plan: ProtectedPlan, failure: NetworkFailure) -> bool:
    """Return whether a failure hits the working path of a flow that survives it."""
    return any(
        failure.name not in flow.ends_with and failure.hits(flow.working.flow.source, flow.working.path)
        for flow in plan.flows.values()
    )


def _end_ns(protected: ProtectedLab, cut: Cut) -> int:
    recovery = protected.recovery(cut.failure)
    return cut.at_ns + round(0 if recovery is None else recovery.outage_ns) + _TAIL_NS


class _DrawnPlan(NamedTuple):
    shape: str
    profile: str
    protected: ProtectedLab


def _drawn(seed: int, classes: int, *, beside_boards: bool) -> tuple[Random, _DrawnPlan]:
    """Return the random plan of a seed in which flows survive, and the generator that drew it."""
    for attempt in range(1000):
        rng = Random(f"failures {seed} {attempt}")
        try:
            drawn = _draw(rng, classes, beside_boards=beside_boards)
        except InputError:
            continue  # such as a table too fast for its links
        if drawn.protected.plan.flows:
            return rng, drawn
    raise AssertionError(f"seed {seed}: nothing ever survives")


def _draw(rng: Random, classes: int, *, beside_boards: bool) -> _DrawnPlan:
    shape, profile = rng.choice(_SHAPES), rng.choice((BOARD, BOARD, *PORT_PROFILES))
    if classes > 1 or beside_boards:
        profile = WITH_CLASSES
    profiles = [BOARD, profile, profile] if beside_boards else [profile]
    is_board = BOARD in profiles
    lab = random_lab(rng, shape, most_switches=_MOST_SWITCHES, profiles=profiles)
    entries, sizes = rng.choice(_ENTRIES), tuple(sorted(rng.sample(_SIZES, rng.choice((1, 2)))))
    openflow = rng.choice((OpenFlow.V1_0, OpenFlow.V1_3)) if profile == BOARD else OpenFlow.V1_0
    scenario = loko_scenario(entries=entries, packet_sizes_bytes=sizes, openflow=openflow)
    scheme = default_scheme(lab)
    variant = variant_named(rng.choice(_BOARD_SCHEMES) if scheme == SchemeName.LOKO else scheme)
    timing = MoveTiming(
        detection_ns=rng.choice(_DETECTION_NS),
        changes_per_s=rng.choice(_CHANGES_PER_S[is_board]),
        port_detection_ns=None if is_board else rng.choice(_PORT_DETECTION_NS),
    )
    traffic = served_traffic(timing.changes_per_s, {}, compare_s=0)
    flows = _flows(rng, list(lab.hosts), sizes, is_board=is_board)
    targets_ns = dict[int, float]()
    if classes > 1:
        flows = [flow._replace(traffic_class=rng.randint(1, classes)) for flow in flows]
        target_ns = rng.choice(_CLASS_TARGETS_NS)
        targets_ns = {each: each * target_ns for each in range(1, classes + 1)}
    plan = protect(
        lab,
        flows,
        lambda: admission_of(
            lab, variant, scenario, traffic=traffic, classes=classes, class_targets_ns=targets_ns
        ),
        failures_of(lab, [rng.choice(_SURVIVE)]),
        protection=rng.choice(list(Protection)),
    )
    if timing.port_detection_ns is not None:
        plan = plan.with_groups()
    protected = ProtectedLab(plan=plan, timing=timing, entries=entries, openflow=openflow)
    return _DrawnPlan(shape, profile, protected)


def _flows(rng: Random, hosts: list[str], sizes: Sequence[int], *, is_board: bool) -> list[Flow]:
    """Draw more flows than fit, the large ones first."""
    most_bps, most_frames = (1e6, 3) if is_board else (1e8, 12)
    flows = []
    for number in range(_REQUESTS):
        source, destination = rng.sample(hosts, 2)
        size = rng.choice(sizes)
        shrink = 1 - number / _REQUESTS
        flows.append(
            flow_of(
                number,
                source,
                destination,
                rate_bps=float(max(_LEAST_RATE_BPS, round(most_bps * shrink * rng.random()))),
                burst_bytes=float(rng.randint(1, most_frames) * size),
                frame_bytes=size,
                called="f",
            )
        )
    return flows
