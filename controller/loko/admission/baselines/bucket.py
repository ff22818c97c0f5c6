"""Token buckets that flows share (output ports of Silo, hosts of QJump), and admission that fills them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from loko.admission import Admitted, AdmittedFlows, BarePath, Refusal, Suggestion
from loko.admission.residual_backlog import AdmissionClock, ResidualBacklog, wait_advice
from loko.exact_sum import ExactSum
from loko.switch_model.flow import Flow
from loko.switch_model.margin import LimitTest
from loko.topology.network import Hop
from loko.units import BITS_NS_PER_BYTE_S


class SharedBucket:
    """Sums of rates and of bursts, and what released flows may have left (docs/model.md, section 6)."""

    def __init__(self, *, rate_bps: float, burst_bytes: float, clock: AdmissionClock) -> None:
        """Start empty, with limits for the sums of rates and of bursts."""
        self.rate_bps = rate_bps
        self.burst_bytes = burst_bytes
        self._clock = clock
        self._rate, self._burst = ExactSum(), ExactSum()
        self._backlog: ResidualBacklog[tuple[float, float]] = ResidualBacklog()

    def used(self) -> tuple[float, float]:
        """Return the rate in bit/s and the burst in bytes in use, with what released flows have left."""
        backlog_bytes = self.backlog_bytes()  # settles the sums
        return self._rate.value, self._burst.value + backlog_bytes

    def has_backlog(self) -> bool:
        """Return whether released flows still matter."""
        if self._backlog.is_open:
            self._backlog.settle(self._clock.now_ns, self._spare, self._forget, lambda: 0.0)
        return self._backlog.is_open

    def backlog_bytes(self) -> float:
        """Return the residual backlog of released flows that no longer count; 0 if there is none."""
        return max(self._backlog.amount, 0.0) if self.has_backlog() else 0.0

    def restore(self, backlog_bytes: float) -> None:
        """Take over a residual backlog as of now."""
        self._backlog.restore(backlog_bytes, self._clock.now_ns)

    def add(self, rate_bps: float, burst_bytes: float) -> None:
        """Note a flow."""
        self.has_backlog()
        self._rate.add(rate_bps)
        self._burst.add(burst_bytes)

    def remove(self, rate_bps: float, burst_bytes: float) -> None:
        """Forget a flow that has sent nothing."""
        self.has_backlog()
        self._forget((rate_bps, burst_bytes))

    def drain(self, until_ns: int, rate_bps: float, burst_bytes: float) -> None:
        """Note that a flow was released; it counts until `until_ns`."""
        share = rate_bps / BITS_NS_PER_BYTE_S
        self._backlog.drain(until_ns, share=share, burst=burst_bytes, payload=(rate_bps, burst_bytes))

    def clear(self) -> None:
        """Begin anew, as if nothing had ever been sent."""
        self._rate, self._burst = ExactSum(), ExactSum()
        self._backlog.clear()

    def fits_ns(self, rate_bps: float, burst_bytes: float) -> float:
        """Return the instant from which a flow fits, if nothing else is added; infinite if it never does."""
        leaving = [draining.payload for draining in self._backlog.draining]
        left_bps = self.rate_bps - math.fsum([self._rate.value, rate_bps, *(-rate for rate, _ in leaving)])
        enough = self.burst_bytes - math.fsum(
            [self._burst.value, burst_bytes, *(-burst for _, burst in leaving)]
        )
        return math.inf if left_bps < 0 or enough < 0 else self._backlog.falls_below_ns(self._spare(), enough)

    def _spare(self) -> float:
        return (self.rate_bps - self._rate.value) / BITS_NS_PER_BYTE_S

    def _forget(self, kept: tuple[float, float]) -> None:
        rate_bps, burst_bytes = kept
        self._rate.remove(rate_bps)
        self._burst.remove(burst_bytes)


class BucketUse(NamedTuple):
    """Share of one bucket that an admitted flow takes."""

    bucket: SharedBucket
    burst_bytes: float
    passed_ns: float
    """Time from when a frame is sent until it no longer counts at the bucket."""


class BucketAdmission(ABC):
    """Admission control in which a flow takes its rate, and a burst, from each bucket on its way."""

    def __init__(self, register: AdmittedFlows[BarePath]) -> None:
        """Start empty."""
        self._register = register
        self._clock = AdmissionClock()

    @property
    def admitted(self) -> Mapping[str, Admitted]:
        """The accepted flows by id, in order of admission."""
        return self._register.admitted

    def falls_if_slower(self) -> LimitTest | None:
        """None: a baseline promises nothing."""
        return None

    @abstractmethod
    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Return what `request` would answer, without admitting anything."""

    def request(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Admit a flow along a path, by default the shortest, or say why not. Raises `InputError`."""
        answer = self.check(flow, path)
        if isinstance(answer, Admitted):
            self._register.add(answer)
            for taken in self._taken(answer):
                taken.bucket.add(flow.rate_bps, taken.burst_bytes)
        return answer

    def advance(self, now_ns: int) -> None:
        """Let time pass. Released flows count less and less."""
        self._clock.advance(now_ns)

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None = None) -> None:
        """Release a flow that has sent until now, or until `sent_until_ns`; it still counts for a while.

        Raises `InputError` if it was not admitted.
        """
        self._clock.advance(now_ns)
        sent_ns = self._clock.now_ns if sent_until_ns is None else sent_until_ns
        admitted = self._register.remove(flow_id)
        for taken in self._taken(admitted):
            until_ns = self._clock.after(sent_ns, taken.passed_ns)
            taken.bucket.drain(until_ns, admitted.flow.rate_bps, taken.burst_bytes)

    def cancel(self, flow_id: str) -> None:
        """Undo the request of a flow that has sent nothing. Raises `InputError` if it was not admitted."""
        admitted = self._register.remove(flow_id)
        for taken in self._taken(admitted):
            taken.bucket.remove(admitted.flow.rate_bps, taken.burst_bytes)

    def rename(self, flow_id: str, flow: Flow) -> Admitted:
        """Give an admitted flow another id and other ports."""
        return self._register.rename(flow_id, flow)

    def release_all(self) -> None:
        """Begin anew, as if no flow had ever sent."""
        self._register.clear()
        for bucket in self._buckets():
            bucket.clear()

    def drain_time_ns(self, flow_id: str) -> int:
        """Return the time from a flow's last frame until that has arrived and the flow counts nowhere."""
        return self._clock.after(0, self._register.admitted[flow_id].guarantee_ns)

    def residual_backlog(self, server: str) -> float | None:
        """Return what released flows may have left at a server, in bytes, if anything."""
        return self._named(server).backlog_bytes() or None

    def restore_backlogs(self, backlogs: Mapping[str, float], *, now_ns: int) -> None:
        """Take over stored residual backlogs by server, as if no time had passed since."""
        self._clock.advance(now_ns)
        for server, amount in backlogs.items():
            self._named(server).restore(amount)

    def _patience(self, flow: Flow, wanted: Sequence[tuple[SharedBucket, float]]) -> Suggestion | None:
        """Advise how long to wait until these buckets have room for these bursts, if waiting helps."""
        if not any(bucket.has_backlog() for bucket, _ in wanted):
            return None
        fits_ns = max(bucket.fits_ns(flow.rate_bps, burst_bytes) for bucket, burst_bytes in wanted)
        return wait_advice(self._clock.now_ns, fits_ns)

    @abstractmethod
    def _taken(self, admitted: Admitted) -> Iterator[BucketUse]:
        """Yield what a flow takes of each bucket on its way."""

    @abstractmethod
    def _buckets(self) -> Iterable[SharedBucket]:
        """Return all buckets."""

    @abstractmethod
    def _named(self, server: str) -> SharedBucket:
        """Return the bucket of a server, by its name from `servers`."""
