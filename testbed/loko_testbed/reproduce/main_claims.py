"""Choose the claims that reviewers of the artifact check, by rule, from the figures' documents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from loko_testbed.reproduce.claims import judge
from loko_testbed.reproduce.figure import Claim, Figure
from loko_testbed.reproduce.figure_types import figure_type_named
from loko_testbed.reproduce.figure_types.experiments import experiments, select
from loko_testbed.reproduce.folder import short_name
from loko_testbed.reproduce.result import ClaimKind, ClaimResult
from loko_testbed.reproduce.verdicts import LEVELS

_KINDS: Final[tuple[ClaimKind, ...]] = ("predicted", "calibrated")
"""The kinds of claims to choose from. Of each paper, only the first kind that it has is chosen."""
_WEAK: Final = frozenset({"arithmetic", "profile"})
_MINUTE_S: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class MainClaim:
    """A claim that stands for one sentence of a paper, with the figures that test it."""

    claim: Claim
    unmeasured: ClaimResult
    """Its kind, level, tolerance and place in the paper, before any replay."""
    figures: tuple[Figure, ...]
    """Its figure, and the one that it compares with, if any."""

    @property
    def command(self) -> str:
        """The command that tests it."""
        return f"loko evaluate {' '.join(short_name(figure.name) for figure in self.figures)}"

    @property
    def minutes(self) -> int:
        """Estimated duration of the command in virtual time, at the paper's scale, rounded up."""
        times = (figure_type_named(figure.kind).estimate_s(figure)["virtual"] for figure in self.figures)
        return math.ceil(sum(times) / _MINUTE_S)


def main_claims() -> dict[str, list[MainClaim]]:
    """Return the main claims by paper, in the order of figures. Raises `InputError`.

    Of the figures that the default replay in virtual time has, these are the papers' own claims above the
    levels arithmetic and profile, one for each sentence: that with the highest level, or else the first. They
    are the predicted ones; those of a paper without any are calibrated.
    """
    known = experiments()
    chosen: dict[str, dict[ClaimKind, dict[str, MainClaim]]] = {}
    for figure in select([], known):
        for claim in _claims(figure, known):
            its = claim.unmeasured
            if its.kind not in _KINDS or its.circular or its.level in _WEAK:
                continue
            stated = chosen.setdefault(figure.paper, {}).setdefault(its.kind, {})
            before = stated.get(its.sentence)
            if before is None or LEVELS.index(its.level) > LEVELS.index(before.unmeasured.level):
                stated[its.sentence] = claim
    return {
        paper: next(list(by_kind[kind].values()) for kind in _KINDS if kind in by_kind)
        for paper, by_kind in chosen.items()
    }


def _claims(figure: Figure, known: Mapping[str, Figure]) -> Iterator[MainClaim]:
    for claim, unmeasured in zip(figure.claims, judge(figure), strict=True):
        other = claim.check.compared_with
        compared = (known[other],) if other else ()
        yield MainClaim(claim=claim, unmeasured=unmeasured, figures=(figure, *compared))
