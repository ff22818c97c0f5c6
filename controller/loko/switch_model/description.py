"""A service curve and its allocations as plain values."""

from __future__ import annotations

from enum import Enum

from loko.switch_model.allocation import ALLOCATION_RULES, allocate
from loko.switch_model.control_traffic import NO_INTERFERENCE, ControlTraffic, interference, message_ns
from loko.switch_model.device import Profile
from loko.switch_model.generic_switch import GenericSwitch
from loko.switch_model.scenario import Case, Scenario, Unknown
from loko.switch_model.service_curve import Processing, Rounding, service_curve


def describe_model(
    profile: Profile | GenericSwitch,
    scenario: Scenario,
    rounding: Rounding = Rounding.FLOOR,
    traffic: ControlTraffic | None = None,
) -> dict[str, object]:
    """Service curve, buffer and every allocation of a device in a scenario, with all terms (sections 3 to 5).

    With control traffic, the allocations are what it and the board's own interruptions leave.

    Raises `InputError` if the scenario does not fit the device.
    """
    service = service_curve(profile, scenario, rounding)
    taken = (
        NO_INTERFERENCE
        if traffic is None
        else interference(profile, traffic, scenario.entries, scenario.openflow)
    )
    control = taken.messages.in_bytes(service.rate_bps)
    entries = profile.table.entries.value if isinstance(scenario.entries, Unknown) else scenario.entries
    return {
        "profile": profile.name,
        "scenario": {name: _plain(value) for name, value in vars(scenario).items()},
        "rate_bps": service.rate_bps,
        "latency_ns": service.curve.latency_ns,
        "processing_ns": service.processing_ns,
        "terms": [{"name": term.name, "value_ns": term.value_ns} for term in service.terms],
        "rate_set_by": _processing(service.slowest),
        "latency_set_by": _processing(service.longest),
        "capacity_bytes": service.capacity_bytes,
        "tolerance": {name: value.value for name, value in profile.tolerance},
        "control": {
            "rate_bps": control.rate_bps,
            "burst_bytes": control.burst_bytes,
            "reserved": traffic is not None,
            "share": taken.share,
            "messages": [
                {
                    "kind": message.value,
                    "per_s": rate.per_s,
                    "burst": rate.burst,
                    "cost_ns": 0.0
                    if isinstance(profile, GenericSwitch)
                    else message_ns(profile, message, entries, scenario.openflow),
                }
                for message, rate in (traffic or {}).items()
            ],
        },
        "allocations": {
            name: {
                "max_rate_bps": allocation.max_rate_bps,
                "max_burst_bytes": allocation.max_burst_bytes,
                "delay_ns": allocation.delay_ns,
                "feasible": allocation.feasible,
                "reason": allocation.reason,
            }
            for name, allocation in (
                (name, allocate(service, scheme, taken)) for name, scheme in ALLOCATION_RULES.items()
            )
        },
    }


def _processing(result: Processing) -> dict[str, object]:
    return {
        "case": _case(result.case),
        "cpu_ns": result.cpu_ns,
        "switch_ns": result.switch_ns,
        "sequential_throughput_bps": result.sequential_throughput_bps,
        "throughput_bps": result.throughput_bps,
    }


def _case(case: Case) -> dict[str, object]:
    return {name: _plain(value) for name, value in vars(case).items()}


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value
