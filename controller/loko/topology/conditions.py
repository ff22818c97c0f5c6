"""The conditions of a scheme: what must be true for its guarantees to hold.

Each scheme states its own in one `SchemeConditions` beside its code, and every admission has it as
`conditions`. All that shows conditions reads them there: plan, guarantee sheet, REST and documentation. Ids
are stable, so that they can be stored and compared; texts may be reworded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from loko.switch_model.device import Device, Profile
from loko.switch_model.margin import Margin
from loko.switch_model.quantity import numbers
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab, Switch


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of one plan or service: the values that conditions name."""

    lab: Lab
    reserved: str
    """Reservation of each switch, in words."""
    entries: Mapping[str, int]
    """By switch, the entries that its table is planned for."""
    padding: int | None = None
    """Padding entries, as for `loko.admission.schemes.admission_of`."""
    openflow: OpenFlow = OpenFlow.V1_0
    """OpenFlow version of the switches' sessions."""
    entry_per_flow: bool = True
    """Whether switches have an entry for each flow; without, hosts tag their frames."""
    margin: Margin | None = None
    """How much slower switches may be for the flows of the plan, where that is known."""


def _always(_terms: Terms) -> bool:
    return True


def _no_details(_terms: Terms) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One assumption. Its id and text are the same wherever it applies."""

    id: str
    """Stable, such as `no-pause`."""
    text: str
    """One or two sentences, without anything of a particular plan."""
    applies: Callable[[Terms], bool] = _always
    """Whether guarantees on these terms rest on it."""
    details: Callable[[Terms], tuple[str, ...]] = _no_details
    """Its meaning on these terms, such as numbers and devices. Each is a sentence."""


class StatedCondition(NamedTuple):
    """A condition as stated on the terms of one plan or service."""

    id: str
    text: str
    details: tuple[str, ...]

    def as_values(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {"id": self.id, "text": self.text, "details": list(self.details)}


@dataclass(frozen=True, kw_only=True)
class SchemeConditions:
    """All conditions of a scheme, in the order in which they are shown."""

    conditions: tuple[Condition, ...]
    baseline: str = ""
    """Of baselines, that they guarantee nothing here, and why; empty for schemes that do."""

    def stated(self, terms: Terms) -> tuple[StatedCondition, ...]:
        """Return the conditions that apply on these terms, with their details."""
        return tuple(
            StatedCondition(condition.id, condition.text, condition.details(terms))
            for condition in self.conditions
            if condition.applies(terms)
        )

    def mark(self) -> dict[str, str]:
        """Return what every answer with a guarantee carries, for JSON: nothing, but for a baseline."""
        return {"baseline": self.baseline} if self.baseline else {}

    def ids(self, terms: Terms) -> tuple[str, ...]:
        """Return the ids of the conditions that apply on these terms."""
        return tuple(condition.id for condition in self.conditions if condition.applies(terms))


def has_boards(lab: Lab) -> bool:
    """Whether a switch forwards and handles control messages by one CPU."""
    return any(isinstance(switch.profile, Profile) for switch in lab.switches.values())


def by_switches(lab: Lab, said: Callable[[Switch], str]) -> tuple[str, ...]:
    """Return what is said of each switch, once for all of which the same is said."""
    names: dict[str, list[str]] = {}
    for name, switch in lab.switches.items():
        names.setdefault(said(switch), []).append(name)
    if len(names) == 1:
        return tuple(f"Every switch: {text}." for text in names)
    return tuple(f"{', '.join(alike)}: {text}." for text, alike in names.items())


def _planned_entries(terms: Terms) -> tuple[str, ...]:
    planned = by_switches(terms.lab, lambda switch: f"planned for {terms.entries[switch.name]:,} entries")
    if not has_boards(terms.lab):
        return planned
    filled = (
        "Tables are filled up with entries that no frame hits."
        if terms.padding is None
        else f"Of these, {terms.padding} always stand there that no frame hits."
    )
    return (*planned, filled)


def _tolerances(terms: Terms) -> tuple[str, ...]:
    def said(switch: Switch) -> str:
        tolerance = switch.profile.tolerance
        return (
            f"its clock ± {tolerance.board_clock_ppm.value} ppm, hosts' clocks"
            f" ± {tolerance.sender_clock_ppm.value} ppm, a cable at most {tolerance.cable_ns.value} ns"
        )

    return by_switches(terms.lab, said)


def assumed(device: Device, uses: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the numbers of a profile that are assumptions, each with its value and range, in words.

    `uses` says whether a guarantee depends on the number with a key such as `pipeline.latency[0].latency_ns`.
    """
    return tuple(
        f"{key} = {number.value:,}"
        + ("" if number.range is None else f" ({number.range[0]:,} to {number.range[1]:,})")
        for key, number in numbers(device)
        if number.source == "assumption" and uses(key)
    )


def as_profiled(uses: Callable[[str, Device, Terms], bool]) -> Condition:
    """Return the condition that switches are as their profiles say; `uses` as for `assumed`."""

    def details(terms: Terms) -> tuple[str, ...]:
        def said(switch: Switch) -> str:
            device = switch.profile
            numbers = assumed(device, lambda key: uses(key, device, terms))
            return f"assumptions in the profile of {device.title}: {'; '.join(numbers) or 'none'}"

        return by_switches(terms.lab, said)

    return Condition(
        id="as-profiled",
        text="The switches are as their profiles say. The guarantees are computed from these, not measured on"
        " this network; this project has tested them on emulated switches only. Some numbers of a profile are"
        " assumptions.",
        details=details,
    )


_NOT_OF_FRAMES: Final = ("cpu.console.", "cpu.housekeeping.", "flow_control.")
"""Parts of a board's profile that no guarantee depends on: they happen only where conditions are broken."""


def used_of_one_server(key: str, _device: Device, terms: Terms) -> bool:
    """Return whether guarantees of a switch with one server depend on a number of its profile."""
    is_other_version = key.startswith("cpu.openflow13.") and terms.openflow is not OpenFlow.V1_3
    return not key.startswith(_NOT_OF_FRAMES) and not is_other_version


FLOWS_CONFORM: Final = Condition(
    id="flows-conform",
    text="Each host keeps to rate and burst of its flow, as its own clock counts them, and sends frames of"
    " the stated size only.",
)
TABLES_AS_PLANNED: Final = Condition(
    id="tables-as-planned",
    text="The tables are those that the controller of this project installs for these flows, and nobody else"
    " writes to them.",
    applies=lambda terms: terms.entry_per_flow,
    details=_planned_entries,
)
CLOCKS_AND_CABLES: Final = Condition(
    id="clocks-and-cables",
    text="Clocks and cables are within the limits of the switches' profiles.",
    details=_tolerances,
)


def _slower(lab: Lab, margin: Margin | None) -> tuple[str, ...]:
    return () if margin is None else (f"For these flows, {margin.describe(is_robust=lab.is_robust)}.",)


NO_SLOWER_THAN: Final = Condition(
    id="no-slower-than",
    text="No switch is slower than its profile says by more than the margin of these flows. The margin holds"
    " while none of them leaves and no other comes.",
    applies=lambda terms: terms.margin is not None,
    details=lambda terms: _slower(terms.lab, terms.margin),
)
ONLY_THESE_FLOWS: Final = Condition(
    id="only-these-flows",
    text="Nothing else is sent into the network. Hosts have static ARP entries.",
)
HOSTS_TAG_FRAMES: Final = Condition(
    id="hosts-tag-frames",
    text="Each host puts the tags of its flow's path in front of every frame, and the tables hold the entries"
    " for these tags alone.",
    applies=lambda terms: not terms.entry_per_flow,
)
FLOWS_STAY: Final = Condition(
    id="flows-stay",
    text="The flows stay as they are: the bounds do not cover flows that leave while others send.",
)
OPENFLOW_VERSION: Final = Condition(
    id="openflow-version",
    text="The switches' sessions with the controller speak the OpenFlow version of the plan.",
    applies=lambda terms: has_boards(terms.lab),
    details=lambda terms: (f"OpenFlow {terms.openflow.value}.",),
)
CONTROL_AS_RESERVED: Final = Condition(
    id="control-as-reserved",
    text="The controller sends no more than what is reserved, one message in a TCP segment.",
    applies=lambda terms: has_boards(terms.lab),
    details=lambda terms: (f"Reserved of each switch beside flows: {terms.reserved}.",),
)
HOUSEKEEPING_OFF: Final = Condition(
    id="housekeeping-off",
    text="The boards' housekeeping (OFChecks) is off.",
    applies=lambda terms: has_boards(terms.lab),
)


def of_one_server(*more: Condition) -> SchemeConditions:
    """Return the conditions of schemes for switches that forward for all ports by one server."""
    return SchemeConditions(conditions=(*_OF_ONE_SERVER, *more, *_COMMON))


_OF_ONE_SERVER: Final = (
    FLOWS_CONFORM,
    ONLY_THESE_FLOWS,
    TABLES_AS_PLANNED,
    OPENFLOW_VERSION,
    CONTROL_AS_RESERVED,
    HOUSEKEEPING_OFF,
)
_COMMON: Final = (CLOCKS_AND_CABLES, as_profiled(used_of_one_server), NO_SLOWER_THAN)
