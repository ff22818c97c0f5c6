"""Summarise the trials of a campaign as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from benchmarks.evidence.record import TrialRecord, fingerprint
from benchmarks.machine import describe


def summary(records: list[TrialRecord], head: Mapping[str, object]) -> dict[str, Any]:
    """Return totals, also by scheme, shape, traffic and size of network, and a fingerprint of all records."""
    return {
        **head,
        "machine": describe(),
        "fingerprint": fingerprint(records),
        "total": _together(records),
        "by_scheme": _by(records, lambda record: record.scheme),
        "by_shape": _by(records, lambda record: record.shape),
        "by_way": _by(records, lambda record: record.way),
        "by_switches": _by(records, lambda record: f"{record.switches:02d}"),
        "by_sizes": _by(records, lambda record: "one size" if len(record.sizes) == 1 else "several sizes"),
        "by_control": _by(records, lambda record: "with messages" if record.control else "without"),
        "tightest": [
            record.model_dump(mode="json")
            for record in sorted(records, key=lambda record: record.worst, reverse=True)[:5]
        ],
    }


def _by(records: Iterable[TrialRecord], key: Callable[[TrialRecord], str]) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[TrialRecord]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return {name: _together(groups[name]) for name in sorted(groups)}


def _together(records: list[TrialRecord]) -> dict[str, Any]:
    return {
        "trials": len(records),
        "flows": sum(record.flows for record in records),
        "packets": sum(record.packets for record in records),
        "passages": sum(record.passages for record in records),
        "hours": sum(record.duration_ns for record in records) / 3.6e12,
        "lost": sum(record.lost for record in records),
        "broken": sum(record.broken for record in records),
        "worst": max(record.worst for record in records),
    }
