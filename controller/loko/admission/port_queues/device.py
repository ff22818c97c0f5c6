"""Guarantees of a switch chip's port to its highest queue, read from the parts of a profile.

The corrections to the switch of the books are those that `loko bench predictability` measures: the time
between checks of the queues (epsilon), and the room that a queue has left when others are full.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loko.document import InputError
from loko.switch_model.calculus import PortServer, RateLatency
from loko.switch_model.device import Device, has_shared_server, with_link_rate
from loko.switch_model.generic_switch import GenericSwitch, Knot, Pipeline, SharedBuffer, TableRule
from loko.switch_model.scenario import Unknown
from loko.topology.lab import Lab

BESIDE_BYTES: Final = 8 + 12
"""Of a frame on a wire: preamble and gap."""
PREAMBLE_BYTES: Final = 8
LARGEST_FRAME_BYTES: Final = 1522
"""The largest frame that may come beside the flows, with a tag."""
HIGHEST_CLASS: Final = 1
_MATCHES: Final[frozenset[str]] = frozenset({"five-tuple", "other"})
_ACTION: Final = "enqueue"


def unfit(device: Device) -> str | None:
    """Return why nothing can be promised about a device's ports, in one line; None if something can."""
    if not isinstance(device, GenericSwitch):
        return "it has no queues of its own for each port"
    return next((why for is_so, why in _hindrances(device) if is_so), None)


def _hindrances(device: GenericSwitch) -> Iterator[tuple[bool, str]]:
    """Yield all that keeps a switch from promising anything, and whether this one has it."""
    rule, agent, lookup = _rule(device), device.agent, device.lookup
    path = None if rule is None else rule.path
    shared = "so flows would share their queue with all other traffic"
    yield path == "refused", f"it refuses the action enqueue, {shared}"
    yield path == "software", "it forwards by such entries in software, which has no bound"
    yield device.priorities is None, f"it has no priority queues, {shared}"
    yield device.server is not None, "one server forwards for all ports, so no port has a rate of its own"
    frames = 0 if lookup is None else lookup.frames_per_s.value
    yield lookup is not None, f"it looks up {frames} frames/s for all ports together, not line rate"
    yield device.cut_through is not None, "it forwards before the whole frame is there"
    writer, settling = (None, None) if agent is None else (agent.writer, agent.settling)
    loses = "its table loses entries and lists them all the same, so nobody knows which flows it forwards"
    yield settling is not None, loses
    keeps = "its table loses the room of deleted entries, so nobody knows how many flows it holds"
    yield writer is not None and writer.keeps_deleted, keeps


def queue_of(device: Device, traffic_class: int = HIGHEST_CLASS) -> int | None:
    """Return the queue in which flows of a class wait; None if a device can promise nothing about its queues.

    Class 1 has the highest queue, the next class the one below it.
    """
    if unfit(device) is not None:
        return None
    assert isinstance(device, GenericSwitch)
    assert device.priorities is not None
    return device.priorities.queues.value - traffic_class


def table_entries(device: Device) -> int:
    """Return how many entries of flows a device's table holds."""
    table = device.table.entries.value
    rule = _rule(device) if isinstance(device, GenericSwitch) else None
    return table if rule is None or rule.entries is None else min(rule.entries.value, table)


def planned_entries(lab: Lab, entries: int | Unknown) -> dict[str, int]:
    """Return by switch how many entries its table is planned for; where `UNKNOWN`, all that it holds.

    Beside switches with one server, whose entries may cost time, chips are planned for all that they hold.
    Raises `InputError` for more than a table holds.
    """
    profiles = {name: switch.profile for name, switch in lab.switches.items()}
    is_mixed = len(set(map(has_shared_server, profiles.values()))) > 1
    planned = {}
    for name, device in profiles.items():
        table = table_entries(device)
        if isinstance(entries, Unknown) or (is_mixed and not has_shared_server(device)):
            planned[name] = table
        elif entries <= table:
            planned[name] = entries
        else:
            raise InputError(f"{name}: {entries} entries planned, its table holds {table}; plan fewer")
    return planned


def flow_rule(device: Device) -> int | None:
    """Return the place, in its table's rules, of the one that applies to the entries of flows; or None."""
    rules = device.table.rules if isinstance(device, GenericSwitch) else []
    return next((place for place, rule in enumerate(rules) if _applies(rule)), None)


@dataclass(frozen=True, kw_only=True)
class FlowQueue(ABC):
    """A queue of a switch in which flows wait, counted by the clock of the fastest sender."""

    server: PortServer
    room_bytes: float
    """Least room of the queue in bytes of frames with preamble and gap, however full others are."""

    @property
    def room_ns(self) -> float:
        """The bound of a queue whose room is used up: frames in it leave within this time."""
        return self.drain_ns(HIGHEST_CLASS)

    def drain_ns(self, traffic_class: int) -> float:
        """Return the time in which a full queue of a class drains.

        Below the highest class, the higher queues are full, too, and go on to take half of the rate.
        """
        waiting_bytes = traffic_class * self.room_bytes + self.server.blocking_bytes
        return self._before_ns + waiting_bytes * 8e9 / self._drain_rate_bps(traffic_class)

    def room_for_ns(self, delay_ns: float, traffic_class: int) -> float:
        """Return the room with which a full queue of a class drains in this time; see `drain_ns`."""
        waiting_bytes = (delay_ns - self._before_ns) * self._drain_rate_bps(traffic_class) / 8e9
        return (waiting_bytes - self.server.blocking_bytes) / traffic_class

    @property
    def lone_frame_ns(self) -> float:
        """The longest time of a frame that waits for no other flow: the least target."""
        alone_bytes = self.server.frame_bytes + self.server.blocking_bytes
        return self._before_ns + alone_bytes * 8e9 / self.server.service.rate_bps

    @property
    def _before_ns(self) -> float:
        """The longest time before the queue, with the latency of its server."""
        return self.server.before_ns + self.server.service.latency_ns

    def _drain_rate_bps(self, traffic_class: int) -> float:
        rate_bps = self.server.service.rate_bps
        return rate_bps if traffic_class == HIGHEST_CLASS else rate_bps / 2

    @abstractmethod
    def least_ns(self, frame_bytes: int) -> float:
        """Return the least time from a frame's arrival until it is at the next switch."""


@dataclass(frozen=True, kw_only=True)
class PortDevice(FlowQueue):
    """A queue of a switch's port, which is the same for each of its classes of flows."""

    profile: GenericSwitch
    """The device at its slowest, with the rate of the port's cable."""
    fastest: GenericSwitch
    """Server of the device at its fastest."""
    limit_bytes: float
    """Room of the queue with as much of a shared memory as it wants, in the same bytes."""

    def room_hint(self, needed_bytes: float) -> str:
        """Return how to give the queue this much room; empty if that is no matter of a shared memory."""
        buffer, name, needed = self.profile.buffer, self.profile.name, math.ceil(needed_bytes)
        if buffer is None or needed > self.limit_bytes:
            return ""
        queues = self.profile.queues
        if needed > (each := buffer.pool_bytes.value // queues):
            return f"{name} cannot reserve {needed:,} bytes for each of {queues} queues ({each:,} at most)"
        return f"reserve {needed:,} bytes for each queue ([buffer] reserved_bytes of {name})"

    def least_ns(self, frame_bytes: int) -> float:
        """Return the least time from a frame's arrival until it is at the next switch."""
        rate_bps = self.profile.ports.link_rate_bps.value
        least_ns = _least_ns(self.fastest, frame_bytes) + (PREAMBLE_BYTES + frame_bytes) * 8e9 / rate_bps
        return least_ns * self.profile.tolerance.shrink


def port_device(
    device: Device,
    *,
    frame_bytes: tuple[int, ...],
    cabled_ports: int,
    fastest: Device | None = None,
    rate_bps: int | None = None,
    classes: int = 1,
) -> PortDevice:
    """Return what a device's ports promise, for flows with frames of these sizes.

    Frames wait at `cabled_ports` ports, in a queue for each of the `classes` of flows, and in the lowest one.
    `device` is at its slowest, `fastest` at its fastest, by default the same. `rate_bps` is that of the
    port's cable, by default the device's. Raises `InputError` if the device can promise nothing.
    """
    fastest = fastest or device
    why = unfit(device)
    if why is not None:
        raise InputError(f"{device.name}: nothing can be promised: {why}")
    assert isinstance(device, GenericSwitch)
    assert isinstance(fastest, GenericSwitch)
    assert device.priorities is not None
    _refuse_classes(device, classes)
    if rate_bps is None:
        rate_bps = device.ports.link_rate_bps.value
    device = with_link_rate(device, rate_bps)
    assert device.priorities is not None
    stretch = device.tolerance.stretch
    most_ns, spread_ns = _latency_ns(device)
    shortest_ns = min(_least_ns(fastest, size) for size in (*frame_bytes, *_lengths(fastest)))
    least_ns = shortest_ns * device.tolerance.shrink
    before_ns = (most_ns + spread_ns) * stretch
    limit_bytes = room_bytes = float(device.priorities.limit_frames.value * (min(frame_bytes) + BESIDE_BYTES))
    if device.buffer is not None:
        others = cabled_ports * min(device.priorities.queues.value, classes + 1) - 1
        assert fastest.buffer is not None
        most_reserved = fastest.buffer.reserved_bytes
        reserved_bytes = 0 if most_reserved is None else device.queues * most_reserved.value
        for factor in (device.buffer.factor_percent, fastest.buffer.factor_percent):
            buffer = device.buffer.model_copy(update={"factor_percent": factor})
            worst_bytes = worst_room_bytes(buffer, others=others, reserved_bytes=reserved_bytes)
            room_bytes = min(room_bytes, float(worst_bytes))
    return PortDevice(
        profile=device,
        fastest=fastest,
        server=PortServer(
            service=RateLatency(
                rate_bps=rate_bps / stretch, latency_ns=device.priorities.check_ns.value * stretch
            ),
            before_ns=before_ns,
            spread_ns=before_ns - least_ns,
            line_rate_bps=rate_bps * stretch,
            blocking_bytes=LARGEST_FRAME_BYTES + BESIDE_BYTES,
            frame_bytes=float(max(frame_bytes) + BESIDE_BYTES),
        ),
        room_bytes=room_bytes,
        limit_bytes=limit_bytes,
    )


def most_classes(device: Device) -> int:
    """Return how many classes of flows a device's ports can have beside other traffic; 0 if none."""
    if unfit(device) is not None:
        return 0
    assert isinstance(device, GenericSwitch)
    assert device.priorities is not None
    queues, check_ns = device.priorities.queues.value, device.priorities.check_ns.value
    return HIGHEST_CLASS if check_ns else max(HIGHEST_CLASS, queues - 1)


def _refuse_classes(device: GenericSwitch, classes: int) -> None:
    """Raise `InputError` if a device has no queue, or no bound, for one of the classes below the highest."""
    assert device.priorities is not None
    most = most_classes(device)
    if classes <= most:
        return
    queues, check_ns = device.priorities.queues.value, device.priorities.check_ns.value
    if check_ns:
        raise InputError(
            f"{device.name}: chooses the queue to send from only every {check_ns} ns, so lower classes have"
            " no bound; leave --classes or traffic_class out"
        )
    raise InputError(
        f"{device.name}: {classes} classes of flows, but {queues} queues at each port, of which other"
        f" traffic has one; use {most} at most"
    )


def worst_room_bytes(buffer: SharedBuffer, *, others: int, reserved_bytes: int = 0) -> int:
    """Return what a queue can certainly hold while `others` queues hold whatever they may.

    A queue may hold f times what is free. Queues that fill one after another take more than queues that fill
    together: each takes f/(1 + f) of what the ones before have left (theorem 3 in docs/port-queues.md). The
    queues share what is left of the memory without `reserved_bytes`, which all queues have together.
    """
    factor = buffer.factor_percent.value / 100
    largest = LARGEST_FRAME_BYTES
    left_bytes = (buffer.pool_bytes.value - reserved_bytes + largest) / (1 + factor) ** others - largest
    shared_bytes = max(0, math.floor(factor / (1 + factor) * left_bytes) - 1)
    own_bytes = 0 if buffer.reserved_bytes is None else buffer.reserved_bytes.value
    return max(own_bytes, own_bytes - largest + shared_bytes) if own_bytes else shared_bytes


def _rule(device: GenericSwitch) -> TableRule | None:
    """Return the rule that applies to the entries of flows, if there is one."""
    place = flow_rule(device)
    return None if place is None else device.table.rules[place]


def _applies(rule: TableRule) -> bool:
    is_match = not rule.matches or bool(_MATCHES & set(rule.matches))
    return is_match and (not rule.actions or _ACTION in rule.actions)


def _pipeline(device: GenericSwitch) -> Pipeline:
    if device.pipeline is not None:
        return device.pipeline
    assert device.forwarding is not None, "a profile has either"
    latency = device.forwarding.latency_ns
    zero = latency.model_copy(update={"value": 0})
    knot = Knot(frame_bytes=64, latency_ns=latency)
    return Pipeline(latency=[knot], spread_ns=zero)


def _lengths(device: GenericSwitch) -> list[int]:
    return [knot.frame_bytes for knot in _pipeline(device).latency]


def _latency_ns(device: GenericSwitch) -> tuple[int, int]:
    """Return the longest least time of any length, and how much longer a frame may take."""
    pipeline = _pipeline(device)
    extra_ns = pipeline.spread_ns.value
    if pipeline.busy is not None:
        extra_ns += pipeline.busy.rise_ns.value
    if pipeline.tag_push is not None:  # of other traffic, behind which a frame of the same port must wait
        extra_ns += pipeline.tag_push.extra_ns.value
    return max(knot.latency_ns.value for knot in pipeline.latency), extra_ns


def _least_ns(device: GenericSwitch, frame_bytes: int) -> int:
    """Return the least time of a length: on straight lines between the lengths given, rounded down."""
    knots = _pipeline(device).latency
    if frame_bytes <= knots[0].frame_bytes:
        return knots[0].latency_ns.value
    for below, above in itertools.pairwise(knots):
        if frame_bytes < above.frame_bytes:
            way, whole = frame_bytes - below.frame_bytes, above.frame_bytes - below.frame_bytes
            return (below.latency_ns.value * (whole - way) + above.latency_ns.value * way) // whole
    return knots[-1].latency_ns.value
