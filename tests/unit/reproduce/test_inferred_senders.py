"""The likelihood of senders, and predictions made with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from sample_charts import LINES, chart_result, traffic_result

from loko.document import InputError
from loko_testbed.reproduce.chart import Chart, LinePanel
from loko_testbed.reproduce.evaluate import bands_of, evaluate
from loko_testbed.reproduce.figure_types.experiments import experiments, select
from loko_testbed.reproduce.figure_types.senders.bands import bands
from loko_testbed.reproduce.figure_types.senders.compute import (
    FIGURE_TYPE,
    claims_table,
    infer,
    loss_panels,
    reach_of,
)
from loko_testbed.reproduce.figure_types.senders.document import SenderGrid, SendersFigure
from loko_testbed.reproduce.figure_types.senders.grid import (
    READINGS,
    BoxCell,
    GridCell,
    run_box,
    run_cell,
)
from loko_testbed.reproduce.figure_types.senders.likelihood import (
    PrintedCount,
    PrintedShares,
    SenderTrial,
    count_log_likelihood,
    deviances,
    log_likelihood,
)
from loko_testbed.reproduce.figure_types.senders.predictions import Prediction, over_x_of, predict
from loko_testbed.reproduce.figure_types.traffic.document import Sweep
from loko_testbed.reproduce.result import (
    LOSS_PERCENT,
    MEDIAN_MS,
    Band,
    ClaimResult,
    DelayQuantiles,
    FigureResult,
    PointResult,
    Series,
    read_result,
    write_result,
)
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.senders import IDENTIFIED, SIMPLE, SenderSettings
from loko_testbed.tasks.progress import NoProgress

FIGURE = experiments()["loko/senders"]


PRINTED = PrintedShares(percent=(6.5, 49.9), seconds=200, decimals=1)


def runs_of(lost: float, late: float, *, spread: float = 1.0, runs: int = 400) -> SenderTrial:
    corners = np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)]) * spread
    percent = np.array([lost, late]) + np.tile(corners, (runs // 4, 1))
    counts = np.column_stack([np.full(len(percent), 1_000_000), (percent * 10_000).astype(np.int64)])
    return SenderTrial(senders=SenderSettings(), seconds=10, counts=counts)


def test_the_likelihood_is_the_normal_density_of_what_is_printed() -> None:
    runs = runs_of(6.0, 50.0, spread=2.0, runs=100_000)
    variance = 4 / 20 + 0.01 / 12
    apart = (0.5**2 + 0.1**2) / variance
    expected = -apart / 2 - np.log(2 * np.pi * variance)
    assert log_likelihood(runs, PRINTED) == pytest.approx(expected, rel=0.01)


def test_the_region_has_the_true_sender_as_often_as_it_should() -> None:
    # If one of the senders is the true one, 5.99 is the 95 % quantile of its deviance from a perfect fit.
    random, inside = np.random.default_rng(3), 0
    truth = runs_of(6.0, 50.0, runs=4000)
    best = log_likelihood(truth, PrintedShares(percent=tuple(truth.percent), seconds=200, decimals=1))
    for _ in range(400):
        lost, late = random.normal([6.0, 50.0], 1 / np.sqrt(20))
        seen = PrintedShares(percent=(round(lost, 1), round(late, 1)), seconds=200, decimals=1)
        inside += 2 * (best - log_likelihood(truth, seen)) <= 5.99
    assert 0.91 < inside / 400 < 0.985


def test_few_and_short_runs_tell_less() -> None:
    def of_the_far_one(runs: int = 400, *, seconds: float = 200, decimals: int = 1) -> float:
        printed = PrintedShares(percent=(6.5, 49.9), seconds=seconds, decimals=decimals)
        pair = [runs_of(7.5, 50.0, runs=runs), runs_of(6.5, 49.9, runs=runs)]
        return float(deviances(np.array([log_likelihood(each, printed) for each in pair]))[0])

    sure = of_the_far_one()
    assert sure > 10
    assert of_the_far_one(4) < sure / 2
    assert of_the_far_one(seconds=20) < sure / 5
    assert of_the_far_one(decimals=0) < sure


def test_the_likelihood_of_a_count_is_its_normal_density() -> None:
    counts = np.tile([4_000, 6_000], 5_000)  # runs of 10 s with a deviation of 1,000
    printed = PrintedCount(packets=150_000, seconds=300, rounded_to=10_000)
    variance = 30 * 1_000**2 + 10_000**2 / 12
    expected = -np.log(2 * np.pi * variance) / 2
    assert count_log_likelihood(counts, 10, printed) == pytest.approx(expected, rel=0.001)
    two = 2 * variance**0.5
    far = replace(printed, packets=150_000 + two)
    assert count_log_likelihood(counts, 10, far) == pytest.approx(expected - 2, rel=0.001)


def test_a_count_has_three_readings() -> None:
    box = BoxCell(
        figure="loko/fig17a", x=11, senders=IDENTIFIED, runs=3, seconds=1, seed=1, capacity_factor=None
    )
    counts = np.array(run_box(box))
    assert counts.shape == (3, len(READINGS))
    sent, accepted, arrived = counts.T
    assert (arrived < sent).all()
    assert (sent < accepted).any()
    busy = np.array(run_box(replace(box, senders=SIMPLE)))
    assert busy[:, 0].sum() > sent.sum()
    with pytest.raises(InputError, match="loko/fig3c: is no sweep; mend counts"):
        run_box(replace(box, figure="loko/fig3c"))


def test_the_counts_decide_between_senders_that_explain_the_shares_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(FIGURE, SendersFigure)
    few, many, excluded = (
        replace(runs_of(lost, 50.0, spread=3.0, runs=40), senders=SenderSettings(offered_load=load))
        for lost, load in ((6.5, 0.5), (6.5, 0.8), (90.0, 1.0))
    )

    def boxes(_function: object, cells: list[BoxCell], *_: object, **__: object) -> list[list[list[int]]]:
        assert {cell.senders.offered_load for cell in cells} == {0.5, 0.8}
        return [
            [[round(packets * share) + spread for share in (0.8, 1.0, 0.5)] for spread in (-200, 200)]
            for cell in cells
            for packets in [cell.senders.offered_load * (6250 if cell.x == 1 else 80_000)]
        ]

    monkeypatch.setattr("loko_testbed.reproduce.figure_types.senders.compute.compute_tasks", boxes)
    options = Options(mode="virtual", seed=1, out=tmp_path)
    inference = infer(FIGURE, options, NoProgress(), [few, many, excluded])
    of_few, of_many, of_excluded = inference.of_senders
    assert of_many == 0
    assert of_few > 9.49
    assert of_excluded > 1_000
    assert READINGS[int(np.argmin(inference.of_readings))] == "accepted"
    assert inference.packets[many.senders][0].tolist() == pytest.approx([120_000, 150_000, 75_000])
    assert excluded.senders not in inference.packets


def test_the_figure_never_predicts_what_it_was_inferred_from() -> None:
    assert isinstance(FIGURE, SendersFigure)
    values = FIGURE.model_dump()
    values["predicted"].append({"figure": "fig3c", "runs": 1, "seconds": 1.0})
    with pytest.raises(ValidationError, match="fig3c is what the senders are inferred from"):
        SendersFigure.model_validate(values)


def test_a_grid_has_no_sender_whose_burst_finds_no_room() -> None:
    grid = SenderGrid(burst_frames=[0, 300], offered_load=[0.8], queue_frames=[160, 400])
    assert {(sender.burst_frames, sender.queue_frames) for sender in grid.senders} == {
        (0, 160),
        (0, 400),
        (300, 400),
    }


def test_it_is_replayed_by_its_name_only() -> None:
    assert FIGURE not in select([], experiments())
    assert select(["senders"], experiments()) == [FIGURE]


def trial(senders: SenderSettings, seconds: float = 0.3) -> GridCell:
    return GridCell(
        figure="loko/fig3c",
        scheme="qjump-consistent",
        senders=senders,
        runs=2,
        seconds=seconds,
        seed=1,
        capacity_factor=None,
    )


def test_a_sender_of_half_the_load_loses_less() -> None:
    busy, idle = (np.array(run_cell(trial(SenderSettings(offered_load=load)))) for load in (1.0, 0.4))
    assert busy[:, 1].sum() > 0
    assert idle[:, 1].sum() < busy[:, 1].sum() / 5
    assert run_cell(trial(SIMPLE)) == busy.tolist()


def test_a_prediction_is_the_figures_own_replay_with_that_sender(tmp_path: Path) -> None:
    assert isinstance(FIGURE, SendersFigure)
    options = Options(mode="virtual", seed=1, out=tmp_path, jobs=1)
    short = [
        predicted_figure.model_copy(update={"runs": 1, "seconds": 0.5})
        for predicted_figure in FIGURE.predicted
        if predicted_figure.figure == "fig17a"
    ]
    full, half = (predict(short, "loko", SenderSettings(offered_load=load), options) for load in (1.0, 0.3))
    assert full.findings["fig17a"]["loss_at_11_percent"] > half.findings["fig17a"]["loss_at_11_percent"]
    assert full.findings["fig17a"]["loss_starts"] <= half.findings["fig17a"]["loss_starts"]
    sweep = experiments()["loko/fig17a"]
    assert isinstance(sweep, Sweep)
    assert [claim.claim for claim in full.claims["fig17a"]] == [claim.claim for claim in sweep.claims]


def test_a_prediction_is_judged_beside_the_others_of_the_same_scale(tmp_path: Path) -> None:
    assert isinstance(FIGURE, SendersFigure)
    options = Options(mode="virtual", seed=1, out=tmp_path, jobs=1)

    def why_not(seconds: float) -> list[str]:
        pair = [
            predicted_figure.model_copy(update={"runs": 1, "seconds": length})
            for predicted_figure in FIGURE.predicted
            for name, length in (("fig17a", 0.2), ("fig17b", seconds))
            if predicted_figure.figure == name
        ]
        claims = predict(pair, "loko", SenderSettings(), options).claims["fig17b"]
        return [claim.because for claim in claims if claim.because.startswith("fig17a is not in this folder")]

    assert why_not(0.2) == []
    assert len(why_not(0.3)) == 1


def test_only_the_zodiac_has_a_capacity_factor(tmp_path: Path) -> None:
    assert isinstance(FIGURE, SendersFigure)
    options = Options(mode="virtual", seed=1, out=tmp_path, jobs=1)
    chosen = [
        predicted_figure
        for predicted_figure in FIGURE.predicted
        if predicted_figure.figure in {"fig3a", "fig3b"}
    ]
    short = [predicted_figure.model_copy(update={"runs": 1, "seconds": 0.05}) for predicted_figure in chosen]
    assert list(predict(short, "loko", SenderSettings(), options).claims) == ["fig3a", "fig3b"]
    assert list(predict(short, "loko", SenderSettings(), options, 1.06).claims) == ["fig3a"]


def test_one_run_has_no_spread(tmp_path: Path) -> None:
    options = Options(mode="virtual", seed=1, out=tmp_path, quick=True, runs=1, seconds=0.3)
    with pytest.raises(InputError, match="--runs: senders needs at least 2 runs"):
        FIGURE_TYPE.compute([FIGURE], options, NoProgress())


def test_a_quick_replay(tmp_path: Path) -> None:
    options = Options(mode="virtual", seed=1, out=tmp_path, quick=True, runs=2, seconds=0.3)

    (result,) = FIGURE_TYPE.compute([FIGURE], options, NoProgress())
    assert result.chart is not None
    assert len(result.chart.panels) == 1
    assert result.findings["simple_deviance"] > 100
    assert min(result.findings[f"counting_{reading}_deviance"] for reading in READINGS) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["senders.parquet"]


def predicted(loss: float, starts: float | None, *, holds: bool) -> Prediction:
    findings = {"loss_at_11_percent": loss} | ({} if starts is None else {"loss_starts": starts})
    claim = ClaimResult(claim="c", paper="60 %", here=f"{loss} %", holds=holds, where="fig 17a")
    return Prediction(
        senders=SenderSettings(),
        capacity_factor=None,
        findings={"fig17a": findings},
        loss_percent={"fig17a": {1.0: 0.0, 11.0: loss}},
        over_x={
            "fig17a": {
                LOSS_PERCENT: {1.0: (0.0, 0.0), 11.0: (loss, loss)},
                MEDIAN_MS: {1.0: (0.6, 0.7), 11.0: (3.0, 3.0 + loss / 100)},
            }
        },
        x_label={"fig17a": "m_r"},
        claims={"fig17a": [claim]},
    )


def test_a_band_reaches_over_the_simple_and_all_inferred_senders() -> None:
    assert isinstance(FIGURE, SendersFigure)
    of_fig17a = FIGURE.model_copy(
        update={"numbers": [number for number in FIGURE.numbers if number.figure == "fig17a"]}
    )
    predictions = [
        predicted(72.0, 5, holds=False),
        predicted(58.0, 5, holds=True),
        predicted(50.0, None, holds=False),
        predicted(61.0, 6, holds=True),
    ]
    assert reach_of("fig17a", "loss_at_11_percent", predictions) == (72, 58, 50, 61)
    assert reach_of("fig17a", "loss_starts", predictions) == (5, 5, 5, 6)
    assert reach_of("fig3a", "silo_lost_percent", predictions) is None
    (panel,) = loss_panels(of_fig17a, predictions)
    assert isinstance(panel, LinePanel)
    simple, inferred, paper = panel.curves
    assert (simple.y, inferred.y) == ([0, 72], [0, 58])
    assert (inferred.low, inferred.high) == ([0, 50], [0, 72])
    assert (paper.x, paper.y) == ([11], [60])
    assert [(line.axis, line.value) for line in panel.references] == [("x", 5)]
    table = claims_table(predictions)
    assert table is not None
    assert table.rows == [
        ["fig17a", "c", "60 %", "72.0 %", "does not hold", "58.0 %", "holds", "2 of 3"],
    ]


def test_a_band_over_x_reaches_over_all_predictions_and_says_what_it_covers() -> None:
    assert isinstance(FIGURE, SendersFigure)
    of_fig17a = FIGURE.model_copy(
        update={"predicted": [each for each in FIGURE.predicted if each.figure == "fig17a"]}
    )
    late = SenderSettings(shaper_latency_ns=15_000)
    inferred = [
        replace(prediction, senders=prediction.senders.model_copy(update={"offered_load": 0.8}))
        for prediction in (
            predicted(58.0, 6, holds=True),
            replace(predicted(50.0, 6, holds=True), capacity_factor=1.06),
            replace(predicted(61.0, 5, holds=True), capacity_factor=0.94),
            replace(predicted(49.0, 6, holds=True), senders=late),
        )
    ]
    loss, median = bands(of_fig17a, inferred)
    assert (loss.figure, loss.finding, median.finding) == ("loko/fig17a", LOSS_PERCENT, MEDIAN_MS)
    assert (loss.x, loss.least, loss.most) == ([1, 11], [0, 49], [0, 61])
    assert (median.x, median.least, median.most) == ([1, 11], [0.6, 3], [0.7, 3.61])
    assert loss.covers == (
        "1 sender inferred from fig3c, 0.94 to 1.06 of the capacity, shapers up to 15 us late;"
        " 10 runs of 10 s each"
    )
    (narrow, _) = bands(of_fig17a, inferred[:2])
    assert (narrow.least, narrow.most) == ([0, 50], [0, 58])
    assert "late" not in narrow.covers
    assert bands(of_fig17a, []) == []
    loss, _ = bands(of_fig17a, [predicted(72.0, 5, holds=False), inferred[0]])
    assert (loss.least, loss.most) == ([0, 58], [0, 72])
    assert loss.covers.startswith("1 sender inferred from fig3c, the simple sender; ")


def test_what_not_all_predictions_have_is_in_no_band() -> None:
    assert isinstance(FIGURE, SendersFigure)
    sparse = {"fig17a": {LOSS_PERCENT: {11.0: (50.0, 50.0)}, MEDIAN_MS: {1.0: (0.5, 0.5)}}}
    other = replace(predicted(50.0, 6, holds=True), over_x=sparse)
    loss, median = bands(FIGURE, [predicted(58.0, 6, holds=True), other])
    assert (loss.x, loss.least, loss.most) == ([11], [50], [58])
    assert (median.x, median.least, median.most) == ([1], [0.5], [0.7])


def test_a_sender_that_sent_nothing_says_nothing_of_losses_or_shares() -> None:
    assert isinstance(FIGURE, SendersFigure)
    shares = {"silo_lost_percent": 99.0, "silo_late_percent": 1.0, "silo_in_time_percent": 0.0}
    idle = dict.fromkeys(shares, 0.0)
    sending, silent = (
        replace(
            predicted(1.0, None, holds=True),
            findings={"fig3a": {**findings, "silo_sent_packets": packets}},
            over_x={},
        )
        for findings, packets in ((shares, 10.0), (idle, 0.0))
    )
    two = [sending, replace(silent, senders=SenderSettings(offered_load=0.5))]
    reached = bands(FIGURE, two)
    assert {band.finding: (band.least, band.most) for band in reached} == {
        name: ([value], [value]) for name, value in shares.items()
    }
    assert {band.covers for band in reached} == {"the simple sender; 2 runs of 2 s each"}
    assert bands(FIGURE, [silent]) == []


def test_over_x_there_is_a_loss_where_packets_were_sent_and_a_median_where_some_arrived() -> None:
    none = DelayQuantiles(min=None, p1=None, p25=None, p50=None, p75=None, p99=None, max=None)
    some = DelayQuantiles(min=1, p1=1, p25=1, p50=2, p75=3, p99=3, max=3)
    points = [
        PointResult(
            x=x, packets=packets, lost=lost, loss=0, late=0, explained=0, guaranteed=False, delay_ms=delays
        )
        for x, packets, lost, delays in ((1.0, 0, 0, none), (2.0, 10, 10, none), (3.0, 10, 5, some))
    ]
    over_x = over_x_of(traffic_result(None, series=[Series(label="H1->H3", flow=0, points=points)]))
    assert over_x[LOSS_PERCENT] == {2: (100, 100), 3: (50, 50)}
    assert over_x[MEDIAN_MS] == {3: (2, 2)}


def test_shares_of_a_deployment_have_bands_by_the_findings_that_its_picture_tells(tmp_path: Path) -> None:
    assert isinstance(FIGURE, SendersFigure)
    options = Options(mode="virtual", seed=1, out=tmp_path, jobs=1)
    chosen = [
        predicted_figure.model_copy(update={"runs": 1, "seconds": 0.1})
        for predicted_figure in FIGURE.predicted[:1]
    ]
    figure = FIGURE.model_copy(update={"predicted": chosen})
    predictions = [predict(chosen, "loko", SenderSettings(offered_load=load), options) for load in (1.0, 0.2)]
    lost, late, in_time = bands(figure, predictions)
    ends = [prediction.findings["fig3a"]["silo_lost_percent"] for prediction in predictions]
    assert (lost.figure, lost.finding, lost.x) == ("loko/fig3a", "silo_lost_percent", [])
    assert (lost.least, lost.most) == ([min(ends)], [max(ends)])
    assert lost.least < lost.most
    assert (late.finding, in_time.finding) == ("silo_late_percent", "silo_in_time_percent")


def stored(out: Path, name: str, bands_of: list[Band], *, commit: str = "0" * 12) -> FigureResult:
    """Write a result to a folder of results and return it."""
    chart = Chart(panels=[LINES])
    result = chart_result(chart)
    changes = {"figure": name, "bands": bands_of, "mode": "virtual"}
    changes["provenance"] = result.provenance.model_copy(update={"commit": commit})
    result = result.model_copy(update=changes)
    write_result(result, out)
    return result


def test_bands_are_of_the_same_version_and_in_virtual_time_alone(tmp_path: Path) -> None:
    band = Band(figure="loko/figb", finding=LOSS_PERCENT, x=[1], least=[1], most=[2], covers="c")
    other = band.model_copy(update={"figure": "loko/figc"})
    source = stored(tmp_path, "figa", [band, other])
    result = stored(tmp_path, "figb", [])
    assert bands_of(result, [source, result]) == [band]
    assert bands_of(source, [source, result]) == [band, other]
    assert bands_of(result, [result]) == []
    stale = result.model_copy(update={"bands": [band.model_copy(update={"most": [9.0]})]})
    assert bands_of(stale, [source, stale]) == [band]
    assert bands_of(stale, [stale]) == []
    assert bands_of(result.model_copy(update={"mode": "live"}), [source]) == []
    changed = stored(tmp_path, "figa", [band], commit="1" * 12)
    assert bands_of(result, [changed, result]) == []


def test_a_prediction_draws_the_figures_of_its_folder_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(FIGURE, SendersFigure)
    options = Options(mode="virtual", seed=1, out=tmp_path, jobs=1, quick=True, runs=2, seconds=6)
    sweep = experiments()["loko/fig17b"]
    (before,) = evaluate([sweep], options, NoProgress())
    plain = (tmp_path / "fig17b.svg").read_bytes()
    assert not before.bands
    monkeypatch.setattr(
        "loko_testbed.reproduce.figure_types.senders.compute._predictions",
        lambda *_: [predicted(1.0, 5, holds=True)] * 2,
    )
    seen = Band(
        figure="loko/fig17b", finding=LOSS_PERCENT, x=[1, 4, 8], least=[0, 1, 2], most=[1, 2, 3], covers="c"
    )
    monkeypatch.setattr("loko_testbed.reproduce.figure_types.senders.compute.bands", lambda *_: [seen])
    evaluate([FIGURE], replace(options, runs=None, seconds=None), NoProgress())
    after = read_result(tmp_path / "fig17b.json")
    assert after == before.model_copy(update={"bands": [seen]})
    drawn = (tmp_path / "fig17b.svg").read_bytes()
    assert drawn != plain
    (again,) = evaluate([sweep], options, NoProgress())
    assert again == after
    assert (tmp_path / "fig17b.svg").read_bytes() == drawn
    monkeypatch.setattr("loko_testbed.reproduce.figure_types.senders.compute.bands", lambda *_: [])
    (tmp_path / "senders.parquet").unlink()
    evaluate([FIGURE], replace(options, runs=None, seconds=None), NoProgress())
    assert read_result(tmp_path / "fig17b.json") == before
    assert (tmp_path / "fig17b.svg").read_bytes() == plain
