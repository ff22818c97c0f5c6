"""Every answer of a large admission, compared with sums that are computed afresh for each request.

The product keeps sums, curves and answers between requests, and shares them among flows and switches that are
alike. Nothing is kept or shared here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from loko.admission import ROUNDING, Admitted, LokoAdmission, Refusal
from loko.admission.packets import PacketAdmission
from loko.switch_model.allocation import FIFTH_RATE, FULL_RATE, AllocationRule
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION, Scenario, loko_scenario
from loko.topology.lab import Lab, load_lab, ring_lab
from loko.topology.lab_allocation import allocations_of
from loko.topology.network import Hop, shortest_path
from loko.topology.ring import Ring
from loko_testbed.reproduce.studies.growth import NetworkKind, network_of

LABS: dict[str, Lab] = {
    "two switches": load_lab("two-switch"),
    "ring": ring_lab(Ring(switches=9, one_way=False)),
    "random": network_of(NetworkKind.RANDOM, 12),
}
TWO_SIZES = loko_scenario(entries=17, packet_sizes_bytes=(306, 512))
Passed = tuple[Flow, tuple[Hop, ...]]


def asked(lab: Lab, scenario: Scenario, seed: int) -> list[Flow]:
    """Draw flows: half of them of a few kinds, the others all different."""
    chance = random.Random(seed)
    sorts = ((100e3, 1.0), (50e3, 2.0), (33_333.3, 3.3))
    flows = []
    for number in range(150):
        rate_bps, frames = chance.choice(sorts)
        if chance.random() < 0.5:
            rate_bps, frames = chance.uniform(1e3, 1e6), chance.uniform(1, 6)
        size = chance.choice(scenario.frame_bytes)
        ends = chance.sample(sorted(lab.hosts), 2)
        flows.append(Flow(f"f{number}", *ends, number + 1, 1, rate_bps, frames * size, size))
    return flows


def by_sums(control: LokoAdmission, flows: list[Passed], flow: Flow, path: tuple[Hop, ...]) -> tuple:
    """Decide as in section 5: rates, bursts and entries at each switch must stay within its allocation."""

    def burst_bytes(flow: Flow, route: tuple[Hop, ...], switch: str) -> float:
        burst_bytes = flow.burst_bytes
        for hop in route:
            if hop.switch == switch:
                break
            burst_bytes += flow.rate_bps * control.allocations[hop.switch].delay_ns / 8e9
        return burst_bytes

    bursts = []
    for hop in path:
        name, allocation = hop.switch, control.allocations[hop.switch]
        here = [(admitted, route) for admitted, route in flows if name in (each.switch for each in route)]
        wanted = (
            ("rate", [admitted.rate_bps for admitted, _ in here], flow.rate_bps, allocation.max_rate_bps),
            (
                "burst",
                [burst_bytes(admitted, route, name) for admitted, route in here],
                burst_bytes(flow, path, name),
                allocation.max_burst_bytes,
            ),
            ("entries", [1.0] * len(here), 1.0, float(allocation.service.scenario.entries)),
        )
        for quantity, terms, more, allowed in wanted:
            used = math.fsum(terms)
            if used + more > allowed * (1 + (ROUNDING if quantity != "entries" else 0)):
                return name, quantity, used, more, allowed
        bursts.append(wanted[1][2])
    return flow, path, tuple(bursts), tuple(control.allocations[hop.switch].delay_ns for hop in path)


def by_frames(control: PacketAdmission, flows: list[Passed], flow: Flow, path: tuple[Hop, ...]) -> tuple:
    """Decide by equation 1 of docs/packet-granular.md, with every flow's staircase in every grid cell."""
    lab = control._lab

    def stages(flow: Flow, route: tuple[Hop, ...]) -> dict[str, tuple[int, int, int]]:
        """Return by switch the flow's input port, its jitter and the service time of a frame."""
        stages, jitter_ns, end = {}, 0, lab.far_end(flow.source, 1)
        for hop in route:
            use = control.switches[hop.switch]
            server = use.server
            stages[hop.switch] = end.port, jitter_ns, server.times[flow.frame_bytes].service_ns
            jitter_ns = jitter_ns or server.sender_queue_ns(use.work_ns)
            jitter_ns += server.jitter_ns(flow.frame_bytes, use.work_ns)
            end = lab.far_end(hop.switch, hop.output_port)
        return stages

    bursts, delays_ns = [], []
    for hop in path:
        name = hop.switch
        use = control.switches[name]
        times = use.server.times
        allowed_ns = max(use.delay_ns(size) for size in times)
        here = [
            (admitted, stages(admitted, route)[name])
            for admitted, route in flows
            if name in stages(admitted, route)
        ]
        mine = stages(flow, path)[name]

        def left(passing: list[tuple[Flow, tuple[int, int, int]]], use=use) -> int:
            total = np.zeros_like(use.room)
            for port in {port for _, (port, _, _) in passing}:
                work = np.zeros_like(use.room)
                for passing_flow, (by, jitter_ns, service_ns) in passing:
                    if by == port:
                        pace = passing_flow.rate_bps / 8e9
                        first = (
                            passing_flow.burst_bytes + pace * jitter_ns
                        ) / passing_flow.frame_bytes + 1e-9
                        ends_ns = use._grid.right_ns.astype(float)
                        work += (
                            np.floor(first + ends_ns * (pace / passing_flow.frame_bytes)).astype(int)
                            * service_ns
                        )
                total += np.minimum(work, use.limit(port))
            return int((use.room - total).min())

        share, used_share = (
            math.fsum(
                admitted.rate_bps / 8e9 / admitted.frame_bytes * service_ns
                for admitted, (_, _, service_ns) in some
            )
            for some in ([(flow, mine)], here)
        )
        whole = 1 - use.server.interruption.share
        if len(here) >= 17:
            return name, "entries", len(here), 1, 17
        if used_share + share > whole:
            return name, "rate", 100 * used_share, 100 * share, 100 * whole
        slack_ns = left([*here, (flow, mine)])
        if slack_ns < 0:
            used_ns = allowed_ns - left(here)
            return name, "delay", used_ns / 1e3, (allowed_ns - slack_ns - used_ns) / 1e3, allowed_ns / 1e3
        bursts.append(flow.burst_bytes + flow.rate_bps * mine[1] / 8e9)
        delays_ns.append(use.delay_ns(flow.frame_bytes))
    return flow, path, tuple(bursts), tuple(delays_ns)


def differ(control: LokoAdmission | PacketAdmission, lab: Lab, requests: list[Flow], judge: Callable) -> None:
    chance = random.Random(len(requests))
    flows: dict[str, Passed] = {}
    refused = 0
    for flow in requests:
        path = shortest_path(lab, flow.source, flow.destination)
        expected = judge(control, list(flows.values()), flow, path)
        for answer in (control.check(flow), control.request(flow)):
            if isinstance(answer, Refusal):
                assert (*answer[1:3], *map(pytest.approx, answer[3:6])) == expected
            else:
                assert tuple(answer) == (*expected, None, None), "no bound of a whole path, no VLAN"
        refused += isinstance(answer, Refusal)
        if isinstance(answer, Admitted):
            flows[flow.id] = flow, path
        if flows and chance.random() < 0.2:
            gone = chance.choice(sorted(flows))
            control.cancel(gone)
            del flows[gone]
    assert refused
    assert flows


@pytest.mark.parametrize("lab", LABS)
@pytest.mark.parametrize("scheme", [FULL_RATE, FIFTH_RATE], ids=lambda scheme: scheme.name)
def test_sums_that_are_kept_decide_as_sums_made_anew(lab: str, scheme: AllocationRule) -> None:
    control = LokoAdmission(LABS[lab], allocations_of(LABS[lab], scheme, EVALUATION))
    differ(control, LABS[lab], asked(LABS[lab], EVALUATION, 1), by_sums)


@pytest.mark.parametrize("lab", LABS)
@pytest.mark.parametrize("scenario", [EVALUATION, TWO_SIZES], ids=["one size", "two sizes"])
def test_curves_that_are_kept_decide_as_curves_made_anew(lab: str, scenario: Scenario) -> None:
    control = PacketAdmission(LABS[lab], scenario)
    differ(control, LABS[lab], asked(LABS[lab], scenario, 2), by_frames)


def test_switches_that_differ_on_a_path() -> None:
    """Switches with different bounds must not share what switches that are alike share."""
    lab = LABS["ring"]
    schemes = {name: (FULL_RATE, FIFTH_RATE)[number % 3 == 0] for number, name in enumerate(lab.switches)}
    control = LokoAdmission(lab, allocations_of(lab, schemes, EVALUATION))
    differ(control, lab, asked(lab, EVALUATION, 3), by_sums)
    targets = {name: (1.3e6, 1.86e6)[number % 2] for number, name in enumerate(lab.switches)}
    differ(PacketAdmission(lab, EVALUATION, targets), lab, asked(lab, EVALUATION, 4), by_frames)
