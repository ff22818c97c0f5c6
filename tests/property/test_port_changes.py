"""Properties of sets that change on switch chips: nothing is late or lost, and the advice to wait is true."""

from __future__ import annotations

from random import Random

from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st

from loko.admission import Admitted, Refusal
from loko.switch_model.flow import Flow
from loko_testbed.simulation.worst_case.delivery import judge_delivery, timed_senders, transmit
from loko_testbed.simulation.worst_case.port_changes import LongLine, plan_changes

MS = 1_000_000
PROFILES = ("ideal-1g", "dell-s3048-on")
SIZES = (306, 1518)

LINES = st.builds(
    LongLine,
    chips=st.integers(2, 12),
    fan=st.just(2),
    profile=st.sampled_from(PROFILES),
    frame_bytes=st.sampled_from(SIZES),
    target_ns=st.sampled_from((150_000.0, 400_000.0)),
    leaver=st.floats(0.05, 0.95),
    across=st.floats(0.2, 1.0),
    newcomer=st.floats(0.1, 0.95),
    rate_bps=st.sampled_from((1e3, 1e6, 1e7)),
    staying_bps=st.sampled_from((0.0, 1e7, 2e8)),
    rounds=st.integers(1, 3),
    after_ns=st.sampled_from((0, 100_000)),
    off_ns=st.sampled_from((0, 20_000, 200_000)),
)


DRAWN = st.integers(0, 10**9).map(lambda seed: LongLine.drawn(Random(seed), PROFILES, SIZES))
"""Most of these are like lines on which the wrong rules are known to make the newcomer late."""


@examples(10)
@given(line=st.one_of(DRAWN, LINES), seed=st.integers(0, 10**9))
def test_no_change_makes_a_frame_late(line: LongLine, seed: int) -> None:
    lab = line.lab()
    changed = plan_changes(line, line.admission(lab), lab, Random(seed))
    records = transmit(
        changed.case,
        timed_senders(changed.case, changed.history.offers()),
        seed=1,
        duration_ns=changed.until_ns,
    )
    verdict = judge_delivery(changed.case, records)
    assert not verdict.broken
    assert not verdict.events


@examples(12)
@given(line=LINES, seed=st.integers(0, 10**9))
def test_the_advice_to_wait_is_true(line: LongLine, seed: int) -> None:
    """Whatever was admitted and released before, a flow fits after the time that its refusal gives."""
    rng, lab = Random(seed), line.lab()
    admission = line.admission(lab)
    hosts, now_ns = list(lab.hosts), 0
    for number in range(60):
        admission.advance(now_ns)
        ids = list(admission.admitted)
        if ids and rng.random() < 0.45:
            admission.release(rng.choice(ids), now_ns=now_ns)
        else:
            source, destination = rng.choice((("source", "destination"), rng.sample(hosts, 2)))
            burst = float(line.frame_bytes * rng.choice((1, 8, 30)))
            ports = 5000 + number, 6000
            wanted = Flow(f"f{number}", source, destination, *ports, line.rate_bps, burst, line.frame_bytes)
            answer = admission.request(wanted)
            if isinstance(answer, Refusal) and (wait_ms := answer.suggestion.wait_ms):
                now_ns += wait_ms * MS
                admission.advance(now_ns)
                assert isinstance(admission.request(wanted), Admitted)
        now_ns += rng.choice((0, 0, 1_000, 100_000, MS))
