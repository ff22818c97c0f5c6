"""Each switch is charged with the frames that can reach it, and guarantees hold where sizes mix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from random import Random

import networkx as nx
import numpy as np
import pytest
from gate_examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from loko.admission import Admission, Admitted, Usage
from loko.admission.planning import Plan, plan, scenario_of
from loko.admission.port_queues import PortAdmission
from loko.admission.schemes import VARIANTS, SchemeName, admission_of
from loko.control.entries import switch_entries
from loko.control.stack_admission import stack_admission
from loko.document import InputError
from loko.service.admitter import SchemeAdmitter
from loko.switch_model.control_traffic import HEARTBEAT
from loko.switch_model.flow import Flow
from loko.switch_model.mix import FlowKind, Mix, TrafficPair
from loko.switch_model.scenario import OpenFlow
from loko.topology.frame_sizes import CrossableSwitches, parse_size, sizes_by_switch
from loko.topology.lab import Lab, lab_of
from loko.topology.network import Hop, shortest_path
from loko_testbed.cli.serve import _AdmissionOptions, _by_admission
from loko_testbed.simulation.virtual import PoweredLab, lab_network
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.delivery import DRAIN_NS, judge_delivery, timed_senders
from loko_testbed.simulation.worst_case.port_trial import transmit_and_judge
from loko_testbed.simulation.worst_case.random_cases import SHAPES, random_lab
from loko_testbed.simulation.worst_case.release import LEAD_NS, aimed_pattern, refill_ns, release_instants
from loko_testbed.simulation.worst_case.schemes import GUARANTEED

SCHEMES = (*GUARANTEED, "ports")
ENTRIES = 40
MIX = Mix(kinds=[FlowKind(rate_bps=2e4, burst_bytes=306, frame_bytes=306)], requests=40)


def a_flow(number: int, ends: Sequence[str], frame_bytes: int, **asked: float) -> Flow:
    """Return a flow between two hosts, by default of one frame and 0.3 Mbit/s."""
    return Flow(
        id=f"f{number}",
        source=ends[0],
        destination=ends[1],
        udp_source=1000 + number,
        udp_destination=2000 + number,
        rate_bps=asked.get("rate_bps", 3e5),
        burst_bytes=asked.get("frames", 1) * frame_bytes,
        frame_bytes=frame_bytes,
    )


def line(count: int, profile: str) -> Lab:
    """Return switches in a line, with two hosts each: a0 and b0 at s0, and so on."""
    board = {"ofchecks": False, "openflow_ports": [1, 2, 3, 4], "native_ports": []}
    names = [f"{letter}{number}" for number in range(count) for letter in "ab"]
    return lab_of(
        {
            "name": "line",
            "title": "line",
            "switches": {
                f"s{number}": {
                    "datapath_id": f"00:00:70:b3:d5:6c:00:{number:02x}",
                    "profile": profile,
                    **(
                        {"config": {"mac": f"70:b3:d5:6c:00:{number:02x}", **board}}
                        if profile == "zodiac-fx"
                        else {}
                    ),
                }
                for number in range(count)
            },
            "hosts": {
                name: {"mac": f"02:00:00:00:00:{place:02x}", "ip": f"10.0.0.{place + 1}/24"}
                for place, name in enumerate(names)
            },
            "links": [
                *({"a": name, "b": f"s{name[1:]}:{'ab'.index(name[0]) + 1}"} for name in names),
                *({"a": f"s{number}:3", "b": f"s{number + 1}:4"} for number in range(count - 1)),
            ],
            "control_port": 0,
        }
    )


def planned(
    lab: Lab, scheme: str, flows: Sequence[Flow], *, by_switch: bool = True
) -> tuple[Plan, Admission]:
    """Plan the flows as `loko plan` does. Raises `InputError` if nothing can be promised.

    Unless `by_switch`, every switch is charged with the sizes of all flows.
    """
    choice = VARIANTS[scheme]
    expected = MIX if choice.is_optimised else None
    scenario = scenario_of(flows, entries=ENTRIES, mix=expected, lab=lab if by_switch else None)
    reserved = None if scheme == "ports" else HEARTBEAT
    admission = admission_of(lab, choice, scenario, mix=expected, traffic=reserved)
    return plan(lab, flows, admission), admission


# Which sizes reach which switch.


@examples(30)
@given(st.integers(0, 10**6), st.sampled_from(SHAPES))
def test_crossable_switches_are_those_of_all_paths_without_a_loop(seed: int, shape: str) -> None:
    """Compared with every such path, one by one. Cables of one direction only leave out some."""
    lab = random_lab(Random(seed), shape, most_switches=9)
    crossable = CrossableSwitches(lab)
    graph = nx.Graph((a.node, b.node) for a, b in lab.cables())
    for source, destination in permutations(lab.hosts, 2):
        every = nx.all_simple_paths(graph, source, destination)
        expected = {node for path in every for node in path if node in lab.switches}
        assert crossable.between(source, destination) == expected
        shortest = {hop.switch for hop in shortest_path(lab, source, destination)}
        assert shortest <= expected


def test_unknown_hosts_and_other_parts_of_a_network_are_not_reached() -> None:
    lab = line(4, "zodiac-fx")
    cut = replace(lab, links=tuple(link for link in lab.links if {link.a.node, link.b.node} != {"s1", "s2"}))
    assert CrossableSwitches(cut).between("a0", "a1") == {"s0", "s1"}
    assert CrossableSwitches(cut).between("a0", "a2") == frozenset()
    assert CrossableSwitches(cut).between("nobody", "a1") == frozenset()


def test_sizes_of_flows_paths_and_mixes() -> None:
    lab = line(4, "zodiac-fx")
    flows = [a_flow(0, ("a0", "a1"), 306), a_flow(1, ("a1", "a2"), 1500), a_flow(2, ("a0", "b0"), 64)]
    scenario = scenario_of(flows, entries=17, lab=lab)
    assert scenario.sizes_at == {"s0": (64, 306), "s1": (306, 1500), "s2": (1500,)}
    assert scenario.at("s1").frame_bytes == (306, 1500)
    assert scenario.at("s3").frame_bytes == (1500,)  # nothing reaches it
    assert scenario.frame_bytes == scenario_of(flows, entries=17).at("s3").frame_bytes == (64, 306, 1500)
    given_path = {"f0": [Hop(switch="s3", output_port=1)]}
    assert scenario_of(flows, entries=17, lab=lab, paths=given_path).at("s3").frame_bytes == (306,)
    near = FlowKind(
        rate_bps=1e5, burst_bytes=128, frame_bytes=128, between=[TrafficPair(source="a2", destination="a3")]
    )
    anywhere = FlowKind(rate_bps=1e5, burst_bytes=256, frame_bytes=256)
    mixed = scenario_of(flows, entries=17, lab=lab, mix=Mix(kinds=[near, anywhere]))
    assert mixed.sizes_at == {
        "s0": (64, 256, 306),
        "s1": (256, 306, 1500),
        "s2": (128, 256, 1500),
        "s3": (128, 256),
    }
    assert scenario_of(flows[:1], entries=17, lab=lab).sizes_at == {}
    assert sizes_by_switch(lab, []) == {}


# The attack: a large frame in another part of the network.


@pytest.mark.parametrize("elsewhere_bytes", [64, 1500])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_another_frame_elsewhere_changes_nothing(scheme: str, elsewhere_bytes: int) -> None:
    """Whether or not it fits there, those before it are answered as without it.

    If every switch is charged with all sizes, the same flow changes what the others use.
    """
    lab = line(4, "ideal-1g" if scheme == "ports" else "zodiac-fx")
    rate_bps = 15e6 if scheme == "ports" else 3e5
    small = [a_flow(n, ("a0", "a1") if n % 2 else ("b1", "b0"), 306, rate_bps=rate_bps) for n in range(45)]
    other = a_flow(99, ("a2", "a3"), elsewhere_bytes)
    before, alone = planned(lab, scheme, small)
    after, beside = planned(lab, scheme, [*small, other])
    assert 0 < len(before.accepted) < len(small)
    assert after.accepted[: len(before.accepted)] == before.accepted
    assert after.refused[: len(before.refused)] == before.refused
    assert used(beside) == used(alone)
    _, everywhere = planned(lab, scheme, [*small, other], by_switch=False)
    assert used(everywhere) != used(alone)


def test_another_frame_elsewhere_changes_nothing_for_stacks_of_tags() -> None:
    lab = line(4, "zodiac-fx")
    small = [a_flow(n, ("a0", "a1"), 306) for n in range(9)]
    stacks = []
    for flows in (small, [*small, a_flow(99, ("a2", "a3"), 1200)]):
        choice = VARIANTS["fifth-rate"]
        stacks.append(stack_admission(lab, choice, flows, openflow=OpenFlow.V1_3, traffic=HEARTBEAT))
        assert 0 < len(plan(lab, flows, stacks[-1]).accepted) < len(small)
    assert used(stacks[0]) == used(stacks[1])
    assert stacks[0].usage("s2") != stacks[1].usage("s2")


def used(admission: Admission) -> list[Usage]:
    """Return what is used of the first two switches."""
    return [admission.usage(name) for name in ("s0", "s1")]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_frame_that_a_switch_was_not_planned_for_is_refused(scheme: str) -> None:
    lab = line(4, "ideal-1g" if scheme == "ports" else "zodiac-fx")
    _, admission = planned(lab, scheme, [a_flow(0, ("a0", "a1"), 306), a_flow(1, ("a2", "a3"), 1500)])
    if scheme != "optimised" and not scheme.endswith("-optimised"):  # their mix goes everywhere
        with pytest.raises(
            InputError, match=r"frame_bytes 306 is not a size that s2 was planned for \(1500\)"
        ):
            admission.check(a_flow(2, ("b1", "b3"), 306))
    with pytest.raises(InputError, match=r"frame_bytes 1500 is not a size that s1 was planned for \(306\)"):
        admission.check(a_flow(2, ("b1", "b3"), 1500))


# A service, whose flows come later.


def served(lab: Lab, *frame_bytes: str) -> SchemeAdmitter:
    """Return what grants flows in `loko serve --frame-bytes ...`."""
    given = dict.fromkeys(_AdmissionOptions._fields) | {
        "scheme": SchemeName.LOKO,
        "entries": 17,
        "changes_per_s": 2.0,
        "frame_bytes": list(frame_bytes),
    }
    admitter = _by_admission(lab, _AdmissionOptions(**given), OpenFlow.V1_0).admitter
    assert isinstance(admitter, SchemeAdmitter)
    return admitter


def test_a_service_charges_a_size_only_where_its_hosts_may_send_it() -> None:
    lab = line(4, "zodiac-fx")
    small = [a_flow(n, ("a0", "a1") if n % 2 else ("b1", "b0"), 306) for n in range(20)]
    large = a_flow(99, ("a2", "a3"), 790)
    alone, told, plain = (
        served(lab, *sizes) for sizes in (("306",), ("306", "790@a2,a3,b3"), ("306", "790"))
    )
    granted = [alone.decision(flow)() for flow in small]
    assert isinstance(told.decision(large)(), Admitted)
    assert [told.decision(flow)() for flow in small] == granted
    assert told.decision(a_flow(98, ("b3", "b2"), 790))().flow.id == "f98"
    with pytest.raises(InputError, match=r"frame_bytes 790 is not a size that s1 was planned for \(306\)"):
        told.decision(a_flow(97, ("b2", "b1"), 790))()
    fit = sum(isinstance(answer, Admitted) for answer in granted)
    assert 0 < sum(isinstance(plain.decision(flow)(), Admitted) for flow in small) < fit < len(small)


def test_what_a_service_is_told_is_part_of_its_circumstances() -> None:
    lab = line(2, "zodiac-fx")
    for words, kept in ((["1500@b1,a0", "306"], "306,1500@a0+b1"), (["1500", "306"], "306,1500")):
        assert ",".join(map(str, sorted(parse_size(word, lab) for word in words))) == kept


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("15oo", "give bytes, or bytes@HOST,HOST"),
        ("1500@a0", "give bytes, or bytes@HOST,HOST"),
        ("1500@", "give bytes, or bytes@HOST,HOST"),
        ("1500@a0,nobody", "lab 'line' has no host 'nobody'"),
        ("63", "packet size 63 is outside 64 to 1518"),
    ],
)
def test_wrong_sizes_are_refused_in_a_line(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        served(line(2, "zodiac-fx"), text)


# Guarantees where sizes mix.


def carried(case: AdmittedSet, seed: int) -> tuple[object, ...]:
    """Send bursts of all flows that meet where paths join. Return what is lost or late."""
    rng = np.random.default_rng(seed)
    bursts = [aimed_pattern(case, rng) for _ in range(6)]
    period_ns = round(refill_ns(case)) + 20_000_000
    at_ns = [LEAD_NS + place * period_ns for place in range(len(bursts))]
    tables = switch_entries(case.lab, case.admitted, entries=case.entries)
    powered = PoweredLab(case.lab, lab_network(case.lab, tables, seed=seed), seed)
    records = powered.run(
        timed_senders(case, release_instants(case, at_ns, bursts)),
        duration_ns=at_ns[-1] + period_ns,
        drain_ns=DRAIN_NS,
    )
    return judge_delivery(case, records).broken


def drawn(seed: int, scheme: str, profile: str) -> tuple[Lab, Plan, Admission]:
    """Draw a network in which each pair of busy hosts has a frame size of its own, and plan what fills it."""
    rng = Random(seed)
    lab = random_lab(rng, rng.choice(("line", "tree", "cycles")), most_switches=6, profiles=[profile])
    hosts = list(lab.hosts)
    pairs = [tuple(rng.sample(hosts, 2)) for _ in range(rng.randint(2, 5))]
    sizes = rng.sample((64, 128, 306, 790, 1516), rng.choice((2, 2, 3)))
    most_bps = 2e8 if scheme == "ports" else rng.choice((3e4, 3e5, 1e6))
    most_frames = rng.choice((1, 1, 3))
    flows = []
    for number in range(35):
        place = number % len(pairs)
        rate_bps, frames = rng.uniform(0.1, 1) * most_bps, rng.randint(1, most_frames)
        size = sizes[place % len(sizes)]
        flows.append(a_flow(number, pairs[place], size, rate_bps=rate_bps, frames=frames))
    return lab, *planned(lab, scheme, flows)


@examples(15)
@given(seed=st.integers(0, 10**6), scheme=st.sampled_from(GUARANTEED))
def test_nothing_is_lost_or_late_on_boards_where_sizes_mix(seed: int, scheme: str) -> None:
    try:
        lab, result, _ = drawn(seed, scheme, "zodiac-fx")
    except InputError:
        assume(False)  # such as sizes of which a board bears no mixture
        return
    assume(len({admitted.flow.frame_bytes for admitted in result.accepted}) > 1)
    case = AdmittedSet(lab=lab, scheme=scheme, admitted=result.accepted, entries=ENTRIES, control=HEARTBEAT)
    assert carried(case, seed) == ()


@examples(8)
@given(seed=st.integers(0, 10**6))
def test_nothing_is_lost_or_late_on_ports_where_sizes_mix(seed: int) -> None:
    lab, result, admission = drawn(seed, "ports", "ideal-1g")
    assume(len({admitted.flow.frame_bytes for admitted in result.accepted}) > 1)
    assert isinstance(admission, PortAdmission)
    now: list[Admitted] = [admission.as_bound_now(admitted.flow.id) for admitted in result.accepted]
    assert transmit_and_judge(lab, now, seed=seed, packets=3_000).broken == ()
