"""`make smoke`: the runs that it tries and skips, and what counts as a failure."""

from __future__ import annotations

import numpy as np
import pytest

from loko.admission.planning import plan, scenario_of
from loko.admission.schemes import admission_of, variant_named
from loko.control.entries import EVALUATION_ENTRIES
from loko.topology.lab import Backend
from loko_testbed.cli.smoke import WITHOUT_BOARDS, combinations, judge, senders
from loko_testbed.live.doctor.facts import Requirement
from loko_testbed.simulation.runner import LOST, HostReport, RunRecords

EVERY = list(combinations(WITHOUT_BOARDS))


def records(arrived: dict[int, list[bool]]) -> RunRecords:
    flow = [number for number, fates in arrived.items() for _ in fates]
    fates = np.array([fate for fates in arrived.values() for fate in fates])
    sent = np.arange(len(flow), dtype=np.int64) * 1_000_000
    return RunRecords(
        flow=np.array(flow, dtype=np.int32),
        sequence=np.arange(len(flow), dtype=np.int64),
        sent_ns=sent,
        received_ns=np.where(fates, sent + 564_000, LOST),
        size=np.full(len(flow), 306, dtype=np.int32),
        host=HostReport(stalls=(), lateness_ns={}),
        boards={},
    )


def test_every_backend_carries_two_switches_and_a_ring_of_five():
    assert [str(variant) for variant in EVERY] == [
        f"{lab}, {built}"
        for built in ("firmware", "ovs", "ovs-timed", "mininet-link", "containerlab")
        for lab in ("two-switch", "ring-of-five")
    ]


@pytest.mark.parametrize("variant", EVERY[:2], ids=str)
def test_the_flows_are_admitted_and_a_host_sends_one(variant):
    scenario = scenario_of(variant.flows, entries=EVALUATION_ENTRIES)
    admitted = plan(
        variant.lab, variant.flows, admission_of(variant.lab, variant_named("fifth-rate"), scenario)
    )
    assert not admitted.refused
    assert len({flow.source for flow in variant.flows}) == len(variant.flows) == len(variant.lab.hosts)


def test_what_a_machine_lacks_is_the_reason_to_leave_a_backend_out():
    firmware, stand_in = EVERY[0], next(variant for variant in EVERY if variant.backend is Backend.OVS)
    ifb = Requirement(name="stand-in: ifb", there=False, change="the kernel needs ifb", backends=("ovs",))
    assert firmware.obstacle([ifb]) is None
    assert stand_in.obstacle([ifb]) == "stand-in: ifb is not there: the kernel needs ifb"
    optional = Requirement(name="netem", there=False, change="", backends=("ovs",), optional=True)
    assert stand_in.obstacle([optional]) is None
    mgen = Requirement(name="mgen", there=False, change="apt-get install mgen")
    assert firmware.obstacle([mgen]) == "mgen is not there: apt-get install mgen"
    assert firmware.obstacle([Requirement(name="mgen", there=True, change="")]) is None


def test_a_flow_that_does_not_arrive_fails():
    flows = EVERY[0].flows
    whole = {number: [True, True, True, False] for number in range(len(flows))}
    passed = judge(flows, records(whole))
    assert passed.passed
    assert "4 flows, 16 packets, 4 lost, delay 0.56 ms (median)" in passed.message
    lossy = judge(flows, records({**whole, 2: [True, False, False]}))
    assert (lossy.passed, lossy.message) == (False, "of H2-H4 only 33% arrived")
    silent = judge(flows, records({number: fates for number, fates in whole.items() if number != 1}))
    assert (silent.passed, silent.message) == (False, "H3-H1 sent nothing")


def test_senders_keep_to_the_admitted_token_buckets():
    flows = EVERY[1].flows
    for flow, sender in zip(flows, senders(flows), strict=True):
        assert sender.bucket.rate_bps == flow.rate_bps
        assert sender.bucket.burst_bytes == flow.burst_bytes
        assert sender.observed
