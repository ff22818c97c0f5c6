"""A released flow keeps counting until what it has sent provably no longer matters."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st

from loko.admission import ROUNDING, Admission, Admitted, LokoAdmission, Refusal
from loko.admission.packets import PacketAdmission
from loko.admission.schemes import admission_of, variant_named
from loko.switch_model.allocation import PACKET_GRANULAR
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab, ring_lab
from loko.topology.ring import Ring
from loko_testbed.reproduce.studies.attacks import star
from loko_testbed.simulation.traffic import flow_of
from loko_testbed.simulation.worst_case.changes import ignore_released

STAR = star()
LABS = {"star": STAR, "ring": ring_lab(Ring(switches=3, hosts_per_switch=2))}
RING = LABS["ring"]
SCENARIO = loko_scenario(entries=17, packet_sizes_bytes=(306,))
SCHEMES = ("full-rate", "fifth-rate", PACKET_GRANULAR)
ALL_SCHEMES = (*SCHEMES, "silo", "qjump")
S_NS = 1_000_000_000


def empty(scheme: str, lab: Lab = STAR) -> Admission:
    """Return an empty admission control that reserves all CPU interruptions that the scheme knows."""
    reserves = {} if scheme in SCHEMES else None
    return admission_of(lab, variant_named(scheme), SCENARIO, traffic=reserves)


def flow(
    number: int = 0,
    source: str = "H1",
    destination: str = "H3",
    rate_bps: float = 1e3,
    burst_bytes: float = 306,
) -> Flow:
    return flow_of(
        number, source, destination, rate_bps=rate_bps, burst_bytes=burst_bytes, frame_bytes=306, called="f"
    )


def filled(admission: Admission, first: int = 0, rate_bps: float = 1e3) -> list[str]:
    """Admit as many one-frame flows of the same host as fit; return their IDs."""
    taken = []
    for number in range(first, first + 40):
        if isinstance(admission.request(flow(number, rate_bps=rate_bps)), Refusal):
            return taken
        taken.append(f"f{number}")
    raise AssertionError("nothing is ever refused")


def waiting_ms(refusal: Refusal) -> int | None:
    waiting_ms = re.match(r"ask again in (\d+) ms", refusal.suggestion_text)
    return int(waiting_ms[1]) if waiting_ms else None


@pytest.mark.parametrize("scheme", ALL_SCHEMES)
def test_what_a_flow_has_left_counts_for_a_while_and_then_no_more(scheme: str) -> None:
    admission = empty(scheme)
    fresh = [admission.usage(name) for name in STAR.switches]
    taken = filled(admission)
    for name in taken:
        admission.release(name, now_ns=S_NS)
    assert isinstance(admission.request(flow(100)), Refusal)
    admission.advance(2 * S_NS)
    assert [admission.residual_backlog(server) for server in ("s1",) if scheme in SCHEMES] == [None] * (
        scheme in SCHEMES
    )
    assert filled(admission, 200) == [f"f{number}" for number in range(200, 200 + len(taken))]
    admission.release_all()
    shares = [[share for share in admission.usage(name).shares if share.used] for name in STAR.switches]
    assert shares == [[share for share in usage.shares if share.used] for usage in fresh]


@pytest.mark.parametrize("scheme", ALL_SCHEMES)
def test_a_flow_that_has_sent_nothing_leaves_nothing(scheme: str) -> None:
    admission = empty(scheme)
    taken = filled(admission)
    for name in taken:
        admission.cancel(name)
    assert filled(admission, 100) == [f"f{number}" for number in range(100, 100 + len(taken))]


@pytest.mark.parametrize("scheme", ALL_SCHEMES)
def test_releasing_all_begins_anew(scheme: str) -> None:
    admission = empty(scheme)
    taken = filled(admission)
    admission.release(taken[0], now_ns=5)
    admission.release_all()
    assert len(filled(admission)) == len(taken)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_id_may_be_used_again_at_once(scheme: str) -> None:
    """The released flow and the new one with its ID are different flows, and both count."""
    admission = empty(scheme)
    assert isinstance(admission.request(flow()), Admitted)
    admission.release("f0", now_ns=0)
    assert isinstance(admission.request(flow()), Admitted)
    assert admission.usage("s1").used("entries") == 2
    admission.release("f0", now_ns=S_NS)
    admission.advance(2 * S_NS)
    assert admission.usage("s1").used("entries") == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_flow_counts_until_its_last_frame_can_have_come(scheme: str) -> None:
    """Hop by hop: at the second switch, for as long as the first may have delayed its frames."""
    admission = empty(scheme, RING)
    answer = admission.request(flow(0, "h1a", "h2b"))
    assert isinstance(answer, Admitted)
    assert [hop.switch for hop in answer.path] == ["s1", "s2"]
    passage_ns = admission.drain_time_ns("f0")
    assert passage_ns >= answer.guarantee_ns
    admission.release("f0", now_ns=0)
    assert not admission.admitted
    first_ns = round(answer.delays_ns[0])
    admission.advance(first_ns)
    assert admission.usage("s2").used("entries") == 1
    admission.advance(passage_ns)
    assert [admission.usage(name).used("entries") for name in ("s1", "s2")] == [0, 0]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_backlogs_that_were_written_down_count_on_as_if_no_time_had_passed(scheme: str) -> None:
    admission = empty(scheme)
    long = flow(90, "H2", "H4", rate_bps=2.2e6 if scheme == "fifth-rate" else 11.5e6)
    assert isinstance(admission.request(long), Admitted)
    for name in filled(admission):
        admission.release(name, now_ns=0)
    now_ns = 0
    while (backlog := admission.residual_backlog("s1")) is None:
        now_ns += 100_000
        admission.advance(now_ns)
    backlogs = {"s1": backlog}
    again = empty(scheme)
    assert isinstance(again.request(long), Admitted)
    again.restore_backlogs(backlogs, now_ns=77 * S_NS)
    assert again.residual_backlog("s1") == backlogs["s1"]
    answers = [
        [type(control.request(flow(number))) for number in range(100, 120)] for control in (admission, again)
    ]
    assert answers[0] == answers[1]
    again.advance(78 * S_NS)
    assert again.residual_backlog("s1") is None


SEEDS = st.integers(0, 10**9)


@dataclass
class Life:
    """A flow and the time in which it could send."""

    admitted: Admitted
    since_ns: int
    until_ns: float = math.inf


def lived(admission: Admission, lab: Lab, rng: Random, *, steps: int = 60) -> list[Life]:
    """Make requests and releases at critical times: all at once, at the end of a wait, slightly later."""
    hosts = list(lab.hosts)
    now_ns = 0
    lives: list[Life] = []
    current: dict[str, Life] = {}
    rates = (1e3, 1e5, 2e6, 5.8e6) if rng.random() < 0.5 else (1e3, 1e5)
    for number in range(steps):
        admission.advance(now_ns)
        if current and rng.random() < 0.45:
            name = rng.choice(list(current))
            current.pop(name).until_ns = now_ns
            admission.release(name, now_ns=now_ns)
        else:
            ends = rng.sample(hosts, 2)
            wanted = flow(number, *ends, rng.choice(rates), 306 * rng.choice((1, 1, 2, 4)))
            answer = admission.request(wanted)
            if isinstance(answer, Refusal) and (ms := waiting_ms(answer)) and rng.random() < 0.7:
                now_ns += ms * 1_000_000
                admission.advance(now_ns)
                answer = admission.request(wanted)
                assert isinstance(answer, Admitted), "the advice to wait must be true"
            if isinstance(answer, Admitted):
                lives.append(Life(answer, now_ns))
                current[wanted.id] = lives[-1]
        now_ns += rng.choice((0, 0, 1, 100_000, 1_000_000, rng.randrange(20_000_000)))
    return lives


@examples(60)
@given(scheme=st.sampled_from(ALL_SCHEMES), lab=st.sampled_from(sorted(LABS)), seed=SEEDS)
def test_the_advice_to_wait_is_true(scheme: str, lab: str, seed: int) -> None:
    lived(empty(scheme, LABS[lab]), LABS[lab], Random(seed))


# Requirements of the theorems on all flows that ever existed, checked interval by interval.


@dataclass(frozen=True)
class Passing:
    """A flow at one switch: its arrival curve, and the time in which its frames can arrive there."""

    curve: Callable[[float], float]
    port: int
    since_ns: float
    until_ns: float

    def brings(self, begin_ns: float, end_ns: float) -> float:
        """Return the maximum that the flow can bring in a closed interval."""
        common_ns = min(end_ns, self.until_ns) - max(begin_ns, self.since_ns)
        return self.curve(common_ns) if common_ns >= 0 else 0.0


def most_beyond(passing: list[Passing], limits: Callable[[int, float], float], grace_ns: float) -> float:
    """Return the maximum by which the arrivals in any interval exceed its limit; 0 or less is fine.

    `limits` gives, for a port and the length of an interval, the limit of what arrives through that port, and
    for port 0 that of all ports together.
    """
    worst = -math.inf
    instants = sorted({stay.since_ns for stay in passing} | {stay.until_ns for stay in passing} - {math.inf})
    for begin_ns in instants:
        for end_ns in {*instants, *(at_ns + grace_ns for at_ns in (begin_ns, *instants)), begin_ns + 1e9}:
            length_ns = end_ns - begin_ns
            if length_ns < 0:
                continue
            ports: dict[int, float] = {}
            for stay in passing:
                ports[stay.port] = ports.get(stay.port, 0.0) + stay.brings(begin_ns, end_ns)
            brought = sum(min(work, limits(port, length_ns)) for port, work in ports.items())
            worst = max(worst, brought - limits(0, length_ns))
    return worst


def reaches_ns(life: Life, sender_queue_ns: float, place: int) -> float:
    return life.until_ns + sender_queue_ns + sum(life.admitted.delays_ns[:place])


def affine_excess(admission: LokoAdmission, lives: list[Life], switch: str) -> float:
    """Return the bytes beyond what the buffer and the delay bound can take (docs/model.md, section 6)."""
    allocation = admission.allocations[switch]
    splits = allocation.splits
    passing = []
    for life in lives:
        for place, hop in enumerate(life.admitted.path):
            if hop.switch == switch:
                burst, rate = life.admitted.bursts_bytes[place], life.admitted.flow.rate_bps / 8e9
                queue_ns = allocation.max_burst_bytes * 8e9 / allocation.service.rate_bps
                passing.append(
                    Passing(
                        lambda ns, burst=burst, rate=rate: burst + rate * ns,
                        1,
                        life.since_ns,
                        reaches_ns(life, queue_ns, place),
                    )
                )

    def limit(port: int, length_ns: float) -> float:
        if port:
            return math.inf
        free, given = splits.max_rate_bps / 8e9, allocation.max_rate_bps / 8e9
        late_ns = max(0.0, length_ns - splits.latency_ns)
        held = allocation.max_burst_bytes + given * splits.latency_ns + free * late_ns
        return min(allocation.max_burst_bytes + free * length_ns, held) * (1 + 2 * ROUNDING)

    return most_beyond(passing, limit, splits.latency_ns)


def packet_excess(admission: PacketAdmission, lives: list[Life], switch: str) -> float:
    """Return the work in ns beyond V, with all that waits counted (docs/packet-granular.md, equation 6)."""
    use = admission._switches[switch]
    passing = []
    for life in lives:
        admitted, wanted = life.admitted, life.admitted.flow
        route = admission._register._prepare(wanted.source, admitted.path)
        switches = [passed for passed, _ in route.ways]
        passages = route.kinds.passages(wanted.frame_bytes, switches)
        queue_ns = switches[0].server.sender_queue_ns(switches[0].work_ns)
        for place, ((passed, port), passage) in enumerate(zip(route.ways, passages, strict=True)):
            if passed is use:
                first = (wanted.burst_bytes + wanted.rate_bps / 8e9 * passage.jitter_ns) / wanted.frame_bytes
                pace = wanted.rate_bps / 8e9 / wanted.frame_bytes
                passing.append(
                    Passing(
                        lambda ns, first=first, pace=pace, passage=passage: (
                            math.floor(first + pace * ns) * passage.service_ns
                        ),
                        port,
                        life.since_ns,
                        reaches_ns(life, queue_ns, place),
                    )
                )
    grid = use._grid

    def limit(port: int, length_ns: float) -> float:
        if port == 0:
            return use._first_room + use._whole * length_ns
        cell = int(grid.right_ns.searchsorted(length_ns))
        return float(use._ports[port].limit[cell]) if cell < len(grid.right_ns) else math.inf

    return most_beyond(passing, limit, 300_000)


def excess(scheme: str, lab: Lab, seed: int, *, forgets: bool = False) -> float:
    """Return the maximum over all switches after a random history."""
    admission = empty(scheme, lab)
    lives = lived(ignore_released(admission) if forgets else admission, lab, Random(seed), steps=30)
    count = packet_excess if isinstance(admission, PacketAdmission) else affine_excess
    return max(count(admission, lives, name) for name in lab.switches)  # type: ignore[operator]


@examples(40)
@given(scheme=st.sampled_from(SCHEMES), lab=st.sampled_from(sorted(LABS)), seed=SEEDS)
def test_no_history_brings_more_than_the_theorems_bear(scheme: str, lab: str, seed: int) -> None:
    assert excess(scheme, LABS[lab], seed) <= 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_rule_that_forgets_what_was_released_brings_more(scheme: str) -> None:
    """Shows that the test above can fail."""
    assert max(excess(scheme, STAR, seed, forgets=True) for seed in range(5)) > 0
