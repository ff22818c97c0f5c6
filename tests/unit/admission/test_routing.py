"""Routes on a ring and on meshes: the cheapest path with room that meets the deadline, or the reason."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from loko.admission import Admitted, LokoAdmission, Refusal
from loko.admission.routing import MOST_PATHS, path_through, paths, route
from loko.admission.schemes import SchemeName, SchemeVariant, admission_of
from loko.document import InputError
from loko.switch_model.allocation import scheme_named
from loko.switch_model.device import load_device
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Endpoint, Lab, Link, load_lab
from loko.topology.lab_allocation import allocations_of
from loko.topology.network import Hop

TWO = load_lab("two-switch")


def lab_of(cables: list[tuple[str, str]], hosts: dict[str, str]) -> Lab:
    """Build a lab from parts of the two-switch lab: cables between switches, and each host at its switch."""
    names = sorted({name for cable in cables for name in cable})
    ports = {name: itertools.count(1) for name in names}
    like = TWO.switches["s1"]
    links = [
        Link(a=Endpoint(node=a, port=next(ports[a])), b=Endpoint(node=b, port=next(ports[b])))
        for a, b in cables
    ]
    links += [
        Link(a=Endpoint(node=host, port=1), b=Endpoint(node=switch, port=next(ports[switch])))
        for host, switch in hosts.items()
    ]
    return Lab(
        name="made",
        title="made",
        path=Path("made"),
        switches=MappingProxyType(dict.fromkeys(names, like)),
        hosts=MappingProxyType(dict.fromkeys(hosts, TWO.hosts["H1"])),
        links=tuple(links),
        control_port=4,
    )


RING = lab_of([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a")], {"X": "a", "Y": "c"})


def admission(lab: Lab) -> LokoAdmission:
    scenario = loko_scenario(entries=17, packet_sizes_bytes=(306,))
    return LokoAdmission(lab, allocations_of(lab, scheme_named("full-rate"), scenario))


def flow(number: int, source: str = "X", destination: str = "Y", **values: float) -> Flow:
    fields = {"rate_bps": 1e5, "burst_bytes": 306.0, "frame_bytes": 306, **values}
    return Flow(
        id=str(number),
        source=source,
        destination=destination,
        udp_source=number,
        udp_destination=1,
        **fields,  # type: ignore[arg-type]
    )


def names(answer: Admitted | Refusal) -> list[str]:
    assert isinstance(answer, Admitted)
    return [hop.switch for hop in answer.hops]


def test_paths_come_in_order_of_cost_without_loops() -> None:
    assert [[hop.switch for hop in path] for path in paths(RING, "X", "Y")] == [list("abc"), list("aedc")]


def test_dead_cables_are_left_out_of_paths() -> None:
    control = admission(RING)
    direct, around = list("abc"), list("aedc")
    assert names(route(RING, control, flow(1))) == direct
    for cable in RING.links[:2]:  # from a by b to c
        dead = frozenset({(end.node, end.port) for end in (cable.a, cable.b)})
        assert names(route(RING, control, flow(1), dead_ends=dead)) == around
    every = frozenset((end.node, end.port) for end, _ in RING.cables())
    assert names(route(RING, control, flow(1), dead_ends=every)) == direct  # there is no other answer


def test_second_path_is_taken_when_the_first_is_full() -> None:
    control = admission(RING)
    taken = []
    for number in range(1, 40):
        answer = route(RING, control, flow(number))
        if isinstance(answer, Refusal):
            break
        taken.append(names(answer))
        control.request(flow(number), [Hop(switch=h.switch, output_port=h.output_port) for h in answer.hops])
    assert list("abc") in taken
    assert isinstance(answer, Refusal)
    assert answer.switch in "ac"  # both paths begin and end there
    assert route(RING, control, flow(99)) == route(RING, control, flow(99))


def test_path_around_a_full_switch() -> None:
    lab = lab_of(
        [("a", "b"), ("b", "c"), ("a", "d"), ("d", "e"), ("e", "c")], {"X": "a", "Y": "c", "P": "b", "Q": "b"}
    )
    control = admission(lab)
    number = 1
    while isinstance(control.request(flow(number, "P", "Q")), Admitted):
        number += 1
    assert names(route(lab, control, flow(500))) == list("adec")


def test_deadline_is_kept_or_explained() -> None:
    control = admission(RING)
    best = route(RING, control, flow(1))
    assert isinstance(best, Admitted)
    assert names(route(RING, control, flow(1), best.guarantee_ns)) == list("abc")
    late = route(RING, control, flow(1), best.guarantee_ns - 1)
    assert isinstance(late, Refusal)
    assert (late.quantity, late.unit) == ("delay", "ns")
    assert late.used + late.requested == pytest.approx(best.guarantee_ns)
    assert late.suggestion.deadline_ns == math.ceil(best.guarantee_ns)
    assert names(route(RING, control, flow(1), late.suggestion.deadline_ns)) == list("abc")


@pytest.mark.parametrize("seed", range(20))
def test_answer_is_the_cheapest_of_all_paths(seed: int) -> None:
    """Compare with trying every simple path, on random meshes with random load."""
    choice = random.Random(seed)
    switches = "abcdef"
    cables = [(x, y) for x, y in itertools.pairwise(switches)]
    cables += [
        (x, y)
        for x, y in itertools.combinations(switches, 2)
        if (x, y) not in cables and choice.random() < 0.3
    ]
    lab = lab_of(cables, {"X": "a", "Y": "f", "P": "c", "Q": "d"})
    control = admission(lab)
    for number in range(1, 30):
        source, destination = choice.sample(["X", "Y", "P", "Q"], 2)
        control.request(flow(number, source, destination, rate_bps=choice.choice((1e5, 5e5))))
    wanted = flow(1000)
    every = list(paths(lab, "X", "Y"))
    fitting = [len(path) for path in every if isinstance(control.check(wanted, path), Admitted)]
    answer = route(lab, control, wanted)
    assert isinstance(answer, Admitted) == bool(fitting)
    if isinstance(answer, Admitted):
        assert len(answer.hops) == min(fitting)


def every_path(lab: Lab, source: str, destination: str, leave_out: frozenset[str]) -> list[tuple[Hop, ...]]:
    """Find all simple paths by brute force, in order of cost and ports."""
    complete: list[tuple[Hop, ...]] = []

    def go_on(node: str, hops: tuple[Hop, ...]) -> None:
        if node == destination:
            complete.append(hops)
        elif node in lab.switches and node not in leave_out and all(node != hop.switch for hop in hops):
            for port, far in lab.outgoing_cables(node):
                go_on(far.node, (*hops, Hop(switch=node, output_port=port)))

    for _, far in lab.outgoing_cables(source):
        go_on(far.node, ())
    return sorted(complete, key=lambda hops: (len(hops), [hop.output_port for hop in hops]))


@pytest.mark.parametrize("seed", range(60))
def test_paths_are_all_there_are_in_their_order(seed: int) -> None:
    choice = random.Random(seed)
    switches = [f"s{number}" for number in range(choice.randint(2, 7))]
    cables = [(a, b) for a, b in itertools.pairwise(switches)]
    cables += [(choice.choice(switches), choice.choice(switches)) for _ in range(choice.randint(0, 5))]
    choice.shuffle(cables)
    lab = lab_of(cables, {"X": choice.choice(switches), "Y": choice.choice(switches), "P": switches[0]})
    links = tuple(replace(link, one_way=choice.random() < choice.choice((0, 0.2))) for link in lab.links)
    lab = replace(lab, links=links)
    leave_out = frozenset(choice.sample(switches, choice.choice((0, 0, 1, 2))))
    expected = every_path(lab, "X", "Y", leave_out)
    assert list(paths(lab, "X", "Y", leave_out=leave_out)) == expected[:MOST_PATHS]


def test_path_by_names() -> None:
    assert [hop.switch for hop in path_through(RING, "X", "Y", list("aedc"))] == list("aedc")
    for wrong in (list("ac"), list("bc"), ["a", "z"], []):
        with pytest.raises(InputError, match="path: "):
            path_through(RING, "X", "Y", wrong)


SCENARIO = loko_scenario(entries=100, packet_sizes_bytes=(306,))


def chips(cables: list[tuple[str, str]], hosts: dict[str, str]) -> Lab:
    """Return a lab of ideal switches, which have a queue at each port: see `lab_of`."""
    profile = load_device("ideal-1g")
    made = lab_of(cables, hosts)
    switches = {
        name: replace(switch, name=name, profile=profile, datapath_id=number)
        for number, (name, switch) in enumerate(made.switches.items(), 1)
    }
    return replace(made, switches=switches, control_port=0)


def fills_a_port(lab: Lab, source: str, destination: str) -> Flow:
    """Return a flow that takes exactly the rate of the ports that it leaves by."""
    admission = admission_of(lab, SchemeVariant(scheme=SchemeName.PORTS), SCENARIO)
    tried = flow(1, source, destination)
    admission.request(tried)
    rates = [
        share
        for share in admission.usage(lab.peer(Endpoint(node=source, port=1)).node).shares
        if share.quantity.startswith("rate")
    ]
    return tried._replace(rate_bps=tried.rate_bps * rates[0].allowed / rates[0].used)


def test_a_flow_leaves_a_switch_beside_a_full_port() -> None:
    lab = chips([("a", "b"), ("a", "c"), ("c", "b")], {"X": "a", "Y": "b", "V": "a", "W": "b"})
    admission = admission_of(lab, SchemeVariant(scheme=SchemeName.PORTS), SCENARIO)
    full = fills_a_port(lab, "X", "Y")
    assert isinstance(admission.request(full), Admitted)
    share = admission.usage("a").shares[0]
    assert (share.quantity, share.used) == ("rate of port 1", share.allowed)
    answer = route(lab, admission, flow(2, "V", "W"))
    assert isinstance(answer, Admitted)
    assert [hop.switch for hop in answer.path] == ["a", "c", "b"]


@pytest.mark.parametrize("seed", range(12))
def test_no_flow_is_refused_that_some_path_admits(seed: int) -> None:
    """Flows that take whole ports, or halves, on small networks; every path without a loop is tried."""
    choose = random.Random(seed)
    names = "abcd"
    cables = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), choose.choice([("a", "c"), ("b", "d")])]
    hosts = {f"{name}{number}": name for name in names for number in range(3)}
    lab = chips(cables, hosts)
    admission = admission_of(lab, SchemeVariant(scheme=SchemeName.PORTS), SCENARIO)
    refused = fitted = 0
    for number in range(2, 40):
        source, destination = choose.sample(list(hosts), 2)
        if hosts[source] == hosts[destination]:
            continue
        whole = fills_a_port(lab, source, destination)
        asked = whole._replace(
            id=str(number), udp_source=number, rate_bps=whole.rate_bps / choose.choice((1, 1, 2))
        )
        fits = any(
            isinstance(admission.check(asked, path), Admitted) for path in paths(lab, source, destination)
        )
        answer = route(lab, admission, asked)
        assert isinstance(answer, Admitted) == fits
        if isinstance(answer, Admitted):
            admission.request(asked, answer.path)
        refused, fitted = refused + (not fits), fitted + fits
    assert refused
    assert fitted
