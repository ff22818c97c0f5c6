"""One random case, transmitted once: the unit of the evidence, which its seed alone reproduces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final

import numpy as np

from loko.admission.schemes import variant_named
from loko.switch_model.scenario import OpenFlow
from loko_testbed.simulation.planned_control import all_that_may_be_sent
from loko_testbed.simulation.traffic import Instants
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.changes import random_history
from loko_testbed.simulation.worst_case.delivery import (
    DRAIN_NS,
    DeliveryResult,
    judge_delivery,
    random_burst_senders,
    runner_of,
    timed_senders,
)
from loko_testbed.simulation.worst_case.random_cases import RandomCase, random_case
from loko_testbed.simulation.worst_case.release import LEAD_NS, aimed_pattern, refill_ns, release_instants

_SHORTEST_NS: Final = 1_500_000_000
_LONGEST_NS: Final = 400_000_000_000
_LONGEST_ROUND_NS: Final = 500_000_000
_SHORTEST_SPAN_NS: Final = 50_000_000
_DIFFERENT: Final = 256
"""Number of distinct critical instants in one trial."""
WAYS: Final = ("bursts", "greedy", "critical", "changes")
"""How hosts send: the paper's random bursts, all they may for ever, or bursts that meet at a switch; or flows
come and go while they send."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A case, how its hosts sent, and what became of it."""

    drawn: RandomCase
    way: str
    duration_ns: int
    verdict: DeliveryResult

    @property
    def failed(self) -> bool:
        """Whether a guarantee was broken, or a board complained."""
        return bool(self.verdict.broken or self.verdict.events)


def run_trial(
    seed: int,
    *,
    packets: int,
    scheme: str | None = None,
    only: frozenset[int] | None = None,
    most_ns: int | None = None,
    openflow: OpenFlow = OpenFlow.V1_0,
) -> Trial:
    """Send about this many packets of the seed's case. The same arguments give the same result everywhere.

    To narrow a failure down, let `only` these flows send, as they would among all, for at most `most_ns`.
    """
    drawn_case = random_case(seed, scheme=scheme, openflow=openflow)
    case = drawn_case.case
    rng = Random(f"{seed} traffic")
    way = rng.choice(WAYS)
    if way == "changes" and not variant_named(case.scheme).supports_release:
        way = "critical"
    releases: list[Instants] = []
    most_ns_of_changes = _LONGEST_NS
    if way == "changes":
        assert isinstance(case.entries, int), "a random case has a number of them"
        history, ends_ns = random_history(
            drawn_case.admission, case.lab, drawn_case.sizes, rng, entries=case.entries
        )
        if history.lives:
            most_ns_of_changes = ends_ns
            case, releases = history.case(case), history.offers()
            drawn_case = replace(drawn_case, case=case)
        else:  # no flow fits between the few hosts that were drawn
            way = "critical"
    rate_pps = sum(flow.rate_bps / 8 / flow.frame_bytes for flow in case.flows)
    duration_ns = round(min(max(packets / rate_pps * 1e9, _SHORTEST_NS), _LONGEST_NS, most_ns_of_changes))
    with runner_of(case) as runner:
        powered = runner.powered(seed=rng.getrandbits(63))
    if way == "critical":
        releases = _critical(case, np.random.default_rng(rng.getrandbits(63)), duration_ns)
    if releases:
        traffic = timed_senders(case, releases)
    else:
        traffic = random_burst_senders(case, load=rng.choice((0.7, 0.95)) if way == "bursts" else 4.0)
    first_ns = {name: rng.randrange(1_000_000, 1_000_000_000) for name in case.lab.switches}
    planned = all_that_may_be_sent(
        case.lab, case.control, duration_ns=duration_ns, first_ns=first_ns, openflow=openflow
    )
    if most_ns is not None:
        duration_ns = min(duration_ns, most_ns)
    records = powered.run(
        [flow for flow in traffic if only is None or flow.flow in only],
        duration_ns=duration_ns,
        planned=planned,
        drain_ns=DRAIN_NS,
    )
    return Trial(drawn=drawn_case, way=way, duration_ns=duration_ns, verdict=judge_delivery(case, records))


def narrow_down(failed: Trial, *, packets: int, scheme: str | None = None) -> tuple[frozenset[int], int]:
    """Narrow a failed trial down: the fewest flows and about the shortest time with which it still fails."""
    seed, most_ns = failed.drawn.seed, failed.duration_ns
    only = frozenset(range(len(failed.drawn.case.admitted)))

    def fails(flows: frozenset[int], span_ns: int) -> bool:
        return run_trial(seed, packets=packets, scheme=scheme, only=flows, most_ns=span_ns).failed

    while most_ns > _SHORTEST_SPAN_NS and fails(only, most_ns // 2):
        most_ns //= 2
    for number in sorted(only):
        if len(only) > 1 and fails(only - {number}, most_ns):
            only -= {number}
    return only, most_ns


def _critical(case: AdmittedSet, rng: np.random.Generator, duration_ns: int) -> list[Instants]:
    """Return one critical instant after another, as fast as the buckets fill."""
    round_ns = int(min(_LONGEST_ROUND_NS, refill_ns(case) * rng.choice([0.4, 1.0]) + 5_000_000))
    at_ns = range(LEAD_NS, max(duration_ns, LEAD_NS + 1), round_ns)
    drawn_bursts = [aimed_pattern(case, rng) for _ in range(min(_DIFFERENT, len(at_ns)))]
    chosen = rng.integers(0, len(drawn_bursts), len(at_ns))
    return release_instants(case, at_ns, [drawn_bursts[index] for index in chosen])
