"""Senders: one description for every figure, refused where it cannot be followed; the late shaper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import switch_emulator
from pydantic import ValidationError

from loko.document import InputError
from loko.switch_model.scenario import OpenFlow
from loko_testbed.reproduce.figure import lab_of
from loko_testbed.reproduce.figure_types.allocation import allocation_of
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.traffic.compute import FIGURE_TYPE
from loko_testbed.reproduce.figure_types.traffic.deployed import deploy
from loko_testbed.reproduce.figure_types.traffic.document import Deployment, PathsFigure, Sweep, Versions
from loko_testbed.reproduce.figure_types.traffic.path_admission import admit_paths
from loko_testbed.reproduce.figure_types.traffic.setting import prepare, traffic
from loko_testbed.reproduce.figure_types.traffic.sweep import SweepReplay
from loko_testbed.reproduce.figure_types.traffic.versions import admitted_senders
from loko_testbed.reproduce.flow_figure import SendingFigure, refuse_unsupported_senders
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import LOST
from loko_testbed.simulation.senders import (
    IDENTIFIED,
    SIMPLE,
    SOCKET_FRAMES,
    SenderChoice,
    SenderSettings,
    Shaper,
    bursts_ns,
    sentence,
    slot_ns,
)
from loko_testbed.simulation.traffic import RandomBursts, Sender
from loko_testbed.simulation.virtual import VirtualRunner
from loko_testbed.tasks.progress import NoProgress

FIGURES = experiments()
SENDING = [figure for figure in FIGURES.values() if isinstance(figure, SendingFigure)]
LONG = SenderSettings(burst_frames=50, offered_load=0.8, queue_frames=200, shaper_latency_ns=7)


def sent(figure: SendingFigure, how: SenderSettings | None) -> list[Sender]:
    if isinstance(figure, Sweep):
        return list(traffic(prepare(figure), figure.x.values[-1], how))
    if isinstance(figure, Deployment):
        return [sender for system in figure.systems for sender in deploy(figure, system, how).senders]
    if isinstance(figure, Versions):
        lab = lab_of(figure)
        allocations = [
            allocation_of(figure, lab, figure.allocation, entries=figure.entries, openflow=version)
            for version in OpenFlow
        ]
        return [
            sender
            for allocation in allocations
            for sender in admitted_senders(figure, how or figure.senders, lab, allocation)[1]
        ]
    assert isinstance(figure, PathsFigure)
    return list(admit_paths(figure, 1, how).senders)


def test_the_kinds_that_send_are_these() -> None:
    assert {sending.shows for sending in SENDING} == {"sweep", "deployment", "paths", "versions"}


@pytest.mark.parametrize("figure", SENDING, ids=lambda figure: figure.figure)
def test_all_systems_of_all_figures_send_alike(figure: SendingFigure) -> None:
    assert figure.senders == (SIMPLE if figure.ours else IDENTIFIED)
    for sender in sent(figure, IDENTIFIED):
        bucket = sender.bucket
        assert sender.sends == RandomBursts(
            bucket=replace(bucket, latency_ns=0),
            offered_rate_bps=pytest.approx(IDENTIFIED.offered_load * bucket.rate_bps, abs=1),
            burst_bytes=IDENTIFIED.burst_frames * sender.frame_bytes,
            queue_bytes=IDENTIFIED.queue_frames * sender.frame_bytes,
        )
    for sender in sent(figure, SIMPLE):
        bucket = sender.bucket
        assert sender.sends == RandomBursts(
            bucket=replace(bucket, latency_ns=0),
            offered_rate_bps=pytest.approx(bucket.rate_bps, abs=1),
            burst_bytes=bucket.burst_bytes // sender.frame_bytes * sender.frame_bytes,
            queue_bytes=SOCKET_FRAMES * sender.frame_bytes,
        )


@pytest.mark.parametrize("figure", SENDING, ids=lambda figure: figure.figure)
def test_every_number_reaches_every_sender(figure: SendingFigure) -> None:
    for before, after in zip(sent(figure, None), sent(figure, LONG), strict=True):
        sends = RandomBursts(
            bucket=replace(before.bucket, latency_ns=7),
            offered_rate_bps=pytest.approx(0.8 * before.bucket.rate_bps, abs=1),
            burst_bytes=50 * before.frame_bytes,
            queue_bytes=200 * before.frame_bytes,
        )
        assert after.sends == sends
        assert after == replace(before, sends=after.sends)


def test_a_choice_replaces_only_what_it_names() -> None:
    assert SenderChoice().of(LONG) == LONG
    assert SenderChoice(offered_load=0.5).of(LONG) == LONG.model_copy(update={"offered_load": 0.5})
    assert SenderChoice(burst_frames=0).of(LONG).burst_frames == 0
    assert SenderChoice(sender="simple").of(LONG) == SIMPLE
    assert SenderChoice(sender="identified", offered_load=0.5).of(LONG) == IDENTIFIED.model_copy(
        update={"offered_load": 0.5}
    )


def test_a_document_names_its_sender_or_states_its_numbers() -> None:
    values = FIGURES["loko/fig17a"].model_dump()
    for senders, meant in (
        ("simple", SIMPLE),
        ("identified", IDENTIFIED),
        (LONG.model_dump(), LONG),
    ):
        assert Sweep.model_validate({**values, "senders": senders}).senders == meant
    with pytest.raises(ValidationError, match=r"there is no sender 'best' \(known: identified, simple\)"):
        Sweep.model_validate({**values, "senders": "best"})
    with pytest.raises(
        InputError, match=r"^--sender: there is no sender 'best' \(known: identified, simple\)$"
    ):
        SenderChoice(sender="best").of(SIMPLE)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (SenderChoice(burst_frames=161), r"--burst-frames: a burst of 161 frames finds room for 160 only"),
        (SenderChoice(offered_load=11.0), r"--offered-load: .*less than or equal to 10"),
        (SenderChoice(shaper_latency_ns=-1), r"--shaper-latency-ns: "),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused_in_one_line(choice: SenderChoice, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choice.of(SenderSettings())


def test_a_figure_that_cannot_follow_is_named() -> None:
    chosen = [FIGURES["loko/fig3c"], FIGURES["loko/fig6a"]]
    refuse_unsupported_senders(chosen, SenderChoice(), real_time=False)
    refuse_unsupported_senders(chosen[:1], SenderChoice(offered_load=0.9), real_time=True)
    with pytest.raises(InputError, match=r"--offered-load: loko/fig6a does not .* that do: fig3c$"):
        refuse_unsupported_senders(chosen, SenderChoice(offered_load=0.9), real_time=False)
    long = SenderChoice(burst_frames=400, queue_frames=1000)
    refuse_unsupported_senders(chosen[:1], long, real_time=True)
    with pytest.raises(InputError, match=r"--queue-frames: a burst of \d+ frames finds room for 80 only"):
        refuse_unsupported_senders(chosen[:1], SenderChoice(queue_frames=80), real_time=True)
    with pytest.raises(InputError, match=r"--shaper-latency-ns: for --mode virtual only"):
        refuse_unsupported_senders(chosen[:1], SenderChoice(shaper_latency_ns=5), real_time=True)


def test_kept_points_are_those_of_the_same_senders(tmp_path: Path) -> None:
    sweep = FIGURES["loko/fig17a"]
    assert isinstance(sweep, Sweep)
    seen = []
    for choice in (
        {},
        {"burst_frames": 20},
        {"offered_load": 0.9},
        {"queue_frames": 2000},
        {"sender": "simple"},
        {"shaper_latency_ns": 9},
    ):
        options = Options(mode="virtual", seed=1, out=tmp_path, senders=SenderChoice(**choice))
        fingerprint = SweepReplay(sweep, options).points[-1].fingerprint(options)
        assert fingerprint not in seen
        seen.append(fingerprint)


def test_a_deployment_follows_and_records_the_choice(tmp_path: Path) -> None:
    options = Options(mode="virtual", seed=3, out=tmp_path, runs=1, seconds=5)
    (full,) = FIGURE_TYPE.compute([FIGURES["loko/fig3c"]], options, NoProgress())
    half = replace(options, senders=SenderChoice(offered_load=0.4))
    (less,) = FIGURE_TYPE.compute([FIGURES["loko/fig3c"]], half, NoProgress())
    assert full.provenance.assumptions["offered_load"] == IDENTIFIED.offered_load
    assert less.provenance.assumptions["offered_load"] == 0.4
    assert less.findings["qjump_sent_packets"] < 0.7 * full.findings["qjump_sent_packets"]


# The late shaper.


SHAPER = Shaper(
    frame_bytes=306, rate_bps=5_000_000, burst_bytes=918, queue_frames=5, slot_ns=26_080, latency_ns=0
)


def test_a_burst_as_long_as_the_bucket_passes_at_line_rate_and_the_rest_waits_for_tokens() -> None:
    frame_ns = 306 * 8 * 200  # at 5 Mbit/s
    leaves = list(SHAPER.departures_ns([0, 0, 0, 0, 0]))
    assert leaves == [0, 26_080, 52_160, frame_ns, 2 * frame_ns]


def test_a_late_shaper_loses_nothing_but_what_overflows_the_bucket() -> None:
    late = replace(SHAPER, latency_ns=80_000)
    frame_ns = 306 * 8 * 200
    assert list(late.departures_ns([0] * 5)) == [0, 26_080, 52_160, frame_ns + 80_000, 2 * frame_ns + 80_000]
    shaper = replace(late, burst_bytes=306)
    assert list(shaper.departures_ns([0] * 4)) == [number * (frame_ns + 80_000) for number in range(4)]


def test_what_finds_no_room_never_leaves() -> None:
    assert len(list(SHAPER.departures_ns([0] * 20))) == 5
    assert len(list(SHAPER.departures_ns([0] * 6 + [10_000_000]))) == 6


@pytest.mark.parametrize("burst_bytes", [306, 700, 3000])
def test_without_latency_it_is_the_emulators_own_shaper(burst_bytes: int) -> None:
    shaper = replace(SHAPER, burst_bytes=burst_bytes, queue_frames=1_000_000)
    line_bps = 100_000_000
    offered = list(
        bursts_ns(
            np.random.default_rng(4),
            burst_frames=12,
            mean_gap_ns=7e6,
            slot_ns=slot_ns(306, line_bps),
            end_ns=200_000_000,
        )
    )
    network = switch_emulator.Network(seed=1)
    network.add_host("A")
    network.add_host("B")
    network.connect("A", 1, "B", 1, rate_bps=line_bps)
    network.add_pattern(
        "A",
        flow=0,
        frame=bytes(302),
        sequence_offset=50,
        shaper_rate_bps=shaper.rate_bps,
        shaper_burst_bytes=burst_bytes,
        instants_ns=np.array(offered, dtype=np.int64),
        observed=True,
        destination="B",
    )
    result = network.run(duration_ns=200_000_000, drain_ns=10_000_000)
    mine = [at_ns for at_ns in shaper.departures_ns(offered) if at_ns < 200_000_000]
    assert result.sent_ns.tolist() == mine
    assert len(mine) > 100


def test_bursts_are_at_line_rate_and_have_the_mean_rate() -> None:
    offered = np.array(
        list(
            bursts_ns(
                np.random.default_rng(7),
                burst_frames=10,
                mean_gap_ns=1e7,
                slot_ns=26_080,
                end_ns=20_000_000_000,
            )
        )
    )
    assert offered.size == pytest.approx(20_000, rel=0.1)  # 2000 bursts; their number varies by 2 %
    gaps = np.diff(offered)
    assert gaps.min() == 26_080
    assert np.mean(gaps == 26_080) == pytest.approx(0.9, abs=0.01)


def test_a_late_shaper_in_a_lab() -> None:
    figure = FIGURES["loko/fig3a"]
    assert isinstance(figure, Deployment)
    rates = {}
    for latency_ns in (0, 80_000):
        deployed = deploy(figure, figure.systems[0], SenderSettings(shaper_latency_ns=latency_ns))
        with VirtualRunner(deployed.lab, deployed.flows, entries=figure.entries) as runner:
            records = runner.run(deployed.senders, seconds=0.5, seed=1)
        rates[latency_ns] = len(records) / 0.5 / 4
        assert 0 < np.count_nonzero(records.received_ns != LOST) < len(records)
    # Silo's bucket holds one frame, so the latency adds to the 54.4 us that its tokens take.
    assert rates[0] == pytest.approx(1e9 / 54_400, rel=0.03)
    assert rates[80_000] == pytest.approx(1e9 / (54_400 + 80_000), rel=0.03)


def test_the_report_says_in_one_sentence_how_hosts_send() -> None:
    assert sentence([IDENTIFIED.described()]).endswith("which are therefore no predictions.")
    simple = sentence([SIMPLE.described()] * 3)
    assert simple == (
        "All hosts send bursts that fill their bucket, at the rate of their shaper, with room for"
        " 160 frames before it. The papers print none of this: it is assumed, and fitted to no figure."
    )
    assert "bursts of 50 frames, at 0.8 times" in sentence([LONG.described()])
    assert sentence([LONG.described()]).endswith("it was chosen for this replay.")
    assert "0.007 us late" in sentence([LONG.described()])
    mixed = sentence([LONG.described(), SIMPLE.described(), SIMPLE.described()])
    assert mixed == simple.replace("All hosts", "Hosts of most figures, of which each says how,")
    assert not sentence([])
