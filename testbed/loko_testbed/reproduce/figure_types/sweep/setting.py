"""Compute Loko's allocation for a sweep, and the senders at each of its points, without any replay."""

from __future__ import annotations

from dataclasses import dataclass, replace

from loko.document import InputError
from loko.switch_model.allocation import Allocation
from loko.switch_model.control_traffic import MessageRate, MessageType
from loko.switch_model.device import deterministic
from loko.switch_model.split import Split, echo_traffic, split
from loko.topology.lab import Lab
from loko.topology.network import Hop, RoutedFlow, shortest_path
from loko_testbed.reproduce.figure import lab_of
from loko_testbed.reproduce.figure_types.allocation import allocation_of
from loko_testbed.reproduce.figure_types.sweep.document import Sweep
from loko_testbed.simulation.senders import SenderSettings
from loko_testbed.simulation.traffic import Sender, flow_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSetting:
    """Loko's allocation and shares for a sweep. They hold for all points."""

    sweep: Sweep
    lab: Lab
    paths: tuple[tuple[Hop, ...], ...]
    """For each flow, the switches that count in its guarantee and hold its entries."""
    allocation: Allocation
    shares: Split
    guarantee_ns: float
    """End-to-end bound of every observed flow: D for each switch on its path."""
    floor_ns: float
    """Delay between the taps when every switch is idle (docs/architecture.md, delay terms)."""

    def admitted(self) -> tuple[RoutedFlow, ...]:
        """Return the flows as Loko admits them, with multipliers of 1."""
        return tuple(
            RoutedFlow(sender.as_flow(), self.paths[sender.flow]) for sender in senders(self, (1.0, 1.0))
        )


def _shares(sweep: Sweep, lab: Lab) -> tuple[Allocation, Split]:
    """Return the allocation and its split by equation 8, less what is reserved for control traffic."""
    reserved = sweep.reserved
    if reserved is not None and reserved.charge == "measured":
        control = {MessageType.ECHO: MessageRate(per_s=reserved.echoes_per_s)}
        allocation = allocation_of(sweep, lab, sweep.allocation, control)
        return allocation, split(allocation, ratio=sweep.split)
    allocation = allocation_of(sweep, lab, sweep.allocation)
    echoes = echo_traffic(reserved.echoes_per_s if reserved is not None else 0)
    return allocation, split(allocation, ratio=sweep.split, control=echoes)


def prepare(sweep: Sweep) -> SweepSetting:
    """Allocate, split by equation 8 and bound the delay. Raises `InputError` if it is not feasible."""
    lab = lab_of(sweep)
    allocation, shares = _shares(sweep, lab)
    if not shares.feasible:
        raise InputError(f"{sweep.name}: not feasible: {shares.reason}")
    paths = tuple(shortest_path(lab, flow.source, flow.destination) for flow in sweep.flows)
    hops = {len(path) for path in paths}
    if len(hops) != 1:
        raise InputError(f"{sweep.name}: flows cross different numbers of switches; split the figure")
    count = hops.pop()
    service = allocation.service
    profile = deterministic(service.profile)
    wire_ns = profile.wire_ns(profile.ports.preamble_bytes.value + sweep.frame_bytes)
    return SweepSetting(
        sweep=sweep,
        lab=lab,
        paths=paths,
        allocation=allocation,
        shares=shares,
        guarantee_ns=count * allocation.delay_ns,
        floor_ns=count * (wire_ns + service.processing_ns),
    )


def traffic(setting: SweepSetting, x: float, how: SenderSettings | None = None) -> tuple[Sender, ...]:
    """Return the senders at x (`senders` with the multipliers of that point)."""
    return senders(setting, setting.sweep.multipliers(x), how)


def senders(
    setting: SweepSetting, multipliers: tuple[float, float], how: SenderSettings | None = None
) -> tuple[Sender, ...]:
    """Return senders with rate and burst of equation 8 times the multipliers m_r and m_b.

    Flows without a share have no sender. `how` overrides the experiment's description of the senders.
    """
    sweep = setting.sweep
    rate_multiplier, burst_multiplier = multipliers
    how = sweep.senders if how is None else how
    senders = []
    for number, flow in enumerate(sweep.flows):
        bucket = setting.shares.first if flow.share == 1 else setting.shares.second
        if bucket.rate_bps == 0:
            continue
        conforming = how.conforming(
            number,
            flow_of(
                number,
                flow.source,
                flow.destination,
                rate_bps=rate_multiplier * bucket.rate_bps,
                burst_bytes=burst_multiplier * bucket.burst_bytes,
                frame_bytes=sweep.frame_bytes,
            ),
        )
        senders.append(replace(conforming, observed=flow.label in sweep.observed))
    return tuple(senders)
