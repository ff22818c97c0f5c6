"""Admitted sets on switches with queues, replayed while other traffic fills every port at line rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from loko.admission.planning import Plan
from loko.admission.port_queues import PortAdmission
from loko.notebook_api import plan
from loko.switch_model.device import profile_text
from loko.switch_model.flow import Flow
from loko.switch_model.generic_switch import GenericSwitch
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab, lab_of, load_lab
from loko_testbed.cli.replay import replay_twice
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.other_traffic import at_line_rate
from loko_testbed.simulation.worst_case.port_trial import random_flow
from loko_testbed.simulation.worst_case.random_cases import SHAPES, random_lab
from loko_testbed.simulation.worst_case.search import random_search, search_worst_case

PROFILES = ("dell-s3048-on", "ideal-1g", "nec-pf5240-long-queues")
CASES = [(shape, profile) for shape in SHAPES for profile in PROFILES]
CASES.append(("line", "dell-s4048-on"))  # with more ports its queues have no room
SIZES = (64, 306, 1518)


def planned_at_its_bounds(lab: Lab, rng: Random) -> Plan:
    """Fill a lab with random flows. Each is guaranteed the bounds of the set, which are below the targets."""
    admission = PortAdmission(
        lab,
        loko_scenario(entries=60, packet_sizes_bytes=SIZES),
        target_ns=rng.choice((None, 150_000.0)),
        padding=None,
    )
    most_frames, most_mbps = rng.choice((1, 12)), rng.choice((20, 200))
    for number in range(60):
        source, destination = rng.sample(list(lab.hosts), 2)
        ends, frame_bytes = (source, destination), rng.choice(SIZES)
        flow = random_flow(rng, number, ends, frame_bytes, most_frames=most_frames, most_mbps=most_mbps)
        admission.request(flow)
    accepted = tuple(admission.as_bound_now(flow_id) for flow_id in admission.admitted)
    return Plan(lab=lab, scheme=admission.scheme, allocations={}, accepted=accepted, refused=())


@pytest.mark.parametrize(("shape", "profile"), CASES)
def test_no_guarantee_breaks_beside_other_traffic_at_line_rate(shape: str, profile: str) -> None:
    rng = Random(f"{shape} {profile}")
    lab = random_lab(rng, shape, most_switches=4, profiles=[profile])
    planned = planned_at_its_bounds(lab, rng)
    results = replay_twice(lab, planned, seconds=0.1, seed=1)
    for result in results:
        assert result.packets > 100
        assert not result.broken
        assert not result.events
    # Other traffic is there: somebody waits longer than for the flows of an idle network.
    assert max(result.worst for result in results) > 0.2


def with_slower_checks(lab: Lab, folder: Path, *, check_ns: int) -> Lab:
    """Return the lab with chips whose ports check their queues less often than their profile says."""
    switches = dict(lab.switches)
    for name, switch in lab.switches.items():
        if isinstance(switch.profile, GenericSwitch):
            slow = folder / f"{name}-slow.toml"
            slow.write_text(profile_text(switch.emulated_as, check_ns=check_ns), encoding="utf-8")
            switches[name] = replace(switch, profile_file=slow)
    return replace(lab, switches=switches)


def test_ports_slower_than_their_profile_break_guarantees(tmp_path: Path) -> None:
    """Ports look at their queues every 100 us; the flows were admitted for 6 us."""
    lab = load_lab("chip-ring")
    planned = planned_at_its_bounds(lab, Random(1))
    slower = with_slower_checks(lab, tmp_path, check_ns=100_000)
    assert not any(result.broken for result in replay_twice(lab, planned, seconds=0.1, seed=1))
    assert all(result.broken for result in replay_twice(slower, planned, seconds=0.1, seed=1))


def test_the_search_breaks_guarantees_of_ports_slower_than_their_profile_only(tmp_path: Path) -> None:
    lab = load_lab("chip-ring")
    planned = planned_at_its_bounds(lab, Random(1))
    case = AdmittedSet(lab=lab, scheme=planned.scheme, admitted=planned.accepted, entries=60)
    found = search_worst_case(case, generations=1, seed=1)
    assert found.damage.lost == 0
    assert 0.3 < found.history[-1][1] <= 1
    slower = replace(case, lab=with_slower_checks(lab, tmp_path, check_ns=100_000))
    assert random_search(slower, generations=1, seed=1).history[-1][1] > 1


def part(
    profiles: Mapping[str, str], hosts: Mapping[str, str], cables: Sequence[tuple[str, str]] = ()
) -> Lab:
    """Return a lab of these switches and hosts by their ports."""
    return lab_of(
        {
            "name": "part",
            "title": "of a network of boards and chips",
            "switches": {
                name: {
                    "datapath_id": f"00:00:70:b3:d5:6c:00:{number:02x}",
                    "profile": profile,
                    **({"config": {"ofchecks": False}} if profile == "zodiac-fx" else {}),
                }
                for number, (name, profile) in enumerate(profiles.items(), 1)
            },
            "hosts": {
                name: {"mac": f"02:00:00:00:00:{number:02x}", "ip": f"10.0.0.{number}/24"}
                for number, name in enumerate(hosts, 1)
            },
            "links": [
                *({"a": host, "b": port} for host, port in hosts.items()),
                *({"a": a, "b": b} for a, b in cables),
            ],
            "control_port": 0,
        }
    )


def test_boards_and_chips_on_one_path_are_replayed(tmp_path: Path) -> None:
    """Admitted at the board and at the chips separately: at the chips with the burst that the board may make.

    Other traffic fills the chips' ports, but none goes to the board.
    """
    slow_chip = tmp_path / "slow-chip.toml"
    slow_chip.write_text(profile_text("dell-s3048-on", link_rate_bps=100_000_000), encoding="utf-8")
    chips = {"c1": str(slow_chip), "c2": str(slow_chip)}
    at_board = part({"b1": "zodiac-fx"}, {"H1": "b1:1", "H2": "b1:2", "beyond": "b1:3"})
    at_chips = part(chips, {"before": "c1:1", "H3": "c1:2", "H4": "c2:2"}, [("c1:3", "c2:1")])
    whole = part(
        {"b1": "zodiac-fx", **chips},
        {"H1": "b1:1", "H2": "b1:2", "H3": "c1:2", "H4": "c2:2"},
        [("b1:3", "c1:1"), ("c1:3", "c2:1")],
    )
    flows = [
        Flow(f"f{number}", source, destination, 5000 + number, 6000, 200e3, 306.0, 306)
        for number, (source, destination) in enumerate([("H1", "H4"), ("H2", "H4"), ("H1", "H3")])
    ]
    of_board = plan(at_board, [flow._replace(destination="beyond") for flow in flows]).accepted
    grown = [
        flow._replace(source="before", burst_bytes=306.0 + 200e3 / 8e9 * admitted.guarantee_ns)
        for flow, admitted in zip(flows, of_board, strict=True)
    ]
    of_chips = plan(at_chips, grown, scheme="ports").accepted
    accepted = tuple(
        second._replace(
            flow=flow,
            path=first.path + second.path,
            bursts_bytes=first.bursts_bytes + second.bursts_bytes,
            delays_ns=first.delays_ns + second.delays_ns,
        )
        for flow, first, second in zip(flows, of_board, of_chips, strict=True)
    )
    filled = at_line_rate(whole, accepted, duration_ns=1_000_000).entries
    assert {name: {entry.output_port for entry in entries} for name, entries in filled.items()} == {
        "c1": {2, 3},
        "c2": {1, 2},
    }
    planned = Plan(lab=whole, scheme="ports", allocations={}, accepted=accepted, refused=())
    for result in replay_twice(whole, planned, seconds=1, seed=1):
        assert result.packets > 60
        assert not result.broken
        assert not result.events
    slow = with_slower_checks(whole, tmp_path, check_ns=40_000_000)
    assert any(result.broken for result in replay_twice(slow, planned, seconds=1, seed=1))
