"""Claims whose verdict depends on chance are judged at further seeds, each an ordinary task of the store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from no_rendering import no_rendering

from loko_testbed.reproduce import replications
from loko_testbed.reproduce.claims import evaluate_claims
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure_types.experiments import experiments_named
from loko_testbed.reproduce.figure_types.traffic.document import Sweep, SweepClaim
from loko_testbed.reproduce.result import TrafficResult, read_results
from loko_testbed.reproduce.runs import read_runs
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.senders import SenderChoice
from loko_testbed.tasks.progress import NoProgress
from loko_testbed.tasks.store import TASKS

SEEDS = 6
BUSY = SenderChoice(sender="simple")
"""Others send nothing in some of such short runs."""


def figure() -> Sweep:
    """Return a short sweep in which loss starts at 4 at some seeds, and elsewhere at others."""
    whole = experiments_named(["fig17b"])["loko/fig17b"]
    assert isinstance(whole, Sweep)
    claim = SweepClaim.model_validate(
        {
            "claim": "loss starts at m_b",
            "fact": "fig17b/loss-onset",
            "paper": "4",
            "check": {"kind": "loss_starts"},
            "seeds": SEEDS,
        }
    )
    return whole.model_copy(update={"claims": [claim], "runs": 2, "seconds": 1.0})


def replayed(out: Path, **options) -> TrafficResult:
    out.mkdir(exist_ok=True)
    chosen = Options(**{"mode": "virtual", "seed": 1, "out": out, "senders": BUSY, **options})
    with no_rendering():
        (result,) = evaluate([figure()], chosen, NoProgress())
    assert isinstance(result, TrafficResult)
    return result


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrafficResult]:
    out = tmp_path_factory.mktemp("once")
    return out, replayed(out)


def test_the_claim_turns_with_the_seed(once: tuple[Path, TrafficResult]) -> None:
    _, result = once
    (claim,) = result.claims
    assert claim.by_seed is not None
    assert claim.by_seed.seeds == SEEDS
    assert 0 < claim.by_seed.held < SEEDS
    assert claim.judgement == "undecided"
    assert f"holds at {claim.by_seed.held} of {SEEDS} seeds" in claim.here


def test_a_further_seed_is_the_figure_at_that_seed(once: tuple[Path, TrafficResult], tmp_path: Path) -> None:
    _, result = once
    assert [each.seed for each in result.replications] == list(range(2, 1 + SEEDS))
    options = Options(mode="virtual", seed=2, out=tmp_path, senders=BUSY)
    once_more = figure().model_copy(update={"claims": [figure().claims[0].model_copy(update={"seeds": 1})]})
    (second,) = evaluate([once_more], options, NoProgress())
    assert isinstance(second, TrafficResult)
    (both,) = (each for each in result.replications if each.seed == 2)
    for few, all_points in zip(both.series, second.series, strict=True):
        assert few.points == [point for point in all_points.points if point.x in {2, 3, 4}]


@pytest.mark.parametrize(
    ("name", "smaller", "read"),
    [
        ("tssdn/frequencies", {"packets": 500}, "rare_"),
        ("loko/fig6b", {"samples": 20}, "spread_max_us"),
        ("loko/fig12a", {"rates": 12}, "_17_entries"),
        ("predictability/epsilon", {}, "dell_s4048_on"),
    ],
)
def test_a_further_seed_of_a_part_is_that_of_the_whole_figure(
    tmp_path: Path, name: str, smaller: dict[str, int], read: str
) -> None:
    whole = experiments_named([name])[name].model_copy(update=smaller)
    part = whole.for_replication()
    assert part is not None
    options = Options(mode="virtual", seed=3, out=tmp_path)
    further = replications.replicated(replications.ReplicationTask(part=part, options=options))
    assert not list(tmp_path.iterdir()), "it keeps no records"
    once = [claim for claim in whole.claims if claim.seeds == 1]
    (result,) = evaluate([whole.model_copy(update={"claims": once})], options, NoProgress())
    expected = {finding: value for finding, value in result.findings.items() if read in finding}
    assert {finding: further.findings.get(finding) for finding in expected} == expected != {}
    assert len(further.findings) < len(result.findings)


def test_the_same_bytes_in_several_processes(once: tuple[Path, TrafficResult], tmp_path: Path) -> None:
    out, _ = once
    replayed(tmp_path / "out", jobs=2)
    assert (tmp_path / "out/fig17b.json").read_bytes() == (out / "fig17b.json").read_bytes()


def test_no_seed_is_replayed_twice(once: tuple[Path, TrafficResult], monkeypatch: pytest.MonkeyPatch) -> None:
    out, result = once
    kept = {path: path.stat().st_mtime_ns for path in (out / TASKS / "fig17b.seeds").iterdir()}
    assert len(kept) == SEEDS - 1
    before = (out / "fig17b.json").read_bytes()
    assert read_runs(out)["loko/fig17b"].seeds_seconds > 0
    again, *others = sorted(kept)
    again.unlink()
    replayed_seeds = []
    original = replications.replicated

    def counting(task: replications.ReplicationTask):
        replayed_seeds.append(task.options.seed)
        return original(task)

    counting.__module__, counting.__qualname__ = original.__module__, original.__qualname__
    monkeypatch.setattr(replications, "replicated", counting)
    assert replayed(out) == result
    assert len(replayed_seeds) == 1
    assert (out / "fig17b.json").read_bytes() == before
    assert all(path.stat().st_mtime_ns == kept[path] for path in others)


def test_the_result_alone_is_judged_the_same(once: tuple[Path, TrafficResult]) -> None:
    out, result = once
    (kept,) = read_results(out)
    claims = evaluate_claims(figure(), kept, [kept], Options(mode="virtual", seed=1, out=out))
    assert claims == result.claims


def test_a_short_replay_has_no_further_seeds(tmp_path: Path) -> None:
    short = replayed(tmp_path / "short", seconds=0.1)
    assert not short.replications
    assert short.claims[0].judgement == "not testable here"
    options = Options(mode="live", seed=1, out=tmp_path)
    assert not replications.replicate(figure(), options, NoProgress()).results
    quick = replace(options, mode="virtual", quick=True)
    assert not replications.replicate(figure(), quick, NoProgress()).results
