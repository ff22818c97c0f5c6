"""What admission may use of every switch of a lab."""

from __future__ import annotations

from collections.abc import Mapping

from loko.allocation import Allocation, Frontier, Scheme, allocate, frontier
from loko.control_traffic import (
    AS_PRINTED,
    NO_INTERFERENCE,
    NO_MESSAGES,
    ControlTraffic,
    Interference,
    interference,
    ring_units,
)
from loko.device import Profile, deterministic, with_less_buffer
from loko.lab import Lab
from loko.scenario import Scenario
from loko.service import Service, service_curve


def allocations_of(
    lab: Lab,
    schemes: Scheme | Mapping[str, Scheme],
    scenario: Scenario,
    traffic: ControlTraffic | None = NO_MESSAGES,
) -> dict[str, Allocation]:
    """The allocation of every switch of a lab, by name; `schemes` is one for all, or one for each.

    What the controller may send to each switch is taken out, and so are the boards' own interruptions; with
    `AS_PRINTED` nothing is. Switches of the same profile and scheme share one. Raises `InputError` if a
    switch gives no worst case.
    """
    alike: dict[tuple[int, int], Allocation] = {}
    found = {}
    for name, switch in lab.switches.items():
        scheme = schemes if isinstance(schemes, Scheme) else schemes[name]
        kind = id(switch.profile), id(scheme)
        if kind not in alike:
            profile = deterministic(switch.profile)
            taken = _taken(profile, scenario, traffic)
            alike[kind] = allocate(service_curve(profile, scenario), scheme, taken)
            if lab.controller is not None and traffic is not AS_PRINTED and alike[kind].feasible:
                service = _beside_control(profile, scenario, traffic, alike[kind].delay_ns)
                alike[kind] = allocate(service, scheme, taken)
        found[name] = alike[kind]
    return found


def frontiers_of(
    lab: Lab, scenario: Scenario, traffic: ControlTraffic | None = NO_MESSAGES
) -> dict[str, Frontier]:
    """All splits of every switch: `allocations_of` grants each of them. Raises `InputError` as that."""
    alike: dict[int, Frontier] = {}
    for switch in lab.switches.values():
        kind = id(switch.profile)
        if kind not in alike:
            profile = deterministic(switch.profile)
            taken = _taken(profile, scenario, traffic)
            alike[kind] = frontier(service_curve(profile, scenario), taken)
            if lab.controller is not None and traffic is not AS_PRINTED:
                longest_ns = alike[kind].delay_ns(alike[kind].room_bytes)
                alike[kind] = frontier(_beside_control(profile, scenario, traffic, longest_ns), taken)
    return {name: alike[id(switch.profile)] for name, switch in lab.switches.items()}


def _taken(profile: Profile, scenario: Scenario, traffic: ControlTraffic | None) -> Interference:
    return NO_INTERFERENCE if traffic is AS_PRINTED else interference(profile, traffic, scenario.entries)


def _beside_control(
    profile: Profile, scenario: Scenario, traffic: ControlTraffic, delay_ns: float
) -> Service:
    """Without what the controller's frames take of the receive buffer. With less no frame waits longer."""
    units = ring_units(profile, traffic, scenario.entries, delay_ns=delay_ns)
    return service_curve(with_less_buffer(profile, units), scenario)
