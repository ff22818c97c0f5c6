"""In sessions of OpenFlow 1.3, the worst traffic of admitted sets breaks no guarantee."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import switch_emulator
from filled_boards import all_fit, largest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser
from typer.testing import CliRunner

import loko.switch_model.service_curve
from loko.admission.packets import frame_server
from loko.admission.schemes import admission_of, variant_named
from loko.control import messages13, os_ken_messages13
from loko.control.entries import padding_entries, switch_entries
from loko.control.os_ken_messages import serialized
from loko.control.wire import AddEntry, BarrierRequest, DeleteEntry, PortsRequest
from loko.control.wire13 import entry_of, segment
from loko.document import PROFILES
from loko.switch_model.control_traffic import (
    COMPARED_ENTRIES,
    HEARTBEAT,
    MessageType,
    driver_traffic,
    interference,
    message_ns,
)
from loko.switch_model.device import load_profile
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow, loko_scenario
from loko.switch_model.service_curve import processing, shortest_processing
from loko.topology.frame import frame_of
from loko.topology.lab import load_lab
from loko.topology.network import on_shortest_paths
from loko_testbed.cli.main import app
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.delivery import judge_delivery, timed_senders, transmit
from loko_testbed.simulation.worst_case.random_cases import random_case
from loko_testbed.simulation.worst_case.schemes import GUARANTEED
from loko_testbed.simulation.worst_case.search import search_worst_case
from loko_testbed.simulation.worst_case.trial import run_trial

LAB = load_lab("two-switch")
ZODIAC = load_profile("zodiac-fx")
SEEDS = st.integers(0, 2**32)
V1_3 = OpenFlow.V1_3


@examples(20)
@given(seed=SEEDS)
def test_no_packet_of_a_random_admitted_set_is_lost_or_late(seed: int) -> None:
    outcome = run_trial(seed, packets=10_000, openflow=V1_3)
    assert outcome.drawn.case.openflow is V1_3
    assert outcome.verdict.packets > 0
    assert not outcome.failed, (outcome.verdict.broken, outcome.verdict.events)


@examples(6)
@given(seed=SEEDS)
def test_the_search_breaks_no_random_admitted_set(seed: int) -> None:
    attack = search_worst_case(random_case(seed, openflow=V1_3).case, generations=2, seed=seed)
    assert attack.damage.lost == 0
    assert 0 < attack.damage.worst <= 1


FLOW = Flow("f", "H1", "H3", 1000, 2000, 1e5, 306.0, 306)
SPACING_NS = 50_000_000
NOBODYS = entry_of(padding_entries(LAB, 1)[0], cookie=1)
DUMMIES = parser.OFPMatch(eth_type=0x0800, ip_proto=17, ipv4_dst="192.0.2.254")
NOBODY = parser.OFPMatch(eth_type=0x0800, ip_proto=17, ipv4_src="198.51.100.1")
OUTPUT = [parser.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, [parser.OFPActionOutput(1, 0)])]


def flow_mod(match, command: int, instructions=()) -> bytes:
    message = parser.OFPFlowMod(
        os_ken_messages13.PROTOCOL,
        match=match,
        command=command,
        priority=7,
        out_port=of.OFPP_ANY,
        out_group=of.OFPG_ANY,
        instructions=list(instructions),
    )
    return serialized(message, 9)


REQUESTS = {
    "echo": (MessageType.ECHO, messages13.echo_request(9)),
    "barrier": (MessageType.BARRIER, messages13.barrier_request(9)),
    "features": (MessageType.FEATURES, messages13.features_request(9)),
    "ports": (MessageType.PORTS, segment([PortsRequest(9)])),
    "add": (MessageType.FLOW_ADD, flow_mod(NOBODY, of.OFPFC_ADD, OUTPUT)),
    "delete dummies": (MessageType.FLOW_DELETE, flow_mod(DUMMIES, of.OFPFC_DELETE)),
    "delete nothing": (MessageType.FLOW_DELETE, flow_mod(NOBODY, of.OFPFC_DELETE)),
    "delete strictly": (MessageType.FLOW_DELETE_STRICT, flow_mod(NOBODY, of.OFPFC_DELETE_STRICT)),
    "flow statistics": (MessageType.FLOW_STATISTICS, messages13.flow_stats_request(9)),
    "table statistics": (MessageType.TABLE_STATISTICS, messages13.table_stats_request(9)),
    "heartbeat": (MessageType.HEARTBEAT, messages13.aggregate_request(9)),
    "port statistics": (
        MessageType.PORT_STATISTICS,
        serialized(parser.OFPPortStatsRequest(os_ken_messages13.PROTOCOL, 0, of.OFPP_ANY), 9),
    ),
    "change of two": (
        MessageType.CHANGE,
        segment([BarrierRequest(1), DeleteEntry(2, NOBODYS), DeleteEntry(3, NOBODYS)]),
    ),
    "change and addition": (
        MessageType.CHANGE,
        segment([BarrierRequest(1), DeleteEntry(2, NOBODYS), AddEntry(3, NOBODYS)]),
    ),
    "description": (
        MessageType.DESCRIPTION,
        serialized(parser.OFPDescStatsRequest(os_ken_messages13.PROTOCOL, 0), 9),
    ),
}


def delay_ns(entries: int, request: bytes | None, quirks: str) -> int:
    """Return the delay of a frame that comes right after the request, at a board with this many entries."""
    config = {"ofchecks": False, "openflow_version": 4, "quirks": quirks}
    board = switch_emulator.Board(profile="zodiac-fx", config=config, seed=1)
    now_ns = 2_500_000_000
    board.connected(now_ns)
    tables = switch_entries(LAB, on_shortest_paths(LAB, [FLOW]), entries=entries)
    for data in messages13.session_segments(tables["s1"]):
        now_ns += SPACING_NS // 10
        board.segment(now_ns, data)
    now_ns += SPACING_NS
    board.advance(now_ns)
    board.outputs()
    if request is not None:
        board.segment(now_ns, request)
    board.frame(now_ns, 1, frame_of(LAB, FLOW))
    board.advance(now_ns + SPACING_NS)
    (left,) = [output for output in board.outputs() if output.kind == "frame"]
    return int(left.at_ns) - now_ns


@pytest.mark.parametrize("quirks", ["firmware", "spec"])
@pytest.mark.parametrize("entries", [17, 120])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_frame_waits_no_longer_for_a_message(name: str, entries: int, quirks: str) -> None:
    kind, request = REQUESTS[name]
    waited_ns = delay_ns(entries, request, quirks) - delay_ns(entries, None, quirks)
    loop_ns = ZODIAC.cpu.loop_ps.value / 1000
    assert waited_ns <= message_ns(ZODIAC, kind, entries, V1_3) + loop_ns
    assert waited_ns > 0 or name == "delete dummies"  # then there is less to search


@pytest.mark.parametrize("quirks", ["firmware", "spec"])
@pytest.mark.parametrize("entries", [1, COMPARED_ENTRIES])
def test_a_frame_waits_no_longer_for_a_comparison(entries: int, quirks: str) -> None:
    waited_ns = delay_ns(entries, messages13.flow_stats_request(9), quirks) - delay_ns(entries, None, quirks)
    bound_ns = message_ns(ZODIAC, MessageType.COMPARISON, entries, V1_3) + ZODIAC.cpu.loop_ps.value / 1000
    assert 0 < waited_ns <= bound_ns


def test_messages_of_the_driver_cost_what_1_3_says() -> None:
    """The costs are not those of 1.0: a deletion looks at every entry, and so does an addition."""
    for traffic in (HEARTBEAT, driver_traffic(20)):
        older, newer = (interference(ZODIAC, traffic, 17, version).messages for version in OpenFlow)
        assert newer.burst_ns != older.burst_ns
    few, many = (message_ns(ZODIAC, MessageType.CHANGE, entries, V1_3) for entries in (17, 128))
    assert many - few == pytest.approx(2 * 111 * ZODIAC.cpu.openflow13.delete_strict_ps.value / 1e3, rel=0.3)


def test_least_times_allow_for_entries_that_fail_at_once() -> None:
    """Lemma 4 of docs/packet-granular.md needs the quickest frame. In 1.3 its search is not the longest."""
    scenario = loko_scenario(entries=40, packet_sizes_bytes=(306,), openflow=V1_3)
    (times,) = frame_server(ZODIAC, scenario).times.values()
    case, *_ = scenario.cases()
    longest, shortest = processing(ZODIAC, case).cpu_ns, shortest_processing(ZODIAC, case).cpu_ns
    assert shortest < 0.7 * longest
    assert times.least_service_ns <= shortest < longest <= times.service_ns


def test_a_least_time_that_is_none_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the tests above can fail: sets are admitted as if every search of 1.3 were the shortest."""
    monkeypatch.setattr(
        "loko.admission.packets.server.processing", loko.switch_model.service_curve.shortest_processing
    )
    monkeypatch.setattr(
        "loko.switch_model.service_curve.processing", loko.switch_model.service_curve.shortest_processing
    )
    assert any(
        run_trial(seed, packets=3_000, openflow=V1_3, scheme="packet-granular").failed for seed in range(40)
    )


@pytest.mark.parametrize("scheme", GUARANTEED)
def test_every_scheme_is_planned_for_in_1_3(scheme: str) -> None:
    assert random_case(5, scheme=scheme, openflow=V1_3).case.admitted


def call(*words: object) -> object:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_plan_counts_on_the_version_that_it_names(tmp_path: Path) -> None:
    flows = tmp_path / "flows.yml"
    flows.write_text(json.dumps([FLOW._asdict()]))
    for scheme in ("loko", "packets"):
        told = {
            version: json.loads(
                call("plan", "two-switch", flows, "--scheme", scheme, "--openflow", version, "--json").stdout
            )
            for version in ("1.0", "1.3")
        }
        assert {version: values["openflow"] for version, values in told.items()} == {
            "1.0": "1.0",
            "1.3": "1.3",
        }
        older, newer = (told[version]["accepted"][0]["guarantee_ns"] for version in ("1.0", "1.3"))
        assert newer < older
    said = call("plan", "two-switch", flows, "--openflow", "1.3").stdout
    assert "for sessions of OpenFlow 1.3 alone" in said


def test_a_lab_whose_switches_speak_1_0_alone_is_refused(tmp_path: Path) -> None:
    flows = tmp_path / "flows.yml"
    flows.write_text(json.dumps([FLOW._asdict()]))
    text = (PROFILES.parents[1] / "labs" / "two-switch" / "lab.yml").read_text()
    forced = tmp_path / "lab.yml"
    forced.write_text(text.replace("config: {", "config: {openflow_version: 1, ", 1))
    result = call("plan", forced, flows, "--openflow", "1.3")
    assert result.exit_code == 2
    assert "its openflow_version is 1" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("scheme", ["full-rate", "packet-granular"])
def test_entries_behind_the_one_that_is_hit_are_charged(scheme: str) -> None:
    """One fast flow before sixteen slow ones: its frames go on through the table after they have hit.

    With the match at the end of the table, as if nothing came after it, a twentieth of the frames was lost.
    """
    scenario = loko_scenario(entries=17, packet_sizes_bytes=(64,), openflow=V1_3)
    admission = admission_of(LAB, variant_named(scheme), scenario, traffic={})

    def asked(rate_bps: float) -> list[Flow]:
        rates = [0.9999 * rate_bps, *(0.0001 * rate_bps / 16,) * 16]
        return [Flow(f"f{n}", "H1", "H2", 1000, 2000 + n, rate, 64, 64) for n, rate in enumerate(rates)]

    all_fit(admission, asked(largest(lambda rate_bps: all_fit(admission, asked(rate_bps)), 20e6)))
    admitted = tuple(admission.admitted.values())
    assert len(admitted) == 17
    case = AdmittedSet(lab=LAB, scheme=scheme, admitted=admitted, entries=17, openflow=V1_3)
    releases = [np.zeros(int(30 * flow.rate_bps / 8 / 64) + 1, dtype=np.int64) for flow in case.flows]
    records = transmit(case, timed_senders(case, releases), seed=1, duration_ns=30 * 10**9)
    assert not judge_delivery(case, records).broken
