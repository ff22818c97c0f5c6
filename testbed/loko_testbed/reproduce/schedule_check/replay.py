"""Tries to refute a schedule in the simulator: finds frames lost, late, or under way in the next slot."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loko.control.entries import FlowEntry, five_tuple_entry, padding_entries
from loko.document import InputError
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko_testbed.reproduce.schedule_check.document import ScheduleDocument, ScheduledSlot, WantedFlow
from loko_testbed.simulation.runner import RunError
from loko_testbed.simulation.traffic import Releases, Sender
from loko_testbed.simulation.virtual import PoweredLab, lab_network

_PRIORITY: Final = 100
_DRAIN_NS: Final = 100_000_000


class ScheduleReplay(NamedTuple):
    """Result of a replay of a schedule."""

    packets: int
    refutations: list[str]
    worst_ns: dict[str, int]
    """By flow, the longest delay, from its first bit at the source to its last at the destination."""


def replay(
    lab: Lab, flows: Sequence[WantedFlow], schedule: ScheduleDocument, *, cycles: int, seed: int
) -> ScheduleReplay:
    """Carry out a schedule for so many base periods; hosts are as far off their slots as the guard allows.

    Sessions are of the schedule's OpenFlow version. Tables are as large as planned: the rest of their entries
    are of no flow. Raises `InputError` for flows or
    tables that the emulator does not take, `RunError` if a board refuses its table.
    """
    wanted = {flow.id: flow for flow in flows}
    sent = [flow for flow in schedule.scheduled if flow.id in wanted]
    if not sent:
        return ScheduleReplay(packets=0, refutations=[], worst_ns={})
    chance = np.random.default_rng(seed)
    try:
        network = lab_network(lab, _tables(lab, schedule), seed=seed, openflow=schedule.openflow)
        powered = PoweredLab(lab, network, seed)
        planned: list[NDArray[np.int64]] = []
        traffic: list[Sender] = []
        for number, flow in enumerate(sent):
            due_ns = _due_ns(flow, schedule, cycles)
            off_ns = chance.choice([-1, 0, 1], due_ns.size) * round(schedule.guard_us * 1e3)
            sends = Releases(instants_ns=due_ns + off_ns)
            traffic.append(Sender.of(number, _flow(wanted[flow.id]), sends))
            planned.append(due_ns)
        duration_ns = round((cycles + 2) * schedule.base_period_us * 1e3)
        records = powered.run(traffic, duration_ns=duration_ns, drain_ns=_DRAIN_NS)
    except (KeyError, ValueError) as error:
        raise InputError(f"the emulator does not accept the schedule: {error}") from None
    if records.events:
        raise RunError(records.events[0])
    refutations: list[str] = []
    worst_ns: dict[str, int] = {}
    for number, flow in enumerate(sent):
        mine = records.flow == number
        order = np.argsort(records.sequence[mine], kind="stable")
        sent_ns, received_ns = records.sent_ns[mine][order], records.received_ns[mine][order]
        refutations += _of_flow(flow, schedule, planned[number], sent_ns=sent_ns, received_ns=received_ns)
        arrived = received_ns >= 0
        if arrived.any():
            worst_ns[flow.id] = int((received_ns - sent_ns)[arrived].max())
    return ScheduleReplay(packets=int(records.flow.size), refutations=refutations, worst_ns=worst_ns)


def _of_flow(
    slot: ScheduledSlot,
    schedule: ScheduleDocument,
    due_ns: NDArray[np.int64],
    *,
    sent_ns: NDArray[np.int64],
    received_ns: NDArray[np.int64],
) -> list[str]:
    instants = []
    if sent_ns.size != due_ns.size:
        return [f"{slot.id}: {due_ns.size} frames were due, {sent_ns.size} were sent"]
    lost = int((received_ns < 0).sum())
    if lost:
        instants.append(f"{slot.id}: {lost} of {sent_ns.size} frames did not arrive")
    arrived = received_ns >= 0
    delay_ns = (received_ns - sent_ns)[arrived]
    late = int((delay_ns > slot.guarantee_us * 1e3).sum())
    if late:
        instants.append(
            f"{slot.id}: {late} frames took longer than its {slot.guarantee_us:g} us, up to"
            f" {delay_ns.max() / 1e3:g} us"
        )
    over_ns = received_ns[arrived] - due_ns[arrived] - (schedule.slot_us - schedule.guard_us) * 1e3
    if (over_ns > 1).any():
        instants.append(
            f"{slot.id}: {int((over_ns > 1).sum())} frames were still under way when the next slot could"
            f" begin, up to {over_ns.max() / 1e3:g} us after that"
        )
    return instants


def _due_ns(slot: ScheduledSlot, schedule: ScheduleDocument, cycles: int) -> NDArray[np.int64]:
    """When its slots begin, from the second base period on."""
    base_ns, period_ns = round(schedule.base_period_us * 1e3), round(slot.send.period_us * 1e3)
    count = max(1, cycles * base_ns // max(period_ns, 1))
    return base_ns + round(slot.send.offset_us * 1e3) + np.arange(count, dtype=np.int64) * period_ns


def _tables(lab: Lab, schedule: ScheduleDocument) -> dict[str, list[FlowEntry]]:
    tables = {}
    for name in lab.switches:
        own = [
            five_tuple_entry(
                priority=_PRIORITY,
                nw_src=IPv4Address(entry.nw_src),
                nw_dst=IPv4Address(entry.nw_dst),
                tp_src=entry.tp_src,
                tp_dst=entry.tp_dst,
                output_port=entry.output_port,
            )
            for entry in schedule.entries.get(name, [])
        ]
        tables[name] = [*padding_entries(lab, max(0, schedule.table_entries - len(own))), *own]
    return tables


def _flow(wanted: WantedFlow) -> Flow:
    return Flow(
        id=wanted.id,
        source=wanted.source,
        destination=wanted.destination,
        udp_source=wanted.udp_source,
        udp_destination=wanted.udp_destination,
        rate_bps=1.0,
        burst_bytes=float(wanted.frame_bytes),
        frame_bytes=wanted.frame_bytes,
    )
