"""``python -m benchmarks.evidence --ports``: the same for switches with queues for each port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.evidence.record import PortRecord, fingerprint
from benchmarks.machine import describe


def port_summary(records: list[PortRecord], head: Mapping[str, object]) -> dict[str, Any]:
    """Return totals, also by device and shape of network, and a fingerprint of all records."""
    groups = sorted({(record.profile, record.shape) for record in records})
    return {
        **head,
        "machine": describe(),
        "fingerprint": fingerprint(records),
        "total": _together(records),
        "groups": [
            {"device": device, "shape": shape}
            | _together([record for record in records if (record.profile, record.shape) == (device, shape)])
            for device, shape in groups
        ],
    }


def _together(records: list[PortRecord]) -> dict[str, Any]:
    return {
        "trials": len(records),
        "flows": sum(record.flows for record in records),
        "packets": sum(record.packets for record in records),
        "lost": sum(record.lost for record in records),
        "broken": sum(record.broken for record in records),
        "worst": max(record.worst for record in records),
    }
