"""Each kind of check, with data for which the claim holds and data for which it does not."""

from __future__ import annotations

import pytest

from loko.document import InputError
from loko_testbed.reproduce.claims import judge
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.traffic.document import Sweep, SweepClaim
from loko_testbed.reproduce.result import ClaimResult, DelayQuantiles, PointResult, Series, TableResult

FIGURES = experiments()


def point(x: float, *, lost: int = 0, late: int = 0, delay_ms: float = 1.0) -> PointResult:
    return PointResult(
        x=x,
        packets=1000,
        lost=lost,
        loss=lost / 1000,
        late=late,
        explained=0,
        guaranteed=False,
        delay_ms=DelayQuantiles(**dict.fromkeys(("min", "p1", "p25", "p50", "p75", "p99", "max"), delay_ms)),
    )


def series(*points: PointResult) -> list[Series]:
    clean = [point(measured_point.x, delay_ms=measured_point.delay_ms.p50 or 0) for measured_point in points]
    return [Series(label="H1->H3", flow=0, points=list(points)), Series(label="H3->H1", flow=1, points=clean)]


def result(
    check: dict,
    measured: list[Series],
    *,
    fact: str = "fig17a/loss-onset",
    planned: list[float] | None = None,
    shorter: str = "",
    **others: list[Series],
) -> ClaimResult:
    """Judge a single claim with this check; `planned` are the figure's points, by default those measured."""
    sweep = FIGURES["loko/fig17a"]
    assert isinstance(sweep, Sweep)
    claim = SweepClaim.model_validate(
        {"claim": "c", "fact": fact, "paper": "p", "check": check, "if_not": "why"}
    )
    values = (
        planned if planned is not None else sorted({point.x for each in measured for point in each.points})
    )
    axis = sweep.x.model_copy(update={"values": values})
    figure = sweep.model_copy(update={"claims": [claim], "x": axis})
    neighbours = {f"loko/{name}": other for name, other in others.items()}
    (judged,) = judge(figure, series=measured, others=neighbours, shorter=shorter)
    return judged


def verdict(check: dict, measured: list[Series], **others):
    """Judge a claim and return (here, holds)."""
    judged = result(check, measured, **others)
    if judged.holds is not None:
        assert judged.because == ("" if judged.holds else "why")
    else:
        assert judged.because not in ("", "why")
    return judged.here, judged.holds


def test_no_loss() -> None:
    check = {"kind": "no_loss", "at": [1, 2]}
    assert verdict(check, series(point(1), point(2), point(3, lost=9))) == ("0 of 4000", True)
    assert verdict(check, series(point(1), point(2, lost=3))) == ("3 of 4000 (at 2)", False)


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "no_loss", "at": [7]},
        {"kind": "no_late", "at": [7]},
        {"kind": "loss_at", "at": 7},
        {"kind": "loss_near", "at": 7, "within_points": 1},
        {"kind": "loss_starts"},
        {"kind": "loss_beyond"},
        {"kind": "loss_from"},
        {"kind": "delay_rises", "at": [1, 7], "statistic": "p99", "slack": 0},
        {"kind": "delay_grows", "start": 5, "statistic": "p50", "factor": 1.1},
    ],
)
def test_a_value_that_was_not_measured_is_not_testable(check: dict) -> None:
    judged = result(check, series(point(1)), planned=[1, 5, 7])
    assert judged.holds is None
    assert "nothing was sent at" in judged.because


def test_no_late_at_some_points_or_anywhere() -> None:
    measured = series(point(1), point(2, late=5))
    assert verdict({"kind": "no_late", "at": [1]}, measured) == ("0 of 2000", True)
    assert verdict({"kind": "no_late"}, measured) == ("5 of 4000 (at 2)", False)


def test_what_stalls_of_the_host_explain_denies_nothing() -> None:
    stalled = point(1, late=5).model_copy(update={"explained": 5})
    judged = result({"kind": "no_late"}, series(stalled))
    assert (judged.here, judged.holds) == ("5 of 2000 (at 1)", None)
    assert "stalls of the host" in judged.because
    partly = point(1, late=5).model_copy(update={"explained": 4})
    assert result({"kind": "no_late"}, series(partly)).holds is False


def test_a_claim_about_all_points_is_not_ticked_when_some_ran() -> None:
    clean = result({"kind": "no_late"}, series(point(1)), planned=[1, 2, 3])
    assert (clean.here, clean.holds) == ("0 of 2000", None)
    assert clean.because == "nothing was sent at 2, 3"
    late = result({"kind": "no_late"}, series(point(1, late=1)), planned=[1, 2, 3])
    assert late.holds is False, "one late packet denies it, wherever it was"


@pytest.mark.parametrize(
    ("check", "lossy"),
    [
        ({"kind": "loss_starts"}, [6]),
        ({"kind": "loss_starts"}, []),
        ({"kind": "loss_at", "at": 5}, []),
        ({"kind": "loss_beyond"}, []),
        ({"kind": "loss_from"}, [5]),
        ({"kind": "loss_before_late"}, []),
        ({"kind": "late_at"}, []),
        ({"kind": "late_starts"}, []),
        ({"kind": "loss_earlier", "figure": "other"}, []),
        ({"kind": "delay_rises", "statistic": "p99", "slack": 0}, []),
    ],
)
def test_a_shorter_replay_does_not_deny_what_needs_the_papers_scale(check: dict, lossy: list) -> None:
    measured = series(*(point(x, lost=x in lossy) for x in (4, 5, 6)))
    other = series(point(4, lost=1))
    assert result(check, measured, other=other).holds is False
    short = result(check, measured, other=other, shorter="this replay has one run")
    assert short.holds is None
    assert "this replay has one run" in short.because


def test_a_shorter_replay_denies_what_one_packet_denies() -> None:
    measured = series(point(4, lost=1, late=1), point(5, lost=3))
    for check in ({"kind": "no_loss"}, {"kind": "no_late"}, {"kind": "loss_starts"}):
        assert result(check, measured, shorter="short").holds is False


def test_a_shorter_replay_does_not_confirm_where_loss_starts() -> None:
    measured = series(point(4), point(5, lost=1))
    assert result({"kind": "loss_starts"}, measured).holds is True
    assert result({"kind": "loss_starts"}, measured, shorter="short").holds is None
    assert result({"kind": "loss_starts"}, measured, planned=[3, 4, 5]).holds is None


def test_loss_at_every_point_from_there_on() -> None:
    check = {"kind": "loss_from"}
    assert verdict(check, series(point(4), point(5, lost=20), point(6, lost=500))) == (
        "1 % to 25.0 % lost",
        True,
    )
    assert verdict(check, series(point(5, lost=1), point(6))) == ("no loss at 6", False)
    assert verdict(check, series(point(5, lost=1)), planned=[5, 6])[1] is None


def test_loss_beyond() -> None:
    check = {"kind": "loss_beyond"}
    assert verdict(check, series(point(5), point(6, lost=500))) == ("25.0 % lost at 6", True)
    assert verdict(check, series(point(5, lost=5), point(6))) == ("no loss", False)


def test_loss_before_late() -> None:
    check = {"kind": "loss_before_late"}
    before = series(point(1), point(2, lost=1), point(3, lost=1, late=1))
    assert verdict(check, before) == ("lost from 2 on, late from 3 on", True)
    assert verdict(check, series(point(1), point(2, lost=1)))[1] is True
    assert verdict(check, series(point(1), point(2, lost=1, late=1)))[1] is False
    assert verdict(check, series(point(1), point(2, late=1), point(3, lost=1)))[1] is False
    assert verdict(check, series(point(1), point(2)))[1] is False


def test_loss_earlier_than_in_another_figure() -> None:
    check = {"kind": "loss_earlier", "figure": "other"}
    here = series(point(1), point(1.05, lost=1), point(1.1, lost=9))
    assert verdict(check, here)[1] is None
    assert verdict(check, here, other=series(point(1), point(5, lost=1))) == (
        "lost from 1.05 on; other lost from 5 on",
        True,
    )
    assert verdict(check, here, other=series(point(1), point(5)))[1] is True
    assert verdict(check, here, other=series(point(1)))[1] is None, "it has no point beyond 1.05"
    assert verdict(check, here, other=series(point(1, lost=1)))[1] is False
    assert verdict(check, series(point(1)), other=series(point(5, lost=1)))[1] is False


def silent(x: float) -> PointResult:
    """A point at which a flow sent nothing."""
    return point(x).model_copy(update={"packets": 0, "lost": 0, "late": 0})


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "no_loss", "at": [7]},
        {"kind": "no_late"},
        {"kind": "loss_at", "at": 7},
        {"kind": "loss_near", "at": 7, "within_points": 1},
        {"kind": "loss_beyond"},
        {"kind": "loss_before_late"},
        {"kind": "delay_rises", "at": [5, 7], "statistic": "p99", "slack": 0},
    ],
)
def test_a_flow_that_sent_nothing_is_no_success_and_no_failure(check: dict) -> None:
    flows = [
        Series(label=label, flow=0, points=[point(5), last])
        for label, last in (("a", silent(7)), ("b", point(7)))
    ]
    for measured in (flows, flows[:1]):
        judged = result(check, measured, planned=[5, 7])
        assert (judged.holds, judged.because) == (None, "nothing was sent at 7")


def test_a_silent_flow_excuses_no_loss_of_another() -> None:
    flows = [
        Series(label=label, flow=0, points=[each])
        for label, each in (("a", silent(1)), ("b", point(1, lost=3)))
    ]
    assert verdict({"kind": "no_loss", "at": [1]}, flows) == ("3 of 1000 (at 1)", False)


def test_loss_at() -> None:
    assert verdict({"kind": "loss_at", "at": 1}, series(point(1, lost=500))) == ("25.0 % lost", True)
    assert verdict({"kind": "loss_at", "at": 1}, series(point(1))) == ("no loss", False)


@pytest.mark.parametrize(
    ("lost_at_4", "lost_at_5", "expected"),
    [(0, 1, ("5", True)), (1, 1, ("4", False)), (0, 0, ("6", False))],
)
def test_loss_starts_exactly_there(lost_at_4: int, lost_at_5: int, expected: tuple) -> None:
    measured = series(point(4, lost=lost_at_4), point(5, lost=lost_at_5), point(6, lost=9))
    assert verdict({"kind": "loss_starts"}, measured) == expected


def test_loss_that_starts_nowhere() -> None:
    assert verdict({"kind": "loss_starts"}, series(point(4), point(5))) == ("nowhere", False)


def test_late_at_and_late_starts() -> None:
    fact = "fig18a/delay-violation"
    early = series(point(1), point(1.4, late=2), point(1.45, late=3))
    assert verdict({"kind": "late_at"}, early, fact=fact) == (
        "3 late at 1.45; late from 1.4 on",
        True,
    )
    assert verdict({"kind": "late_starts"}, early, fact=fact) == ("1.4", False)
    exact = series(point(1), point(1.45, late=3))
    assert verdict({"kind": "late_starts"}, exact, fact=fact) == ("1.45", True)
    assert verdict({"kind": "late_at"}, series(point(1), point(1.45)), fact=fact)[1] is False


def test_loss_near_takes_the_value_from_the_paper() -> None:
    check = {"kind": "loss_near", "at": 11, "within_points": 5}
    sixty = [Series(label="H1->H3", flow=0, points=[point(11, lost=560)])]
    assert verdict(check, sixty, fact="fig17a/loss-at-11") == ("56.0 %", True)
    half = [Series(label="H1->H3", flow=0, points=[point(11, lost=500)])]
    assert verdict(check, half, fact="fig17a/loss-at-11") == ("50.0 %", False)


def test_loss_below_another_figure_needs_that_figure() -> None:
    check = {"kind": "loss_below", "figure": "other"}
    measured = series(point(1, lost=100))

    def losing(lost: int) -> list[Series]:
        return series(point(1, lost=lost))

    assert verdict(check, measured)[1] is None
    assert verdict(check, measured, other=losing(120)) == ("at most 5 %, other 6 %", True)
    assert verdict(check, measured, other=losing(100)) == ("at most 5 %, other 5 %", False)
    assert verdict(check, losing(0), other=losing(0))[1] is None
    assert verdict(check, measured, other=losing(0)) == ("at most 5 %, other 0 %", False)
    assert verdict(check, measured, planned=[1, 2], other=losing(120))[1] is None


def test_delay_grows_from() -> None:
    check = {"kind": "delay_grows", "start": 5, "statistic": "p50", "factor": 1.1}
    assert verdict(check, series(point(4), point(5, delay_ms=1.2), point(6, delay_ms=1.3)))[1] is True
    assert verdict(check, series(point(4), point(5, delay_ms=1.05), point(6, delay_ms=2)))[1] is False
    assert verdict(check, series(point(4)), planned=[4, 5])[1] is None
    partly = series(point(4), point(5, delay_ms=1.2))
    assert verdict(check, partly)[1] is True
    assert verdict(check, partly, planned=[4, 5, 6])[1] is None


def test_delay_rises() -> None:
    check = {"kind": "delay_rises", "statistic": "p99", "slack": 0.02}
    assert verdict(check, series(point(1), point(2, delay_ms=0.99), point(3, delay_ms=2)))[1] is True
    assert verdict(check, series(point(1), point(2, delay_ms=0.9), point(3, delay_ms=2)))[1] is False
    assert verdict(check, series(point(1), point(2)))[1] is False
    falls_at_the_end = series(point(1), point(3, delay_ms=2), point(4, delay_ms=1.5))
    assert verdict(check, falls_at_the_end)[1] is False
    assert verdict({**check, "at": [1, 3]}, falls_at_the_end) == ("99 % quantile 1.00, 2.00 ms", True)


@pytest.mark.parametrize(("value", "holds"), [(2.319, True), (2.3251, False), (2.31499, False)])
def test_a_cell_rounds_to_what_is_printed(value: float, holds: bool) -> None:
    table = FIGURES["loko/table2"]
    claim = next(claim for claim in table.claims if claim.fact == "tab2/fifth-rate/max_burst_kB")
    columns = ["scheme", "R_mbps", "T_ms", "max_rate_mbps", "max_burst_kB", "max_delay_ms"]
    cells = TableResult(columns=columns, rows=[["fifth-rate", 0.0, 0.0, 0.0, value, 0.0]])
    judged = judge(table.model_copy(update={"claims": [claim]}), table=cells)
    assert judged[0].holds is holds
    assert judged[0].tolerance == "rounds to 2.32"


def test_a_check_that_needs_a_number_refuses_a_fact_without_one() -> None:
    with pytest.raises(InputError, match="has no numeric value"):
        verdict({"kind": "loss_starts"}, series(point(1)), fact="fig17a/within-admission")


def test_a_claim_refuses_a_fact_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no fact 'fig17a/nothing'"):
        verdict({"kind": "no_late"}, series(point(1)), fact="fig17a/nothing")
