"""Compute Loko's allocation and shares, and the senders at each point of a sweep, without any replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from loko.document import InputError
from loko.switch_model.allocation import Allocation
from loko.switch_model.calculus import TokenBucket
from loko.switch_model.control_traffic import MessageRate, MessageType
from loko.switch_model.device import deterministic
from loko.switch_model.flow import Flow
from loko.switch_model.split import Split, echo_traffic, split
from loko.topology.lab import Lab
from loko.topology.network import Hop, RoutedFlow, shortest_path
from loko_testbed.reproduce.figure import Figure, lab_of
from loko_testbed.reproduce.figure_types.allocation import allocation_of
from loko_testbed.reproduce.figure_types.traffic.document import Sweep
from loko_testbed.reproduce.flow_figure import FlowEnds
from loko_testbed.simulation.senders import SenderSettings
from loko_testbed.simulation.traffic import Sender, flow_of, number_of


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


def share_of(shares: Split, ends: FlowEnds) -> TokenBucket:
    """Return the token bucket of a flow's share by equation 8."""
    return shares.first if ends.share == 1 else shares.second


def paths_of(figure: Figure, flows: Sequence[FlowEnds], lab: Lab) -> tuple[tuple[Hop, ...], ...]:
    """Return the paths of the flows. Raises `InputError` if they cross different numbers of switches."""
    paths = tuple(shortest_path(lab, flow.source, flow.destination) for flow in flows)
    if len(set(map(len, paths))) != 1:
        raise InputError(f"{figure.name}: flows cross different numbers of switches; split the figure")
    return paths


def flows_of(
    flows: Sequence[FlowEnds], bucket_of: Callable[[FlowEnds], TokenBucket], frame_bytes: int
) -> list[Flow]:
    """Return the flows with their buckets, numbered in order; those without a share are left out."""
    return [
        flow_of(
            number,
            ends.source,
            ends.destination,
            rate_bps=bucket.rate_bps,
            burst_bytes=bucket.burst_bytes,
            frame_bytes=frame_bytes,
        )
        for number, ends in enumerate(flows)
        if (bucket := bucket_of(ends)).rate_bps != 0
    ]


def prepare(sweep: Sweep) -> SweepSetting:
    """Allocate, split by equation 8 and bound the delay. Raises `InputError` if it is not feasible."""
    lab = lab_of(sweep)
    allocation, shares = _shares(sweep, lab)
    if not shares.feasible:
        raise InputError(f"{sweep.name}: not feasible: {shares.reason}")
    paths = paths_of(sweep, sweep.flows, lab)
    count = len(paths[0])
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

    def bucket_of(ends: FlowEnds) -> TokenBucket:
        share = share_of(setting.shares, ends)
        return TokenBucket(
            rate_bps=rate_multiplier * share.rate_bps, burst_bytes=burst_multiplier * share.burst_bytes
        )

    return tuple(
        replace(
            how.conforming(number_of(flow), flow),
            observed=f"{flow.source}->{flow.destination}" in sweep.observed,
        )
        for flow in flows_of(sweep.flows, bucket_of, sweep.frame_bytes)
    )
