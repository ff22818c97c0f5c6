"""Experiments as data, the traffic that they specify, and how their results are drawn and written."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from html import unescape
from pathlib import Path

import pytest
import yaml
from scripted_runner import records

from loko.document import LABS, InputError
from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.analysis import DelayStats
from loko_testbed.reproduce.claims import check_reference, judge, kind_of
from loko_testbed.reproduce.evaluate import guarantees_of
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure_types.experiments import experiments, load_experiment, not_replayed, select
from loko_testbed.reproduce.figure_types.traffic.document import Sweep
from loko_testbed.reproduce.figure_types.traffic.setting import prepare, traffic
from loko_testbed.reproduce.figure_types.traffic.sweep import SweepReplay, packets
from loko_testbed.reproduce.folder import short_name
from loko_testbed.reproduce.guarantees import guarantee
from loko_testbed.reproduce.plots.rendering import vega_embed
from loko_testbed.reproduce.report import render
from loko_testbed.reproduce.result import (
    AxisLabel,
    HostResult,
    NoteResult,
    Provenance,
    Series,
    TrafficResult,
    read_result,
    write_result,
)
from loko_testbed.simulation.runner import LOST
from loko_testbed.simulation.senders import IDENTIFIED, SIMPLE

FIGURES = experiments()
SWEEPS = [figure for figure in FIGURES.values() if isinstance(figure, Sweep)]


def result_of(sweep: Sweep) -> TrafficResult:
    """Return a result with made-up delays: two runs of ten packets per point; losses above x = 4."""
    setting = prepare(sweep)
    labels = [flow.label for flow in sweep.flows]
    series = []
    for label in sweep.observed:
        flow, points = labels.index(label), []
        for x in sweep.x.values:
            box = DelayStats(flow=flow, guarantee_ns=setting.guarantee_ns)
            lost = [LOST] if x > 4 and x not in sweep.guaranteed else []
            box.add(records([int(setting.floor_ns) + step * 50_000 for step in range(20)] + lost, flow=flow))
            points.append(box.point(x, guaranteed=x in sweep.guaranteed))
        series.append(Series(label=label, flow=flow, points=points))
    return TrafficResult(
        figure=sweep.figure,
        paper=sweep.paper,
        title=sweep.title,
        mode="virtual",
        seed=1,
        x=AxisLabel(name=sweep.x.name, unit=sweep.x.unit),
        series=series,
        boards={},
        findings={"guarantee_ms": setting.guarantee_ns / 1e6, "least_delay_ms": setting.floor_ns / 1e6},
        guarantees=[guarantee("Loko", {line.label: line.points[:1] for line in series}, ours=True)],
        claims=judge(sweep, series=series),
        notes=[NoteResult(where="sec 6", text="a note with <brackets>")],
        provenance=Provenance(
            commit="0" * 12,
            profile="zodiac-fx",
            host=HostResult(),
            runs=2,
            seconds=1,
            versions={},
            assumptions={},
        ),
    )


def test_the_figures_of_sections_6_and_6_1_are_there_in_order() -> None:
    names = ["table2", "fig15", "fig17a", "fig17b", "fig18a", "fig18b"]
    assert [name for name in FIGURES if name.removeprefix("loko/") in names] == [
        f"loko/{name}" for name in names
    ]


@pytest.mark.parametrize("name", FIGURES)
def test_every_claim_and_note_refers_to_a_fact_of_the_paper(name: str) -> None:
    experiment = FIGURES[name]
    for claim in experiment.claims:
        stated = check_reference(experiment, claim)
        assert kind_of(experiment, claim, stated) != "predicted" or stated.role == "validation"
    for note in experiment.notes:
        assert fact(experiment.paper, note.fact).where


def test_the_default_replay_is_all_that_is_virtual_of_the_papers() -> None:
    chosen = {figure.name for figure in select([], FIGURES)}
    of_papers = {name for name, figure in FIGURES.items() if figure.paper != "studies"}
    virtual = {name for name in of_papers if "virtual" in FIGURES[name].modes}
    inferred = {"loko/senders"}  # our own, whose result is the senders of the papers' figures
    assert chosen == virtual - inferred
    left_out = {figure.name: figure for figure in not_replayed(chosen)}
    assert left_out.keys() == {name for name in FIGURES if name not in chosen}
    for figure in left_out.values():
        assert figure.why
        mode = [] if "virtual" in figure.modes else ["--mode", "live"]
        assert figure.command.split() == ["loko", "evaluate", short_name(figure.name), *mode]
    assert not_replayed(FIGURES) == []


@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda sweep: sweep.figure)
def test_the_paper_s_scale(sweep: Sweep) -> None:
    scale = fact("loko", "ev.runs").value
    assert (sweep.runs, sweep.seconds) == (scale["runs"], scale["seconds_each"])
    printed = fact("loko", "ev.guarantee").value[sweep.allocation.replace("-", "_") + "_ms"]
    assert prepare(sweep).guarantee_ns / 1e6 == pytest.approx(printed, abs=0.005)
    assert prepare(sweep).floor_ns / 1e6 == pytest.approx(0.564, abs=0.0005)


def test_packets_of_a_box_as_the_paper_counts_them() -> None:
    fifth, full = FIGURES["loko/fig17a"], FIGURES["loko/fig18a"]
    assert isinstance(fifth, Sweep)
    assert isinstance(full, Sweep)
    of_a1 = 2 / 3
    fifth = fifth.model_copy(update={"x": fifth.x.model_copy(update={"values": [1.0]})})
    assert packets(fifth) * of_a1 / 1000 == pytest.approx(IDENTIFIED.offered_load * 193.6, rel=0.001)
    setting = prepare(full)
    rate = sum(flow.bucket.rate_bps for flow in traffic(setting, 1.0))
    assert rate * 300 / (306 * 8) / 1000 == pytest.approx(1452.1, rel=0.001)


def test_traffic_follows_equation_8_and_the_multipliers() -> None:
    sweep = FIGURES["loko/fig17b"]
    assert isinstance(sweep, Sweep)
    setting = prepare(sweep)
    first, _, third, _ = traffic(setting, 4, SIMPLE)
    assert first.label == "H1->H3"
    assert first.bucket.rate_bps == 789_907
    assert third.bucket.rate_bps == 394_953
    assert first.bucket.burst_bytes == int(4 * 688.67248)
    assert first.sends.burst_bytes == 9 * 306
    assert third.sends.burst_bytes == 4 * 306
    assert (first.observed, third.observed) == (True, False)
    half = traffic(setting, 4, SIMPLE.model_copy(update={"offered_load": 0.5}))[0]
    assert (half.sends.offered_rate_bps, half.bucket.rate_bps) == (394_953, 789_907)
    assert [admitted.flow.burst_bytes for admitted in setting.admitted()] == [688, 688, 344, 344]


def _written(tmp_path: Path, change: dict, name: str = "fig17a") -> Path:
    data = yaml.safe_load((LABS / f"two-switch/experiments/{name}.yml").read_text())
    path = tmp_path / f"{name}.yml"
    path.write_text(yaml.safe_dump({**data, **change}))
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "red"}, "unknown key 'colour'"),
        (
            {"allocation": "half-rate"},
            "allocation 'half-rate' is unknown (allowed: full-rate, fifth-rate, optimised)",
        ),
        ({"kind": "plot"}, "kind: 'plot' is unknown (known: "),
        ({"split": -1}, "split: must be at least 0, not -1"),
        ({"observed": ["H1->H4"]}, "there is no flow H1->H4"),
        ({"guaranteed": [2.5]}, "guaranteed: 2.5 is not one of x.values"),
        ({"x": {"name": "x", "multiplier": "rate", "values": [2, 1]}}, "positive and rising"),
        ({"runs": 0}, "runs: must be at least 1, not 0"),
        ({"notes": [{"fact": "I99", "text": "t"}]}, "no fact 'I99'"),
        (
            {"claims": [{"claim": "c", "fact": "q17", "paper": "p", "check": {"kind": "guess"}}]},
            "does not match any of the expected tags",
        ),
        (
            {"claims": [{"claim": "c", "fact": "q17", "paper": "p", "check": {"kind": "loss_starts"}}]},
            "q17: has no numeric value",
        ),
    ],
)
def test_a_wrong_experiment_is_refused_in_one_line(tmp_path: Path, change: dict, message: str) -> None:
    path = _written(tmp_path, change)
    with pytest.raises(InputError) as error:
        load_experiment(path)
    text = str(error.value)
    assert text.startswith(str(path))
    assert message in text
    assert "\n" not in text


def test_names_with_and_without_paper() -> None:
    assert [figure.name for figure in select(["fig17a", "loko/fig17a", "table2"], FIGURES)] == [
        "loko/fig17a",
        "loko/table2",
    ]
    assert "loko/fig9a" not in [figure.name for figure in select([], FIGURES, "live")]
    assert "loko/fig9a" in [figure.name for figure in select([], FIGURES)]
    with pytest.raises(InputError, match=r"figure 'fig99': unknown; did you mean fig9"):
        select(["fig99"], FIGURES)


@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda sweep: sweep.figure)
def test_pictures_are_reproducible_and_whole(sweep: Sweep) -> None:
    result = result_of(sweep)
    both = pictures.draw(result)
    assert both.svg == pictures.svg(result)
    assert ET.fromstring(both.svg).tag.endswith("svg")
    assert both.png == pictures.draw(result).png
    assert both.png.startswith(b"\x89PNG")


def test_another_process_that_drew_other_pictures_before_draws_the_same_bytes(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.json" for number in range(len(SWEEPS))]
    for path, sweep in zip(paths, SWEEPS, strict=True):
        path.write_text(result_of(sweep).model_dump_json())
    script = """
import hashlib, sys
from pathlib import Path
from loko_testbed.reproduce import plots
from loko_testbed.reproduce.result import read_result
for path in sys.argv[1:]:
    drawn = plots.draw(read_result(Path(path)))
    print(hashlib.sha256(drawn.svg + drawn.png + drawn.uncaptioned_svg).hexdigest())
"""
    hashes = [
        subprocess.run(
            [sys.executable, "-c", script, *map(str, order)], capture_output=True, text=True, check=True
        ).stdout.split()
        for order in (paths, paths[::-1])
    ]
    assert len(set(hashes[0])) == len(SWEEPS)
    assert hashes[0] == hashes[1][::-1]


def test_a_figure_without_any_packet_can_be_drawn() -> None:
    result = result_of(SWEEPS[0])
    nothing = DelayStats(flow=0, guarantee_ns=1).point(1.0, guaranteed=True)
    series = [Series(label=line.label, flow=line.flow, points=[nothing]) for line in result.series]
    assert pictures.svg(result.model_copy(update={"series": series}))


def test_the_report_stands_alone() -> None:
    results = [result_of(sweep) for sweep in SWEEPS]
    page = render(results)
    assert page == render(results)
    assert vega_embed() in page
    page = page.replace(vega_embed(), "")
    assert page.count('class="marks"') == len(SWEEPS)
    assert page.count('type="application/json"') == len(SWEEPS)
    for word in ("src=", "<link", "@import"):
        assert word not in page
    assert "a note with &lt;brackets&gt;" in page
    assert "Every guarantee of Loko's that was put to the test was kept." in unescape(page)
    identifiers = [part.split('"')[0] for part in page.split(' id="')[1:]]
    assert len(identifiers) == len(set(identifiers))


def test_the_report_says_when_a_guarantee_is_broken() -> None:
    result = result_of(SWEEPS[0])
    series = [
        line.model_copy(update={"points": [point.model_copy(update={"late": 3}) for point in line.points]})
        for line in result.series
    ]
    judged = [guarantee("Loko", {line.label: line.points[:1] for line in series}, ours=True)]
    broken = result.model_copy(update={"series": series, "guarantees": judged})
    assert broken.violations == judged[0].broken_by == 6
    assert broken.breaks_ours
    assert "6 packets break a guarantee" in render([broken])


def test_the_report_says_what_open_vswitch_forwarded() -> None:
    live = result_of(SWEEPS[0])
    boards = live.model_copy(
        update={"mode": "live", "provenance": live.provenance.model_copy(update={"backend": "firmware"})}
    )
    assert boards.setting == "live"
    assert "Not all of it is the board's" not in render([boards])
    stand_in = boards.model_copy(update={"provenance": live.provenance.model_copy(update={"backend": "ovs"})})
    assert stand_in.setting == "live, ovs"
    page = render([stand_in])
    assert "Not all of it is the board's" in page
    assert "--mode live --backend ovs" in page


def test_what_is_late_through_open_vswitch_is_the_coarse_emulators_error_and_breaks_no_guarantee() -> None:
    result = result_of(SWEEPS[0])
    late = [
        line.model_copy(update={"points": [point.model_copy(update={"late": 3}) for point in line.points]})
        for line in result.series
    ]
    provenance = result.provenance.model_copy(update={"backend": "ovs"})
    stand_in = result.model_copy(update={"mode": "live", "series": late, "provenance": provenance})
    stand_in = stand_in.model_copy(update={"guarantees": guarantees_of(stand_in)})
    assert not stand_in.breaks_ours
    assert (stand_in.violations, stand_in.coarse_errors) == (0, 6)
    page = render([stand_in])
    assert "6 packets within admission were lost or late where Open vSwitch forwards" in page
    assert "the coarse emulator's error" in page
    assert "break a guarantee" not in page
    assert "put to the test was kept" not in page
    assert ">kept<" not in page
    beside = render([result, stand_in])
    assert "put to the test was kept" in beside
    assert "the coarse emulator's error" in beside


def test_a_result_is_read_back_as_written(tmp_path: Path) -> None:
    result = result_of(SWEEPS[1])
    path = write_result(result, tmp_path)
    assert read_result(path) == result
    values = json.loads(path.read_text())
    assert "table" not in values
    delays = values["series"][0]["points"][0]["delay_ms"]
    assert list(delays) == ["min", "p1", "p25", "p50", "p75", "p99", "max"]


def test_estimates_grow_with_the_traffic() -> None:
    times = {sweep.figure: SweepReplay.estimate_s(sweep)["virtual"] for sweep in SWEEPS}
    assert times["fig17b"] < times["fig17a"]
    assert SweepReplay.estimate_s(FIGURES["loko/fig17a"])["live"] > 300
