"""QJump: every host sends at most one packet in each network epoch (section 2.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import ClassVar, Final

from loko.admission import (
    ROUNDING,
    Admitted,
    AdmittedFlows,
    BarePath,
    Refusal,
    ResourceDemand,
    ResourceShare,
    SchemeConditions,
    Usage,
    suggest_on_path,
)
from loko.admission.baselines.bucket import BucketAdmission, BucketUse, SharedBucket
from loko.admission.baselines.conditions import QJUMP_CONDITIONS
from loko.document import InputError
from loko.exact_sum import ExactSum
from loko.switch_model.calculus import time_ns
from loko.switch_model.device import Profile
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import Scenario
from loko.switch_model.service_curve import service_curve
from loko.topology.lab import Lab
from loko.topology.network import Hop, longest_path

UNKNOWN_EPSILON_NS: Final = 4000.0
"""Epsilon of the QJump paper, for devices without a known processing time (section 2.3)."""
_SINGLE_VISITS: Final = "QJump's epsilon counts each switch once; take another path, or another scheme"


class Epsilon(Enum):
    """How to read the paper's cumulated processing time for two Zodiac FX in a row.

    The paper says 2 p_FX = 257 us in section 2.3, but p_FX = 257 us in section 6.
    """

    PAPER = "paper"
    """One p_FX, as the paper's number says."""
    CONSISTENT = "consistent"
    """p_FX for each switch between any pair of hosts, as the paper's words say."""


@dataclass(frozen=True, kw_only=True)
class QJump:
    """The parameters of a network and what they guarantee."""

    hosts: int
    """n, the number of hosts."""
    packet_bytes: int
    """P, the size of a packet."""
    rate_bps: float
    """R, the rate of every link."""
    epsilon_ns: float
    """Cumulated processing time."""
    stretch: float = 1.0
    """How much time the fastest sender's clock counts while the slowest counts 1
    (`loko.switch_model.tolerance`)."""

    @property
    def epoch_ns(self) -> float:
        """2 n P / R + epsilon: the network epoch, and the greatest latency, by the fastest sender's clock."""
        packets_ns = 2 * self.hosts * time_ns(size_bytes=self.packet_bytes, rate_bps=self.rate_bps)
        return self.stretch * (packets_ns + self.epsilon_ns)

    @property
    def host_rate_bps(self) -> float:
        """P / epoch: the rate that a host may send."""
        return self.packet_bytes * 8e9 / self.epoch_ns

    @classmethod
    def of(cls, lab: Lab, scenario: Scenario, *, frame_bytes: int, epsilon: Epsilon) -> QJump:
        """Return the parameters of a lab. Raises `InputError` if its links have several rates."""
        rates = {lab.rate_bps(link) for link in lab.links}
        if len(rates) != 1:
            raise InputError(f"{lab.path}: QJump needs links of one rate, not {sorted(rates)} bit/s")
        return cls(
            hosts=len(lab.hosts),
            packet_bytes=frame_bytes,
            rate_bps=rates.pop(),
            epsilon_ns=_epsilon_ns(lab, scenario, epsilon),
            stretch=max(switch.profile.tolerance.stretch for switch in lab.switches.values()),
        )


def _epsilon_ns(lab: Lab, scenario: Scenario, epsilon: Epsilon) -> float:
    profiles = {id(switch.profile): switch.profile for switch in lab.switches.values()}.values()
    known = [profile for profile in profiles if isinstance(profile, Profile)]
    if len(known) < len(profiles):
        return UNKNOWN_EPSILON_NS
    processing_ns = max(service_curve(profile, scenario).processing_ns for profile in known)
    if epsilon is Epsilon.PAPER:
        return processing_ns
    return longest_path(lab) * processing_ns


class QJumpAdmission(BucketAdmission):
    """QJump as admission control: together, the flows of a host keep to one packet per epoch."""

    conditions: ClassVar[SchemeConditions] = QJUMP_CONDITIONS

    def __init__(self, lab: Lab, parameters: QJump) -> None:
        """Start empty."""
        super().__init__(AdmittedFlows(lab, BarePath.prepare, single_visits=_SINGLE_VISITS))
        self._parameters = parameters
        self._senders = {
            name: SharedBucket(
                rate_bps=parameters.host_rate_bps,
                burst_bytes=float(parameters.packet_bytes),
                clock=self._clock,
            )
            for name in lab.hosts
        }

    @property
    def scheme(self) -> str:
        """Name of the scheme, whichever epsilon it has."""
        return "qjump"

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Return what `request` would answer: it looks only at the sending host, not at any switch."""
        path = self._register.route(flow, path).path
        sender, parameters = self._senders[flow.source], self._parameters
        used_bps, used_bytes = sender.used()
        limits = (
            ("rate", used_bps, flow.rate_bps, sender.rate_bps, "bit/s"),
            ("burst", used_bytes, flow.burst_bytes, sender.burst_bytes, "bytes"),
        )
        for quantity, used, requested, allowed, unit in limits:
            if used + requested > allowed * (1 + ROUNDING):
                return Refusal(
                    flow=flow,
                    switch=flow.source,
                    quantity=quantity,
                    used=used,
                    requested=requested,
                    allowed=allowed,
                    unit=unit,
                    advice=self._patience(flow, [(sender, flow.burst_bytes)])
                    or partial(suggest_on_path, self.check, path),
                )
        # One bound for the whole path, however long it is: each switch gets an equal part of it.
        part_ns = parameters.epoch_ns / len(path)
        return Admitted(flow, path, (flow.burst_bytes,) * len(path), (part_ns,) * len(path))

    def servers(self, admitted: Admitted) -> tuple[str, ...]:
        """Return the sending host."""
        return (admitted.flow.source,)

    def usage(self, switch: str) -> Usage:
        """Return the rate that passes a switch, against what all hosts together may send."""
        through = ExactSum()
        for admitted in self._register.admitted.values():
            if any(hop.switch == switch for hop in admitted.path):
                through.add(admitted.flow.rate_bps)
        allowed = self._parameters.host_rate_bps * self._parameters.hosts
        share = ResourceShare(quantity="rate", used=through.value, allowed=allowed, unit="bit/s")
        return Usage(shares=(share,), delay_ns=self._parameters.epoch_ns)

    def demands(self, admitted: Admitted) -> Iterator[ResourceDemand]:
        """See `Admission.demands`. Flows that exceed no capacity fit."""
        flow, sender = admitted.flow, self._senders[admitted.flow.source]
        yield ResourceDemand(flow.source, "rate", flow.rate_bps, sender.rate_bps * (1 + ROUNDING))
        yield ResourceDemand(flow.source, "burst", flow.burst_bytes, sender.burst_bytes * (1 + ROUNDING))

    def _taken(self, admitted: Admitted) -> Iterator[BucketUse]:
        yield BucketUse(self._senders[admitted.flow.source], admitted.flow.burst_bytes, 0.0)

    def _buckets(self) -> Iterable[SharedBucket]:
        return self._senders.values()

    def _named(self, server: str) -> SharedBucket:
        return self._senders[server]
