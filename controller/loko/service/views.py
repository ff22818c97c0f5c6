"""Views of the flow manager's state as plain values, for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from loko.admission import ResourceShare, Terms
from loko.schedule.sources import ScheduledSend, source_document
from loko.service.breaks import Violation
from loko.service.delays import DelayStatistics
from loko.service.flow_manager import FlowManager, ManagedFlow
from loko.service.outcome import AdmissionMode, DryRun, FlowState
from loko.service.protected_admitter import ProtectedAdmitter
from loko.service.slots import SlotAdmitter
from loko.topology.lab import Lab
from loko.topology.layout import arrange_lab

_SENT: Final = ("id", "destination", "udp_source", "udp_destination", "frame_bytes")


@dataclass(frozen=True, kw_only=True)
class ServiceInfo:
    """The service's options as the page needs them."""

    grants: AdmissionMode
    options: Mapping[str, str]
    """The options that guarantees depend on."""
    needs_token: bool
    terms: Terms
    """Terms of the conditions."""
    measures: str | None
    """Instrument for the delays of flows, in words; None if there is none."""
    emulates: bool = False
    """Whether clients may cause faults."""


def service_values(manager: FlowManager, view: ServiceInfo) -> dict[str, Any]:
    """The service as plain values."""
    return {
        "lab": manager.lab.name,
        "title": manager.lab.title,
        "scheme": manager.admitter.scheme,
        "grants": view.grants,
        "options": dict(view.options),
        "conditions": [condition.as_values() for condition in manager.admitter.conditions.stated(view.terms)],
        **manager.admitter.conditions.mark(),
        "needs_token": view.needs_token,
        "measures": view.measures,
        "emulates": view.emulates,
    }


def flow_values(manager: FlowManager, flow_id: str) -> dict[str, Any]:
    """A flow as plain values."""
    managed = manager.flows[flow_id]
    promised_ns = managed.promised.guarantee_ns
    return {
        **managed.flow._asdict(),
        "state": managed.state.value,
        "waiting_for": sorted(managed.unconfirmed_switches),
        "broken": [_violation(manager, found) for found in managed.breaks],
        "deadline_ns": managed.promised.deadline_ns,
        "promised_ns": promised_ns if math.isfinite(promised_ns) else None,
        "reserved": _reserved(manager, managed),
        **_granted(manager, managed),
    }


def _violation(manager: FlowManager, found: Violation) -> dict[str, Any]:
    return {
        "cause": found.cause.value,
        "place": found.place,
        "text": found.text,
        "since_ms": manager.utc_ms(found.since_ns),
    }


def _reserved(manager: FlowManager, managed: ManagedFlow) -> dict[str, Any] | None:
    """The paths of a flow that survives failures, as plain values."""
    protected, flow_id = manager.protected, managed.flow.id
    reserved = None if protected is None else protected.reserved_paths(flow_id)
    if protected is None or reserved is None:
        return None
    second = reserved.second_copies
    return {
        "protection": reserved.protection.value,
        "on_backup": manager.is_on_backup(managed),
        "working": [hop.switch for hop in reserved.working],
        "backups": [
            {"failure": name, "path": [hop.switch for hop in path]} for name, path in reserved.backups.items()
        ],
        "second_copies": None
        if second is None
        else {
            "udp_source": second.udp_source,
            "path": [hop.switch for hop in second.path],
            "remembered_frames": protected.remembered_frames(flow_id),
        },
        "on_one_path": [_violation(manager, found) for found in managed.breaks.on_one_path],
    }


def protection_values(manager: FlowManager, protected: ProtectedAdmitter) -> dict[str, Any]:
    """Return which failures flows survive, and if they would survive the next one, as plain values."""
    uncovered = manager.uncovered()
    return {
        "failures": [failure.name for failure in protected.failures],
        "covered": not uncovered,
        "uncovered": list(uncovered),
        "on_backup": list(manager.on_backup),
        "on_one_path": list(manager.on_one_path),
        "in_two_rounds": list(manager.in_two_rounds),
        "returns": manager.returns.value,
    }


def _granted(manager: FlowManager, managed: ManagedFlow) -> dict[str, Any]:
    if managed.state is FlowState.LOST:
        return {"guarantee_ns": None, "path": [], "send_slot": None}
    return manager.admitter.values(managed.grant)


def delay_values(manager: FlowManager, delays: DelayStatistics) -> dict[str, Any]:
    """Measured delays by flow, as plain values."""
    mark = manager.admitter.conditions.mark()
    return {name: {**values, **mark} for name, values in delays.values().items()}


def health_values(manager: FlowManager) -> dict[str, Any]:
    """Whether promised flows are delivered, as far as the service can see, as plain values."""
    late = [name for name, driver in manager.drivers.items() if not driver.complete]
    broken = manager.broken()
    admitter = manager.admitter
    return {
        "healthy": not late and not broken,
        "scheme": admitter.scheme,
        **admitter.conditions.mark(),
        "late": late,
        "broken": {cause.value: count for cause, count in broken.items()},
    }


def schedule_values(manager: FlowManager, slots: SlotAdmitter) -> dict[str, Any]:
    """The cycle of all hosts, and how full it is, as plain values."""
    incremental = slots.incremental
    timing = incremental.timing
    return {
        "scheme": slots.scheme,
        "exclusive": incremental.exclusive.value,
        "slots": incremental.slots,
        "base_period_ns": timing.base_period_ns,
        "slot_ns": timing.slot_ns,
        "guard_ns": timing.guard_ns,
        "frame_bytes": list(incremental.sizes),
        "flows": len(manager.flows),
        "optimality_gap": incremental.optimality_gap,
    }


def sends_values(manager: FlowManager, slots: SlotAdmitter, host: str) -> dict[str, Any]:
    """Return the schedule of a host as plain values: its flows that are in place."""
    timing = slots.incremental.timing
    return {
        "host": host,
        "base_period_ns": timing.base_period_ns,
        "slot_ns": timing.slot_ns,
        "guard_ns": timing.guard_ns,
        "sends": [
            {
                **{name: getattr(managed.flow, name) for name in _SENT},
                **slots.sends(managed.grant),
            }
            for managed in _of_host(manager, host)
        ],
    }


def source_text(manager: FlowManager, slots: SlotAdmitter, host: str) -> str:
    """Return the schedule of a host for its source."""
    sends = []
    for managed in _of_host(manager, host):
        send_slot = slots.sends(managed.grant)
        sends.append(ScheduledSend(managed.flow, send_slot["offset_ns"], send_slot["period_ns"]))
    return source_document(manager.lab, host, slots.incremental.timing.base_period_ns, sends)


def _of_host(manager: FlowManager, host: str) -> list[ManagedFlow]:
    """The flows of a host that are in place."""
    promises = manager.flows.values()
    return [managed for managed in promises if managed.flow.source == host and managed.is_in_place]


def switch_values(manager: FlowManager, name: str) -> dict[str, Any]:
    """A switch as plain values: its connection, and its use against its allocation."""
    driver, usage = manager.drivers[name], manager.admitter.usage(name)
    entries = {share.quantity: share for share in usage.shares}.get("entries")
    exceeds = entries is not None and entries.used + len(driver.foreign_entries) > entries.allowed
    return {
        "name": name,
        "datapath_id": f"{manager.lab.switches[name].datapath_id:016x}",
        "state": driver.phase.name.lower(),
        "ready": driver.ready,
        "complete": driver.complete,
        "delay_ns": usage.delay_ns,
        **manager.admitter.conditions.mark(),
        "use": [{**_share(share), "fraction": share.fraction} for share in usage.shares],
        "foreign_entries": list(driver.foreign_entries),
        "exceeds_planned_entries": exceeds,
        **switch_ports(manager, name),
    }


def switch_ports(manager: FlowManager, name: str) -> dict[str, list[int]]:
    """The ports of a switch that are not as the lab has them, as plain values."""
    links = sorted(manager.drivers[name].links.items())
    return {
        "down_ports": [port for port, is_up in links if not is_up and manager.cables.at(name, port)],
        "unexpected_ports": [
            port for port, is_up in links if is_up and manager.is_unexpected_link(name, port)
        ],
    }


def _share(share: ResourceShare) -> Mapping[str, object]:
    return {name: getattr(share, name) for name in ("quantity", "used", "allowed", "unit")}


def would_values(would: DryRun) -> dict[str, Any]:
    """Return the answer to a dry run as plain values."""
    switches = []
    for name, after in would.after.items():
        used = {share.quantity: share.used for share in would.before[name].shares}
        # Shares name only what a flow uses.
        use = [
            {**_share(then._replace(used=used.get(then.quantity, 0.0))), "would_use": then.used}
            for then in after.shares
        ]
        switches.append({"name": name, "use": use})
    return {**would.values, "switches": switches}


def topology_values(lab: Lab) -> dict[str, Any]:
    """Switches, hosts and cables as plain values, and where a drawing has the switches."""
    wide, upright = arrange_lab(lab), arrange_lab(lab, upright=True)
    return {
        "lab": lab.name,
        "title": lab.title,
        "switches": [
            {
                "name": name,
                "profile": switch.profile.name,
                "ports": switch.profile.ports.count.value,
                "wide": wide[name]._asdict(),
                "upright": upright[name]._asdict(),
            }
            for name, switch in lab.switches.items()
        ],
        "hosts": [{"name": name, "mac": host.mac, "ip": str(host.ip)} for name, host in lab.hosts.items()],
        "links": [
            {
                "a": {"node": link.a.node, "port": link.a.port},
                "b": {"node": link.b.node, "port": link.b.port},
                "rate_bps": lab.rate_bps(link),
            }
            for link in lab.links
        ],
    }
