"""What `loko bench all` says at its end: what was found, how sure it is, and what was not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from evaluation.bench.findings import Findings
from evaluation.bench.profile_document import MeasuredProfile

_SHOWN: Final = 5


def summary(profile: MeasuredProfile, findings: Findings, path: Path) -> dict[str, Any]:
    """All of it as values, for JSON."""
    return {
        "profile": str(path),
        "measured": {
            name: {"value": one.value, "standard_error": one.error, "samples": one.samples}
            for name, one in findings.numbers.items()
            if name in profile.measured
        },
        "not_measured": dict(profile.kept),
        "unidentified": list(findings.costs.unidentified),
        "loop_us": round(findings.loop_ns / 1000, 3),
        "interrupted": findings.interrupted,
        "buffer_frames": {str(size): frames for size, frames in findings.capacity_frames.items()},
        "equation_6": [
            {
                "entries": table.entries,
                "match": table.match.value,
                "priorities": table.priorities.value,
                "used_entry": table.used_entry.value,
                "frame_bytes": size,
                "error": error,
            }
            for (table, size), error in findings.equation_6_error.items()
        ],
    }


def lines(profile: MeasuredProfile, findings: Findings, path: Path) -> Iterator[str]:
    """The same in short, for people."""
    yield f"{path}: {len(profile.measured)} numbers measured, {len(profile.kept)} kept"
    shares = sorted(
        (
            (one.error / abs(one.value), name)
            for name, one in findings.numbers.items()
            if one.error < abs(one.value)
        ),
        reverse=True,
    )
    if shares:
        yield "least sure (standard error): " + ", ".join(
            f"{name} {share:.2%}" for share, name in shares[:_SHOWN]
        )
    naught = [name for name, one in findings.numbers.items() if one.error >= abs(one.value) and one.error > 0]
    if naught:
        yield "not above their standard error, so nothing or little: " + ", ".join(naught)
    frames = ", ".join(f"{held} of {size}" for size, held in findings.capacity_frames.items())
    yield f"main loop {findings.loop_ns / 1000:.3f} us; {findings.interrupted:.2%} of lone frames interrupted"
    if frames:
        yield f"frames held, of so many bytes: {frames}"
    errors = [abs(error) for error in findings.equation_6_error.values()]
    if errors:
        within = sum(error < 0.06 for error in errors)
        yield (
            f"equation 6 against measured throughput: {within} of {len(errors)} cases within 6 %,"
            f" worst {max(errors):.1%}"
        )
    if profile.kept:
        yield "kept, with the value of the form:"
    for why in dict.fromkeys(profile.kept.values()):
        names = ", ".join(name for name, one in profile.kept.items() if one == why)
        yield f"  {names}: {why}"
