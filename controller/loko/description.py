"""A service curve and its allocations as plain values."""

from __future__ import annotations

from enum import Enum

from loko.allocation import SCHEMES, allocate
from loko.device import Profile
from loko.scenario import Case, Scenario
from loko.service import Processing, Rounding, service_curve


def describe_model(
    profile: Profile, scenario: Scenario, rounding: Rounding = Rounding.FLOOR
) -> dict[str, object]:
    """Service curve, buffer and every allocation of a device in a scenario, with all terms (sections 3 to 5).

    Raises `InputError` if the scenario does not fit the device.
    """
    service = service_curve(profile, scenario, rounding)
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
        "allocations": {
            name: {
                "max_rate_bps": allocation.max_rate_bps,
                "max_burst_bytes": allocation.max_burst_bytes,
                "delay_ns": allocation.delay_ns,
                "feasible": allocation.feasible,
                "reason": allocation.reason,
            }
            for name, allocation in ((name, allocate(service, scheme)) for name, scheme in SCHEMES.items())
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
