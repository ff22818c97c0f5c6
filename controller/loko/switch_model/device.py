"""A device's profile, read from `switch-emulator/profiles/NAME.toml`.

A `Device` is a profile of any kind. Loko's model is about one of them, the switch whose only CPU forwards and
does it deterministically: a `Profile`. Its costs are those of the model
p_CPU = base + per_byte l + visited entries + actions.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, MutableMapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from loko.document import PROFILES, InputError, StrictModel, find, read
from loko.switch_model.generic_switch import GenericSwitch
from loko.switch_model.linux_switch import LinuxSwitch
from loko.switch_model.quantity import Count, Factor, Quantity
from loko.switch_model.tolerance import Tolerant


class FrontPorts(StrictModel):
    """The front ports and what the wire adds to a frame."""

    count: Count
    link_rate_bps: Count
    preamble_bytes: Count
    interframe_gap_bytes: Count
    tail_tag_bytes: Count


class IntegratedSwitch(StrictModel):
    """The switch chip between the ports and the CPU."""

    transit_ps: Count
    buffer_bytes: Count
    cpu_port_tags: Literal["kept", "removed"] = "kept"
    """Whether a frame keeps its outermost VLAN tag on its way to the CPU (docs/quirks.md, open points)."""


class FlowControl(StrictModel):
    """Pause frames, and what the integrated switch does when it is paused (docs/overload.md)."""

    pause_quanta: Count
    resume_units: Count
    held_frames: Count
    discard_permille: Count
    front_ports: Count


class Buffer(StrictModel):
    """The receive buffer of section 3.5: the frame in work, and units; each frame takes whole units."""

    packets: Count
    units: Count
    unit_bytes: Count


class FlowTableCapacity(StrictModel):
    """The flow table."""

    entries: Count


class EntryCost(StrictModel):
    """Cost of an entry that the search visits: a base, and each field that is not a wildcard."""

    base_ps: Count
    in_port_ps: Count
    dl_src_ps: Count
    dl_dst_ps: Count
    dl_vlan_ps: Count
    dl_vlan_pcp_ps: Count
    dl_type_ps: Count
    nw_tos_ps: Count
    nw_proto_ps: Count
    nw_src_ps: Count
    nw_dst_ps: Count
    tp_src_ps: Count
    tp_dst_ps: Count
    skipped_ps: Count
    after_hit_ps: Count


class ActionCost(StrictModel):
    """Cost of an action on a frame of length l: fixed + per_byte x max(l - offset, 0)."""

    fixed_ps: Count
    per_byte_ps: Count
    offset_bytes: int = Field(ge=0)

    def cost_ps(self, frame_bytes: int) -> int:
        """Cost of the action on a frame of l = `frame_bytes`."""
        return self.fixed_ps.value + self.per_byte_ps.value * max(frame_bytes - self.offset_bytes, 0)


class ActionCosts(StrictModel):
    """The actions of Table 1, grouped by what the firmware does for them."""

    output: ActionCost
    output_again: ActionCost
    drop: ActionCost
    set_dl: ActionCost
    set_checksummed: ActionCost
    set_vlan: ActionCost
    strip_vlan: ActionCost
    strip_vlan_untagged: ActionCost
    packet_in: ActionCost


class StackTimers(StrictModel):
    """The IP stack's timers, the remaining interference of section 3.1."""

    period_ns: Count
    cost_ps: Count


class ControlCost(StrictModel):
    """Cost of the controller's messages: interrupt + segment + each message, and each visited entry."""

    interrupt_ps: Count
    segment_ps: Count
    acknowledge_ps: Count
    acknowledgement_ps: Count
    send_ps: Count
    native_frame_ps: Count
    native_answer_ps: Count
    native_answer_per_byte_ps: Count
    echo_ps: Count
    features_ps: Count
    get_config_ps: Count
    set_config_ps: Count
    barrier_ps: Count
    vendor_ps: Count
    description_ps: Count
    table_statistics_ps: Count
    port_statistics_ps: Count
    port_statistics_port_ps: Count
    flow_statistics_ps: Count
    flow_statistics_entry_ps: Count
    flow_statistics_action_ps: Count
    packet_out_ps: Count
    packet_out_per_byte_ps: Count
    flow_add_ps: Count
    flow_action_ps: Count
    flow_refused_ps: Count
    flow_delete_ps: Count
    flow_modify_ps: Count
    delete_hit_ps: Count
    delete_miss_ps: Count
    delete_everything_hit_ps: Count
    delete_strict_hit_ps: Count
    delete_strict_miss_ps: Count
    modify_hit_ps: Count
    modify_miss_ps: Count
    modify_everything_hit_ps: Count
    modify_strict_hit_ps: Count
    modify_strict_miss_ps: Count


class Housekeeping(StrictModel):
    """The jobs that the unmodified firmware does every 500 ms in turn (section 2.2.2)."""

    port_counters_ps: Count
    link_status_ps: Count
    flow_timeouts_ps: Count


class ConsoleCost(StrictModel):
    """Cost of the serial console; it works between the frames."""

    character_ps: Count
    command_ps: Count
    output_byte_ps: Count
    register_read_ps: Count
    register_write_ps: Count
    eeprom_byte_ns: Count
    restart_ns: Count


class FieldCost(StrictModel):
    """Cost of testing a field of an entry in OpenFlow 1.3: if it passes, and if it fails."""

    passes_ps: Count
    fails_ps: Count


class OpenFlow13Cost(StrictModel):
    """Costs of OpenFlow 1.3 where they differ: an entry costs its fields up to the first that fails."""

    other_table_ps: Count
    skipped_ps: Count
    after_hit_ps: Count
    no_fields_ps: Count
    hit_ps: Count
    in_port: FieldCost
    eth_dst: FieldCost
    eth_src: FieldCost
    eth_masked: FieldCost
    eth_type: FieldCost
    vlan_vid: FieldCost
    vlan_vid_masked: FieldCost
    vlan_pcp: FieldCost
    ip_dscp: FieldCost
    ip_proto: FieldCost
    ipv4_src: FieldCost
    ipv4_dst: FieldCost
    ipv4_masked: FieldCost
    tcp_port: FieldCost
    udp_port: FieldCost
    mpls: FieldCost
    unsupported: FieldCost
    next_table_ps: Count
    meter_ps: Count
    group_ps: Count
    features_ps: Count
    role_ps: Count
    description_ps: Count
    multipart_ps: Count
    flow_statistics_entry_ps: Count
    aggregate_entry_ps: Count
    table_statistics_ps: Count
    table_statistics_entry_ps: Count
    table_features_ps: Count
    port_statistics_ps: Count
    port_statistics_port_ps: Count
    port_description_ps: Count
    flow_add_ps: Count
    replacement_scan_ps: Count
    flow_delete_ps: Count
    delete_hit_ps: Count
    delete_miss_ps: Count
    delete_by_port_ps: Count
    delete_strict_ps: Count
    delete_strict_priority_ps: Count
    modification_ps: Count
    refused_ps: Count

    def field(self, name: str, *, dearest: bool = True) -> FieldCost:
        """Return the cost of testing a field; for `transport_port`, the dearer or cheaper of TCP and UDP."""
        if name == "transport_port":
            ports, which = (self.tcp_port, self.udp_port), -1 if dearest else 0
            return FieldCost(
                passes_ps=sorted((port.passes_ps for port in ports), key=lambda cost: cost.value)[which],
                fails_ps=sorted((port.fails_ps for port in ports), key=lambda cost: cost.value)[which],
            )
        field_cost = getattr(self, name)
        assert isinstance(field_cost, FieldCost)
        return field_cost


class Cpu(StrictModel):
    """CPU time of a frame."""

    base_ps: Count
    per_byte_ps: Count
    loop_ps: Count
    capacity_factor: Factor
    entry: EntryCost
    action: ActionCosts
    timers: StackTimers
    control: ControlCost
    housekeeping: Housekeeping
    console: ConsoleCost | None = None
    """Without it the console costs nothing."""
    openflow13: OpenFlow13Cost | None = None
    """Without it the board speaks OpenFlow 1.0 only. """


class Measurement(StrictModel):
    """How a measured profile came about (`loko bench all`)."""

    device: str
    """The profile or inventory that was measured."""
    date: str
    """When the campaign began, as in `2026-11-21`."""
    commit: str
    """Version of the program that measured."""
    samples: int
    """Samples of each combination."""
    seed: int
    """Seed of the instants at which the bench sent."""


class Profile(Tolerant):
    """All that model and emulator know of a device."""

    format: Literal[1]
    name: str
    title: str
    measurement: Measurement | None = None
    ports: FrontPorts
    integrated_switch: IntegratedSwitch
    flow_control: FlowControl
    buffer: Buffer
    table: FlowTableCapacity
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
            f"profile '{device.name}': what it guarantees depends on the queues of its ports; describe them"
            " in a file and ask 'loko model slice FILE' (docs/slicing.md)"
        )
    raise InputError(
        f"profile '{device.name}': this device gives no worst case: its operating system can interrupt the"
        " forwarding at any time, and Loko needs deterministic processing (section 7);"
        " choose a device such as zodiac-fx"
    )


def bounded(device: Device) -> Profile | GenericSwitch:
    """The device as one that has a service curve for all its ports. Raises `InputError` if it has none."""
    return device if isinstance(device, GenericSwitch) and device.is_simple else deterministic(device)


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
    path = profile_file(name_or_path)
    return _read_device(path, path.stat().st_mtime_ns, path.stat().st_size)


def profile_file(name_or_path: str | Path) -> Path:
    """Return the path of a profile's file. Raises `InputError` in one line if there is none."""
    return find(name_or_path, PROFILES, ".toml", "profile").resolve()


class OutsideRangeWarning(UserWarning):
    """A number of a profile lies outside the range that its source allows: it is used all the same."""


class _ProfileHead(BaseModel):
    """The key that gives a profile's kind. Without it, the profile describes a Zodiac FX."""

    kind: Literal["linux-switch", "generic-switch"] | None = None


def profile_text(name_or_path: str | Path, section: str = "", /, **values: float) -> str:
    """Return the text of a profile with other values for the numbers that have these keys.

    A key names its number without the sections above it, and must be the only one of that name, in `section`
    and below if one is given. The rest of the text, notes and ranges included, stays as it is. Raises
    `InputError`.
    """
    text = find(name_or_path, PROFILES, ".toml", "profile").read_text(encoding="utf-8")
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


@lru_cache
def _read_device(path: Path, _changed_ns: int, _bytes: int) -> Device:
    """The device in a file, which is read again only when it has changed."""
    kind = read(path, _ProfileHead).kind
    device: Device
    if kind == "linux-switch":
        device = read(path, LinuxSwitch)
    elif kind == "generic-switch":
        device = read(path, GenericSwitch)
    else:
        device = read(path, Profile)
    for name, number in _numbers(device):
        if number.is_outside_range:
            warnings.warn(
                f"{path}: {name}: value {number.value} lies outside its range {list(number.range or ())};"
                " the source does not support it",
                OutsideRangeWarning,
                stacklevel=2,
            )
    return device


def _numbers(part: object, name: str = "") -> Iterator[tuple[str, Count | Factor]]:
    """The numbers of a profile, each by the names of the sections that lead to it."""
    if isinstance(part, Quantity):
        yield name, part
    elif isinstance(part, BaseModel):
        for key in type(part).model_fields:
            yield from _numbers(getattr(part, key), f"{name}.{key}" if name else key)
    elif isinstance(part, list):
        for place, member in enumerate(part):
            yield from _numbers(member, f"{name}.{place}")
