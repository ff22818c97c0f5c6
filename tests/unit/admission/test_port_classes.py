"""Traffic classes on switches with queues: bounds by hand, entries, targets and the choice of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from harness.managed_switches import OWN_BUFFERS, managed_switch, ring_of_managed

from loko.admission import Admission, Admitted, Refusal
from loko.admission.class_targets import in_classes, with_class_targets
from loko.admission.planning import plan
from loko.admission.port_queues import PortAdmission
from loko.admission.schemes import SchemeVariant, admission_of, refuse_one_class, variant_named
from loko.control.entries import Enqueue, path_entries
from loko.document import InputError
from loko.switch_model.calculus import PathStep, PortServer, RateLatency, TokenBucket, TotalFlow
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import UNKNOWN, Scenario, loko_scenario
from loko.topology.lab import Lab, lab_of, load_lab
from loko.topology.requests import Request, deadlines_of, in_class
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.delivery import judge_delivery, timed_senders, transmit

SIZES = (306, 1518)
SCENARIO = loko_scenario(entries=UNKNOWN, packet_sizes_bytes=SIZES)
LEAD_NS = 1_000_000


def star(hosts: int = 4, profile: str = "ideal-1g") -> Lab:
    return lab_of(
        {
            "name": "star",
            "title": "one switch",
            "switches": {"s0": {"datapath_id": "00:00:02:00:00:00:02:00", "profile": profile}},
            "hosts": {
                f"h{n}": {"mac": f"02:00:00:00:00:{n:02x}", "ip": f"10.0.0.{n + 1}/24"} for n in range(hosts)
            },
            "links": [{"a": f"h{n}", "b": f"s0:{n + 1}"} for n in range(hosts)],
        }
    )


def flow(
    name: str,
    source: str,
    *,
    mbps: float = 5.0,
    frames: int = 1,
    frame_bytes: int = 306,
    traffic_class: int = 1,
) -> Flow:
    ports = 5000 + sum(map(ord, name)), 6000
    burst_bytes = float(frames * frame_bytes)
    return Flow(name, source, "h0", *ports, mbps * 1e6, burst_bytes, frame_bytes, traffic_class)


def bound_ns(lab: Lab, *flows: Flow) -> float:
    """Return the bound of the first flow beside the others."""
    admission = PortAdmission(lab, SCENARIO, classes=max(flow.traffic_class for flow in flows))
    for asked in flows:
        assert isinstance(admission.request(asked), Admitted), asked.id
    return admission.as_bound_now(flows[0].id).guarantee_ns


ALONE = flow("low", "h1")
LOW = ALONE._replace(traffic_class=2)
BURST = flow("burst", "h2", frames=12, frame_bytes=1518)


def test_a_lower_class_waits_for_the_burst_of_a_higher_one() -> None:
    """Beside what it takes alone: (12 x 1538 + r T) x 8 ns, where the higher class goes on at 5 Mbit/s."""
    lab = star()
    alone_ns, beside_ns = bound_ns(lab, LOW), bound_ns(lab, LOW, BURST)
    burst_ns = 12 * 1538 * 8
    assert alone_ns + burst_ns < beside_ns < alone_ns + 1.02 * burst_ns
    # A higher class does not wait for a lower one, but for the largest frame of other traffic.
    assert bound_ns(lab, ALONE, BURST._replace(traffic_class=2)) == bound_ns(lab, ALONE)


def test_frames_come_close_to_the_bound_of_a_lower_class() -> None:
    """Two bursts meet before a frame of the lower class comes: it leaves last.

    So it exceeds the bound that forgets the higher class, and nearly reaches its own.
    """
    lab, flows = star(), [LOW, BURST, flow("again", "h3", frames=12, frame_bytes=1518)]
    admission = PortAdmission(lab, SCENARIO, classes=2)
    for asked in flows:
        admission.request(asked)
    admitted = tuple(admission.as_bound_now(asked.id) for asked in flows)
    case = AdmittedSet(lab=lab, scheme="ports", admitted=admitted, entries=60)
    releases = [np.array([LEAD_NS + 15_000]), np.full(12, LEAD_NS), np.full(12, LEAD_NS)]
    verdict = judge_delivery(
        case, transmit(case, timed_senders(case, releases), seed=1, duration_ns=10 * LEAD_NS)
    )
    assert not verdict.broken
    longest_ns = verdict.flows[0].worst * admitted[0].guarantee_ns
    assert longest_ns > 10 * bound_ns(lab, LOW)
    assert longest_ns > 0.85 * admitted[0].guarantee_ns


def test_a_busy_period_of_a_higher_class_counts_until_the_lower_ones_are_served() -> None:
    """Theorem 2: what has left the higher queue may still hold up the lower one."""
    gbit = RateLatency(rate_bps=1e9, latency_ns=0.0)
    network = TotalFlow({"high": PortServer(service=gbit), "low": PortServer(service=gbit, above=("high",))})
    network.add([PathStep("high")], TokenBucket(rate_bps=1e8, burst_bytes=1000))
    network.add([PathStep("low")], TokenBucket(rate_bps=4e8, burst_bytes=5000))
    network.bounds = network.settle(["high", "low"])
    assert network.busy_ns("low") == pytest.approx(6000 * 8 / (1 - 0.1 - 0.4))
    assert network.busy_ns("high") == network.busy_ns("low")


def test_all_classes_of_a_port_share_its_rate() -> None:
    lab = star()
    admission = PortAdmission(lab, SCENARIO, classes=2)
    assert isinstance(admission.request(flow("high", "h2", mbps=600)), Admitted)
    refusal = admission.request(flow("low", "h1", mbps=400, traffic_class=2))
    assert isinstance(refusal, Refusal)
    assert refusal.quantity == "rate of port 1 class 2"
    assert refusal.used == pytest.approx(600e6 * 326 / 306)
    (rate,) = [share for share in admission.usage("s0").shares if share.quantity == "rate of port 1"]
    assert rate.used == refusal.used


def test_a_lower_class_keeps_its_bound_when_a_higher_flow_comes() -> None:
    """A promise to the lower class refuses the higher flow that would break it."""
    lab = star()
    admission = PortAdmission(lab, SCENARIO, classes=2, class_targets_ns={2: 40_000})
    assert isinstance(admission.request(LOW), Admitted)
    refusal = admission.request(BURST)
    assert isinstance(refusal, Refusal)
    assert refusal.quantity == "delay of port 1 class 2"


def test_entries_have_the_queue_of_their_class() -> None:
    lab = star()
    admission = PortAdmission(lab, SCENARIO, classes=3)
    for asked, queue in ((LOW._replace(traffic_class=3), 5), (BURST, 7)):
        answer = admission.request(asked)
        assert isinstance(answer, Admitted)
        ((_, entry),) = path_entries(lab, answer)
        assert entry.actions == (Enqueue(1, queue),)


@pytest.mark.parametrize(
    ("profile", "classes", "why"),
    [
        ("ideal-1g", 8, "8 classes of flows, but 8 queues at each port, .* use 7 at most"),
        ("dell-s3048-on", 2, "chooses the queue to send from only every .* no bound"),
    ],
)
def test_what_has_no_queue_or_bound_for_a_class_is_refused(profile: str, classes: int, why: str) -> None:
    with pytest.raises(InputError, match=f"s0: {profile}: {why}"):
        PortAdmission(star(profile=profile), SCENARIO, classes=classes)


@pytest.mark.parametrize("scheme", ["full-rate", "silo"])
def test_other_schemes_know_one_class(scheme: str) -> None:
    with pytest.raises(InputError, match=r"2 traffic classes: .* knows one class only"):
        admission_of(star(), variant_named(scheme), SCENARIO, classes=2)


# Targets and the choice of classes.


def requests_for(lab: Lab) -> list[Request]:
    """Control flows within 0.4 ms, and twice as many bursts of video within 20 ms."""
    hosts = list(lab.hosts)
    asked = []
    for number in range(60):
        source = hosts[number % len(hosts)]
        destination = hosts[(number + 3 + number // len(hosts) % 3) % len(hosts)]
        ports = (5000 + number, 6000 + number)
        if number % 3:
            video = Flow(f"v{number}", source, destination, *ports, 8e6, 12 * 1518.0, 1518)
            asked.append(Request(video, 20e6))
        else:
            control = Flow(f"c{number}", source, destination, *ports, 1e6, 306.0, 306)
            asked.append(Request(control, 400e3))
    return asked


def ready(
    lab: Lab, scenario: Scenario, requests: Sequence[Request], class_targets_ns: Mapping[int, float]
) -> Admission:
    return admission_of(
        lab,
        SchemeVariant(scheme="ports"),
        scenario,
        classes=max(request.flow.traffic_class for request in requests),
        class_targets_ns=class_targets_ns,
    )


def test_more_fit_in_two_classes_than_in_one(tmp_path: Path) -> None:
    """Whatever the target of the one class is: short for control, or long for the bursts of video."""
    profile = managed_switch(OWN_BUFFERS.replace("64", "512"), queues=4)
    lab = ring_of_managed(tmp_path, profile, hosts_each=3)
    requests = requests_for(lab)
    make = partial(ready, lab, SCENARIO)

    def fit(requests: Sequence[Request], admission: Admission) -> int:
        flows = [request.flow for request in requests]
        return len(plan(lab, flows, admission, deadlines_ns=deadlines_of(requests)).accepted)

    one = [
        fit(requests, PortAdmission(lab, SCENARIO, target_ns=target_ms * 1e6))
        for target_ms in (0.15, 0.198, 1, 9.9)
    ]
    classed = in_classes(lab, requests, 2, make)
    assert fit(classed, with_class_targets(lab, classed, make)) > max(one)
    assert [request.flow.id for request in classed] == [request.flow.id for request in requests]
    assert {request.flow.traffic_class for request in classed if request.flow.id.startswith("c")} == {1}
    assert {request.flow.traffic_class for request in classed if request.flow.id.startswith("v")} == {2}


def test_flows_that_fit_in_one_class_stay_in_it(tmp_path: Path) -> None:
    lab = ring_of_managed(tmp_path, managed_switch(OWN_BUFFERS, queues=4))
    classed = in_classes(lab, requests_for(lab)[:2], 3, partial(ready, lab, SCENARIO))
    assert [request.flow.traffic_class for request in classed] == [1, 1]


def test_targets_of_classes_follow_their_deadlines(tmp_path: Path) -> None:
    lab = ring_of_managed(tmp_path, managed_switch(OWN_BUFFERS, queues=4))
    control, video = requests_for(lab)[:2]
    classed = [control, in_class(video, 2)]
    admission = with_class_targets(lab, classed, partial(ready, lab, SCENARIO))
    for request in classed:
        answer = admission.request(request.flow)
        assert isinstance(answer, Admitted)
        assert request.deadline_ns is not None
        assert answer.guarantee_ns <= request.deadline_ns
    late = admission.admitted[video.flow.id].guarantee_ns
    assert late > 0.9999 * 20e6


def test_a_deadline_that_no_port_keeps_refuses_its_flow_alone(tmp_path: Path) -> None:
    lab = ring_of_managed(tmp_path, managed_switch(OWN_BUFFERS, queues=4))
    control, video, hopeless, *_ = requests_for(lab)
    classed = [control, hopeless._replace(deadline_ns=1e3), in_class(video, 2)]
    admission = with_class_targets(lab, classed, partial(ready, lab, SCENARIO))
    made = plan(lab, [request.flow for request in classed], admission, deadlines_ns=deadlines_of(classed))
    assert [refusal.flow.id for refusal in made.refused] == [hopeless.flow.id]


def test_labs_of_boards_have_one_class() -> None:
    lab = load_lab("two-switch")
    loko = r"classes: --allocation full-rate knows one class only; leave it out, or replace s1 \(zodiac-fx\)"
    with pytest.raises(InputError, match=loko):
        refuse_one_class(lab, variant_named("full-rate"), "classes")
    with pytest.raises(InputError, match="--scheme mixed knows one class only"):
        refuse_one_class(lab, variant_named("mixed"), "classes")
    admission = admission_of(
        lab, variant_named("full-rate"), loko_scenario(entries=17, packet_sizes_bytes=(306,))
    )
    lower = Flow("a", "H1", "H3", 5000, 6000, 1e5, 306.0, 306, 2)
    with pytest.raises(InputError, match="traffic_class 2: flows here have class 1 alone"):
        admission.request(lower)
