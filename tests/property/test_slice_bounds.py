"""No frame of a slice is later than its bound, whatever senders do (docs/slicing.md, section 4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gate_examples import examples
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from loko.slicing.bound import SliceBound, delay_bound
from loko.slicing.document import HtbPort, TrtcmPort
from loko.slicing.goodput import counted_bps
from loko.slicing.latency import MeanLatency, effective_rate
from loko.slicing.lengths import Scheduler, counted, on_wire
from loko_testbed.measure.slices.port import SENDERS, Release, SliceTrial, transmit

FRAMES = st.sampled_from([64, 200, 777, 1518])
PROFILE = "open-vswitch-1g"
LINK_BPS = 1_000_000_000
LATENCY_US = 20
SPAN_NS = 40_000_000
_BACKLOG = 4000


def flow_releases(
    flow: dict[str, int], how: str, *, start_ns: int, end_ns: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return demanding instants that conform to the flow's token bucket.

    `greedy`: the burst at once, then as fast as allowed. `bursts`: a burst whenever the bucket is full again.
    Otherwise random.
    """
    frame, burst = flow["frame_bytes"], flow["burst_bytes"] // flow["frame_bytes"]
    gap_ns = frame * 8e9 / flow["rate_bps"]
    count = max(int((end_ns - start_ns) / gap_ns), 1)
    if how == "greedy":
        later = start_ns + np.ceil(np.arange(1, count + 1) * gap_ns)
        instants = np.concatenate([np.full(burst, start_ns), later])
    elif how == "bursts":
        period_ns = int(np.ceil(burst * gap_ns))
        instants = np.repeat(np.arange(start_ns, end_ns, period_ns), burst)
    else:
        wanted = np.sort(rng.integers(start_ns, end_ns, count))
        level, last, instants_list = float(burst), start_ns, []
        for at in wanted:
            level = min(level + (at - last) / gap_ns, burst)
            last = at
            if level >= 1 + 1e-9:
                level -= 1
                instants_list.append(at)
        instants = np.array(instants_list or [start_ns])
    return instants.astype(np.int64)


@st.composite
def flows(draw: st.DrawFn, least_bps: int, most_bps: int) -> dict[str, int]:
    frame = draw(FRAMES)
    return {
        "rate_bps": draw(st.integers(least_bps, most_bps)),
        "burst_bytes": draw(st.integers(1, 60)) * frame,
        "frame_bytes": frame,
    }


@st.composite
def htb_ports(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a port with two queues and the machine's behaviour. The first queue is the one that is judged."""
    rate = draw(st.integers(5_000_000, 600_000_000))
    other = draw(st.integers(5_000_000, 300_000_000))
    burst = draw(st.integers(100, 100_000))
    own = {"name": "own", "rate_bps": rate, "burst_bytes": burst, "limit_frames": 10_000}
    own["flow"] = draw(flows(rate // 20, rate))
    if draw(st.booleans()):
        own["ceil_bps"] = LINK_BPS
    rival: dict[str, Any] = {
        "name": "rival",
        "rate_bps": other,
        "burst_bytes": draw(st.integers(100, 100_000)),
        "priority": draw(st.integers(0, 1)),
        "quantum_bytes": draw(st.sampled_from([300, 1514, 20_000])),
    }
    if draw(st.booleans()):
        rival["ceil_bps"] = LINK_BPS
    own["priority"] = draw(st.integers(0, 1))
    return {
        "scheduler": "htb",
        "link_rate_bps": LINK_BPS,
        "latency_us": LATENCY_US,
        "dequeue": {
            "group_frames": draw(st.sampled_from([1, 1, 4, 16])),
            "timer_us": draw(st.sampled_from([0, 10, 60])),
        },
        "queues": [own, rival],
    }


def worst_us(
    port: HtbPort | TrtcmPort, device: str, how: str, rival_frame: int, rival_kind: str, seed: int
) -> float:
    """Return the longest delay of the first queue's frames (`worst_and_lost`), infinite if one is lost."""
    longest, lost = worst_and_lost(port, device, how, rival_frame, rival_kind, seed)
    return float("inf") if lost else longest


def worst_and_lost(
    port: HtbPort | TrtcmPort, device: str, how: str, rival_frame: int, rival_kind: str, seed: int
) -> tuple[float, int]:
    """Return the first queue's longest delay, last bit in to first bit out, and how many frames it loses.

    Without a flow of its own, the rival sends all that its cable carries, always or from about the same
    moment on, or one burst after another.
    """
    rng = np.random.default_rng(seed)
    flow = port.queues[0].flow
    assert flow is not None
    start_ns = 1_000_000 + int(rng.integers(0, 2_000_000))
    own = flow_releases(flow.model_dump(), how, start_ns=start_ns, end_ns=SPAN_NS, rng=rng)
    slot_ns = on_wire(rival_frame) * 8e9 / port.link_rate_bps
    rival_flow = port.queues[1].flow
    if rival_flow is not None:
        rival = flow_releases(rival_flow.model_dump(), rival_kind, start_ns=start_ns, end_ns=SPAN_NS, rng=rng)
        rival_frame = rival_flow.frame_bytes
    elif rival_kind in {"greedy", "together"}:
        # Together: its bucket is full when the own flow begins.
        begin_ns = 0 if rival_kind == "greedy" else start_ns - int(rng.integers(0, 200_000))
        rival = np.arange(begin_ns, SPAN_NS, np.ceil(slot_ns)).astype(np.int64)
    else:
        at_once = int(rng.integers(1, 60))
        rival = np.repeat(np.arange(start_ns % 100_000, SPAN_NS, 2_000_000), at_once).astype(np.int64)
    releases = {
        0: Release(queue=0, host=SENDERS[0], frame_bytes=flow.frame_bytes, instants_ns=own),
        1: Release(queue=1, host=SENDERS[1], frame_bytes=rival_frame, instants_ns=rival),
    }
    sent = transmit(SliceTrial(port, device, releases, seed))[0]
    came = sent.received_ns >= 0
    wire_ns = (8 + flow.frame_bytes) * 8e9 / port.link_rate_bps
    longest_ns = (sent.received_ns - sent.sent_ns)[came].max(initial=0)
    return float(longest_ns - wire_ns) / 1e3, int((~came).sum())


@examples(150)
@given(
    values=htb_ports(),
    how=st.sampled_from(["greedy", "bursts", "random"]),
    rival_frame=FRAMES,
    rival_kind=st.sampled_from(["together", "greedy", "bursts"]),
    seed=st.integers(0, 1000),
)
def test_theorem_1_no_frame_through_a_class_is_later(
    values: dict[str, Any], how: str, rival_frame: int, rival_kind: str, seed: int
) -> None:
    port = HtbPort.model_validate(values)
    bound = delay_bound(port, port.queues[0])
    assume(isinstance(bound, SliceBound))
    assert isinstance(bound, SliceBound)
    latest_us = worst_us(port, PROFILE, how, rival_frame, rival_kind, seed)
    assert latest_us <= bound.delay_us + 0.01


@examples(100)
@given(
    values=htb_ports(),
    after_us=st.integers(1, 5_000),
    overload=st.booleans(),
    how=st.sampled_from(["greedy", "bursts", "random"]),
    rival_frame=FRAMES,
    rival_kind=st.sampled_from(["together", "greedy", "bursts"]),
    seed=st.integers(0, 1000),
)
def test_theorem_3_no_frame_leaves_later_and_none_is_lost_where_a_bound_is_proved(
    values: dict[str, Any],
    after_us: int,
    overload: bool,
    how: str,
    rival_frame: int,
    rival_kind: str,
    seed: int,
) -> None:
    own = values["queues"][0]
    if overload:
        own["flow"]["rate_bps"] = min(2 * own["rate_bps"], 900_000_000)
    own["drops"] = {"kind": "late", "after_us": after_us}
    port = HtbPort.model_validate(values)
    bound = delay_bound(port, port.queues[0])
    assert isinstance(bound, SliceBound)
    latest_us, lost = worst_and_lost(port, PROFILE, how, rival_frame, rival_kind, seed)
    assert latest_us <= min(bound.delay_us, LATENCY_US + after_us) + 0.01
    assert not lost or bound.lossy_because is not None


@examples(100)
@given(
    group=st.sampled_from([1, 8, 32]),
    poll_us=st.sampled_from([1, 5, 24]),
    own=flows(1_000_000, 300_000_000),
    rival=flows(1_000_000, 300_000_000),
    spare=st.sampled_from([0, 1, 50_000]),
    how=st.sampled_from(["greedy", "bursts", "random"]),
    rival_kind=st.sampled_from(["greedy", "bursts"]),
    seed=st.integers(0, 1000),
)
def test_theorem_2_no_conforming_packet_is_policed_or_later(
    group: int,
    poll_us: float,
    own: dict[str, int],
    rival: dict[str, int],
    spare: int,
    how: str,
    rival_kind: str,
    seed: int,
) -> None:
    def port(cbs_bytes: int) -> TrtcmPort:
        queue = {"cir_bps": own["rate_bps"], "cbs_bytes": cbs_bytes, "flow": own}
        other = {"cir_bps": 1_000_000, "cbs_bytes": 1500, "flow": rival}
        return TrtcmPort.model_validate(
            {
                "scheduler": "trtcm",
                "link_rate_bps": LINK_BPS,
                "latency_us": LATENCY_US,
                "dequeue": {"group_frames": group, "poll_us": poll_us},
                "queues": [queue | {"name": "own"}, other | {"name": "rival"}],
            }
        )

    assume(sum(flow["burst_bytes"] // flow["frame_bytes"] for flow in (own, rival)) < 1000)
    needed = delay_bound(port(counted(Scheduler.TRTCM, own["frame_bytes"])), port(1500).queues[0])
    advised = 10**6 if isinstance(needed, SliceBound) else needed.because.rsplit(" ", 1)[1]
    assume(str(advised).isdigit())
    sliced = port(int(advised) + spare)
    bound = delay_bound(sliced, sliced.queues[0])
    assume(isinstance(bound, SliceBound))
    assert isinstance(bound, SliceBound)
    assert worst_us(sliced, PROFILE, how, 1518, rival_kind, seed) <= bound.delay_us + 0.01


@examples(40)
@example(
    rate_mbps=285, burst=1600, group=1, timer_us=60, frame=200
)  # the link is free before the timer comes
@example(rate_mbps=616, burst=2362, group=4, timer_us=200, frame=1518)
@given(
    rate_mbps=st.integers(5, 700),
    burst=st.integers(1_600, 30_000),
    group=st.sampled_from([1, 4, 16]),
    timer_us=st.sampled_from([0, 60, 200]),
    frame=FRAMES,
)
def test_a_backlog_is_served_at_the_predicted_rate(
    rate_mbps: int, burst: int, group: int, timer_us: int, frame: int
) -> None:
    queue = {
        "name": "own",
        "rate_bps": rate_mbps * 1_000_000,
        "burst_bytes": burst,
        "limit_frames": 1_000_000,
    }
    port = HtbPort.model_validate(
        {
            "scheduler": "htb",
            "link_rate_bps": LINK_BPS,
            "latency_us": LATENCY_US,
            "dequeue": {"group_frames": group, "timer_us": timer_us},
            "queues": [queue],
        }
    )
    instants = np.zeros(_BACKLOG, dtype=np.int64)
    release = Release(queue=0, host=SENDERS[0], frame_bytes=frame, instants_ns=instants)
    sent = transmit(SliceTrial(port, PROFILE, {0: release}, 1))[0]
    # Arrivals wake the class as well: only what leaves after the last of them counts.
    received = sent.received_ns[sent.received_ns > sent.sent_ns.max() + 1_000_000]
    length = counted(Scheduler.HTB, frame)
    assume(len(received) > 20 * (group + burst // length + 2))
    found_bps = (len(received) - 1) * length * 8e9 / (received[-1] - received[0])
    # The interval may begin or end anywhere in a round of bucket and refill.
    refill = rate_mbps * 1e6 / LINK_BPS * on_wire(frame) / length
    margin = ((group + burst / length) / max(1 - refill, 0.1) + 2) / len(received)
    assert found_bps == pytest.approx(counted_bps(port, port.queues[0], frame), rel=0.005 + margin)


def test_equation_1_is_no_bound_and_far_above_what_a_token_bucket_does_to_poisson_packets() -> None:
    """Docs/slicing.md, section 3: at 90 % utilisation, groups of 16 and of 1."""

    def mean_us(group: int, burst_bytes: int) -> tuple[float, float]:
        rate_bps, utilisation = 200_000_000, 0.9
        queue = {"name": "own", "rate_bps": rate_bps, "burst_bytes": burst_bytes, "limit_frames": 10**6}
        port = HtbPort.model_validate(
            {
                "scheduler": "htb",
                "link_rate_bps": LINK_BPS,
                "dequeue": {"group_frames": group},
                "queues": [queue],
            }
        )
        gap_ns = 1514 * 8e9 / rate_bps / utilisation
        instants = np.cumsum(np.random.default_rng(1).exponential(gap_ns, 50_000)).astype(np.int64)
        release = Release(queue=0, host=SENDERS[0], frame_bytes=1518, instants_ns=instants)
        sent = transmit(SliceTrial(port, PROFILE, {0: release}, 1))[0]
        waited_ns = (sent.received_ns - sent.sent_ns)[10_000:]
        predicted = MeanLatency(groups_per_s=effective_rate(rate_bps, group, 1514), utilisation=utilisation)
        return float(waited_ns.mean() - waited_ns.min()) / 1e3, predicted.mean_us

    one_by_one, predicted = mean_us(1, 1514)
    assert 2 < predicted / one_by_one < 4
    in_groups, predicted = mean_us(16, 18_500)
    assert predicted > 50 * in_groups
