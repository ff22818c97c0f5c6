"""Admitted sets on switches with queues, replayed while other traffic fills every port at line rate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from loko.admission.planning import Plan
from loko.admission.port_queues import PortAdmission
from loko.switch_model.device import profile_text
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab, load_lab
from loko_testbed.cli.replay import replay_twice
from loko_testbed.simulation.worst_case.random_cases import SHAPES, random_lab

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
        frame_bytes = rng.choice(SIZES)
        admission.request(
            Flow(
                id=f"f{number}",
                source=source,
                destination=destination,
                udp_source=5000 + number,
                udp_destination=6000 + number,
                rate_bps=rng.uniform(0.2, 1.0) * most_mbps * 1e6,
                burst_bytes=float(rng.randint(1, most_frames) * frame_bytes),
                frame_bytes=frame_bytes,
            )
        )
    accepted = tuple(admission.as_bound_now(flow_id) for flow_id in admission.admitted)
    return Plan(lab=lab, scheme=admission.scheme, allocations={}, accepted=accepted, refused=())


@pytest.mark.parametrize(("shape", "profile"), CASES)
def test_no_guarantee_breaks_beside_other_traffic_at_line_rate(shape: str, profile: str) -> None:
    rng = Random(f"{shape} {profile}")
    lab = random_lab(rng, shape, most_switches=4, profiles=[profile])
    planned = planned_at_its_bounds(lab, rng)
    results = replay_twice(lab, planned, seconds=0.2, seed=1)
    for result in results:
        assert result.packets > 100
        assert not result.broken
        assert not result.events
    # Other traffic is there: somebody waits longer than for the flows of an idle network.
    assert max(result.worst for result in results) > 0.2


def test_ports_slower_than_their_profile_break_guarantees(tmp_path: Path) -> None:
    """Ports look at their queues every 100 us; the flows were admitted for 6 us."""
    slow = tmp_path / "slow.toml"
    slow.write_text(profile_text("dell-s3048-on", check_ns=100_000), encoding="utf-8")
    lab = load_lab("chip-ring")
    planned = planned_at_its_bounds(lab, Random(1))
    slower = replace(
        lab, switches={name: replace(switch, profile_file=slow) for name, switch in lab.switches.items()}
    )
    assert not any(result.broken for result in replay_twice(lab, planned, seconds=0.2, seed=1))
    assert all(result.broken for result in replay_twice(slower, planned, seconds=0.2, seed=1))
