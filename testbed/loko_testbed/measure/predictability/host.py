"""Influence of the machine under a live switch on its times, and the marks that this leaves open.

Frames that met a known stall do not count. Shorter pauses are not seen, so each threshold of time is tried
twice: as it is, and raised by the longest pause that may go unseen. Where that changes the mark, the machine
decides and not the switch: the dimension is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from loko.units import NS_PER_US
from loko_testbed.measure.predictability.marks import WORDS, DimensionVerdict, Mark, Threshold, Thresholds
from loko_testbed.measure.predictability.subject import SwitchUnderTest
from loko_testbed.measure.predictability.table_iii import TimingScenario
from loko_testbed.simulation.runner import RunError

_TIMES: Final = ("spread_us", "partly_spread_us", "excess_us", "excess_differs_us")
_MOST_DISTURBED_PERCENT: Final = 20.0
"""If more frames of a scenario met a stall, the rest is no sample of the switch's times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPauses:
    """The machine's own influence, which no stamp shows."""

    longest_us: float
    """The longest pause that may go unseen."""
    remark: str
    """How the switch runs on this machine; may be empty."""


def pauses(subject: SwitchUnderTest) -> HostPauses:
    """Measure the pauses of this machine under a live switch. Raises `RunError`."""
    live = subject.live
    if live is None:
        raise RunError(f"{subject.device}: in virtual time the machine has no influence")
    return HostPauses(longest_us=live.longest_pause_ns() / NS_PER_US, remark=live.remark)


def raise_thresholds(
    limits: Thresholds, *, unseen_us: float, median_us: float, repeats_us: float
) -> Thresholds:
    """Return thresholds that allow for pauses that go unseen, on top of a time of `median_us`.

    Pauses do not change medians, but a busy machine does: by `repeats_us` between the same measurements.
    """
    changed = {name: _more(getattr(limits, name), unseen_us) for name in _TIMES}
    changed["cpu_spread_percent"] = _more(limits.cpu_spread_percent, 100 * unseen_us / median_us)
    changed["influence_us"] = _more(limits.influence_us, repeats_us)
    return limits.model_copy(update=changed)


def disturbed_percent(results: Mapping[str, Any]) -> float:
    """Return the largest share of frames of one scenario of PT that met a stall."""
    return max(
        (100 * of.disturbed / of.sent for name, of in results.items() if name.startswith("PT-")),
        default=0.0,
    )


def shortest_median_us(results: Mapping[str, Any]) -> float:
    """Return the shortest of the medians of PT; infinity if no frame came."""
    medians = (of.median_us for name, of in results.items() if name.startswith("PT-"))
    return min((median for median in medians if not math.isnan(median)), default=math.inf)


def repeats_us(results: Mapping[str, Any]) -> float:
    """Return by how much the medians of the default scenario differ, which each dimension has anew."""
    names = (f"PT-{field.name}-{getattr(TimingScenario(), field.name)}" for field in fields(TimingScenario))
    medians = [results[name].median_us for name in names if name in results]
    told = [median for median in medians if not math.isnan(median)]
    return max(told) - min(told) if told else 0.0


def reliable_verdicts(
    strict: Mapping[str, DimensionVerdict],
    tolerant: Mapping[str, DimensionVerdict],
    *,
    unseen_us: float,
    disturbed_percent: float,
) -> dict[str, DimensionVerdict]:
    """Return the verdicts that do not depend on what the machine added; the others are not judged."""
    judged = {}
    for name, verdict in strict.items():
        reason = ""
        if name in _OF_TIMES and disturbed_percent > _MOST_DISTURBED_PERCENT:
            reason = f"this machine is too busy: up to {disturbed_percent:.0f} % of the frames met a stall"
        elif tolerant[name].mark is not verdict.mark:
            marks = (WORDS[verdict.mark], WORDS[tolerant[name].mark])
            reason = (
                f"this machine decides between {marks[0]} and {marks[1]}, with pauses of up to"
                f" {unseen_us:.0f} us"
            )
        if reason and verdict.mark is not Mark.NOT_JUDGED:
            judged[name] = DimensionVerdict(
                mark=Mark.NOT_JUDGED,
                reasons=(reason, *(f"measured: {text}" for text in verdict.reasons)),
                numbers=verdict.numbers,
            )
        else:
            judged[name] = verdict
    return judged


_OF_TIMES: Final = ("PT",)


def _more(limit: Threshold, by: float) -> Threshold:
    return limit.model_copy(update={"value": limit.value + by})
