"""A device's profile, read from `switch-emulator/profiles/NAME.toml`.

Each number of a profile is a table `{ value, source, range, note }`, so that nobody has to guess where it
comes from. The costs are those of the model p_CPU = base + per_byte l + visited entries + actions.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from loko.document import PROFILES, Strict, find, read


def _as_tuple(pair: object) -> object:
    return tuple(pair) if isinstance(pair, list) else pair


Source = Literal["paper", "fit", "count", "datasheet", "assumption"]
"""Where a number comes from; the profile's head says what each word means."""


_Number = TypeVar("_Number", int, float)


class Quantity(Strict, Generic[_Number]):
    """A number with its source. The unit is in the name of the field that holds it."""

    value: _Number
    source: Source
    range: Annotated[tuple[_Number, _Number] | None, BeforeValidator(_as_tuple)] = None
    """Lowest and highest value that the source allows."""
    note: str = ""

    @model_validator(mode="after")
    def _lies_in_its_range(self) -> Self:
        if self.range is not None and not self.range[0] <= self.value <= self.range[1]:
            raise ValueError(f"value {self.value} lies outside its range {list(self.range)}")
        return self


Count = Quantity[int]
Factor = Quantity[float]


class Ports(Strict):
    """The front ports and what the wire adds to a frame."""

    count: Count
    link_rate_bps: Count
    preamble_bytes: Count
    interframe_gap_bytes: Count
    tail_tag_bytes: Count


class IntegratedSwitch(Strict):
    """The switch chip between the ports and the CPU."""

    transit_ps: Count
    buffer_bytes: Count


class Buffer(Strict):
    """The receive buffer of section 3.5: the frame in work, and units of which a frame needs whole ones."""

    packets: Count
    units: Count
    unit_bytes: Count


class Table(Strict):
    """The flow table."""

    entries: Count


class EntryCost(Strict):
    """What an entry costs that the search visits: a base and each field that is not a wildcard."""

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


class ActionCost(Strict):
    """fixed + per_byte x max(l - offset, 0)."""

    fixed_ps: Count
    per_byte_ps: Count
    offset_bytes: int = Field(ge=0)

    def cost_ps(self, frame_bytes: int) -> int:
        """Cost of the action on a frame of l = `frame_bytes`."""
        return self.fixed_ps.value + self.per_byte_ps.value * max(frame_bytes - self.offset_bytes, 0)


class ActionCosts(Strict):
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


class Timers(Strict):
    """The IP stack's timers, the remaining interference of section 3.1."""

    period_ns: Count
    cost_ps: Count


class ControlCost(Strict):
    """What messages of the controller cost: interrupt + segment + each message, and each visited entry."""

    interrupt_ps: Count
    segment_ps: Count
    acknowledge_ps: Count
    acknowledgement_ps: Count
    send_ps: Count
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


class Housekeeping(Strict):
    """The jobs that the unmodified firmware does every 500 ms in turn (section 2.2.2)."""

    port_counters_ps: Count
    link_status_ps: Count
    flow_timeouts_ps: Count


class ConsoleCost(Strict):
    """What the serial console costs; it works between the frames."""

    character_ps: Count
    command_ps: Count
    output_byte_ps: Count
    register_read_ps: Count
    register_write_ps: Count
    eeprom_byte_ns: Count
    restart_ns: Count


class Cpu(Strict):
    """What the CPU needs for a frame."""

    base_ps: Count
    per_byte_ps: Count
    loop_ps: Count
    capacity_factor: Factor
    entry: EntryCost
    action: ActionCosts
    timers: Timers
    control: ControlCost
    housekeeping: Housekeeping
    console: ConsoleCost | None = None
    """Without it the console costs nothing."""


class Profile(Strict):
    """All that model and emulator know of a device."""

    format: Literal[1]
    name: str
    title: str
    ports: Ports
    integrated_switch: IntegratedSwitch
    buffer: Buffer
    table: Table
    cpu: Cpu

    def wire_ns(self, length_bytes: int) -> float:
        """Time that `length_bytes` take on a link."""
        return length_bytes * 8e9 / self.ports.link_rate_bps.value


def load_profile(name_or_path: str | Path) -> Profile:
    """Load a profile by name (`zodiac-fx`) or by path. Raises `InputError` in one line."""
    return _read_profile(find(name_or_path, PROFILES, ".toml", "profile").resolve())


@lru_cache
def _read_profile(path: Path) -> Profile:
    return read(path, Profile)
