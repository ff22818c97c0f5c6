"""Annotations of a picture beside the results: values that the paper prints, and predicted bands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from loko_testbed.reproduce.result import Band, FigureResult, Printed


@dataclass(frozen=True, slots=True)
class Annotations:
    """The paper's values and the predicted bands of a figure, by finding."""

    printed: Mapping[str, Printed] = field(default_factory=dict)
    bands: Mapping[str, Band] = field(default_factory=dict)

    def annotate(self, finding: str, here: str) -> str | None:
        """Return a share's text `here` with the paper's value and the band; None if there is neither."""
        paper, band = self.printed.get(finding), self.bands.get(finding)
        if paper is None and band is None:
            return None
        parts = [f"paper {paper.text}" if paper else "", f"here {here}", _reach(band) if band else ""]
        return ", ".join(filter(None, parts))


def annotations_of(result: FigureResult) -> Annotations:
    """Collect what is to be shown beside a result."""
    return Annotations(
        printed={each.finding: each for each in reversed(result.printed)},  # of several, the first
        bands={band.finding: band for band in result.bands if band.figure == result.name},
    )


def caption_of(bands: Mapping[str, Band]) -> str:
    """Return a suffix for a caption that says what the bands cover; empty without any."""
    covered = dict.fromkeys(band.covers for band in bands.values())
    return f"; bands: {'; '.join(covered)}" if covered else ""


def _reach(band: Band) -> str:
    """Describe a band in per cent, rounded outwards."""
    low, high = math.floor(10 * min(band.least)) / 10, math.ceil(10 * max(band.most)) / 10
    high = min(high, 100)
    return f"band {low:g} %" if low == high else f"band {low:g} to {high:g} %"
