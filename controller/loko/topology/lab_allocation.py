"""Limits of admission on every switch of a lab."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from loko.lazy_mapping import LazyMapping
from loko.switch_model.allocation import Allocation, AllocationRule, Frontier, allocate, frontier
from loko.switch_model.control_traffic import (
    AS_PRINTED,
    NO_INTERFERENCE,
    NO_MESSAGES,
    ControlTraffic,
    Interference,
    interference,
    ring_units,
)
from loko.switch_model.device import Profile, bounded, with_less_buffer, with_link_rate
from loko.switch_model.generic_switch import GenericSwitch
from loko.switch_model.scenario import Scenario
from loko.switch_model.service_curve import SwitchService, service_curve
from loko.topology.lab import Lab

SplitsOf = Callable[[Lab, Mapping[str, float]], Mapping[str, Frontier]]
"""Returns the splits of a lab's switches, by name, if frames wait no longer than so many ns at each."""


class Allocator:
    """Limits of admission on the switches of a lab, for one scheme after another.

    The service curves of the switches depend on no scheme: they are made once, and shared by switches of the
    same profile that frames of the same sizes can reach.
    """

    def __init__(
        self,
        lab: Lab,
        scenario: Scenario,
        traffic: ControlTraffic | None = NO_MESSAGES,
        *,
        switches: Iterable[str] | None = None,
    ) -> None:
        """Subtract the messages that the controller may send, and the boards' interruptions.

        With `AS_PRINTED` nothing is subtracted. `switches` are those whose limits are wanted, by default all.
        Raises `InputError` if one of them gives no worst case.
        """
        self._lab, self._scenario, self._traffic = lab, scenario, traffic
        self._alone: LazyMapping[str, tuple[Profile | GenericSwitch, Interference, SwitchService]] = (
            LazyMapping(self._without_messages)
        )
        self._beside: LazyMapping[tuple[str, int], SwitchService] = LazyMapping(self._with_less_buffer)
        first_of: dict[tuple[int, int, tuple[int, ...] | None], str] = {}
        self._like = {
            name: first_of.setdefault(
                (id(lab.switches[name].profile), lab.slowest_rate_bps(name), scenario.sizes_at.get(name)),
                name,
            )
            for name in (lab.switches if switches is None else switches)
        }
        """By switch, the first with the same profile, speed and frame sizes."""
        for name in first_of.values():
            _ = self._alone[name]

    def allocations(self, schemes: AllocationRule | Mapping[str, AllocationRule]) -> dict[str, Allocation]:
        """Of every switch, by name; `schemes` is one for all, or one for each.

        Switches of the same profile, frame sizes and scheme share one.
        """
        alike: dict[tuple[str, int], Allocation] = {}
        allocations = {}
        for name, like in self._like.items():
            scheme = schemes if isinstance(schemes, AllocationRule) else schemes[name]
            kind = like, id(scheme)
            if kind not in alike:
                _, taken, service = self._alone[like]
                alike[kind] = allocate(service, scheme, taken)
                if self._reserves_buffer and alike[kind].feasible:
                    alike[kind] = allocate(self._beside_control(like, alike[kind].delay_ns), scheme, taken)
            allocations[name] = alike[kind]
        return allocations

    def frontiers(self, delays_ns: Mapping[str, float] | None = None) -> dict[str, Frontier]:
        """All splits of every switch: `allocations` grants each of them.

        `delays_ns` has the longest that frames may wait at each switch, where that is known.
        """
        frontiers: dict[tuple[str, float | None], Frontier] = {}
        kinds = {
            name: (like, None if delays_ns is None else delays_ns[name]) for name, like in self._like.items()
        }
        for like, delay_ns in dict.fromkeys(kinds.values()):
            _, taken, service = self._alone[like]
            splits = frontier(service, taken)
            if self._reserves_buffer:
                longest_ns = splits.delay_ns(splits.room_bytes) if delay_ns is None else delay_ns
                splits = frontier(self._beside_control(like, longest_ns), taken)
            frontiers[like, delay_ns] = splits
        return {name: frontiers[kind] for name, kind in kinds.items()}

    @property
    def _reserves_buffer(self) -> bool:
        return self._lab.controller is not None and self._traffic is not AS_PRINTED

    def _without_messages(self, switch: str) -> tuple[Profile | GenericSwitch, Interference, SwitchService]:
        profile = bounded(self._lab.switches[switch].profile)
        if isinstance(profile, GenericSwitch):  # its bound counts every wire as one of the slowest
            profile = with_link_rate(profile, self._lab.slowest_rate_bps(switch))
        taken = (
            NO_INTERFERENCE
            if self._traffic is AS_PRINTED
            else interference(profile, self._traffic, self._scenario.entries, self._scenario.openflow)
        )
        return profile, taken, service_curve(profile, self._scenario.at(switch))

    def _beside_control(self, switch: str, delay_ns: float) -> SwitchService:
        """Without what messages take of the receive buffer. With less no frame waits longer."""
        assert self._traffic is not AS_PRINTED
        profile, _, service = self._alone[switch]
        if isinstance(profile, GenericSwitch):  # its messages take no room of the frames
            return service
        entries, openflow = self._scenario.entries, self._scenario.openflow
        units = ring_units(profile, self._traffic, entries, openflow, delay_ns=delay_ns)
        return self._beside[switch, units]

    def _with_less_buffer(self, of: tuple[str, int]) -> SwitchService:
        switch, units = of
        profile, _, _ = self._alone[switch]
        assert isinstance(profile, Profile)
        return service_curve(with_less_buffer(profile, units), self._scenario.at(switch))


def splits_for(scenario: Scenario, traffic: ControlTraffic | None) -> SplitsOf:
    """Return what gives the splits of other labs for this scenario and traffic (`Allocator.frontiers`)."""
    return lambda lab, delays_ns: Allocator(lab, scenario, traffic).frontiers(delays_ns)


def allocations_of(
    lab: Lab,
    schemes: AllocationRule | Mapping[str, AllocationRule],
    scenario: Scenario,
    traffic: ControlTraffic | None = NO_MESSAGES,
) -> dict[str, Allocation]:
    """As `Allocator.allocations`, for those who ask once."""
    return Allocator(lab, scenario, traffic).allocations(schemes)
