"""Figures of traffic: what is admitted and sent, how delays are distributed, and what the results say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scripted_runner import records

from loko.document import InputError
from loko.switch_model.device import load_profile
from loko.switch_model.scenario import OpenFlow, loko_scenario
from loko.switch_model.service_curve import service_curve
from loko_testbed.reproduce.chart import LinePanel
from loko_testbed.reproduce.claims import judge
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.traffic.compute import FIGURE_TYPE
from loko_testbed.reproduce.figure_types.traffic.deployed import deploy
from loko_testbed.reproduce.figure_types.traffic.distribution import Distribution, panels
from loko_testbed.reproduce.figure_types.traffic.document import Deployment, LokoSystem, SiloSystem
from loko_testbed.reproduce.result import GUARANTEE_MS
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import LOST
from loko_testbed.tasks.progress import NoProgress

FIGURES = experiments()
SILO = SiloSystem(system="silo", label="Silo", rate_bps=45e6, burst_bytes=306)
LOKO = LokoSystem(system="loko", label="Loko", allocation="fifth-rate", split=2)
DEPLOYMENTS = [figure for figure in FIGURES.values() if isinstance(figure, Deployment)]


def figure(name: str) -> Deployment:
    document = FIGURES[f"loko/{name}"]
    assert isinstance(document, Deployment)
    return document


@pytest.mark.parametrize("name", ["fig3a", "fig3b", "fig3c", "fig3d"])
def test_the_papers_scale(name: str) -> None:
    assert (figure(name).runs, figure(name).seconds) == (20, 10)


@pytest.mark.parametrize("document", DEPLOYMENTS, ids=lambda document: document.figure)
def test_hosts_send_what_is_admitted(document: Deployment) -> None:
    for system in document.systems:
        deployed = deploy(document, system)
        assert deployed.shown == {0, 1}
        for admitted, sender in zip(deployed.flows, deployed.senders, strict=True):
            assert 0 <= admitted.flow.rate_bps - sender.bucket.rate_bps < 1
            assert 0 <= admitted.flow.burst_bytes - sender.bucket.burst_bytes < 1


@pytest.mark.parametrize("name", ["fig3a", "fig3b"])
def test_silos_intermediate_values_are_those_of_appendix_a(name: str) -> None:
    document = figure(name)
    deployed = deploy(document, document.systems[0])
    findings = {f"silo_{name}_us": value / 1e3 for name, value in deployed.queues_ns.items()}
    claims = [claim for claim in document.claims if claim.check.finding in findings]
    assert len(claims) == len(findings) == 3
    for claim in judge(document.model_copy(update={"claims": claims}), findings=findings):
        assert claim.holds, claim


def test_what_silo_refuses_is_not_deployed() -> None:
    document = figure("fig3a")
    greedy = SiloSystem(system="silo", label="Silo", rate_bps=51e6, burst_bytes=306.0)
    with pytest.raises(InputError, match=r"Silo refuses flow-2: rate of port 3 at s1: 51 used"):
        deploy(document, greedy)


def test_a_distribution_counts_every_packet_once() -> None:
    distribution = Distribution(guarantee_ns=1e6, flows=[0])
    distribution.add(records([500_000] * 6 + [2_000_000] * 3 + [LOST]))
    distribution.add(records([LOST] * 10, flow=7))
    findings = distribution.findings("silo")
    assert findings["silo_sent_packets"] == 10
    assert findings["silo_lost_percent"] == 10
    assert findings["silo_late_percent"] == 30
    assert findings["silo_in_time_percent"] == 60
    assert findings["silo_lost_of_all_flows_percent"] == 55
    assert (findings["silo_least_delay_us"], findings["silo_greatest_delay_us"]) == (500, 2000)
    (panel,) = panels({SILO: distribution})
    (arrived,) = panel.histograms
    assert sum(arrived.counts) == pytest.approx(90)
    assert panel.overflow is not None
    assert (panel.overflow.label, panel.overflow.count, panel.overflow.text) == ("lost", 10, "10.00 %")
    assert all(low < high for low, high in zip(panel.edges, panel.edges[1:], strict=False))
    assert panel.edges[0] * 1e6 < 500_000 < 2_000_000 < panel.edges[-1] * 1e6


def test_panels_of_several_systems_share_their_delays() -> None:
    all_lost, in_time = Distribution(guarantee_ns=1e5, flows=[0]), Distribution(guarantee_ns=4e6, flows=[0])
    all_lost.add(records([LOST] * 3))
    in_time.add(records([600_000]))
    first, second = panels({SILO: all_lost, LOKO: in_time})
    assert first.edges == second.edges
    assert (first.title, second.title) == ("Silo", "Loko")
    assert (first.x, first.y) == (second.x, second.y)
    assert (first.x.low, first.x.high) == (first.edges[0], first.edges[-1])
    assert first.y.high == 100
    for panel, told in ((first, "all"), (second, "none")):
        assert panel.overflow is not None
        assert panel.overflow.text == told


@pytest.mark.parametrize(
    ("lost", "told"), [(1, "below 0.01 %"), (2, "0.01 %"), (19_999, "99.99 %"), (5_000, "25.00 %")]
)
def test_a_share_in_words_is_never_none_where_there_are_some_nor_all_where_some_are_missing(
    lost: int, told: str
) -> None:
    distribution = Distribution(guarantee_ns=1e6, flows=[0])
    distribution.add(records([LOST] * lost + [500_000] * (20_000 - lost)))
    (panel,) = panels({SILO: distribution})
    assert panel.overflow is not None
    assert panel.overflow.text == told


def test_only_loko_keeps_its_guarantee(tmp_path: Path) -> None:
    options = Options(mode="virtual", seed=3, out=tmp_path, runs=1, seconds=5)
    (result,) = FIGURE_TYPE.compute([figure("fig15")], options, NoProgress())
    assert result.findings["loko_in_time_percent"] == 100
    assert result.findings["silo_in_time_percent"] < 5
    assert result.findings["qjump_in_time_percent"] < 100
    assert result.violations == 0
    guaranteed = [point.guaranteed for point in result.series[0].points]
    assert guaranteed == [False, False, True]
    verdicts = {guarantee.system: (guarantee.verdict, guarantee.ours) for guarantee in result.guarantees}
    assert verdicts == {"Silo": ("broken", False), "QJump": ("broken", False), "Loko": ("kept", True)}
    assert not result.breaks_ours
    (again,) = FIGURE_TYPE.compute([figure("fig15")], options, NoProgress())
    assert again.findings == result.findings


def test_only_the_admitted_points_are_lokos(tmp_path: Path) -> None:
    options = Options(mode="virtual", seed=3, out=tmp_path, runs=1, seconds=5, points="admitted")
    (result,) = FIGURE_TYPE.compute([figure("fig15")], options, NoProgress())
    assert {name.partition("_")[0] for name in result.findings if name != GUARANTEE_MS} == {"loko"}


def test_a_sweep_without_an_admitted_point_has_a_result_without_boxes(tmp_path: Path) -> None:
    options = Options(mode="virtual", seed=3, out=tmp_path, points="admitted")
    sweep = FIGURES["loko/fig17a"].model_copy(update={"guaranteed": []})
    (result,) = FIGURE_TYPE.compute([sweep], options, NoProgress())
    assert [line.points for line in result.series] == [[]] * len(sweep.observed)


def test_the_seed_decides_everything(tmp_path: Path) -> None:
    written = []
    for place, seed, jobs in (("a", 1, 1), ("b", 1, 2), ("c", 2, 1)):
        (tmp_path / place).mkdir()
        options = Options(mode="virtual", seed=seed, out=tmp_path / place, runs=2, seconds=1, jobs=jobs)
        list(FIGURE_TYPE.compute([figure("fig3c")], options, NoProgress()))
        written.append((tmp_path / place / "fig3c.parquet").read_bytes())
    assert written[0] == written[1]
    assert not np.array_equal(written[0], written[2])


@pytest.mark.parametrize("name", ["fivelive", "ringlive"])
def test_a_picture_of_virtual_time_says_so_and_has_every_path_length(name: str, tmp_path: Path) -> None:
    options = Options(mode="virtual", seed=1, out=tmp_path, runs=1, seconds=0.1)
    (result,) = FIGURE_TYPE.compute([FIGURES[f"loko/{name}"]], options, NoProgress())
    assert "real time" not in result.title
    assert result.chart is not None
    (panel,) = result.chart.panels
    assert isinstance(panel, LinePanel)
    assert panel.title == "computed in virtual time, not sent in real time"
    lengths = [point.x for series in result.series for point in series.points]
    assert [curve.x for curve in panel.curves] == [lengths] * 2


def test_both_versions_keep_a_guarantee_of_their_own(tmp_path: Path) -> None:
    options = Options(mode="virtual", seed=1, out=tmp_path, quick=True)
    (result,) = FIGURE_TYPE.compute([FIGURES["loko/openflow13"]], options, NoProgress())
    assert [guarantee.system for guarantee in result.guarantees] == [
        "fifth-rate, OpenFlow 1.0",
        "fifth-rate, OpenFlow 1.3",
    ]
    assert all(
        guarantee.packets > 500 and guarantee.verdict == "kept" and guarantee.ours
        for guarantee in result.guarantees
    )
    assert all(board["forwarded"] == board["received"] > 500 for board in result.boards.values())
    assert result.boards.keys() == {"s1", "s2"}
    findings = result.findings
    assert findings["guarantee_in_1_3_ms"] != findings["guarantee_in_1_0_ms"]
    profile = load_profile("zodiac-fx").with_exact_clocks()
    for version in OpenFlow:
        scenario = loko_scenario(entries=17, packet_sizes_bytes=(306,), openflow=version)
        name = version.value.replace(".", "_")
        computed_us = service_curve(profile, scenario).processing_ns / 1e3
        assert findings[f"processing_at_17_entries_in_{name}_us"] == computed_us
        assert 0 < findings[f"latest_in_{name}_ms"] <= findings[f"guarantee_in_{name}_ms"]
