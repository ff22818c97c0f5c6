"""Every way of sending leaves the host as specified, and a runner refuses what it does not support."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from packages import imported_names

from loko.topology.lab import load_lab
from loko.topology.network import RoutedFlow, shortest_path
from loko_testbed.live.runner import LiveRunner
from loko_testbed.reproduce.replay.campaign import replay_in_order
from loko_testbed.reproduce.replay.point import Point
from loko_testbed.simulation import traffic
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import RunError, RunRecords
from loko_testbed.simulation.traffic import (
    IN_WORDS,
    Bucket,
    Greedy,
    RandomBursts,
    Releases,
    Sender,
    Sends,
    TimeTriggered,
    flow_of,
)
from loko_testbed.simulation.virtual import VirtualRunner
from loko_testbed.tasks.progress import NoProgress

LAB = load_lab("two-switch")
FRAME_BYTES = 306
SLOT_NS = (8 + FRAME_BYTES + 12) * 80
BUCKET = Bucket(rate_bps=244_800, burst_bytes=2 * FRAME_BYTES)
"""One frame every 10 ms."""
FLOWS = [
    flow_of(number, "H1", to, rate_bps=244_800, burst_bytes=612, frame_bytes=FRAME_BYTES)
    for number, to in enumerate(("H3", "H4"))
]


def sent(*sends: Sends, seconds: float = 0.1) -> RunRecords:
    """Return what happens to the frames of H1's flows."""
    routed = [RoutedFlow(flow, shortest_path(LAB, flow.source, flow.destination)) for flow in FLOWS]
    each = [Sender.of(number, FLOWS[number], how) for number, how in enumerate(sends)]
    with VirtualRunner(LAB, routed, entries=17) as runner:
        return runner.run(each, seconds=seconds, seed=1)


def test_a_greedy_sender_sends_all_that_its_bucket_lets_pass() -> None:
    records = sent(Greedy(bucket=BUCKET), seconds=1.0)
    first, second, *rest = records.sent_ns.tolist()
    assert second - first == SLOT_NS
    # The bucket is full at 0, so it has tokens for the third frame 10 ms later, and so on.
    assert [at_ns - first for at_ns in rest] == [10_000_000 * number for number in range(1, 100)]


def test_frames_are_released_when_they_are_asked_for_unless_the_bucket_is_empty() -> None:
    asked_ns = np.array([1_000_000, 1_000_000, 1_000_000, 60_000_000])
    shaped = sent(Releases(instants_ns=asked_ns, bucket=BUCKET)).sent_ns
    assert (shaped - shaped[0]).tolist() == [0, SLOT_NS, 10_000_000, 59_000_000]
    free = sent(Releases(instants_ns=asked_ns)).sent_ns
    assert (free - free[0]).tolist() == [0, SLOT_NS, 2 * SLOT_NS, 59_000_000]


def test_slots_are_counted_by_the_hosts_own_clock() -> None:
    slots = TimeTriggered(offset_ns=5_000_000, period_ns=20_000_000)
    due_ns = [5_000_000, 25_000_000, 45_000_000, 65_000_000, 85_000_000]
    assert slots.instants_ns(100_000_000).tolist() == due_ns
    early = replace(slots, off_ns=np.array([-7, 0, 7]))
    assert (early.instants_ns(100_000_000) - due_ns).tolist() == [-7, 0, 7, 0, 0]
    fast = replace(slots, clock_rate=1.25)
    assert fast.instants_ns(100_000_000).tolist() == [at_ns * 4 // 5 for at_ns in (*due_ns, 105_000_000)]
    seen = sent(early).sent_ns
    assert np.diff(seen).tolist() == np.diff(early.instants_ns(100_000_000)).tolist()


def test_a_host_sends_several_flows_each_in_its_own_way() -> None:
    records = sent(Greedy(bucket=BUCKET), TimeTriggered(offset_ns=30_000_000, period_ns=30_000_000))
    assert np.bincount(records.flow).tolist() == [11, 3]
    assert (records.received_ns > 0).all()
    assert {number: counts["sent"] for number, counts in records.flows.items()} == {0: 11, 1: 3}


def test_no_runner_carries_what_has_no_words() -> None:
    assert set(IN_WORDS) == set(get_args(Sends))
    for runner in (VirtualRunner, LiveRunner):
        assert runner.carries <= set(IN_WORDS)
    assert VirtualRunner.carries - LiveRunner.carries == {Releases}


@pytest.mark.parametrize("mode", ["live", "hardware"])
def test_a_point_that_cannot_be_sent_in_real_time_is_refused_before_a_lab_is_built(
    mode: str, tmp_path: Path
) -> None:
    flow = FLOWS[0]
    point = Point(
        figure="loko/none",
        x=0.0,
        label="none",
        lab=LAB,
        routed=[RoutedFlow(flow, shortest_path(LAB, flow.source, flow.destination))],
        scheme="fifth-rate",
        entries=17,
        senders=[Sender.of(0, flow, Releases(instants_ns=np.array([0])))],
        seconds=1.0,
        seeds=[1],
        guarantees_ns={},
    )
    with pytest.raises(RunError, match=rf"--mode {mode} cannot send frames at given instants"):
        list(replay_in_order([point], Options(mode=mode, seed=1, out=tmp_path), NoProgress()))


def test_what_a_sender_depends_on_is_plain_and_tells_instants_apart() -> None:
    ways: list[Sends] = [
        RandomBursts(bucket=BUCKET, offered_rate_bps=1e5, burst_bytes=612, queue_bytes=6120),
        RandomBursts(bucket=None, offered_rate_bps=1e5, burst_bytes=612, queue_bytes=6120),
        Greedy(bucket=BUCKET),
        Releases(instants_ns=np.array([1, 2])),
        Releases(instants_ns=np.array([1, 3])),
        TimeTriggered(offset_ns=1, period_ns=2),
        TimeTriggered(offset_ns=1, period_ns=2, off_ns=np.array([1])),
    ]
    described = {json.dumps(Sender.of(0, FLOWS[0], how).described()) for how in ways}
    assert len(described) == len(ways)


def test_the_vocabulary_imports_nothing_of_the_testbed() -> None:
    names = imported_names(Path(traffic.__file__))
    assert not [name for name in names if name.startswith("loko_testbed")]
