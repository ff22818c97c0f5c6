"""Flows that share an input port are bounded together: lemma 6, what it admits, and that guarantees hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gate_examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from releases import SETTLED_NS, carry
from test_packets import RING, critical, flow, numbered, worst

from loko.admission import Admitted
from loko.admission.packets import JointAdmission, PacketAdmission, joint
from loko.document import InputError
from loko.switch_model.scenario import EVALUATION

S_NS = 206_000


def served(arrivals: list[tuple[int, bool]], pause_ns: tuple[int, int]) -> list[tuple[int, bool]]:
    """Return (departure, in the group) of each frame at a server that pauses once."""
    at_ns, gone_ns = pause_ns
    free, away, finished = 0, True, []
    for arrival, mine in sorted(arrivals):
        begin = max(arrival, free)
        if away and begin >= at_ns:
            begin, away = max(begin, at_ns + gone_ns), False
        free = begin + S_NS
        finished.append((free, mine))
    return finished


def curve(flows: list[tuple[int, int]]) -> np.ndarray:
    """Return the most frames of flows of (period, burst) in a closed interval, cell by cell."""
    return sum(burst + joint._GRID.right_ns // period for period, burst in flows)


@pytest.mark.parametrize("generous", [0, 3])
def test_no_group_leaves_faster_than_lemma_6_says(generous) -> None:
    """With `generous`, the bound is lowered by so many frames and must break: the test can fail."""
    broken = 0
    rng = np.random.default_rng(1)
    for _ in range(60):
        own, other = (
            [(int(rng.integers(1_500_000, 4_000_000)), int(rng.integers(1, 4))) for _ in range(3)]
            for _ in "12"
        )
        if sum(S_NS / period for period, _ in own + other) > 0.95:
            continue
        away_ns = int(rng.integers(0, 500_000))
        bound = output(own, other, away_ns) - generous
        for _ in range(30):
            arrivals = []
            for flows, mine in ((own, True), (other, False)):
                for period, burst in flows:
                    first = int(rng.integers(0, 3_000_000))
                    for number in range(burst + 6):
                        arrivals.append((first + max(0, number - burst + 1) * period, mine))
            left = [at for at, mine in served(arrivals, (int(rng.integers(0, 4_000_000)), away_ns)) if mine]
            for begin in range(len(left)):
                for end in range(begin, len(left)):
                    cell = -(-(left[end] - left[begin]) // joint._CELL_NS)
                    broken += cell < joint._CELLS and end - begin + 1 > bound[cell]
    assert bool(broken) is bool(generous)


def output(own: list[tuple[int, int]], other: list[tuple[int, int]], away_ns: int) -> np.ndarray:
    both = own + other
    return joint._output(
        own=curve(own),
        own_later=curve(own),
        others=curve(other),
        everything=curve(both),
        service_ns=S_NS,
        spread_ns=0,
        interrupted_ns=away_ns,
        share=0.0,
        most_delay_ns=away_ns + sum(burst for _, burst in both) * S_NS * 4,
        at_once=float(sum(burst for _, burst in both)),
        frames_per_ns=sum(1 / period for period, _ in both),
        own_per_ns=sum(1 / period for period, _ in own),
    )


ASKED = st.lists(
    st.tuples(
        st.integers(1, 5),
        st.integers(1, 4),
        st.sampled_from([3e5, 6e5, 9e5, 1.5e6]),
        st.sampled_from([1, 1, 2]),
    ),
    min_size=20,
    max_size=50,
)


@examples(6)
@given(ASKED, st.randoms())
def test_only_the_set_counts_and_all_that_fits_one_by_one_fits(asked, random) -> None:
    flows = numbered(asked)
    single, together = PacketAdmission(RING, EVALUATION), JointAdmission(RING, EVALUATION)
    fits = [flow for flow in flows if isinstance(single.request(flow), Admitted)]
    assert {flow.id: together.request(flow) for flow in fits} == single.admitted
    together.release_all()
    kept = [flow for flow in flows if isinstance(together.request(flow), Admitted)]
    usage = [together.usage(name) for name in RING.switches]
    assert all(share.used <= share.allowed + 1e-9 for of_switch in usage for share in of_switch.shares)
    random.shuffle(kept)
    again = JointAdmission(RING, EVALUATION)
    assert all(isinstance(again.request(kept_flow), Admitted) for kept_flow in kept)
    assert [again.usage(name) for name in RING.switches] == usage
    for kept_flow in kept:
        again.cancel(kept_flow.id)
    assert [again.usage(name) for name in RING.switches] == [
        JointAdmission(RING, EVALUATION).usage(name) for name in RING.switches
    ]


def test_switches_that_delay_for_longer_than_the_curves_reach_are_decided_on() -> None:
    """Full tables and the shortest frames. What leaves such a switch has no joint bound."""
    slow = replace(EVALUATION, entries=128, packet_sizes_bytes=(64,))
    flows = [flow(number, number % 5 + 1, number % 3 + 1, 6e4, 2, frame_bytes=64) for number in range(60)]
    single, together = PacketAdmission(RING, slow), JointAdmission(RING, slow)
    server, work_ns = together.switches["s1"].server, together.switches["s1"].work_ns
    assert server.jitter_ns(64, work_ns) > joint._MOST_DELAY_CELLS * joint._CELL_NS
    counts = [sum(isinstance(kind.request(flow), Admitted) for flow in flows) for kind in (single, together)]
    assert 0 < counts[0] <= counts[1] < len(flows)


def test_more_flows_fit_together() -> None:
    flows = [flow(number, source=number % 5 + 1, hops=3, rate_bps=7.3e5) for number in range(60)]
    counts = []
    for kind in (PacketAdmission, JointAdmission):
        admission = kind(RING, EVALUATION)
        counts.append(sum(isinstance(admission.request(flow), Admitted) for flow in flows))
    assert counts[1] > counts[0]


@examples(8)
@given(ASKED, st.integers(0, 249_999_999), st.integers(0, 999), st.randoms())
def test_no_frame_is_lost_or_late(asked, phase_ns, seed, random) -> None:
    admission = JointAdmission(RING, EVALUATION)
    for asked_flow in numbered(asked):
        admission.request(asked_flow)
    admitted = list(admission.admitted.values())
    assume(admitted)
    releases = critical(
        admitted,
        random.choice(list(RING.switches)),
        SETTLED_NS + 20_000_000 + phase_ns,
        lambda delay_ns: random.choice([280_000, delay_ns, random.randrange(280_000, delay_ns + 280_000)]),
    )
    seen = carry(RING, [granted.flow for granted in admitted], releases, entries=17, seed=seed)
    lost, ratio = worst(admitted, seen)
    assert lost == 0
    assert ratio <= 1


def test_what_is_bounded_together_is_not_released() -> None:
    admission = JointAdmission(RING, EVALUATION)
    assert isinstance(admission.request(flow(0, source=1, hops=1, rate_bps=1e5)), Admitted)
    with pytest.raises(InputError, match="is for flows that stay; to release some"):
        admission.release(next(iter(admission.admitted)), now_ns=0)
