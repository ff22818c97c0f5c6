"""Claims whose verdict depends on chance: the interval of a share of seeds, and what is concluded of it."""

from __future__ import annotations

import random

import pytest

from loko.document import InputError
from loko_testbed.reproduce.claims import check_reference, judge
from loko_testbed.reproduce.figure import Figure
from loko_testbed.reproduce.figure_types.bench.document import ControlPlane
from loko_testbed.reproduce.figure_types.experiments import experiments_named
from loko_testbed.reproduce.figure_types.predictability.document import Predictability
from loko_testbed.reproduce.figure_types.time_triggered.document import TimeTriggeredFigure
from loko_testbed.reproduce.figure_types.traffic.document import Sweep, SweepClaim
from loko_testbed.reproduce.result import (
    ClaimResult,
    DelayQuantiles,
    PointResult,
    Replication,
    SeedVerdict,
    Series,
)
from loko_testbed.reproduce.seed_share import share_interval, verdict_of
from loko_testbed.reproduce.verdicts import counts

_NO_DELAYS = DelayQuantiles(**dict.fromkeys(("min", "p1", "p25", "p50", "p75", "p99", "max"), None))
SEEDS = 20


def sweep(**changes: object) -> Sweep:
    """Return a figure whose only claim is that loss starts at 4."""
    figure = experiments_named(["fig17b"])["loko/fig17b"]
    assert isinstance(figure, Sweep)
    values = {"claim": "c", "fact": "fig17b/loss-onset", "paper": "4", "check": {"kind": "loss_starts"}}
    claim = SweepClaim.model_validate({**values, "seeds": SEEDS, "if_not": "why", **changes})
    return figure.model_copy(update={"claims": [claim]})


def lost_from(start: float, values: list[float]) -> list[Series]:
    points = [
        PointResult(
            x=x,
            packets=10,
            lost=int(x >= start),
            loss=0,
            late=0,
            explained=0,
            guaranteed=False,
            delay_ms=_NO_DELAYS,
        )
        for x in values
    ]
    return [Series(label="H1->H3", flow=0, points=points)]


def judged(starts: list[float], *, shorter: str = "", **changes: object) -> ClaimResult:
    """Judge the claim of `sweep`; `starts` has the onset at the figure's seed and at each further seed."""
    figure = sweep(**changes)
    first, *others = (lost_from(start, figure.x.values) for start in starts)
    replications = [Replication(seed=2 + place, series=series) for place, series in enumerate(others)]
    (claim,) = judge(figure, series=first, replications=replications, shorter=shorter)
    return claim


@pytest.mark.parametrize(
    ("held", "seeds", "interval"),
    [  # Clopper-Pearson, as R's binom.test prints it
        (0, 20, (0.0, 0.1684)),
        (11, 20, (0.3153, 0.7694)),
        (15, 20, (0.5090, 0.9134)),
        (20, 20, (0.8316, 1.0)),
        (1, 2, (0.0126, 0.9874)),
    ],
)
def test_interval_of_a_share(held: int, seeds: int, interval: tuple[float, float]) -> None:
    assert share_interval(held, seeds) == pytest.approx(interval, abs=1e-4)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.8])
def test_the_interval_covers_the_share_at_least_so_often(share: float) -> None:
    chance = random.Random(1)
    trials = 400
    covered = 0
    for _ in range(trials):
        low, high = share_interval(sum(chance.random() < share for _ in range(SEEDS)), SEEDS)
        covered += low <= share <= high
    assert covered / trials >= 0.94


def test_verdict_by_the_number_of_seeds() -> None:
    verdicts = [verdict_of(held, SEEDS).holds for held in range(SEEDS + 1)]
    assert verdicts == [False] * 6 + [None] * 9 + [True] * 6


@pytest.mark.parametrize(
    ("right", "holds", "here"),
    [
        (20, True, "4; holds at 20 of 20 seeds (0.83 to 1.00)"),
        (11, None, "undecided: holds at 11 of 20 seeds (0.32 to 0.77)"),
        (3, False, "4; holds at 3 of 20 seeds (0.03 to 0.38)"),
    ],
)
def test_a_claim_is_judged_by_all_seeds(right: int, holds: bool | None, here: str) -> None:
    claim = judged([4] * right + [3] * (SEEDS - right))
    assert (claim.holds, claim.here) == (holds, here)
    assert claim.by_seed is not None
    assert (claim.by_seed.seeds, claim.by_seed.held) == (SEEDS, right)
    assert claim.judgement == {True: "holds", False: "does not hold", None: "undecided"}[holds]
    assert claim.because == ("" if holds else "why")


def test_the_seed_of_the_figure_is_one_of_them() -> None:
    claim = judged([3] + [4] * (SEEDS - 1))
    assert (claim.holds, claim.here) == (True, "3; holds at 19 of 20 seeds (0.75 to 1.00)")


def test_without_the_other_seeds_it_is_judged_at_one() -> None:
    claim = judged([3])
    assert (claim.holds, claim.here, claim.by_seed) == (False, "3", None)
    assert judged([4] * SEEDS, seeds=1).by_seed is None


def test_a_smaller_replay_neither_confirms_nor_denies_it() -> None:
    for start in (3, 4, 5):
        claim = judged([start], shorter="this replay is short")
        assert (claim.holds, claim.is_undecided) == (None, False)
    assert judged([3], shorter="this replay is short", seeds=1).holds is False


def test_undecided_claims_are_counted_apart() -> None:
    claims = [judged([4] * 11 + [3] * 9), judged([4] * SEEDS), judged([4], shorter="short")]
    (count,) = counts(claims).values()
    assert (count.hold, count.fail, count.undecided, count.untested) == (1, 0, 1, 1)
    assert str(count) == "1 of 2 hold, 1 undecided, 1 not testable here"


def test_only_what_decides_the_claims_is_replayed_again() -> None:
    part = sweep().for_replication()
    assert part is not None
    assert part.x.values == [2, 3, 4]
    assert sweep(seeds=1).for_replication() is None
    everything = sweep(check={"kind": "loss_beyond"}).for_replication()
    assert everything is not None
    assert everything.x.values == sweep().x.values


def test_only_the_cases_that_claims_read_are_replayed_again() -> None:
    def cases(*findings: str) -> list[str]:
        part = replayed_again("tssdn/table2", *findings)
        assert isinstance(part, TimeTriggeredFigure)
        return [case.name for case in part.cases]

    assert cases("five_most_us") == ["five"]
    assert cases("two_most_us", "five_jitter_us") == ["two", "five"]
    assert cases("one_mean_us") == ["one", "five"], "a ratio reads both of its findings"


def replayed_again(name: str, *findings: str) -> Figure:
    """Return what is replayed at further seeds if the claims that read these findings depend on chance."""
    figure = experiments_named([name])[name]
    claims = [
        claim.model_copy(update={"seeds": SEEDS if set(claim.check.reads) & set(findings) else 1})
        for claim in figure.claims
    ]
    part = figure.model_copy(update={"claims": claims}).for_replication()
    assert part is not None
    return part


def test_only_the_devices_that_findings_name_are_replayed_again() -> None:
    name = "predictability/epsilon"
    whole = experiments_named([name])[name]
    assert isinstance(whole, Predictability)
    one = replayed_again(name, "differs_dell_s4048_on_us")
    assert isinstance(one, Predictability)
    assert one.devices == ["dell-s4048-on"]
    every = replayed_again("predictability/fig3", "lost_packets")
    assert isinstance(every, Predictability)
    assert len(every.devices) > 1, "no device is named, so any may have lost a packet"


def test_flow_statistics_are_replayed_again_only_for_claims_on_them() -> None:
    def shown(*findings: str) -> str:
        part = replayed_again("loko/fig6b", *findings)
        assert isinstance(part, ControlPlane)
        return part.shows

    assert shown("spread_max_us") == "messages-but-statistics"
    assert shown("spread_max_us", "flow_stats_spread_us") == "messages"


def test_the_smallest_box_needs_the_smallest_multiplier_only() -> None:
    part = replayed_again("loko/fig17a", "smallest_box_packets")
    assert isinstance(part, Sweep)
    assert part.x.values == [1]
    rates = experiments_named(["loko/fig17a"])["loko/fig17a"]
    assert isinstance(rates, Sweep)
    bursts = rates.model_copy(
        update={"claims": part.claims, "x": rates.x.model_copy(update={"multiplier": "burst"})}
    )
    again = bursts.for_replication()
    assert again is not None
    assert again.x.values == rates.x.values, "with larger bursts no more packets need be sent"


def test_a_claim_that_compares_with_another_figure_has_one_seed() -> None:
    figure = sweep(fact="fig17b/loss-below-fig17a", check={"kind": "loss_below", "figure": "fig17a"})
    with pytest.raises(InputError, match="compares with loko/fig17a, which is replayed at one seed"):
        check_reference(figure, figure.claims[0])


def test_a_verdict_in_words() -> None:
    assert str(SeedVerdict(seeds=20, held=11, low=0.3153, high=0.7694)) == (
        "holds at 11 of 20 seeds (0.32 to 0.77)"
    )
