"""Admission schemes by name, ready for a lab: the one list of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Final

from loko.admission import Admission, LokoAdmission, PluggedInScheme, SchemeConditions
from loko.admission.baselines import Baseline, Epsilon, baseline_admission, baseline_conditions
from loko.document import InputError
from loko.plug_in import SCHEMES, loaded, names_with, plug_ins, unusable, version_of
from loko.switch_model.allocation import (
    ALLOCATIONS,
    FIFTH_RATE,
    JOINT,
    OPTIMISED,
    PACKET_GRANULAR,
    WHOLE_PATHS,
    AllocationRule,
    Frontier,
    allocation_name,
    scheme_named,
)
from loko.switch_model.calculus import NOTHING, TokenBucket
from loko.switch_model.control_traffic import AS_PRINTED, NO_MESSAGES, ControlTraffic, describe
from loko.switch_model.device import has_shared_server
from loko.switch_model.mix import Mix
from loko.switch_model.scenario import Scenario, Unknown
from loko.topology.conditions import has_boards
from loko.topology.lab import Lab
from loko.topology.lab_allocation import Allocator, splits_for
from loko.units import NS_PER_MS

_FOR_FLOWS_THAT_STAY: Final = (JOINT, WHOLE_PATHS)
_REQUESTS_FOR_TARGETS: Final = 150
_FEW_SWITCHES: Final = 8
"""Up to this many switches get delay targets of their own, from several samples of requests."""
_SAMPLES_IF_FEW: Final = 4


class SchemeName(StrEnum):
    """Our admission schemes, as `--scheme` takes them. Other packages add more (docs/plug-ins.md)."""

    LOKO = "loko"
    PACKETS = "packets"
    PORTS = "ports"
    MIXED = "mixed"
    SILO = Baseline.SILO.value
    QJUMP = Baseline.QJUMP.value


_RESERVING: Final = frozenset({SchemeName.LOKO, SchemeName.PACKETS, SchemeName.MIXED})
_OURS: Final = tuple(name.value for name in SchemeName)
_ALLOCATIONS_OF: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        SchemeName.LOKO: ALLOCATIONS,
        SchemeName.PACKETS: (OPTIMISED, JOINT),
        SchemeName.PORTS: (WHOLE_PATHS,),
    }
)


@dataclass(frozen=True, kw_only=True)
class SchemeVariant:
    """An admission scheme in one of its variants."""

    scheme: str
    """One of `scheme_names`."""
    allocation: str | None = None
    """How much of a switch is given away: for Loko any of `ALLOCATIONS`, by default fifth-rate; for packets
    `optimised` chooses the delay targets, `joint` bounds flows from one switch together; for ports
    `whole-paths` bounds paths as a whole where the ports' bounds are too much. Baselines have none."""
    epsilon: Epsilon = Epsilon.PAPER
    """Only for QJump: its cumulated processing time."""

    def __post_init__(self) -> None:
        if self.scheme not in _OURS:
            scheme_name(self.scheme)
        known = _ALLOCATIONS_OF.get(self.scheme, ())
        if self.allocation is not None and self.allocation not in known:
            if self.allocation not in _FOR_FLOWS_THAT_STAY:
                allocation_name(self.allocation)
            raise InputError(
                f"scheme {self.scheme}: has no allocation '{self.allocation}'; leave it out"
                + (f" or give {' or '.join(known)}" if known else "")
            )

    @property
    def is_baseline(self) -> bool:
        """Whether it assumes switches that forward at line rate; where a CPU does, its guarantees break."""
        plugged_in = plugged_in_scheme(self.scheme)
        if plugged_in is not None:
            return bool(plugged_in.conditions.baseline)
        return self.scheme in {baseline.value for baseline in Baseline}

    @property
    def reserves_control(self) -> bool:
        """Whether it reserves for what a controller sends, and for what boards do by themselves."""
        is_plugged_in = plugged_in_scheme(self.scheme) is not None
        return not self.is_baseline if is_plugged_in else self.scheme in _RESERVING

    @property
    def supports_release(self) -> bool:
        """Whether flows may be released while others stay.

        Lemma 6 of docs/packet-granular.md and theorem 4 of docs/port-queues.md are for flows that stay.
        """
        if (plugged_in := plugged_in_scheme(self.scheme)) is not None:
            return plugged_in.supports_release
        return self.allocation not in _FOR_FLOWS_THAT_STAY

    @property
    def is_monotone(self) -> bool:
        """Whether every part of a set that fits is known to fit, also with flows that ask for less.

        What flows take of a switch then grows with their number, rates and bursts, whatever else is admitted.
        Bounds of flows together, and those that a solver finds, are not known to.
        """
        if (plugged_in := plugged_in_scheme(self.scheme)) is not None:
            return plugged_in.is_monotone
        return self.allocation not in _FOR_FLOWS_THAT_STAY

    @property
    def option(self) -> str:
        """The option that chose it, for messages."""
        return f"--allocation {self.allocation}" if self.allocation else f"--scheme {self.scheme}"

    @property
    def is_optimised(self) -> bool:
        """Whether it is optimised for an expected traffic mix."""
        return self.allocation == OPTIMISED


VARIANTS: Final[Mapping[str, SchemeVariant]] = MappingProxyType(
    {
        **{name: SchemeVariant(scheme=SchemeName.LOKO, allocation=name) for name in ALLOCATIONS},
        PACKET_GRANULAR: SchemeVariant(scheme=SchemeName.PACKETS),
        f"{PACKET_GRANULAR}-{JOINT}": SchemeVariant(scheme=SchemeName.PACKETS, allocation=JOINT),
        f"{PACKET_GRANULAR}-{OPTIMISED}": SchemeVariant(scheme=SchemeName.PACKETS, allocation=OPTIMISED),
        SchemeName.PORTS: SchemeVariant(scheme=SchemeName.PORTS),
        f"{SchemeName.PORTS}-{WHOLE_PATHS}": SchemeVariant(scheme=SchemeName.PORTS, allocation=WHOLE_PATHS),
        SchemeName.MIXED: SchemeVariant(scheme=SchemeName.MIXED),
        Baseline.SILO.value: SchemeVariant(scheme=SchemeName.SILO),
        Baseline.QJUMP.value: SchemeVariant(scheme=SchemeName.QJUMP),
        **{
            f"{Baseline.QJUMP.value}-{epsilon.value}": SchemeVariant(scheme=SchemeName.QJUMP, epsilon=epsilon)
            for epsilon in Epsilon
        },
    }
)
"""Every variant by its own name, as figures, attacks and `python -m loko.control` take them."""


def variant_named(name: str) -> SchemeVariant:
    """Return a variant by its name. Raises `InputError` if it is unknown."""
    if name in VARIANTS:
        return VARIANTS[name]
    others = scheme_names()[len(_OURS) :]
    if name in others:
        return SchemeVariant(scheme=name)
    raise InputError(f"scheme '{name}' is unknown (allowed: {', '.join([*VARIANTS, *others])})")


def scheme_names() -> tuple[str, ...]:
    """Return the names of all schemes, those of other packages at the end. Raises `InputError`."""
    names_with(VARIANTS, SCHEMES)  # which figures call by name, too
    return names_with(_OURS, SCHEMES)


def scheme_name(name: str) -> str:
    """Return the name if there is such a scheme. Raises `InputError` otherwise."""
    names = scheme_names()
    if name not in names:
        raise InputError(f"scheme '{name}' is unknown (allowed: {', '.join(names)})")
    return name


@cache
def plugged_in_scheme(name: str) -> PluggedInScheme | None:
    """Return the scheme of another package; None if it is one of ours. Raises `InputError`."""
    return None if name in _OURS else loaded(plug_ins(SCHEMES)[name], PluggedInScheme)


def scheme_versions(names: Collection[str]) -> dict[str, str]:
    """Return the versions of the packages that the schemes with these names come from; of ours, none."""
    of_others = (point for name, point in plug_ins(SCHEMES).items() if name in names)
    return {name: version for point in of_others for name, version in version_of(point).items()}


def default_scheme(lab: Lab) -> SchemeName:
    """Return the scheme for a lab if nobody says otherwise: what its switches are decides.

    `ports` where every switch has a queue for each port, `mixed` where only some have and all others forward
    by one server, else `loko`.
    """
    from loko.admission.port_queues import unfit  # noqa: PLC0415 - few labs have such switches

    devices = [switch.profile for switch in lab.switches.values()]
    others = [device for device in devices if unfit(device) is not None]
    if not others:
        return SchemeName.PORTS
    is_mixed = len(others) < len(devices) and all(map(has_shared_server, others))
    return SchemeName.MIXED if is_mixed else SchemeName.LOKO


def bounds_by_switch(lab: Lab, choice: SchemeVariant) -> Mapping[str, str] | None:
    """Return how each switch is bounded, by name, where a scheme takes each for what it is; else None."""
    if choice.scheme != SchemeName.MIXED:
        return None
    return {
        name: "one server for all ports" if has_shared_server(switch.profile) else "a queue for each port"
        for name, switch in lab.switches.items()
    }


def variant_of(
    lab: Lab, scheme: str, allocation: str | None, epsilon: Epsilon = Epsilon.PAPER
) -> SchemeVariant:
    """Return the chosen scheme; without an allocation, Loko takes the lab's."""
    if scheme == SchemeName.LOKO:
        allocation = allocation or lab.allocation
    return SchemeVariant(scheme=scheme, allocation=allocation, epsilon=epsilon)


def conditions_of(choice: SchemeVariant) -> SchemeConditions:
    """Return the conditions on which guarantees by a scheme hold, as its admission has them."""
    if (plugged_in := plugged_in_scheme(choice.scheme)) is not None:
        return plugged_in.conditions
    if choice.scheme == SchemeName.LOKO:
        return LokoAdmission.conditions
    if choice.scheme == SchemeName.PACKETS:
        from loko.admission.packets import JointAdmission, PacketAdmission  # noqa: PLC0415 - as in `admission_of`

        return (JointAdmission if choice.allocation == JOINT else PacketAdmission).conditions
    if choice.scheme == SchemeName.PORTS:
        from loko.admission.port_queues.conditions import (  # noqa: PLC0415 - as above
            CONDITIONS,
            WHOLE_PATH_CONDITIONS,
        )

        return WHOLE_PATH_CONDITIONS if choice.allocation == WHOLE_PATHS else CONDITIONS
    if choice.scheme == SchemeName.MIXED:
        from loko.admission.mixed.conditions import CONDITIONS as OF_MIXED  # noqa: PLC0415 - as above

        return OF_MIXED
    return baseline_conditions(Baseline(choice.scheme))


def takes_target(lab: Lab, choice: SchemeVariant) -> bool:
    """Return whether `admission_of` takes a delay target for this scheme and lab.

    Loko's own scheme takes one where no switch is a board. Their allocation is the paper's.
    """
    if choice.scheme == SchemeName.LOKO:
        return not choice.is_optimised and not has_boards(lab)
    return choice.scheme in {SchemeName.PACKETS, SchemeName.PORTS, SchemeName.MIXED}


def reserved_of(lab: Lab, choice: SchemeVariant, traffic: ControlTraffic) -> str:
    """Return what a scheme reserves of each switch beside flows, in words."""
    if choice.is_baseline:
        return "nothing: the scheme knows no control traffic"
    return describe(traffic) if has_boards(lab) else "nothing: its agent has a processor of its own"


def admission_of(
    lab: Lab,
    choice: SchemeVariant,
    scenario: Scenario,
    *,
    mix: Mix | None = None,
    traffic: ControlTraffic | None = NO_MESSAGES,
    control: TokenBucket = NOTHING,
    padding: int | None = None,
    target_ns: float | None = None,
    deadlines_ns: Mapping[str, float] = MappingProxyType({}),
    classes: int = 1,
    class_targets_ns: Mapping[int, float] = MappingProxyType({}),
) -> Admission:
    """Return an empty admission control for a lab.

    `mix` is the traffic mix for `optimised`, by default the lab's. `traffic` is the control traffic for which
    Loko and packets reserve CPU time, beside what the board does by itself. `AS_PRINTED` reserves neither; it
    is for replays of the paper, by Loko alone. `control` is the paper's token bucket of bytes, for Loko
    alone. Baselines and ports ignore both. `target_ns` is the delay target of each switch, for Loko and
    packets, or of each port, for ports. `deadlines_ns` are those of the flows to come, by id: `whole-paths`
    promises them. They are in one of so many traffic `classes`, whose delay targets are `class_targets_ns`
    (`loko.admission.class_targets`); `whole-paths` needs none.

    By default, padding entries fill the tables up to the planned number of entries, whatever flows there are.
    Where they do not, `padding` is the number of entries beside the flows' that no frame hits. Packets must
    know this: with few entries, frames follow each other faster.

    Raises `InputError` for choices that do not go together, or that leave nothing to flows.
    """
    entries = scenario.entries
    if classes > 1:
        refuse_one_class(lab, choice, f"{classes} traffic classes")
    if padding is not None and not isinstance(entries, Unknown) and padding >= entries:
        raise InputError(f"padding: {padding} of {entries} entries leave none to flows; plan fewer")
    if choice.scheme == SchemeName.LOKO:
        allocation = choice.allocation or FIFTH_RATE.name
        schemes = schemes_of(lab, allocation, scenario, mix=mix, traffic=traffic, control=control)
        allocator = Allocator(lab, scenario, traffic)
        if target_ns is not None:
            schemes = _within(target_ns, schemes, allocator.frontiers())
        return LokoAdmission(
            lab,
            allocator.allocations(schemes),
            control,
            padding=padding or 0,
            splits_of=splits_for(scenario, traffic),
        )
    if choice.scheme == SchemeName.PACKETS:
        if traffic is AS_PRINTED:
            raise _not_printed(choice)
        from loko.admission.packets import JointAdmission, PacketAdmission  # noqa: PLC0415 - with NumPy: who asks for it waits

        targets = None if target_ns is None else dict.fromkeys(lab.switches, target_ns)
        if choice.is_optimised:
            targets = _targets(
                lab,
                scenario,
                expected_mix(lab, mix),
                largest_ns=targets,
                traffic=traffic,
                padding=padding,
            )
        kind = JointAdmission if choice.allocation == JOINT else PacketAdmission
        return kind(lab, scenario, targets, traffic=traffic, padding=padding)
    if choice.scheme in {SchemeName.PORTS, SchemeName.MIXED}:
        return _port_admission(
            lab,
            choice,
            scenario,
            traffic=traffic,
            padding=padding,
            target_ns=target_ns,
            deadlines_ns=deadlines_ns,
            classes=classes,
            class_targets_ns=class_targets_ns,
        )
    if (plugged_in := plugged_in_scheme(choice.scheme)) is not None:
        admission = plugged_in.admission(lab, scenario, traffic=traffic, padding=padding)
        if admission.scheme != choice.scheme:
            point = plug_ins(SCHEMES)[choice.scheme]
            raise unusable(point, f"its admission calls the scheme '{admission.scheme}'")
        return admission
    return baseline_admission(Baseline(choice.scheme), lab, scenario, epsilon=choice.epsilon)


def has_classes(choice: SchemeVariant) -> bool:
    """Return whether a scheme knows traffic classes."""
    return choice.scheme in {SchemeName.PORTS, SchemeName.MIXED}


def refuse_one_class(lab: Lab, choice: SchemeVariant, asked: str) -> None:
    """Raise `InputError` if all flows of a lab share one class by a scheme; `asked` says what is asked for.

    Classes need switches that have a queue for each, and a scheme that knows them.
    """
    from loko.admission.port_queues import unfit  # noqa: PLC0415 - as above

    hindrances = {name: unfit(switch.profile) for name, switch in lab.switches.items()}
    name, why = next(((name, why) for name, why in hindrances.items() if why is not None), ("", None))
    if has_classes(choice) and (choice.scheme == SchemeName.PORTS or None in hindrances.values()):
        return
    error = f"{asked}: {choice.option} knows one class only; leave it out"
    better = default_scheme(lab)
    if has_classes(SchemeVariant(scheme=better)):
        raise InputError(f"{error}, or take --scheme {better}")
    profile = lab.switches[name].profile.name
    raise InputError(f"{error}, or replace {name} ({profile}), which has no classes: {why}")


def _not_printed(choice: SchemeVariant) -> InputError:
    return InputError(f"scheme {choice.scheme}: is not in the paper, so nothing of it can be as printed")


def _port_admission(
    lab: Lab,
    choice: SchemeVariant,
    scenario: Scenario,
    *,
    traffic: ControlTraffic | None,
    padding: int | None,
    target_ns: float | None,
    deadlines_ns: Mapping[str, float],
    classes: int,
    class_targets_ns: Mapping[int, float],
) -> Admission:
    if choice.scheme == SchemeName.MIXED:
        from loko.admission.mixed import MixedAdmission  # noqa: PLC0415 - as above

        if traffic is AS_PRINTED:
            raise _not_printed(choice)
        return MixedAdmission(
            lab,
            scenario,
            traffic=traffic,
            target_ns=target_ns,
            padding=padding,
            classes=classes,
            class_targets_ns=class_targets_ns,
        )
    from loko.admission.port_queues import PortAdmission  # noqa: PLC0415 - as above

    if choice.allocation == WHOLE_PATHS:
        from loko.admission.port_queues.whole_paths import WholePathAdmission  # noqa: PLC0415 - with a solver

        return WholePathAdmission(
            lab,
            scenario,
            target_ns=target_ns,
            padding=padding,
            deadlines_ns=deadlines_ns,
            classes=classes,  # without targets, since it promises deadlines
        )
    return PortAdmission(
        lab,
        scenario,
        target_ns=target_ns,
        padding=padding,
        classes=classes,
        class_targets_ns=class_targets_ns,
    )


def schemes_of(
    lab: Lab,
    allocation: str,
    scenario: Scenario,
    *,
    mix: Mix | None = None,
    traffic: ControlTraffic | None = NO_MESSAGES,
    control: TokenBucket = NOTHING,
) -> dict[str, AllocationRule]:
    """Return Loko's allocation rule of each switch, for the name of an allocation. See `admission_of`."""
    if allocation_name(allocation) != OPTIMISED:
        return dict.fromkeys(lab.switches, scheme_named(allocation))
    from loko.admission.optimised import optimised_splits  # noqa: PLC0415 - as above

    return optimised_splits(lab, scenario, expected_mix(lab, mix), traffic=traffic, control=control)


def _within(
    target_ns: float, rules: Mapping[str, AllocationRule], frontiers: Mapping[str, Frontier]
) -> dict[str, AllocationRule]:
    """Return the rules with bursts so small that no switch has a bound above the target.

    Raises `InputError` if a switch cannot forward a single frame in that time.
    """
    alike: dict[tuple[int, int], AllocationRule] = {}
    for name, rule in rules.items():
        splits = frontiers[name]
        key = id(rule), id(splits)
        if key not in alike:
            burst_bytes = splits.burst_within(target_ns)
            if burst_bytes < splits.frame_bytes:
                least_ms = splits.delay_ns(splits.frame_bytes) / NS_PER_MS
                raise InputError(
                    f"target {target_ns / NS_PER_MS:g} ms: a frame may take {least_ms:.4f} ms at {name};"
                    " choose more"
                )
            alike[key] = replace(rule, most_burst_bytes=min(burst_bytes, rule.most_burst_bytes))
    return {name: alike[id(rule), id(frontiers[name])] for name, rule in rules.items()}


def expected_mix(lab: Lab, mix: Mix | None) -> Mix:
    """Return the mix, or else the lab's. Raises `InputError` if there is neither."""
    chosen = mix or lab.mix
    if chosen is None:
        raise InputError(
            f"allocation '{OPTIMISED}': is chosen for an expected traffic mix; give --mix FILE, or `mix` in"
            f" {lab.path}"
        )
    return chosen


def _targets(
    lab: Lab,
    scenario: Scenario,
    mix: Mix,
    *,
    largest_ns: Mapping[str, float] | None,
    traffic: ControlTraffic,
    padding: int | None,
) -> dict[str, float]:
    from loko.admission.optimised import expected_requests, streams_of  # noqa: PLC0415 - as above
    from loko.admission.packets import optimised_targets  # noqa: PLC0415 - as above

    streams = streams_of(lab, mix)
    is_small = len(lab.switches) <= _FEW_SWITCHES
    samples = [
        expected_requests(streams, mix.requests or _REQUESTS_FOR_TARGETS, sample)
        for sample in range(_SAMPLES_IF_FEW if is_small else 1)
    ]
    stream_of = {flow.id: streams[number] for sample in samples for flow, number in sample}
    return optimised_targets(
        lab,
        scenario,
        [[flow for flow, _ in sample] for sample in samples],
        largest_ns=largest_ns,
        rounds=1 if is_small else 0,
        worth=lambda admitted: stream_of[admitted.flow.id].worth(admitted.guarantee_ns),
        traffic=traffic,
        padding=padding,
    )
