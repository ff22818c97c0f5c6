"""The figure type `versions`: guarantees in OpenFlow 1.0 and 1.3, and what is sent in both."""

from __future__ import annotations

from pathlib import Path

from os_ken.ofproto import ofproto_v1_3_parser as parser13

from loko.control.entries import switch_entries
from loko.control.messages13 import PROTOCOL, session_segments
from loko.switch_model.device import load_profile
from loko.switch_model.scenario import OpenFlow, loko_scenario
from loko.switch_model.service_curve import service_curve
from loko.topology.lab import load_lab
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure_types.experiments import experiments, select
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.virtual import lab_network
from loko_testbed.tasks.progress import ProgressBar


def test_tables_are_installed_in_either_version() -> None:
    lab = load_lab("two-switch")
    tables = switch_entries(lab, [], entries=17)
    for version in OpenFlow:
        lab_network(lab, tables, seed=1, openflow=version)  # raises an error if a board refuses


def test_every_segment_is_one_message_that_the_board_can_take() -> None:
    lab = load_lab("two-switch")
    segments = session_segments(switch_entries(lab, [], entries=17)["s1"])
    assert [segment[1] for segment in segments] == [0, 5, *[14] * 17, 20]
    assert all(int.from_bytes(segment[2:4]) == len(segment) <= 536 for segment in segments)
    read = parser13.OFPFlowMod.parser(PROTOCOL, 4, 14, len(segments[2]), 3, segments[2])
    assert list(dict(read.match.items())) == [
        *("eth_type", "ip_proto", "ipv4_src", "ipv4_dst", "udp_src", "udp_dst")
    ]
    assert (read.idle_timeout, read.hard_timeout, read.flags) == (0, 0, 0)


def test_both_versions_keep_a_guarantee_of_their_own(tmp_path: Path) -> None:
    options = Options(mode="virtual", seed=1, out=tmp_path, quick=True)
    with ProgressBar() as progress:
        (result,) = evaluate(select(["openflow13"], experiments()), options, progress)
    assert [guarantee.system for guarantee in result.guarantees] == [
        "fifth-rate, OpenFlow 1.0",
        "fifth-rate, OpenFlow 1.3",
    ]
    assert all(
        guarantee.packets > 500 and guarantee.verdict == "kept" and guarantee.ours
        for guarantee in result.guarantees
    )
    findings = result.findings
    assert findings["guarantee_in_1_3_ms"] != findings["guarantee_in_1_0_ms"]
    profile = load_profile("zodiac-fx").with_exact_clocks()
    for version in OpenFlow:
        scenario = loko_scenario(entries=17, packet_sizes_bytes=(306,), openflow=version)
        name = version.value.replace(".", "_")
        computed_us = service_curve(profile, scenario).processing_ns / 1e3
        assert findings[f"processing_at_17_entries_in_{name}_us"] == computed_us
        assert 0 < findings[f"latest_in_{name}_ms"] <= findings[f"guarantee_in_{name}_ms"]
