"""Packet-granular admission: accepted as long as no frame can be later than the switch's fixed delay target.

The theorem and its proof: docs/packet-granular.md. All work is counted in whole nanoseconds of the CPU, so
that releasing a flow restores exactly what was there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from loko.admission import Admitted, Refusal, Register, Share, Usage
from loko.admission.exact import ExactSum
from loko.allocation import FULL_RATE, allocate
from loko.calculus import bytes_in
from loko.control_traffic import ControlTraffic
from loko.device import deterministic
from loko.document import InputError
from loko.flow import Flow
from loko.lab import Endpoint, Lab
from loko.network import Hop
from loko.packets.server import FrameServer, frame_server
from loko.packets.staircase import Curve, Grid
from loko.scenario import Scenario, Unknown
from loko.service import service_curve

SCHEME: Final = "packet-granular"


def default_targets(lab: Lab, scenario: Scenario) -> dict[str, float]:
    """The delay bound of the paper's full-rate allocation, for each switch: 1.86 ms in section 6."""
    return {
        name: allocate(service_curve(deterministic(switch.profile), scenario), FULL_RATE).delay_ns
        for name, switch in lab.switches.items()
    }


@dataclass(frozen=True, kw_only=True)
class _Passage:
    """A flow at one switch."""

    switch: str
    input_port: int
    output_port: int
    jitter_ns: int
    delay_ns: int


class PacketAdmission:
    """Admission by staircases of whole frames. A decision costs O(path), however many flows are admitted."""

    def __init__(
        self,
        lab: Lab,
        scenario: Scenario,
        targets: Mapping[str, float] | None = None,
        *,
        traffic: ControlTraffic | None = None,
        least_entries: int | None = None,
        grid: Grid | None = None,
    ) -> None:
        """Start empty. `targets` has for every switch the largest delay in ns, first bit in to first out.

        Without it that of the paper's full-rate allocation. `traffic`, `least_entries`: see `frame_server`.
        Raises `InputError` if a switch has no worst case or cannot forward even a single frame in time.
        """
        self._register = Register(lab, lambda _source, path: path)
        self._far = dict(lab.cables())
        self._grid = grid or Grid.standard()
        wanted = targets or default_targets(lab, scenario)
        servers = {
            name: frame_server(deterministic(switch.profile), scenario, traffic, least_entries=least_entries)
            for name, switch in lab.switches.items()
        }
        entries = scenario.entries
        self._switches = {
            name: _Switch(
                name=name,
                server=server,
                grid=self._grid,
                work_ns=server.work_for(wanted[name]),
                max_entries=lab.switches[name].profile.table.entries.value
                if isinstance(entries, Unknown)
                else entries,
            )
            for name, server in servers.items()
        }
        for name, switch in self._switches.items():
            switch.refuse_target(wanted[name])
            for port, far in lab.neighbours(name):
                if far.node in servers:
                    switch.shape_by_switch(port, servers[far.node])
                else:
                    switch.shape_by_link(port)

    @property
    def scheme(self) -> str:
        """Name of the scheme."""
        return SCHEME

    @property
    def admitted(self) -> Mapping[str, Admitted]:
        """The accepted flows by id, in order of admission."""
        return self._register.admitted

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """What `request` would answer, without admitting anything."""
        hops = self._register.route(flow, path)
        passages = tuple(self._passages(flow, hops))
        for passage in passages:
            switch = self._switches[passage.switch]
            if refusal := switch.refusal(flow, passage):
                return refusal
        bursts = (
            flow.burst_bytes + bytes_in(rate_bps=flow.rate_bps, duration_ns=passage.jitter_ns)
            for passage in passages
        )
        return Admitted(flow, hops, tuple(bursts), tuple(passage.delay_ns for passage in passages))

    def request(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Admit a flow along a path, by default the shortest, or say why not.

        Raises `InputError` for unknown hosts, a path that does not connect them, an id or ports in use, or
        frames that the model does not cover.
        """
        answer = self.check(flow, path)
        if isinstance(answer, Admitted):
            self._register.add(answer)
            for passage in self._passages(flow, answer.path):
                self._switches[passage.switch].add(flow, passage)
        return answer

    def release(self, flow_id: str) -> None:
        """Give back what a flow uses. Raises `InputError` if it was not admitted."""
        admitted = self._register.remove(flow_id)
        for passage in self._passages(admitted.flow, admitted.path):
            self._switches[passage.switch].remove(admitted.flow, passage)

    def release_all(self) -> None:
        """Give back what all flows use: as `release` of each, but without looking at them."""
        for flow_id in list(self.admitted):
            self.release(flow_id)

    def usage(self, switch: str) -> Usage:
        """What is used of a switch now. It depends on the set of flows only, not on their history."""
        return self._switches[switch].usage()

    def _passages(self, flow: Flow, path: Sequence[Hop]) -> Iterator[_Passage]:
        jitter_ns = 0
        before = Endpoint(node=flow.source, port=1)
        for hop in path:
            switch = self._switches[hop.switch]
            switch.refuse_size(flow.frame_bytes)
            yield _Passage(
                switch=hop.switch,
                input_port=self._far[before].port,
                output_port=hop.output_port,
                jitter_ns=jitter_ns,
                delay_ns=switch.delay_ns(flow.frame_bytes),
            )
            if jitter_ns == 0:
                jitter_ns = switch.server.sender_queue_ns(switch.work_ns)
            jitter_ns += switch.server.jitter_ns(flow.frame_bytes, switch.work_ns)
            before = Endpoint(node=hop.switch, port=hop.output_port)


@dataclass(kw_only=True)
class _Port:
    """What arrives by one port."""

    offered: Curve
    """Sum of the flows' staircases."""
    limit: Curve
    """What can come through it, whatever is offered."""
    shaped: Curve
    """The lesser of the two."""


@dataclass(kw_only=True)
class _Switch:
    """What is used of one switch, and what may be."""

    name: str
    server: FrameServer
    grid: Grid
    work_ns: int
    """Most unfinished work: what the delay target allows."""
    max_entries: int
    entries: int = 0
    ports: dict[int, _Port] = field(default_factory=dict)
    total: Curve = field(init=False)
    """Sum of the ports' shaped curves."""
    room: Curve = field(init=False)
    """What this sum may be."""
    share: ExactSum = field(default_factory=ExactSum)
    """Part of the CPU's time that the flows take in the long run."""
    burst: ExactSum = field(default_factory=ExactSum)
    """Work in ns of an affine curve above all staircases, for intervals beyond the grid."""

    def __post_init__(self) -> None:
        grid, interruption = self.grid, self.server.interruption
        self.total = np.zeros_like(grid.right_ns)
        # An interruption counts until a frame's service begins, which is up to `work_ns` after its arrival.
        late = np.int64(np.ceil(interruption.share * self.work_ns))
        taken = grid.interruption(interruption.share) + late
        self.room = self.work_ns - self.server.first_work_ns() + grid.left_ns - taken

    def refuse_target(self, target_ns: float) -> None:
        """Raises `InputError` if not even one frame would be in time."""
        needed = max(times.service_ns for times in self.server.times.values())
        if self.room[0] < needed:
            least = target_ns + needed - float(self.room[0])
            raise InputError(
                f"{self.name}: no frame is forwarded within {target_ns / 1e6:.3f} ms;"
                f" allow {least / 1e6:.3f} ms"
            )

    def refuse_size(self, frame_bytes: int) -> None:
        """Raises `InputError` for frames that the server was not made for."""
        if frame_bytes not in self.server.times:
            known = ", ".join(str(size) for size in self.server.times)
            raise InputError(
                f"frame_bytes {frame_bytes} is not a size that {self.name} was planned for ({known})"
            )

    def shape_by_link(self, port: int) -> None:
        """Frames that come by this port follow each other on the link of a host."""
        here = self.server.times
        if len(here) == 1:
            (times,) = here.values()
            limit = self.grid.one_by_one(service_ns=times.service_ns, spacing_ns=times.wire_ns, ahead_ns=0)
        else:
            limit = self.grid.fluid(
                first_ns=max(times.service_ns for times in here.values()),
                ahead_ns=0,
                ratio=max(times.service_ns / times.wire_ns for times in here.values()),
            )
        self._port(port).limit = limit

    def shape_by_switch(self, port: int, before: FrameServer) -> None:
        """Frames that come by this port left the CPU of another switch one after the other (lemma 4)."""
        here = self.server.times
        ahead_ns = before.bunching_ns + 2
        if len(here) == 1:
            ((size, times),) = here.items()
            limit = self.grid.one_by_one(
                service_ns=times.service_ns,
                spacing_ns=before.times[size].least_service_ns,
                ahead_ns=ahead_ns + before.times[size].work_ns - before.times[size].least_work_ns,
            )
        else:
            earlier = before.times.values()
            ahead_ns += max(each.links_ns for each in earlier) - min(each.links_ns for each in earlier)
            ahead_ns += max(each.work_ns for each in earlier) - min(each.least_work_ns for each in earlier)
            limit = self.grid.fluid(
                first_ns=max(times.service_ns for times in here.values()),
                ahead_ns=ahead_ns,
                ratio=max(here[size].service_ns / before.times[size].least_service_ns for size in here),
            )
        self._port(port).limit = limit

    def delay_ns(self, frame_bytes: int) -> int:
        """The bound for frames of a size: from release or departure before to departure here."""
        return self.server.delay_ns(frame_bytes, self.work_ns)

    def refusal(self, flow: Flow, passage: _Passage) -> Refusal | None:
        """The first limit that the flow would exceed, if any."""
        if self.entries >= self.max_entries:
            return _refused(flow, self.name, ("entries", "entries"), (self.entries, 1, self.max_entries))
        share, burst_ns = self._affine(flow, passage)
        whole = 1 - self.server.interruption.share
        end_ns, first_ns = self.grid.end_ns, self.work_ns - self.server.first_work_ns()
        fits_beyond = self.burst.value + burst_ns <= first_ns + (whole - self.share.value - share) * end_ns
        if self.share.value + share > whole or not fits_beyond:
            percents = (100 * self.share.value, 100 * share, 100 * whole)
            return _refused(flow, self.name, ("rate", "% of the CPU"), percents)
        work = self._with(passage.input_port, self._staircase(flow, passage))
        excess = work - self.room
        if excess.max() > 0:
            used, asked = self._worst_ns(self.total), self._worst_ns(work) - self._worst_ns(self.total)
            times_us = (used / 1e3, asked / 1e3, self._allowed_ns() / 1e3)
            return _refused(flow, self.name, ("delay", "us"), times_us)
        return None

    def add(self, flow: Flow, passage: _Passage) -> None:
        share, burst_ns = self._affine(flow, passage)
        self.share.add(share)
        self.burst.add(burst_ns)
        self.entries += 1
        self._offer(passage.input_port, self._staircase(flow, passage))

    def remove(self, flow: Flow, passage: _Passage) -> None:
        share, burst_ns = self._affine(flow, passage)
        self.share.remove(share)
        self.burst.remove(burst_ns)
        self.entries -= 1
        self._offer(passage.input_port, -self._staircase(flow, passage))

    def usage(self) -> Usage:
        shares = (
            Share(
                quantity="delay",
                used=self._worst_ns(self.total) / 1e3,
                allowed=self._allowed_ns() / 1e3,
                unit="us",
            ),
            Share(
                quantity="rate",
                used=100 * self.share.value,
                allowed=100 * (1 - self.server.interruption.share),
                unit="% of the CPU",
            ),
            Share(quantity="entries", used=self.entries, allowed=self.max_entries, unit="entries"),
        )
        return Usage(shares=shares, delay_ns=self._allowed_ns())

    def _allowed_ns(self) -> int:
        return max(self.delay_ns(size) for size in self.server.times)

    def _worst_ns(self, total: Curve) -> int:
        """The bound on the delay with this much work: less than allowed by what is left of the room."""
        return self._allowed_ns() - int((self.room - total).min())

    def _affine(self, flow: Flow, passage: _Passage) -> tuple[float, float]:
        service_ns = self.server.times[flow.frame_bytes].service_ns
        share = flow.rate_bps / 8e9 / flow.frame_bytes * service_ns
        return share, flow.burst_bytes / flow.frame_bytes * service_ns + share * passage.jitter_ns

    def _staircase(self, flow: Flow, passage: _Passage) -> Curve:
        return self.grid.staircase(
            rate_bps=flow.rate_bps,
            burst_bytes=flow.burst_bytes,
            jitter_ns=passage.jitter_ns,
            frame_bytes=flow.frame_bytes,
            service_ns=self.server.times[flow.frame_bytes].service_ns,
        )

    def _with(self, port_number: int, more: Curve) -> Curve:
        """The total, if so much more were offered to a port."""
        port = self._port(port_number)
        work: Curve = self.total - port.shaped + np.minimum(port.offered + more, port.limit)
        return work

    def _offer(self, port_number: int, more: Curve) -> None:
        port = self._port(port_number)
        self.total -= port.shaped
        port.offered += more
        port.shaped = np.minimum(port.offered, port.limit)
        self.total += port.shaped

    def _port(self, number: int) -> _Port:
        if number not in self.ports:
            nothing = np.zeros_like(self.grid.right_ns)
            self.ports[number] = _Port(
                offered=nothing.copy(), limit=self.grid.unbounded(), shaped=nothing.copy()
            )
        return self.ports[number]


def _refused(flow: Flow, switch: str, what: tuple[str, str], numbers: tuple[float, float, float]) -> Refusal:
    """`what` is the quantity and its unit, `numbers` are used, requested and allowed."""
    used, requested, allowed = numbers
    remedy = "release a flow that passes here, or take a path with fewer switches"
    if what[0] == "rate" and used < allowed < used + requested:
        remedy = f"a rate of at most {flow.rate_bps * (allowed - used) / requested:.0f} bit/s"
    return Refusal(
        flow=flow,
        switch=switch,
        quantity=what[0],
        used=used,
        requested=requested,
        allowed=allowed,
        unit=what[1],
        advice=remedy,
    )
