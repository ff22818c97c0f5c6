"""The board's own interruptions: where the paper's slack covers them, and that a reservation always does.

The interruptions are the timers and the keepalive (docs/model.md, sections 2 and 8).
"""

from __future__ import annotations

import pytest

from loko.admission import Admitted, LokoAdmission
from loko.switch_model.allocation import FIFTH_RATE, FULL_RATE, AllocationRule
from loko.switch_model.control_traffic import ControlTraffic, interference
from loko.switch_model.device import load_profile
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.switch_model.service_curve import service_curve
from loko.topology.lab import load_lab
from loko.topology.lab_allocation import allocations_of
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.release import sustained_pattern
from loko_testbed.simulation.worst_case.search import damage_of, search_worst_case

LAB = load_lab("two-switch").as_printed()
ZODIAC = load_profile("zodiac-fx").with_exact_clocks()
ENDS = (("H1", "H2"), ("H2", "H1"))
AS_THE_PAPER: ControlTraffic | None = None
AS_PLANNED: ControlTraffic = {}
"""No messages of the controller, only the board's own interruptions."""
SMALL = [(64, 1), (64, 2), (306, 1), (306, 2)]
"""Frame sizes and numbers of entries with l/R below 60 us."""


def filled(
    size: int, entries: int, scheme: AllocationRule, traffic: ControlTraffic | None, flows: int
) -> AdmittedSet:
    """Return flows that use up the allocation of the first switch."""
    allocations = allocations_of(
        LAB, scheme, loko_scenario(entries=entries, packet_sizes_bytes=(size,)), traffic
    )
    limit, admission = allocations["s1"], LokoAdmission(LAB, allocations)
    for number in range(flows):
        asked = Flow(
            f"f{number}",
            *ENDS[number % 2],
            1000 + number,
            2000 + number,
            limit.max_rate_bps / flows,
            limit.max_burst_bytes / flows,
            size,
        )
        assert isinstance(admission.request(asked), Admitted)
    return AdmittedSet(
        lab=LAB, scheme=scheme.name, admitted=tuple(admission.admitted.values()), entries=entries
    )


def tight(size: int) -> AllocationRule:
    """Return a rule with a burst of one frame, so that the rest of a frame's time in the switch dominates."""
    return AllocationRule(name="tight", rate_fraction=0.2, most_burst_bytes=float(size))


@pytest.mark.parametrize(("size", "entries"), SMALL)
def test_the_papers_slack_does_not_cover_the_timers_of_few_entries(size, entries) -> None:
    """A lone frame that meets the timers is late, unless a plan has reserved time for them."""
    late = search_worst_case(filled(size, entries, tight(size), AS_THE_PAPER, 1), generations=2, seed=1)
    assert late.damage.worst > 1
    kept = search_worst_case(filled(size, entries, tight(size), AS_PLANNED, 1), generations=2, seed=1)
    assert (kept.damage.lost, kept.damage.worst <= 1) == (0, True)


@pytest.mark.parametrize(("size", "entries"), [(64, 10), (64, 17), (306, 10), (306, 17), (1518, 17)])
def test_the_papers_slack_covers_what_it_can(size, entries) -> None:
    """Section 2: p_CPU + l/R covers the link's time, both transits, a pass and the interruptions."""
    scenario = loko_scenario(entries=entries, packet_sizes_bytes=(size,))
    service = service_curve(ZODIAC, scenario)
    own_ns = interference(ZODIAC, {}, entries).board.burst_ns
    wire_ns = ZODIAC.wire_ns(ZODIAC.ports.preamble_bytes.value + size)
    beside_ns = (ZODIAC.cpu.loop_ps.value + 2 * ZODIAC.integrated_switch.transit_ps.value) / 1000
    assert service.longest.cpu_ns + service.packetisation_ns >= wire_ns + beside_ns + own_ns
    if service.capacity_bytes >= 4 * size:
        kept = search_worst_case(filled(size, entries, tight(size), AS_THE_PAPER, 1), generations=2, seed=1)
        assert (kept.damage.lost, kept.damage.worst <= 1) == (0, True)


@pytest.mark.parametrize(("size", "entries"), SMALL)
@pytest.mark.parametrize("scheme", [FULL_RATE, FIFTH_RATE], ids=lambda scheme: scheme.name)
def test_plans_for_small_frames_keep_their_word(size, entries, scheme) -> None:
    """Send bursts that meet the timers; then send at the full rate for seconds."""
    case = filled(size, entries, scheme, AS_PLANNED, min(entries, 2))
    attack = search_worst_case(case, generations=2, seed=2)
    for damage in (attack.damage, *damage_of(case, [sustained_pattern(case, seconds=8)], seed=3)):
        assert (damage.lost, damage.worst <= 1) == (0, True)


@pytest.mark.parametrize(("size", "entries"), SMALL)
def test_full_rate_without_a_reservation_falls_behind(size, entries) -> None:
    """Shows that the test above can fail: 0.06 % too much load adds up."""
    case = filled(size, entries, FULL_RATE, AS_THE_PAPER, min(entries, 2))
    (damage,) = damage_of(case, [sustained_pattern(case, seconds=8)], seed=3)
    assert damage.lost
    assert damage.worst > 1
