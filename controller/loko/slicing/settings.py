"""Converts a sliced port to the `schedulers` setting of the emulator's generic switch."""

from __future__ import annotations

from typing import Any

from loko.slicing.document import CodelDrops, HtbPort, LateDrops, Port, TrtcmPort

_ROOT = "root"


def scheduler_settings(port: Port) -> dict[str, Any]:
    """Return the settings of the port's scheduler. Queues are numbered from 0, in the document's order."""
    return _htb(port) if isinstance(port, HtbPort) else _trtcm(port)


def _htb(port: HtbPort) -> dict[str, Any]:
    root = {
        "name": _ROOT,
        "rate_bps": port.root_bps,
        "ceil_bps": port.root_bps,
        "burst_bytes": port.root_burst_bytes,
        "cburst_bytes": port.root_burst_bytes,
    }
    leaves = [
        {
            "name": f"{number}:{queue.name}",
            "parent": _ROOT,
            "queue": number,
            "rate_bps": queue.rate_bps,
            "ceil_bps": queue.ceiling_bps,
            "burst_bytes": queue.burst_bytes,
            "cburst_bytes": queue.ceiling_burst_bytes,
            "quantum_bytes": queue.turn_bytes,
            "priority": queue.priority,
            "limit_frames": queue.limit_frames,
            "drops": None if queue.drops is None else _drops(queue.drops),
        }
        for number, queue in enumerate(port.queues)
    ]
    return {
        "kind": "htb",
        "classes": [root, *leaves],
        "group_frames": port.dequeue.group_frames,
        "timer_ns": round(port.dequeue.timer_us * 1e3),
    }


def _drops(drops: LateDrops | CodelDrops) -> dict[str, Any]:
    if isinstance(drops, LateDrops):
        return {"kind": drops.kind, "after_ns": round(drops.after_us * 1e3)}
    return {
        "kind": drops.kind,
        "target_ns": round(drops.target_us * 1e3),
        "interval_ns": round(drops.interval_us * 1e3),
    }


def _trtcm(port: TrtcmPort) -> dict[str, Any]:
    policers = [
        {
            "queue": number,
            "cir_bps": queue.cir_bps,
            "cbs_bytes": queue.cbs_bytes,
            "eir_bps": queue.eir_bps,
            "ebs_bytes": queue.ebs_bytes,
        }
        for number, queue in enumerate(port.queues)
    ]
    return {
        "kind": "trtcm",
        "policers": policers,
        "group_frames": port.dequeue.group_frames,
        "poll_ns": round(port.dequeue.poll_us * 1e3),
    }
