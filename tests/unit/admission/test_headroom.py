"""How many more flows fit between hosts, beside a count of each pair on an admission of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import networkx as nx
import pytest
from harness.plants import plant_of

from loko.admission import Admission, Admitted, Refusal
from loko.admission import headroom as module
from loko.admission.headroom import Headroom, headroom
from loko.admission.planning import plan, scenario_of
from loko.admission.routing import admit
from loko.admission.schemes import admission_of, variant_of
from loko.document import InputError
from loko.solvers.program import TimeBudget
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab, lab_of, load_lab, ring_lab
from loko.topology.requests import Request
from loko.topology.ring import Ring

TEMPLATE = Request(Flow("more", "any", "any", 1, 7000, 150e3, 306.0, 306))
ENDLESS = TimeBudget(now_ns=lambda: 0, end_ns=1)
ZODIACS = ("s1", "s2", "s3")


def boards() -> Lab:
    """Return a line of three boards: two hosts at each end, one in the middle."""
    hosts = {"h1": "s1:1", "h2": "s1:2", "h3": "s2:1", "h4": "s3:1", "h5": "s3:2"}
    return lab_of(
        {
            "name": "line",
            "title": "three boards",
            "switches": {
                name: {"datapath_id": f"00:00:02:00:00:00:01:{number:02x}", "profile": "zodiac-fx"}
                for number, name in enumerate(ZODIACS, start=1)
            },
            "hosts": {
                name: {"mac": f"02:00:00:00:00:{number:02x}", "ip": f"10.0.0.{number}/24"}
                for number, name in enumerate(hosts, start=1)
            },
            "links": [
                *({"a": host, "b": port} for host, port in hosts.items()),
                {"a": "s1:3", "b": "s2:2"},
                {"a": "s2:3", "b": "s3:3"},
            ],
        }
    )


def flows_between(*pairs: tuple[str, str], rate_bps: float = 200e3) -> list[Flow]:
    return [
        Flow(f"f{number}", source, destination, 1000 + number, 7000, rate_bps, 612.0, 306)
        for number, (source, destination) in enumerate(pairs)
    ]


def maker(
    lab: Lab, flows: Sequence[Flow], scheme: str, target_ns: float | None = None
) -> Callable[[], Admission]:
    """Return what makes an admission control that holds the flows."""
    scenario = scenario_of(flows, entries=17, lab=lab, anywhere_bytes=(306,))

    def holding() -> Admission:
        admission = admission_of(lab, variant_of(lab, scheme, None), scenario, target_ns=target_ns)
        assert not plan(lab, flows, admission).refused
        return admission

    return holding


def told(found: Headroom) -> Counter[tuple[object, ...]]:
    """Return how many pairs of hosts have which headroom and limit, by their switches."""
    counts: Counter[tuple[object, ...]] = Counter()
    for row in found.rows:
        limit = row.limit and tuple(row.limit.excess_values().items())
        counts[row.switches, row.more, limit] += row.pairs
    return counts


def counted_alone(
    lab: Lab, make: Callable[[], Admission], deadline_ns: float | None
) -> Counter[tuple[object, ...]]:
    """Return the same, from an admission control of its own for each pair."""
    counts: Counter[tuple[object, ...]] = Counter()
    for source in lab.hosts:
        for destination in lab.hosts.keys() - {source}:
            admission, more = make(), 0
            while True:
                flow = Flow(f"x{more}", source, destination, 9000 + more, 9000, *TEMPLATE.flow[5:])
                answer = admit(lab, admission, flow, deadline_ns)
                if isinstance(answer, Refusal):
                    break
                more += 1
            ends = [lab.far_end(host, 1) for host in (source, destination)]
            switches = tuple(end.node for end in ends if end is not None)
            counts[switches, more, tuple(answer.excess_values().items())] += 1
    return counts


@pytest.mark.parametrize("deadline_ns", [None, 9e6])
@pytest.mark.parametrize("scheme", ["loko", "packets"])
def test_each_pair_of_hosts_is_counted_as_if_alone(scheme: str, deadline_ns: float | None) -> None:
    lab = boards()
    make = maker(lab, flows_between(("h1", "h3"), ("h3", "h1")), scheme, 6e6 if scheme == "packets" else None)
    found = headroom(lab, make(), TEMPLATE._replace(deadline_ns=deadline_ns), clock=ENDLESS)
    assert found.asked == found.pairs == 20
    assert told(found) == counted_alone(lab, make, deadline_ns)
    assert {row.more for row in found.rows} != {0}


def test_on_a_ring_other_paths_count() -> None:
    lab = ring_lab(Ring(switches=4, hosts_per_switch=2, one_way=False))
    middle = [host for host in lab.hosts if (end := lab.far_end(host, 1)) and end.node == "s2"]
    make = maker(lab, flows_between((middle[0], middle[1]), (middle[1], middle[0])), "loko")
    found = headroom(lab, make(), TEMPLATE, clock=ENDLESS)
    assert told(found) == counted_alone(lab, make, None)
    (row,) = (row for row in found.rows if row.switches == ("s1", "s3"))
    admission = make()
    flow = TEMPLATE.flow._replace(source=row.source, destination=row.destination)
    copies = (flow._replace(id=f"x{number}", udp_source=9000 + number) for number in range(row.more))
    answers = [admission.request(copy) for copy in copies]
    assert any(isinstance(answer, Refusal) for answer in answers), "the shortest path alone has room for all"


def test_ports_limit_switches_with_queues() -> None:
    lab = load_lab("chip-ring")
    hosts = list(lab.hosts)
    make = maker(lab, flows_between((hosts[0], hosts[1]), (hosts[0], hosts[2])), "ports", 1e6)
    found = headroom(lab, make(), TEMPLATE, clock=ENDLESS)
    assert told(found) == counted_alone(lab, make, None)
    assert found.asked == len(hosts) * (len(hosts) - 1)


def test_with_loko_the_count_is_the_room_by_the_demand(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.path_graph(4), [2])
    make = maker(lab, flows_between(("h1-1", "h4-1"), ("h2-1", "h3-1"), rate_bps=1e6), "loko")
    admission = make()
    found = headroom(lab, admission, TEMPLATE, clock=ENDLESS)
    for row in found.rows:
        flow = TEMPLATE.flow._replace(source=row.source, destination=row.destination)
        answer = admission.check(flow)
        assert isinstance(answer, Admitted)
        rooms = []
        for hop, burst_bytes in zip(answer.path, answer.bursts_bytes, strict=True):
            demands = {"rate": flow.rate_bps, "burst": burst_bytes, "entries": 1.0}
            rooms += [
                (share.allowed - share.used) / demands[share.quantity]
                for share in admission.usage(hop.switch).shares
            ]
        assert row.more == math.floor(min(rooms))


def test_the_admission_is_left_as_it_was() -> None:
    lab = boards()
    admission = maker(lab, flows_between(("h1", "h4")), "loko")()
    before = [admission.usage(name) for name in lab.switches]
    headroom(lab, admission, TEMPLATE, clock=ENDLESS)
    assert list(admission.admitted) == ["f0"]
    assert [admission.usage(name) for name in lab.switches] == before


def test_ids_and_ports_of_the_list_are_not_used_again() -> None:
    lab = boards()
    flow = Flow("more", "h1", "h4", 1, 7000, 150e3, 306.0, 306)
    make = maker(lab, [flow], "loko")
    found = headroom(lab, make(), Request(flow), clock=ENDLESS)
    assert told(found) == counted_alone(lab, make, None)


def test_a_deadline_that_is_too_short_leaves_no_headroom() -> None:
    lab = boards()
    make = maker(lab, flows_between(("h1", "h4")), "loko")
    guarantee_ns = make().admitted["f0"].guarantee_ns
    found = headroom(lab, make(), TEMPLATE._replace(deadline_ns=guarantee_ns - 1), clock=ENDLESS)
    limits = {(row.switches, row.more == 0, row.limit and row.limit.quantity) for row in found.rows}
    assert (("s1", "s3"), True, "delay") in limits
    assert all(row.more > 0 for row in found.rows if set(row.switches) != {"s1", "s3"})


def test_out_of_time_some_pairs_are_asked_and_the_same_each_time() -> None:
    lab = boards()
    make = maker(lab, flows_between(("h1", "h4")), "packets", 6e6)

    def within(steps: int) -> Headroom:
        ticks = iter(range(10**9))
        return headroom(lab, make(), TEMPLATE, clock=TimeBudget(now_ns=lambda: next(ticks), end_ns=steps))

    few, whole = within(40), headroom(lab, make(), TEMPLATE, clock=ENDLESS)
    assert 0 < few.asked < few.pairs == whole.asked
    assert few == within(40)
    assert told(few) <= told(whole)
    assert within(0).rows == ()


def test_beyond_the_most_copies_nothing_is_said_to_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_MORE", 1)
    lab = boards()
    found = headroom(lab, maker(lab, flows_between(("h1", "h4")), "loko")(), TEMPLATE, clock=ENDLESS)
    assert found.unlimited == found.pairs
    assert {(row.more, row.limit) for row in found.rows} == {(1, None)}
    assert found.limits == ()


def test_limits_are_by_the_pairs_that_they_limit() -> None:
    lab = boards()
    found = headroom(
        lab, maker(lab, flows_between(("h1", "h2"), ("h1", "h3")), "loko")(), TEMPLATE, clock=ENDLESS
    )
    assert sum(limit.pairs for limit in found.limits) == found.pairs
    assert [limit.pairs for limit in found.limits] == sorted(
        (limit.pairs for limit in found.limits), reverse=True
    )
    first = found.limits[0]
    of_first = [row.more for row in found.rows if row.limit and row.limit.switch == first.switch]
    assert (first.switch, first.least, first.most) == ("s1", min(of_first), max(of_first))


def test_frames_that_no_switch_is_planned_for_are_refused() -> None:
    lab = boards()
    template = TEMPLATE._replace(flow=TEMPLATE.flow._replace(frame_bytes=1518, burst_bytes=1518.0))
    with pytest.raises(InputError, match="1518"):
        headroom(lab, maker(lab, flows_between(("h1", "h4")), "loko")(), template, clock=ENDLESS)
