"""A schedule as a document: what `loko schedule --json` prints, and what others read."""

from __future__ import annotations

from typing import Any

from loko.schedule.lab_schedule import LabSchedule, ScheduledFlow
from loko.units import NS_PER_US


def values_of(result: LabSchedule, seconds: float) -> dict[str, Any]:
    """Return a schedule as plain values, for JSON; `seconds` is how long it took."""
    timing, solution = result.timing, result.solution
    return {
        "lab": result.lab.name,
        "scheme": result.scheme.value,
        "exclusive": result.exclusive.value,
        "slots": result.slots,
        "base_period_us": timing.base_period_ns / NS_PER_US,
        "slot_us": timing.slot_ns / NS_PER_US,
        "guard_us": timing.guard_ns / NS_PER_US,
        "scheduled": [flow_values(scheduled) for scheduled in result.scheduled],
        "unscheduled": [flow.id for flow in result.unscheduled],
        "rate_limited_flows": [scheduled.timed.id for scheduled in result.rate_limited_flows],
        "optimal": solution.is_optimal,
        "bound": solution.bound,
        "bound_because": solution.why,
        "gap_percent": round(solution.gap_percent, 3),
        "table_entries": result.table_entries,
        "changes_per_s": result.changes_per_s,
        "openflow": result.openflow.value,
        "entries": {
            name: [
                {
                    "priority": entry.priority,
                    "nw_src": str(entry.match.nw_src),
                    "nw_dst": str(entry.match.nw_dst),
                    "tp_src": entry.match.tp_src,
                    "tp_dst": entry.match.tp_dst,
                    "output_port": entry.output_port,
                    "dl_type": entry.match.dl_type,
                    "nw_proto": entry.match.nw_proto,
                }
                for entry in table
            ]
            for name, table in result.entries.items()
        },
        "seconds": round(seconds, 3),
    }


def flow_values(scheduled: ScheduledFlow) -> dict[str, Any]:
    """Return one flow of a schedule as plain values, for JSON."""
    return {
        "id": scheduled.timed.id,
        "source": scheduled.timed.source,
        "destination": scheduled.timed.destination,
        "udp_source": scheduled.timed.udp_source,
        "udp_destination": scheduled.timed.udp_destination,
        "frame_bytes": scheduled.timed.frame_bytes,
        "slot": scheduled.slot,
        "path": [hop.switch for hop in scheduled.path],
        "ports": [hop.output_port for hop in scheduled.path],
        "send": {
            "host": scheduled.timed.source,
            "offset_us": scheduled.offset_ns / NS_PER_US,
            "period_us": scheduled.every_ns / NS_PER_US,
        },
        "guarantee_us": round(scheduled.bound_ns / NS_PER_US, 3),
    }
