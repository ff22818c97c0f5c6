"""Each kind of check, on data for which the claim holds and on data for which it does not."""

from __future__ import annotations

import pytest

from evaluation.claims import judge
from evaluation.experiments import experiments
from evaluation.kinds.sweep.document import Sweep, SweepClaim
from evaluation.result import Delays, Point, Series, TableResult
from loko.document import InputError

FIGURES = experiments()


def point(x: float, *, lost: int = 0, late: int = 0, delay_ms: float = 1.0) -> Point:
    return Point(
        x=x,
        packets=1000,
        lost=lost,
        loss=lost / 1000,
        late=late,
        explained=0,
        guaranteed=False,
        delay_ms=Delays(**dict.fromkeys(("min", "p1", "p25", "p50", "p75", "p99", "max"), delay_ms)),
    )


def series(*points: Point) -> list[Series]:
    clean = [point(one.x, delay_ms=one.delay_ms.p50 or 0) for one in points]
    return [Series(label="H1->H3", flow=0, points=list(points)), Series(label="H3->H1", flow=1, points=clean)]


def verdict(check: dict, measured: list[Series], *, fact: str = "fig17a/loss-onset", **others: float):
    """What a single claim with this check comes to: (here, holds), or None if it is left out."""
    sweep = FIGURES["loko/fig17a"]
    assert isinstance(sweep, Sweep)
    claim = SweepClaim.model_validate(
        {"claim": "c", "fact": fact, "paper": "p", "check": check, "if_not": "why"}
    )
    found = judge(
        sweep.model_copy(update={"claims": [claim]}),
        series=measured,
        largest_loss={f"loko/{name}": loss for name, loss in others.items()},
    )
    if not found:
        return None
    assert found[0].because == ("" if found[0].holds else "why")
    return found[0].here, found[0].holds


def test_no_loss() -> None:
    check = {"kind": "no_loss", "at": [1, 2]}
    assert verdict(check, series(point(1), point(2), point(3, lost=9))) == ("0", True)
    assert verdict(check, series(point(1), point(2, lost=3))) == ("3 of 4000 (at 2)", False)


def test_a_value_that_was_not_measured_is_left_out() -> None:
    assert verdict({"kind": "no_loss", "at": [7]}, series(point(1))) is None
    assert verdict({"kind": "loss_near", "at": 7, "within_points": 1}, series(point(1))) is None
    assert verdict({"kind": "loss_starts"}, series(point(1))) is None


def test_no_late_at_some_points_or_anywhere() -> None:
    measured = series(point(1), point(2, late=5))
    assert verdict({"kind": "no_late", "at": [1]}, measured) == ("0", True)
    assert verdict({"kind": "no_late"}, measured) == ("5 of 4000 (at 2)", False)


def test_nothing_sent_is_no_success() -> None:
    empty = point(1).model_copy(update={"packets": 0})
    measured = [Series(label="H1->H3", flow=0, points=[empty])]
    assert verdict({"kind": "no_loss", "at": [1]}, measured) == ("not measured", False)


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
    assert verdict(check, measured) is None
    assert verdict(check, measured, other=0.06) == ("at most 5 %, other 6 %", True)
    assert verdict(check, measured, other=0.05) == ("at most 5 %, other 5 %", False)
    assert verdict(check, series(point(1)), other=0.0) is None
    assert verdict(check, measured, other=0.0) == ("at most 5 %, other 0 %", False)


def test_delay_grows_from() -> None:
    check = {"kind": "delay_grows", "start": 5, "statistic": "p50", "factor": 1.1}
    assert verdict(check, series(point(4), point(5, delay_ms=1.2), point(6, delay_ms=1.3)))[1] is True
    assert verdict(check, series(point(4), point(5, delay_ms=1.05), point(6, delay_ms=2)))[1] is False
    assert verdict(check, series(point(4))) is None


def test_delay_rises() -> None:
    check = {"kind": "delay_rises", "statistic": "p99", "slack": 0.02}
    assert verdict(check, series(point(1), point(2, delay_ms=0.99), point(3, delay_ms=2)))[1] is True
    assert verdict(check, series(point(1), point(2, delay_ms=0.9), point(3, delay_ms=2)))[1] is False
    assert verdict(check, series(point(1), point(2)))[1] is False


@pytest.mark.parametrize(("value", "holds"), [(2.319, True), (2.3251, False), (2.31499, False)])
def test_a_cell_rounds_to_what_is_printed(value: float, holds: bool) -> None:
    table = FIGURES["loko/table2"]
    claim = next(one for one in table.claims if one.fact == "tab2/fifth-rate/max_burst_kB")
    columns = ["scheme", "R_mbps", "T_ms", "max_rate_mbps", "max_burst_kB", "max_delay_ms"]
    result = TableResult(columns=columns, rows=[["fifth-rate", 0.0, 0.0, 0.0, value, 0.0]])
    found = judge(table.model_copy(update={"claims": [claim]}), table=result)
    assert found[0].holds is holds


def test_a_check_that_needs_a_number_refuses_a_fact_without_one() -> None:
    with pytest.raises(InputError, match="has no numeric value"):
        verdict({"kind": "loss_starts"}, series(point(1)), fact="fig17a/within-admission")


def test_a_claim_refuses_a_fact_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no fact 'fig17a/nothing'"):
        verdict({"kind": "no_late"}, series(point(1)), fact="fig17a/nothing")
