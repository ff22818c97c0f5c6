"""Views of the keeper's state as plain values, for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from loko.admission import Share, Terms
from loko.schedule.sources import Slotted, source_document
from loko.serve.delays import DelayBook
from loko.serve.keeper import FlowKeeper, Promise
from loko.serve.outcome import FlowState, Grants, Would
from loko.serve.slots import SlotGranting

_SENT: Final = ("id", "destination", "udp_source", "udp_destination", "frame_bytes")


@dataclass(frozen=True, kw_only=True)
class ServiceView:
    """What a page needs to know about how the lab is served."""

    grants: Grants
    options: Mapping[str, str]
    """The options that guarantees depend on."""
    needs_token: bool
    terms: Terms
    """Terms of the conditions."""
    measures: str | None
    """What measures the delays of flows, in words; None if nothing does."""


def service_values(keeper: FlowKeeper, view: ServiceView) -> dict[str, Any]:
    """The service as plain values."""
    return {
        "lab": keeper.lab.name,
        "title": keeper.lab.title,
        "scheme": keeper.granting.scheme,
        "grants": view.grants,
        "options": dict(view.options),
        "conditions": [condition.as_values() for condition in keeper.granting.conditions.stated(view.terms)],
        **keeper.granting.conditions.mark(),
        "needs_token": view.needs_token,
        "measures": view.measures,
    }


def flow_values(keeper: FlowKeeper, flow_id: str) -> dict[str, Any]:
    """A flow as plain values."""
    promise = keeper.promises[flow_id]
    promised_ns = promise.promised.guarantee_ns
    return {
        **promise.flow._asdict(),
        "state": promise.state.value,
        "waiting_for": sorted(promise.waiting),
        "broken": [
            {
                "cause": found.cause.value,
                "place": found.place,
                "text": found.text,
                "since_ms": keeper.utc_ms(found.since_ns),
            }
            for found in promise.breaks
        ],
        "deadline_ns": promise.promised.deadline_ns,
        "promised_ns": promised_ns if math.isfinite(promised_ns) else None,
        **_granted(keeper, promise),
    }


def _granted(keeper: FlowKeeper, promise: Promise) -> dict[str, Any]:
    if promise.state is FlowState.LOST:
        return {"guarantee_ns": None, "path": [], "turn": None}
    return keeper.granting.values(promise.grant)


def delay_values(keeper: FlowKeeper, delays: DelayBook) -> dict[str, Any]:
    """Measured delays by flow, as plain values."""
    mark = keeper.granting.conditions.mark()
    return {name: {**values, **mark} for name, values in delays.values().items()}


def health_values(keeper: FlowKeeper) -> dict[str, Any]:
    """Whether promised flows are delivered, as far as the service can see, as plain values."""
    late = [name for name, driver in keeper.drivers.items() if not driver.complete]
    broken = keeper.broken()
    granting = keeper.granting
    return {
        "healthy": not late and not broken,
        "scheme": granting.scheme,
        **granting.conditions.mark(),
        "late": late,
        "broken": {cause.value: count for cause, count in broken.items()},
    }


def schedule_values(keeper: FlowKeeper, slots: SlotGranting) -> dict[str, Any]:
    """The cycle of all hosts, and how full it is, as plain values."""
    standing = slots.standing
    timing = standing.timing
    return {
        "scheme": slots.scheme,
        "exclusive": standing.exclusive.value,
        "slots": standing.slots,
        "base_period_ns": timing.base_period_ns,
        "slot_ns": timing.slot_ns,
        "guard_ns": timing.guard_ns,
        "frame_bytes": list(standing.sizes),
        "flows": len(keeper.promises),
        "cost_at_most": standing.cost_at_most,
    }


def sends_values(keeper: FlowKeeper, slots: SlotGranting, host: str) -> dict[str, Any]:
    """What a host sends and when, as plain values: its flows that are in place."""
    timing = slots.standing.timing
    return {
        "host": host,
        "base_period_ns": timing.base_period_ns,
        "slot_ns": timing.slot_ns,
        "guard_ns": timing.guard_ns,
        "sends": [
            {
                **{name: getattr(promise.flow, name) for name in _SENT},
                **slots.sends(promise.grant),
            }
            for promise in _of_host(keeper, host)
        ],
    }


def source_text(keeper: FlowKeeper, slots: SlotGranting, host: str) -> str:
    """What a host sends and when, for its source."""
    sends = []
    for promise in _of_host(keeper, host):
        turn = slots.sends(promise.grant)
        sends.append(Slotted(promise.flow, turn["offset_ns"], turn["period_ns"]))
    return source_document(keeper.lab, host, slots.standing.timing.base_period_ns, sends)


def _of_host(keeper: FlowKeeper, host: str) -> list[Promise]:
    """The flows of a host that are in place."""
    promises = keeper.promises.values()
    return [promise for promise in promises if promise.flow.source == host and promise.is_in_place]


def switch_values(keeper: FlowKeeper, name: str) -> dict[str, Any]:
    """A switch as plain values: its connection, and its use against its allocation."""
    driver, usage = keeper.drivers[name], keeper.granting.usage(name)
    entries = {share.quantity: share for share in usage.shares}.get("entries")
    beyond = entries is not None and entries.used + len(driver.strangers) > entries.allowed
    return {
        "name": name,
        "datapath_id": f"{keeper.lab.switches[name].datapath_id:016x}",
        "state": driver.phase.name.lower(),
        "ready": driver.ready,
        "complete": driver.complete,
        "delay_ns": usage.delay_ns,
        **keeper.granting.conditions.mark(),
        "use": [{**_share(share), "fraction": share.fraction} for share in usage.shares],
        "strangers": list(driver.strangers),
        "beyond_plan": beyond,
        **switch_ports(keeper, name),
    }


def switch_ports(keeper: FlowKeeper, name: str) -> dict[str, list[int]]:
    """The ports of a switch that are not as the lab has them, as plain values."""
    links = sorted(keeper.drivers[name].links.items())
    return {
        "dead_ports": [port for port, is_up in links if not is_up and keeper.cables.at(name, port)],
        "stray_ports": [port for port, is_up in links if is_up and keeper.is_stray(name, port)],
    }


def _share(share: Share) -> Mapping[str, object]:
    return {name: getattr(share, name) for name in ("quantity", "used", "allowed", "unit")}


def would_values(would: Would) -> dict[str, Any]:
    """What a flow would get, as plain values."""
    switches = []
    for name, after in would.after.items():
        use = []
        for now, then in zip(would.before[name].shares, after.shares, strict=True):
            use.append({**_share(now), "would_use": then.used})
        switches.append({"name": name, "use": use})
    return {**would.values, "switches": switches}


def topology_values(keeper: FlowKeeper) -> dict[str, Any]:
    """Switches, hosts and cables as plain values."""
    lab = keeper.lab
    return {
        "lab": lab.name,
        "title": lab.title,
        "switches": [
            {"name": name, "profile": switch.profile.name, "ports": switch.profile.ports.count.value}
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
