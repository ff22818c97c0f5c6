"""Paths that visit a switch several times: cabled, installed, used, admitted, or refused in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from served_boards import ServedBoards

from loko.admission import LokoAdmission, Refusal
from loko.admission.baselines import Baseline, Epsilon, baseline_admission
from loko.admission.packets import PacketAdmission
from loko.admission.routing import path_through, paths
from loko.control.entries import match_of, switch_entries
from loko.document import InputError
from loko.service.outcome import Granted, Released
from loko.switch_model.allocation import scheme_named
from loko.switch_model.device import profile_text
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import MatchType, OpenFlow, Scenario, loko_scenario
from loko.topology.frame import frame_of
from loko.topology.lab import Lab
from loko.topology.lab import lab_of as lab_of_values
from loko.topology.lab_allocation import allocations_of
from loko.topology.network import Hop, RoutedFlow, visits
from loko.topology.snake_test import snake_path, snake_test_lab
from loko_testbed.simulation.traffic import flow_of
from loko_testbed.simulation.virtual import SEQUENCE_OFFSET, lab_network

PORTS = {"openflow_ports": [1, 2, 3, 4], "native_ports": []}
BOARD = snake_test_lab("zodiac-fx", 4, PORTS)
"""A Zodiac FX has four ports, so a frame visits it twice."""


def flow(number: int = 0, source: str = "H1", **values: float) -> Flow:
    fields = {"rate_bps": 1e5, "burst_bytes": 306.0, "frame_bytes": 306, **values}
    destination = "H2" if source == "H1" else "H1"
    return flow_of(number, source, destination, called="f", **fields)  # type: ignore[arg-type]


def scenario(
    match: MatchType = MatchType.FIVE_TUPLE_AND_PORT, openflow: OpenFlow = OpenFlow.V1_0, entries: int = 17
) -> Scenario:
    return loko_scenario(entries=entries, packet_sizes_bytes=(306,), openflow=openflow, match=match)


def admission(openflow: OpenFlow = OpenFlow.V1_0, entries: int = 17) -> LokoAdmission:
    planned = scenario(match_of(BOARD), openflow, entries)
    return LokoAdmission(BOARD, allocations_of(BOARD, scheme_named("fifth-rate"), planned))


def ports(path: tuple[Hop, ...]) -> list[int]:
    return [hop.output_port for hop in path]


# Wiring and paths.


@pytest.mark.parametrize("count", [2, 4, 24, 48])
def test_two_hosts_use_every_port_both_ways(count: int, tmp_path: Path) -> None:
    lab = snake_test_lab(wide_switch(tmp_path, count), count)
    there, back = snake_path(lab, "H1"), snake_path(lab, "H2")
    assert ports(there) == list(range(2, count + 1, 2))
    assert ports(back) == list(range(count - 1, 0, -2))
    assert [visit.input_port for visit in visits(lab, "H1", there)] == list(range(1, count, 2))
    assert [visit.input_port for visit in visits(lab, "H2", back)] == list(range(count, 1, -2))


@pytest.mark.parametrize("count", [0, 1, 3, 47])
def test_odd_numbers_of_ports_cannot_be_laced(count: int) -> None:
    with pytest.raises(InputError, match="cannot be a shoelace"):
        snake_test_lab("zodiac-fx", count)


def test_more_ports_than_the_switch_has_are_refused() -> None:
    with pytest.raises(InputError, match="zodiac-fx has 4 ports"):
        snake_test_lab("zodiac-fx", 6)


def test_a_path_may_name_a_switch_again() -> None:
    assert path_through(BOARD, "H1", "H2", ["s1", "s1"]) == snake_path(BOARD, "H1")
    with pytest.raises(InputError, match="no cable that it has not crossed"):
        path_through(BOARD, "H1", "H2", ["s1", "s1", "s1"])


def test_the_search_comes_back_to_a_switch_only_if_it_may() -> None:
    assert [ports(path) for path in paths(BOARD, "H1", "H2")] == [[4]]
    assert [ports(path) for path in paths(BOARD, "H1", "H2", visits=2)] == [[4], [2, 4], [3, 4]]


def test_visits_that_no_entry_could_tell_apart_are_refused() -> None:
    """On the second way round a ring, a frame enters a switch by the same port again."""
    lab = ring_of_three()
    around = [Hop(switch=f"s{1 + place % 3}", output_port=3) for place in range(4)]
    with pytest.raises(InputError, match=r"comes to s2 by port 2 twice"):
        visits(lab, "H1", [*around, Hop(switch="s2", output_port=1)])
    with pytest.raises(InputError, match=r"leaves s1 by port 1, by which it came"):
        visits(lab, "H1", [Hop(switch="s1", output_port=1)])
    assert [visit.number for visit in visits(lab, "H1", [*around[:3], Hop(switch="s1", output_port=1)])] == [
        0,
        0,
        0,
        1,
    ]


# Entries on the wire, and frames through them.


@pytest.mark.parametrize("openflow", OpenFlow)
@pytest.mark.parametrize("source", ["H1", "H2"])
def test_the_board_carries_frames_through_all_laces(source: str, openflow: OpenFlow) -> None:
    laced = flow(source=source)
    seen = carried(BOARD, RoutedFlow(laced, snake_path(BOARD, source)), openflow)
    straight = carried(
        BOARD, RoutedFlow(laced, path_through(BOARD, source, laced.destination, ["s1"])), openflow
    )
    assert (seen >= 0).all()
    assert seen.min() > 1.8 * straight.max()  # it is processed twice


def test_a_switch_of_48_ports_carries_them_24_times(tmp_path: Path) -> None:
    lab = snake_test_lab(wide_switch(tmp_path, 48), 48)
    delays_ns = carried(lab, RoutedFlow(flow(), snake_path(lab, "H1")), OpenFlow.V1_0)
    assert (delays_ns >= 0).all()
    one_ns = carried(lab, RoutedFlow(flow(), path_through(lab, "H1", "H2", ["s1"])), OpenFlow.V1_0)
    assert (delays_ns == 24 * one_ns).all()


@pytest.mark.parametrize("openflow", OpenFlow)
def test_flows_come_and_go_on_such_a_path(openflow: OpenFlow, tmp_path: Path) -> None:
    served = ServedBoards(tmp_path / "flows.sqlite", lab=BOARD, openflow=openflow)
    served.settle()
    small = {"rate_bps": 20_000.0, "burst_bytes": 100.0, "frame_bytes": 64}
    for number in range(2):
        answer = served.request(flow(number, **small), snake_path(BOARD, "H1"))
        assert answer == Granted(f"f{number}", is_new=True)
    assert served.tables() == served.promised()
    assert len({cookie for cookie, _ in served.tables()["s1"]}) == 4
    served.kill()
    served.start()
    served.settle()
    assert served.tables() == served.promised()
    assert served.release("f0") == Released("f0")
    assert served.tables() == served.promised()
    assert [cookie & 0xFFFF_FFFF for cookie, _ in served.tables()["s1"]] == [2, 2]
    assert not served.events()


# Admission.


def test_a_flow_counts_at_each_visit_with_the_burst_that_it_has_grown_to() -> None:
    control, asked = admission(), flow()
    granted = control.request(asked, snake_path(BOARD, "H1"))
    assert not isinstance(granted, Refusal)
    delay_ns = control.usage("s1").delay_ns
    grown = asked.burst_bytes + asked.rate_bps * delay_ns / 8e9
    assert granted.guarantee_ns == 2 * delay_ns
    assert granted.bursts_bytes == pytest.approx((asked.burst_bytes, grown))
    usage = control.usage("s1")
    assert usage.used("rate") == 2 * asked.rate_bps
    assert usage.used("burst") == pytest.approx(asked.burst_bytes + grown)
    assert usage.used("entries") == 2
    control.cancel(asked.id)
    assert [share.used for share in control.usage("s1").shares] == [0, 0, 0]


@pytest.mark.parametrize("quantity", ["rate", "burst", "entries"])
def test_what_would_fit_once_is_refused_if_it_does_not_fit_twice(quantity: str) -> None:
    control = admission(entries=4)
    share = control.usage("s1").share(quantity)
    wanted = flow()
    if quantity == "rate":
        wanted = flow(rate_bps=0.6 * share.allowed)
    elif quantity == "burst":
        wanted = flow(burst_bytes=0.6 * share.allowed)
    else:
        for number in range(1, int(share.allowed)):
            control.request(flow(number, rate_bps=1))
    assert not isinstance(control.check(wanted), Refusal)
    refused = control.check(wanted, snake_path(BOARD, "H1"))
    assert isinstance(refused, Refusal)
    assert refused.quantity == quantity
    if quantity != "entries":
        change = refused.suggestion.as_values()
        smaller = wanted._replace(**{name: float(value) for name, value in change.items()})
        assert not isinstance(control.check(smaller, snake_path(BOARD, "H1")), Refusal)


def test_a_released_flow_leaves_each_visit_at_its_time() -> None:
    control = admission()
    control.request(flow(), snake_path(BOARD, "H1"))
    passage_ns = control.drain_time_ns("f0")
    control.release("f0", now_ns=0)
    control.advance(1)
    assert control.usage("s1").used("entries") == 2
    control.advance(passage_ns + 1_000_000_000)
    assert [share.used for share in control.usage("s1").shares] == [0, 0, 0]


def test_tables_that_compare_no_ports_are_refused() -> None:
    planned = allocations_of(BOARD, scheme_named("fifth-rate"), scenario(MatchType.FIVE_TUPLE))
    with pytest.raises(InputError, match="visits s1 2 times: entries that tell the visits apart"):
        LokoAdmission(BOARD, planned).check(flow(), snake_path(BOARD, "H1"))


def test_schemes_without_a_bound_for_it_refuse() -> None:
    path = snake_path(BOARD, "H1")
    qjump = baseline_admission(Baseline.QJUMP, BOARD, scenario(), epsilon=Epsilon.PAPER)
    for control in (PacketAdmission(BOARD, scenario()), qjump):
        with pytest.raises(InputError, match=r"^path: it visits s1 2 times: .*take another path"):
            control.check(flow(), path)


def test_silo_counts_each_port_that_the_flow_leaves_by() -> None:
    silo = baseline_admission(Baseline.SILO, BOARD, scenario(), epsilon=Epsilon.PAPER)
    silo.request(flow(), snake_path(BOARD, "H1"))
    used = {share.quantity: share.used for share in silo.usage("s1").shares}
    assert used["rate of port 2"] == used["rate of port 4"] == 1e5
    assert used["burst of port 4"] > used["burst of port 2"] == 306


@pytest.mark.parametrize("openflow", OpenFlow)
def test_no_frame_is_later_than_its_guarantee(openflow: OpenFlow) -> None:
    """A board is full of flows both ways, some on the short path, all greedy with simultaneous bursts."""
    control = admission(openflow=openflow)
    granted = []
    for number in range(16):
        source = "H1" if number % 2 else "H2"
        path = None if number % 5 == 4 else snake_path(BOARD, source)
        answer = control.request(flow(number, source), path)
        if not isinstance(answer, Refusal):
            granted.append(answer)
    assert len(granted) > 2
    network = lab_network(BOARD, switch_entries(BOARD, granted), seed=1, openflow=openflow)
    for number, admitted in enumerate(granted):
        add_greedy(network, BOARD, admitted.flow, number)
    result = network.run(duration_ns=1_000_000_000)
    delays_ns = result.received_ns - result.sent_ns
    guarantees_ns = np.array([admitted.guarantee_ns for admitted in granted])[result.flow]
    assert (result.received_ns >= 0).all()
    assert 0.1 < (delays_ns / guarantees_ns).max() <= 1
    assert len({len(admitted.path) for admitted in granted}) == 2


# Helpers.


def add_greedy(network, lab: Lab, flow: Flow, number: int) -> None:
    """Add a source that sends all that its token bucket allows from the start."""
    network.add_pattern(
        flow.source,
        flow=number,
        frame=frame_of(lab, flow),
        sequence_offset=SEQUENCE_OFFSET,
        shaper_rate_bps=flow.rate_bps,
        shaper_burst_bytes=flow.burst_bytes,
        instants_ns=np.zeros(40, dtype=np.int64),
        destination=flow.destination,
    )


def carried(lab: Lab, routed: RoutedFlow, openflow: OpenFlow):
    """Return the delays in ns of ten frames that do not interfere with each other."""
    network = lab_network(
        lab,
        switch_entries(lab, [routed], entries=max(17, len(routed.path))),
        seed=1,
        openflow=openflow,
        profile_of={name: str(switch.profile_file) for name, switch in lab.switches.items()},
    )
    network.add_pattern(
        routed.flow.source,
        flow=0,
        frame=frame_of(lab, routed.flow),
        sequence_offset=SEQUENCE_OFFSET,
        shaper_rate_bps=1e9,
        shaper_burst_bytes=1e6,
        instants_ns=np.arange(10, dtype=np.int64) * 10_000_000,
        destination=routed.flow.destination,
    )
    result = network.run(duration_ns=200_000_000)
    return result.received_ns - result.sent_ns


def wide_switch(folder: Path, count: int) -> str:
    path = folder / "wide.toml"
    path.write_text(profile_text("open-vswitch-1g", count=count))
    return str(path)


def ring_of_three() -> Lab:
    return lab_of_values(
        {
            "name": "three",
            "title": "Three switches in a ring, a host at each",
            "switches": {
                f"s{n}": {"datapath_id": f"00:00:70:b3:d5:6c:00:0{n}", "profile": "zodiac-fx"}
                for n in (1, 2, 3)
            },
            "hosts": {f"H{n}": {"mac": f"02:00:00:00:00:0{n}", "ip": f"10.0.0.{n}/24"} for n in (1, 2, 3)},
            "links": [
                *({"a": f"H{n}", "b": f"s{n}:1"} for n in (1, 2, 3)),
                *({"a": f"s{n}:3", "b": f"s{n % 3 + 1}:2"} for n in (1, 2, 3)),
            ],
            "control_port": 0,
        }
    )
