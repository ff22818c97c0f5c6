"""How hosts send in real time, in one lab after another: two at once would compete for the cores."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from live_harness import needs_namespaces

from loko.document import LABS
from loko.switch_model.flow import Flow
from loko.topology.lab import load_lab
from loko_testbed.live.runner import LiveRunner
from loko_testbed.simulation.runner import LOST, RunRecords
from loko_testbed.simulation.traffic import Bucket, Greedy, Sender, TimeTriggered, flow_of

pytestmark = [pytest.mark.live, pytest.mark.namespaces, needs_namespaces]

SECONDS = 1
MS = 1_000_000


BUCKETS = [
    flow_of(number, "H1", to, rate_bps=rate_bps, burst_bytes=612, frame_bytes=306)
    for number, (to, rate_bps) in enumerate({"H3": 400_000, "H4": 100_000}.items())
]
SLOTS = [
    flow_of(number, *ends, rate_bps=244_800, burst_bytes=306, frame_bytes=306)
    for number, ends in enumerate((("H1", "H3"), ("H4", "H2")), len(BUCKETS))
]


@pytest.fixture(scope="class")
def two_switch():
    with LiveRunner(load_lab("two-switch"), [*BUCKETS, *SLOTS]) as live:
        yield live


class TestTwoSwitchLab:
    def test_two_flows_of_a_host_have_a_bucket_each(self, two_switch):
        greedy = [
            Sender.of(number, flow, Greedy(bucket=Bucket(rate_bps=flow.rate_bps, burst_bytes=612)))
            for number, flow in enumerate(BUCKETS)
        ]
        records = two_switch.run(greedy, seconds=SECONDS, seed=1)
        for number, flow in enumerate(BUCKETS):
            mine = records.flow == number
            allowed = flow.rate_bps / 8 * SECONDS + flow.burst_bytes
            assert 0.8 * allowed < records.size[mine].sum() < 1.05 * allowed, flow.id
            assert (records.received_ns[mine] != LOST).mean() > 0.95, flow.id

    def test_hosts_of_a_live_lab_send_in_slots_that_begin_at_one_instant(self, two_switch):
        """Each frame passes its host's tap only after its slot begins; the run reports the precision."""
        sends = [
            TimeTriggered(offset_ns=1 * MS, period_ns=10 * MS),
            TimeTriggered(offset_ns=4 * MS, period_ns=20 * MS),
        ]
        traffic = [Sender.of(n, flow, slot) for n, (flow, slot) in enumerate(zip(SLOTS, sends, strict=True))]
        records = two_switch.run(traffic, seconds=SECONDS, seed=1)
        for number, send_slot in enumerate(sends):
            mine = records.flow == number
            due_ns = send_slot.instants_ns(SECONDS * 1000 * MS)
            kept = records.slots[number]
            assert kept.frames == due_ns.size
            assert 0 <= kept.late_p50_ns <= kept.late_p99_ns <= kept.late_most_ns
            assert kept.late_p50_ns < 1 * MS, "the slots are kept, if not by how much"
            assert (records.received_ns[mine] != LOST).mean() > 0.95
            at_ns = due_ns[records.sequence[mine]]
            assert (records.sent_ns[mine] >= at_ns).all(), "never early"
            assert abs(len(at_ns) - due_ns.size) <= 1, "one at the very end may be outside of the run"


ENDS = (("server:eth1", "H3"), ("server:eth2", "H3"), ("H1", "server:eth2"), ("server:eth1", "server:eth2"))
"""Flows in the lab with a server: all use one network and one UDP destination port, and the last goes from a
host to itself."""


@pytest.fixture(scope="class")
def server():
    flows = [
        flow_of(number, *pair, rate_bps=244_800, burst_bytes=306, frame_bytes=306)._replace(
            udp_destination=6000
        )
        for number, pair in enumerate(ENDS)
    ]
    with LiveRunner(load_lab("two-switch/server.yml"), flows) as live:
        yield live, flows


def records_of_arrived(live: LiveRunner, flows: Sequence[Flow], *, rate_bps: int) -> RunRecords:
    """Send the flows greedily at this rate, and return the records, in which nearly all frames arrive."""
    sends = Greedy(bucket=Bucket(rate_bps=rate_bps, burst_bytes=306))
    records = live.run([Sender.of(n, flow, sends) for n, flow in enumerate(flows)], seconds=SECONDS, seed=1)
    for number, flow in enumerate(flows):
        mine = records.flow == number
        assert mine.sum() > 0.8 * rate_bps / 8 * SECONDS / 306, flow
        assert (records.received_ns[mine] != LOST).mean() > 0.95, flow
    return records


class TestServerOfTwoInterfaces:
    def test_each_flow_of_a_host_leaves_by_its_interface_and_arrives_at_the_one_it_names(self, server):
        live, flows = server
        records = records_of_arrived(live, flows, rate_bps=244_800)
        assert records.boards["s1"]["received"] < records.boards["s2"]["received"], (
            "eth2 to H3 never comes by s1"
        )

    def test_slots_are_kept_by_each_interface(self, server):
        live, flows = server
        slotted = [
            Sender.of(n, flow, TimeTriggered(offset_ns=(1 + 4 * n) * MS, period_ns=10 * MS))
            for n, flow in enumerate(flows[:2])
        ]
        records = live.run(slotted, seconds=SECONDS, seed=1)
        for number in range(2):
            assert (records.received_ns[records.flow == number] != LOST).sum() > 0.9 * SECONDS * 100


@pytest.mark.parametrize(
    ("far", "ends"),
    [
        (
            "10.0.0.4/24",
            [
                ("server:eth1", "server:eth2", 5000, 5000),
                ("H1", "H3", 5001, 6000),
                ("H1", "server:eth2", 5000, 6000),
                ("server:eth2", "H1", 6000, 5000),
            ],
        ),
        ("192.168.7.4/24", [("server:eth2", "H3", 5000, 6000), ("H1", "server:eth2", 5000, 6000)]),
    ],
    ids=["to itself by one port, and there and back by the same ports", "two networks"],
)
def test_flows_arrive_whatever_ports_and_networks_the_interfaces_share(tmp_path, far, ends):
    text = (LABS / "two-switch/server.yml").read_text()
    (tmp_path / "lab.yml").write_text(text.replace("10.0.0.4/24", far))
    flows = [
        flow_of(number, *pair, rate_bps=200_000, burst_bytes=306, frame_bytes=306)._replace(
            udp_source=udp_source, udp_destination=udp_destination
        )
        for number, (*pair, udp_source, udp_destination) in enumerate(ends)
    ]
    with LiveRunner(load_lab(tmp_path), flows) as live:
        records_of_arrived(live, flows, rate_bps=200_000)
