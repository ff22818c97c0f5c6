"""The five sentences that the report on a folder of results begins with, computed from the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loko_testbed.reproduce.result import ClaimResult, FigureResult, GuaranteeResult
from loko_testbed.reproduce.verdicts import LEVELS, ClaimCount, Sentence, guarantees


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A sentence on all results, with what supports it."""

    text: str
    detail: str = ""
    figure: str = ""
    """Full name of the figure that shows it; empty if it is about several."""
    is_bad: bool = False
    """Whether it says that a guarantee or a prediction failed."""


def headlines(results: Sequence[FigureResult], counted: Sequence[Sentence]) -> list[Headline]:
    """Return at most five sentences: guarantees of Loko and of others, predictions, misses, calibration."""
    judged = list(guarantees(results))
    predicted = [sentence for sentence in counted if sentence.kind == "predicted"]
    return [
        *_of_loko([guarantee for _, guarantee in judged if guarantee.ours]),
        *_of_others([guarantee for _, guarantee in judged if not guarantee.ours]),
        *_predictions(predicted),
        *_misses(predicted),
        *_calibrated([sentence for sentence in counted if sentence.kind == "calibrated"]),
    ]


def _of_loko(ours: Sequence[GuaranteeResult]) -> Iterator[Headline]:
    broken = [guarantee for guarantee in ours if guarantee.verdict == "broken"]
    kept = [guarantee for guarantee in ours if guarantee.verdict == "kept"]
    if broken:
        yield Headline(
            text=f"{in_threes(sum(guarantee.broken_by for guarantee in broken))} packets break a guarantee"
            " that Loko's admission gives.",
            detail="Each was lost or late where the admission was respected; no stall explains it.",
            is_bad=True,
        )
    elif kept:
        explained = sum(guarantee.explained for guarantee in kept)
        but = (
            f", except {in_threes(explained)} under way while the host kept the emulator from running"
            if explained
            else ""
        )
        yield Headline(
            text="Every guarantee of Loko's that was put to the test was kept.",
            detail=f"Of {in_threes(sum(guarantee.packets for guarantee in kept))} packets within admission"
            f" none was lost and none was late{but}. Where the hosts send more, nothing is promised.",
        )
    else:
        yield Headline(
            text="No guarantee of Loko's was put to the test.",
            detail="The chosen figures send no traffic that its admission has accepted.",
        )


def _of_others(theirs: Sequence[GuaranteeResult]) -> Iterator[Headline]:
    tested = [guarantee for guarantee in theirs if guarantee.verdict != "not tested"]
    if tested:
        broken = sum(guarantee.verdict == "broken" for guarantee in tested)
        yield Headline(
            text=f"{broken} of {len(tested)} deployments of the systems that Loko is compared with break"
            " what they promise.",
            detail="The paper reports the same of Silo and QJump." if broken else "",
        )


def _predictions(predicted: Sequence[Sentence]) -> Iterator[Headline]:
    count = ClaimCount.of(predicted)
    if not count.tested:
        return
    by_level = (
        (level, ClaimCount.of([each for each in predicted if each.level == level])) for level in LEVELS
    )
    parts = [f"{level} {each.of_tested}" for level, each in by_level if each.tested]
    yield Headline(
        text=f"{count.hold} of {count.tested} predictions that could be tested hold.",
        detail=f"By level of evidence, the weakest first: {', '.join(parts)}.",
    )


def _misses(predicted: Sequence[Sentence]) -> Iterator[Headline]:
    failing = [sentence for sentence in predicted if sentence.holds is False]
    if not failing:
        return
    paper, most = Counter(sentence.paper for sentence in failing).most_common(1)[0]
    share = "all" if most == len(failing) else f"{most}"
    tested = ClaimCount.of(predicted).tested
    text = f"{len(failing)} of {tested} predictions fail, {share} of the paper '{paper}'."
    misses = [
        (claim.deviation, result, claim)
        for sentence in failing
        for result, claim in sentence.claims
        if claim.holds is False and claim.deviation is not None
    ]
    if not misses:
        yield Headline(text=text, is_bad=True)
        return
    deviation, result, claim = max(misses, key=lambda miss: miss[0])
    yield Headline(text=text, detail=_largest(deviation, result, claim), figure=result.name, is_bad=True)


def _largest(deviation: float, result: FigureResult, claim: ClaimResult) -> str:
    return (
        f"The largest miss, by {100 * deviation:.0f} %: '{claim.claim}' is {claim.here} here,"
        f" {claim.paper} in the {result.reference}."
    )


def _calibrated(calibrated: Sequence[Sentence]) -> Iterator[Headline]:
    count = ClaimCount.of(calibrated)
    if count.tested:
        tested = (sentence for sentence in calibrated if sentence.holds is not None)
        circular = sum(any(claim.circular for _, claim in sentence.claims) for sentence in tested)
        yield Headline(
            text=f"{count.hold} of {count.tested} statements on single devices hold; none is a reproduction.",
            detail="Profile and model may have been fitted to them, and"
            f" {circular} {'is' if circular == 1 else 'are'} circular: what was put in comes out.",
        )


def in_threes(number: int) -> str:
    """Return a number with its digits in groups of three."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
