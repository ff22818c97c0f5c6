"""Random admitted flows beside random control traffic in the simulator: nothing is lost, nothing is late."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

import numpy as np
import switch_emulator
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.admission import Admitted, LokoAdmission
from loko.control.entries import switch_entries
from loko.control.messages import (
    barrier_request,
    echo_request,
    features_request,
    flow_stats_request,
    session_segments,
    table_stats_request,
)
from loko.control.os_ken_messages import PROTOCOL, flow_mod, serialized
from loko.document import PROFILES
from loko.switch_model.allocation import AllocationRule
from loko.switch_model.control_traffic import ControlTraffic, MessageRate, MessageType
from loko.switch_model.device import load_profile
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.frame import frame_of
from loko.topology.lab import Lab, load_lab
from loko.topology.lab_allocation import allocations_of

SESSION = load_lab("two-switch")
NETWORK = replace(SESSION, controller=IPv4Interface("10.0.1.8/24"))
"""The lab again; messages of the controller are frames on the boards' control ports."""
PAIRS = (("H1", "H3"), ("H3", "H1"), ("H2", "H4"), ("H4", "H2"), ("H1", "H2"), ("H3", "H4"))
RUN_NS = 400_000_000
SIZES = (64, 100, 128, 256, 306, 548, 1032, 1516)
NOBODY = parser.OFPMatch(dl_type=0x0800, nw_proto=17, nw_src="198.51.100.1")
"""A match that selects no entry of the lab."""


def _without_hits(command: int) -> bytes:
    return flow_mod(NOBODY, [], priority=7, xid=9, command=command)


REQUESTS: Mapping[MessageType, bytes] = {
    MessageType.ECHO: echo_request(9),
    MessageType.BARRIER: barrier_request(9),
    MessageType.FEATURES: features_request(9),
    MessageType.FLOW_DELETE: _without_hits(of.OFPFC_DELETE),
    MessageType.FLOW_DELETE_STRICT: _without_hits(of.OFPFC_DELETE_STRICT),
    MessageType.FLOW_MODIFY: _without_hits(of.OFPFC_MODIFY),
    MessageType.FLOW_MODIFY_STRICT: _without_hits(of.OFPFC_MODIFY_STRICT),
    # The table is full of padding entries, so this is refused, which costs more.
    MessageType.FLOW_ADD: flow_mod(NOBODY, [parser.OFPActionOutput(1, 0)], priority=7, xid=9),
    MessageType.TABLE_STATISTICS: table_stats_request(9),
    MessageType.FLOW_STATISTICS: flow_stats_request(9),
    MessageType.DESCRIPTION: serialized(parser.OFPDescStatsRequest(PROTOCOL, 0), 9),
}


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A random case: a lab, its scheme, its control traffic and its flows."""

    entries: int
    sizes: tuple[int, ...]
    scheme: AllocationRule
    control: ControlTraffic
    requests: Sequence[tuple[tuple[str, str], int, float, float]]
    """Hosts, index of the frame size, and shares of the rate and of the burst, for each flow."""
    seed: int
    saturated: bool
    lab: Lab


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    entries = draw(st.sampled_from((6, 17, 40, 128)))
    lab = draw(st.sampled_from((SESSION, NETWORK)))
    # An Add that finds room would make the table longer than planned.
    possible = [kind for kind in REQUESTS if entries == 128 or kind is not MessageType.FLOW_ADD]
    kinds = draw(st.lists(st.sampled_from(possible), max_size=3, unique=True))
    return Drawn(
        entries=entries,
        sizes=tuple(draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3, unique=True))),
        scheme=AllocationRule(name="drawn", rate_fraction=draw(st.sampled_from((0.05, 0.2, 0.5, 0.9, 1.0)))),
        control={
            # On a network, simultaneous messages could share a segment, which a board does not survive.
            kind: MessageRate(
                per_s=draw(st.floats(1, 100)), burst=draw(st.integers(1, 3)) if lab is SESSION else 1
            )
            for kind in kinds
        },
        requests=draw(
            st.lists(
                st.tuples(
                    st.sampled_from(PAIRS), st.integers(0, 2), st.floats(0.01, 0.6), st.floats(0.0, 0.6)
                ),
                min_size=1,
                max_size=8,
            )
        ),
        seed=draw(st.integers(0, 2**32)),
        saturated=draw(st.booleans()),
        lab=lab,
    )


def admitted_flows(case: Drawn) -> list[Admitted]:
    """Return the requests that Loko admits, and padding entries that use up the switches."""
    scenario = loko_scenario(entries=case.entries, packet_sizes_bytes=case.sizes)
    allocations = allocations_of(case.lab, case.scheme, scenario, case.control)
    limit = allocations["s1"]
    if not limit.feasible:
        return []
    admission = LokoAdmission(case.lab, allocations)
    # The padding entries take whatever is left of the switches.
    padding = [(ends, 0, share, share) for share in (0.8, 0.4, 0.2, 0.1, 0.05) for ends in PAIRS]
    for number, (ends, place, rate, burst) in enumerate([*case.requests, *padding]):
        frame_bytes = case.sizes[place % len(case.sizes)]
        flow = Flow(
            id=f"flow-{number}",
            source=ends[0],
            destination=ends[1],
            udp_source=1000 + number,
            udp_destination=2000 + number,
            rate_bps=max(rate * limit.max_rate_bps, 1000.0),
            burst_bytes=frame_bytes + burst * limit.max_burst_bytes,
            frame_bytes=frame_bytes,
        )
        admission.request(flow)
    return list(admission.admitted.values())


def control_segments(traffic: ControlTraffic, rng: np.random.Generator) -> list[tuple[int, bytes]]:
    """Return all messages that the buckets allow: each burst at once, then one as often as possible."""
    control_segments: list[tuple[int, bytes]] = []
    for kind, rate in traffic.items():
        gap_ns = int(np.ceil(1e9 / rate.per_s))
        begin_ns = int(rng.integers(0, 3_000_000))
        control_segments += [(begin_ns, REQUESTS[kind])] * rate.burst
        control_segments += [(at_ns, REQUESTS[kind]) for at_ns in range(begin_ns + gap_ns, RUN_NS, gap_ns)]
    return sorted(control_segments, key=lambda segment: segment[0])


def carried(case: Drawn, admitted: Sequence[Admitted]) -> Any:
    """Return the result of a run in which every sender uses up its bucket, in bursts or continuously."""
    flows = [granted.flow for granted in admitted]
    lab = case.lab
    tables = switch_entries(lab, admitted, entries=case.entries)
    rng = np.random.default_rng(case.seed)
    network = switch_emulator.Network(seed=case.seed)
    with tempfile.TemporaryDirectory() as folder:
        # A Delete that hits every entry takes 2.3 ms, but would delete the flows' entries. So let one that
        # hits nothing take as long.
        path = Path(folder) / "slow-delete.toml"
        hit_ps = load_profile("zodiac-fx").cpu.control.delete_hit_ps.value
        line = f'delete_miss_ps = {{ value = {hit_ps}, source = "assumption" }}'
        path.write_text(re.sub(r"(?m)^delete_miss_ps = .*$", line, (PROFILES / "zodiac-fx.toml").read_text()))
        for name, switch in lab.switches.items():
            config = {**switch.config, **lab.control_settings}
            network.add_board(name, profile=str(path), config=config)
    for name in lab.hosts:
        network.add_host(name)
    for link in lab.links:
        network.connect(link.a.node, link.a.port, link.b.node, link.b.port)
    if lab.controller is not None:
        network.add_controller("controller", config={"ip_address": str(lab.controller.ip)})
        for port, name in enumerate(lab.switches, start=1):
            network.connect("controller", port, name, lab.control_port)
    for name, entries in tables.items():
        network.control(name, session_segments(entries))
        network.plan_control(name, control_segments(case.control, rng))
    for number, flow in enumerate(flows):
        network.add_source(
            flow.source,
            flow=number,
            frame=frame_of(lab, flow),
            sequence_offset=50,
            shaper_rate_bps=flow.rate_bps,
            shaper_burst_bytes=flow.burst_bytes,
            offered_rate_bps=flow.rate_bps * (20 if case.saturated else 1),
            burst_bytes=flow.burst_bytes,
            queue_bytes=160 * flow.frame_bytes,
        )
    return network.run(duration_ns=RUN_NS)


@examples(75)
@given(case=drawn())
def test_nothing_is_lost_and_nothing_is_late(case: Drawn) -> None:
    admitted = admitted_flows(case)
    if not admitted:
        return
    result = carried(case, admitted)
    assert (result.received_ns >= 0).all()
    delays = result.received_ns - result.sent_ns
    for number, admitted_flow in enumerate(admitted):
        mine = delays[result.flow == number]
        if len(mine):
            assert mine.max() <= admitted_flow.guarantee_ns
