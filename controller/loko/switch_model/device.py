"""A device's profile, read from `switch-emulator/profiles/NAME.toml`.

A `Device` is a profile of any kind. Loko's model is about one of them, the switch whose only CPU forwards and
does it deterministically: a `Profile`. Its costs are those of the model
p_CPU = base + per_byte l + visited entries + actions. The emulator's module reads and checks profiles, so
model and emulator agree on every key, default and rule; the classes here are views of its values.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from functools import cache, lru_cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import Field
from switch_emulator import Network, read_profile

from loko.document import PROFILES, InputError, check, find, read_text
from loko.plug_in import DEVICES, folder_of, plug_ins, refuse_ours, told_of_both, unusable, version_of
from loko.switch_model.generic_switch import GenericSwitch
from loko.switch_model.linux_switch import LinuxSwitch
from loko.switch_model.quantity import Count, Factor, Section, numbers
from loko.switch_model.tolerance import Tolerant


class IntegratedSwitch(Section):
    """The switch chip between the ports and the CPU."""

    cpu_port_tags: str
    """Whether a frame keeps its outermost VLAN tag on its way to the CPU (docs/quirks.md, open points)."""


class ActionCost(Section):
    """Cost of an action on a frame of length l: fixed + per_byte x max(l - offset, 0)."""

    offset_bytes: int

    def cost_ps(self, frame_bytes: int) -> int:
        """Cost of the action on a frame of l = `frame_bytes`."""
        return self.fixed_ps.value + self.per_byte_ps.value * max(frame_bytes - self.offset_bytes, 0)


class ActionCosts(Section):
    """The actions of Table 1, grouped by what the firmware does for them."""

    __pydantic_extra__: dict[str, ActionCost] = Field(init=False)  # type: ignore[assignment]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> ActionCost: ...  # type: ignore[override]


class OpenFlow13Cost(Section):
    """Costs of OpenFlow 1.3 where they differ: an entry costs its fields up to the first that fails.

    A field has a section of its own, with `passes_ps` and `fails_ps`.
    """

    __pydantic_extra__: dict[str, Count | Section] = Field(init=False)  # type: ignore[assignment]

    def field(self, name: str, *, dearest: bool = True) -> Section:
        """Return the cost of testing a field; for `transport_port`, the dearer or cheaper of TCP and UDP."""
        if name == "transport_port":
            ports, which = (self.field("tcp_port"), self.field("udp_port")), -1 if dearest else 0
            passes = sorted((port.passes_ps for port in ports), key=lambda cost: cost.value)
            fails = sorted((port.fails_ps for port in ports), key=lambda cost: cost.value)
            return Section.model_validate({"passes_ps": passes[which], "fails_ps": fails[which]})
        field_cost = getattr(self, name)
        assert isinstance(field_cost, Section)
        return field_cost


class Cpu(Section):
    """CPU time of a frame."""

    base_ps: Count
    per_byte_ps: Count
    loop_ps: Count
    capacity_factor: Factor
    entry: Section
    """An entry that the search visits: a base, and each field that is not a wildcard."""
    action: ActionCosts
    timers: Section
    """The IP stack's timers, the remaining interference of section 3.1."""
    control: Section
    """The controller's messages: interrupt + segment + each message, and each visited entry."""
    housekeeping: Section
    """The jobs that the unmodified firmware does every 500 ms in turn (section 2.2.2)."""
    console: Section | None = None
    """Without it the console costs nothing."""
    openflow13: OpenFlow13Cost | None = None
    """Without it the board speaks OpenFlow 1.0 only. """


class Profile(Tolerant):
    """All that model and emulator know of a device."""

    format: int
    name: str
    title: str
    measurement: dict[str, str | int] | None = None
    """How a measured profile came about (`loko bench all`)."""
    ports: Section
    integrated_switch: IntegratedSwitch
    flow_control: Section
    """Pause frames, and what the integrated switch does when it is paused (docs/overload.md)."""
    buffer: Section
    """The receive buffer of section 3.5: the frame in work, and units; each frame takes whole units."""
    table: Section
    cpu: Cpu

    def wire_ns(self, length_bytes: int) -> float:
        """Time that `length_bytes` take on a link."""
        return length_bytes * 8e9 / self.ports.link_rate_bps.value


Device = Profile | LinuxSwitch | GenericSwitch
"""A profile of any kind. All have a name, a title, a tolerance, `ports.count`, `ports.link_rate_bps` and
`table.entries`."""


def deterministic(device: Device) -> Profile:
    """Return the device if Loko can model it. Raises `InputError` if it gives no worst case."""
    if isinstance(device, Profile):
        return device
    if isinstance(device, GenericSwitch) and device.is_simple:
        raise InputError(
            f"profile '{device.name}': of a rate, a latency and a buffer only Loko's own scheme can tell a"
            " guarantee; take '--scheme loko', or a device such as zodiac-fx (docs/devices.md)"
        )
    if isinstance(device, GenericSwitch):
        raise InputError(
            f"profile '{device.name}': what it guarantees depends on the queues of its ports; plan with"
            " another '--scheme', or without (docs/mixed-labs.md), or describe them in a file and ask 'loko"
            " model slice FILE' (docs/slicing.md)"
        )
    raise InputError(
        f"profile '{device.name}': this device gives no worst case: its operating system can interrupt the"
        " forwarding at any time, and Loko needs deterministic processing (section 7);"
        " choose a device such as zodiac-fx"
    )


def settings_problem(profile: str, settings: Mapping[str, object]) -> tuple[str, str] | None:
    """Return why no emulated device of this profile has these settings, None if one can.

    The values are the key, empty if it takes several to be wrong, and the reason with what is allowed.
    """
    reason = _emulator_refusal(profile, settings)
    if reason is None:
        return None
    for key, value in settings.items():
        if _emulator_refusal(profile, {key: value}) == reason:
            told = reason.removeprefix(f"{key}: ")
            if names_neither := _NAMES_NEITHER.match(told):
                told = f"{value!r} is no such setting: {told[names_neither.end() :]}"
            return key, told
    return "", reason


_NAMES_NEITHER: Final = re.compile(r"(\w+Error|unexpected type): |(?=invalid |expected )")
"""How the emulator's reasons begin that name neither key nor value."""


def _emulator_refusal(profile: str, settings: Mapping[str, object]) -> str | None:
    """Return why the emulator refuses settings, None if it takes them."""
    try:
        Network(seed=0).add_board("switch", profile=profile, config=settings)
    except (TypeError, ValueError) as error:
        return re.sub(r'^(board "switch": )?(config[:,] )?', "", str(error))
    return None


def has_shared_server(device: Device) -> bool:
    """Whether one server forwards for all ports, and nothing else limits them: Loko's model of a switch."""
    return isinstance(device, Profile) or (isinstance(device, GenericSwitch) and device.is_simple)


def bounded(device: Device) -> Profile | GenericSwitch:
    """The device as one that has a service curve for all its ports. Raises `InputError` if it has none."""
    return device if isinstance(device, GenericSwitch) and device.is_simple else deterministic(device)


def has_lower_speeds(device: Device) -> bool:
    """Whether each port may run at less than the profile's rate, as auto-negotiation chooses it.

    The costs of other devices are known at one rate only, and a cut-through switch would have to store frames
    for a slower port.
    """
    return isinstance(device, GenericSwitch) and device.cut_through is None


def with_link_rate(device: GenericSwitch, rate_bps: int) -> GenericSwitch:
    """Return the device with ports of another rate; it is the same object if that is theirs already."""
    old = device.ports.link_rate_bps
    if rate_bps == old.value:
        return device
    ports = device.ports.model_copy(update={"link_rate_bps": old.model_copy(update={"value": rate_bps})})
    return device.model_copy(update={"ports": ports})


def with_less_buffer(profile: Profile, units: int) -> Profile:
    """Return the profile with `units` fewer units in the receive buffer; at least one is left."""
    left = profile.buffer.units.model_copy(update={"value": max(profile.buffer.units.value - units, 1)})
    return profile.model_copy(update={"buffer": profile.buffer.model_copy(update={"units": left})})


def with_buffers(profile: Profile, count: int) -> Profile:
    """Return the profile with `count` times the receive buffer."""
    buffer = profile.buffer
    times = {
        name: old.model_copy(update={"value": count * old.value})
        for name, old in (("packets", buffer.packets), ("units", buffer.units))
    }
    return profile.model_copy(update={"buffer": buffer.model_copy(update=times)})


def openflow_13(profile: Profile) -> OpenFlow13Cost:
    """Return the costs of OpenFlow 1.3. Raises `InputError` if the profile has none."""
    costs = profile.cpu.openflow13
    if costs is None:
        raise InputError(
            f"{profile.name}: has no costs of OpenFlow 1.3 (cpu.openflow13); ask for 1.0, or add them"
        )
    return costs


def load_profile(name_or_path: str | Path) -> Profile:
    """Load the profile of a device that Loko can model, by name (`zodiac-fx`) or by path.

    Raises `InputError` in one line.
    """
    return deterministic(load_device(name_or_path))


def load_device(name_or_path: str | Path) -> Device:
    """Load a profile of any kind by name or by path. Raises `InputError` in one line."""
    path, name = profile_file(name_or_path), str(name_or_path)
    other = _profiles_of_others().get(name)
    try:
        device = _read_device(path, path.stat().st_mtime_ns, path.stat().st_size)
    except InputError as error:
        if other is None:
            raise
        raise unusable(other.point, str(error)) from None
    if other is not None and device.name != name:
        raise unusable(other.point, f"{path}: name: is '{device.name}', but the file's is '{name}'")
    return device


def profile_file(name_or_path: str | Path) -> Path:
    """Return the path of a profile's file. Raises `InputError` in one line if there is none."""
    elsewhere = {name: other.file for name, other in _profiles_of_others().items()}
    return find(name_or_path, PROFILES, ".toml", "profile", elsewhere=elsewhere).resolve()


def profile_names() -> tuple[str, ...]:
    """Return the names of all profiles, those of other packages at the end. Raises `InputError`."""
    return (*_our_profiles(), *_profiles_of_others())


def profiles_in(point: EntryPoint) -> dict[str, Path]:
    """Return the profiles beside a plug-in's module, by name. Raises `InputError` if it has none."""
    files = {file.stem: file for file in sorted(folder_of(point).glob("*.toml"))}
    if not files:
        raise unusable(point, f"there is no profile beside {point.module}")
    return files


class _PluggedInProfile(NamedTuple):
    """A profile of another package."""

    file: Path
    point: EntryPoint


def _our_profiles() -> list[str]:
    return sorted(file.stem for file in PROFILES.glob("*.toml"))


@cache
def _profiles_of_others() -> Mapping[str, _PluggedInProfile]:
    """The profiles of other packages by name. Raises `InputError` if one has the name of another."""
    found: dict[str, _PluggedInProfile] = {}
    for point in plug_ins(DEVICES).values():
        for name, file in profiles_in(point).items():
            refuse_ours(name, _our_profiles(), point, DEVICES)
            if name in found:
                raise InputError(told_of_both(f"profile '{name}'", found[name].point, point))
            found[name] = _PluggedInProfile(file, point)
    return found


def device_versions(names: Collection[str]) -> dict[str, str]:
    """Return the versions of the packages that the profiles with these names come from; of ours, none."""
    of_others = (point for name, (_, point) in _profiles_of_others().items() if name in names)
    return {name: version for point in of_others for name, version in version_of(point).items()}


class OutsideRangeWarning(UserWarning):
    """A number of a profile lies outside the range that its source allows: it is used all the same."""


def profile_text(name_or_path: str | Path, section: str = "", /, **values: float) -> str:
    """Return the text of a profile with other values for the numbers that have these keys.

    A key names its number without the sections above it, and must be the only one of that name, in `section`
    and below if one is given. The rest of the text, notes and ranges included, stays as it is. Raises
    `InputError`.
    """
    text = profile_file(name_or_path).read_text(encoding="utf-8")
    return _with_values(str(name_or_path), text, section, tuple(values.items())) if values else text


@lru_cache
def _with_values(profile: str, text: str, section: str, values: tuple[tuple[str, float], ...]) -> str:
    """Return a profile's text with these values. Cached: each switch of a large lab asks for the same."""
    # Only this function needs the library, which would add to the start of each command.
    import tomlkit  # noqa: PLC0415

    document = tomlkit.parse(text)
    part: Any = document
    for name in section.split(".") if section else ():
        part = part.get(name, {})
    numbers = list(_written_numbers(part))
    for key, value in values:
        named = [number for name, number in numbers if name == key]
        if len(named) != 1:
            raise InputError(
                f"profile '{profile}': has {len(named)} numbers named {key}, so none is replaced; name one"
            )
        named[0]["value"] = value
    return tomlkit.dumps(document)


def _written_numbers(part: object) -> Iterator[tuple[str, MutableMapping[str, Any]]]:
    """Yield the numbers in a part of a profile's document, tables with a value, with their keys."""
    if isinstance(part, MutableMapping):
        for key, below in part.items():
            if isinstance(below, MutableMapping) and "value" in below:
                yield key, below
            else:
                yield from _written_numbers(below)
    elif isinstance(part, list):
        for below in part:
            yield from _written_numbers(below)


def parse_device(text: str, path: Path) -> Device:
    """Return the device of a profile's text; `path` names it in errors. Raises `InputError` in one line."""
    try:
        values = read_profile(text)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    return check(path, _KINDS[values.get("kind")], values)


@lru_cache
def _read_device(path: Path, _changed_ns: int, _bytes: int) -> Device:
    """The device in a file, which is read again only when it has changed."""
    device = parse_device(read_text(path), path)
    for key, number in numbers(device):
        if number.is_outside_range:
            warnings.warn(
                f"{path}: {key}: value {number.value} lies outside its range {list(number.range or ())};"
                " the source does not support it",
                OutsideRangeWarning,
                stacklevel=2,
            )
    return device


_KINDS: Final[dict[str | None, type[Device]]] = {
    None: Profile,
    "linux-switch": LinuxSwitch,
    "generic-switch": GenericSwitch,
}
