"""The summary that `loko bench all` prints: the numbers found, how certain they are, and those not found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from loko_testbed.measure.bench.cost_model.fitted import Fitted
from loko_testbed.measure.bench.cost_model.profile_document import MeasuredProfile
from loko_testbed.measure.bench.procedures.throughput import PAPER_PRECISION_BPS

_SHOWN: Final = 5
_SURE: Final = 3
"""A number of fewer standard errors may as well be 0."""
_PAPER_ERROR: Final = 0.06
"""Error of equation 6 against measurement in the paper (section 3.4.2)."""


def summary(profile: MeasuredProfile, fitted: Fitted, path: Path) -> dict[str, Any]:
    """Return the summary as values, for JSON."""
    return {
        "profile": str(path),
        "measured": {
            name: {"value": number.value, "standard_error": number.error, "samples": number.samples}
            for name, number in fitted.numbers.items()
            if name in profile.measured
        },
        "not_measured": dict(profile.kept),
        "unidentified": list(fitted.costs.unidentified),
        "loop_us": round(fitted.loop_ns / 1000, 3),
        "interrupted": fitted.interrupted,
        "buffer_frames": {str(size): frames for size, frames in fitted.capacity_frames.items()},
        "equation_6": [
            {
                "entries": table.entries,
                "match": table.match.value,
                "priorities": table.priorities.value,
                "used_entry": table.used_entry.value,
                "frame_bytes": size,
                "error": error,
                "throughput_bps": fitted.throughput_bps[table, size],
            }
            for (table, size), error in fitted.equation_6_error.items()
        ],
    }


def _equation_6(fitted: Fitted) -> str:
    errors = fitted.equation_6_error
    # A search is exact to half its last interval. For a slow switch that is more than the paper's 6 %.
    told = {
        case: error
        for case, error in errors.items()
        if _PAPER_ERROR * fitted.throughput_bps[case] > PAPER_PRECISION_BPS / 2
    }
    within = sum(abs(error) < _PAPER_ERROR for error in told.values())
    text = f"equation 6 against measured throughput: {within} of {len(told)} cases within {_PAPER_ERROR:.0%}"
    if told:
        text += f", worst {max(map(abs, told.values())):.1%}"
    blurred = len(errors) - len(told)
    return text + (
        f"; {blurred} are slower than the search for {PAPER_PRECISION_BPS / 1e6:.2f} Mbit/s tells within that"
        if blurred
        else ""
    )


def lines(profile: MeasuredProfile, fitted: Fitted, path: Path) -> Iterator[str]:
    """Yield the summary in short, for people."""
    yield f"{path}: {len(profile.measured)} numbers measured, {len(profile.kept)} kept"
    shares = sorted(
        (
            (number.error / abs(number.value), name)
            for name, number in fitted.numbers.items()
            if _SURE * number.error < abs(number.value)
        ),
        reverse=True,
    )
    if shares:
        yield "least sure (standard error): " + ", ".join(
            f"{name} {share:.2%}" for share, name in shares[:_SHOWN]
        )
    naught = [
        name
        for name, number in fitted.numbers.items()
        if number.error > 0 and abs(number.value) <= _SURE * number.error
    ]
    if naught:
        yield f"within {_SURE} standard errors of 0, so nothing or little: " + ", ".join(naught)
    frames = ", ".join(f"{held} of {size}" for size, held in fitted.capacity_frames.items())
    yield f"main loop {fitted.loop_ns / 1000:.3f} us; {fitted.interrupted:.2%} of lone frames interrupted"
    if frames:
        yield f"frames held, of so many bytes: {frames}"
    if fitted.equation_6_error:
        yield _equation_6(fitted)
    if profile.kept:
        yield "kept, with the value of the form:"
    for why in dict.fromkeys(profile.kept.values()):
        names = ", ".join(name for name, reason in profile.kept.items() if reason == why)
        yield f"  {names}: {why}"
