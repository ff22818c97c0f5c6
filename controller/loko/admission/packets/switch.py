"""Use of one switch under packet-granular admission, and its limits (docs/packet-granular.md).

Only the part of the grid of intervals is computed and kept in which a limit can be exceeded; see `SwitchUse`.
The results are those of the whole grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from loko.admission import Refusal, ResourceDemand, ResourceShare, Usage
from loko.admission.packets.server import FrameServer
from loko.admission.packets.staircase import Curve, Grid, Staircase
from loko.admission.residual_backlog import NONE, AdmissionClock, ResidualBacklog
from loko.document import InputError
from loko.exact_sum import ExactSum
from loko.switch_model.flow import Flow

_MARGIN_NS: Final = 1000
"""Far more than rounding errors may raise a staircase above its affine curve."""
_FIRST_CELLS: Final = 256
"""With this few cells, a curve costs as much as with one."""
_NOTHING: Final[Curve] = np.zeros(0, dtype=np.int64)
"""A curve without any known cell."""
_ROUNDING_NS: Final = 1
"""Far more than rounding errors may take from a residual backlog."""


ServerKey = tuple[int, int]
"""The identity of a server, and the most unfinished work in ns."""


class PortLoad(NamedTuple):
    """Demand of a flow at a switch through one of its ports."""

    input_port: int
    staircase: Staircase
    share: float
    """Fraction of the CPU's time that it takes in the long run."""
    burst_ns: float
    """Together with `share`, an affine curve of work above the staircase."""


class _InputPort:
    """Arrivals at one port. Its curves have as many cells as the switch knows (`SwitchUse._know`)."""

    __slots__ = ("flows", "limit", "offered", "shaped")

    def __init__(self, limit: Curve) -> None:
        self.limit = limit
        """The most that can come through the port, whatever is offered."""
        self.flows: dict[Staircase, int] = {}
        """How many flows have each staircase."""
        self.offered: Curve = _NOTHING
        """Sum of the flows' staircases, if there are flows."""
        self.shaped: Curve = _NOTHING
        """The lesser of `limit` and `offered`."""


class SwitchUse:
    """The flows through a switch.

    The work that arrives in an interval of length t, less the time that the CPU has for it, must stay below
    what the delay target allows (equation 1). It lies below an affine curve. Where even that curve keeps to
    the limit, or leaves more than is left at t = 0, no staircase needs to be known. `_cells` returns how many
    cells of the grid come before that.
    """

    def __init__(
        self,
        name: str,
        server: FrameServer,
        grid: Grid,
        *,
        target_ns: float,
        max_entries: int,
        hint: str,
        clock: AdmissionClock,
    ) -> None:
        """Start empty. Raises `InputError` if not even one frame would be in time."""
        self.name = name
        self.server = server
        self.work_ns = server.work_for(target_ns)
        """The most unfinished work that the delay target allows."""
        self.kind: ServerKey = id(server), self.work_ns
        """Switches of the same kind give a flow the same delay and jitter."""
        self._grid = grid
        self._max_entries, self._hint = max_entries, hint
        self._clock = clock
        self._backlog: ResidualBacklog[PortLoad] = ResidualBacklog()
        self._entries = 0
        self._share, self._burst = ExactSum(), ExactSum()
        self._ports: dict[int, _InputPort] = {}
        self._left: Curve = _NOTHING
        """Room that the ports' shaped curves leave, in the known cells."""
        self._known = 0
        """How many cells are known."""
        self._slacks: dict[tuple[int, Staircase], int] = {}
        """Results of `_slack_with` since flows last changed, by port and staircase of the flow asked for."""
        self._worst: int | None = None
        """The result of `_worst_ns` since flows last changed."""
        interruption = server.interruption
        self._whole = 1 - interruption.share
        # An interruption counts until a frame's service begins, which is up to `work_ns` after its arrival.
        late = np.int64(np.ceil(interruption.share * self.work_ns))
        taken = grid.interruption(interruption.share) + late
        self._room: Curve = self.work_ns - server.first_work_ns() + grid.left_ns - taken
        """The most work that all ports together may bring, in each cell."""
        self._first_room = int(self._room[0])
        self._allowed_ns = max(self.delay_ns(size) for size in server.times)
        needed = max(times.service_ns for times in server.times.values())
        if self._first_room < needed:
            if self.work_ns == server.largest_work_ns:
                sizes = " and ".join(map(str, server.times))
                raise InputError(
                    f"{name}: its receive ring cannot bear frames of {sizes} bytes beside what interrupts"
                    " the CPU; plan for fewer sizes, shorter frames, or less control traffic"
                )
            # Of each ns more, interruptions take their share; and the room is in whole ns.
            more_ns = (needed - self._first_room + 1) / self._whole
            least_us = math.ceil((target_ns + more_ns) / 1e3)
            raise InputError(
                f"{name}: no frame is forwarded within {target_ns / 1e6:.3f} ms, its delay target;"
                f" give it {least_us / 1e3:.3f} ms or more (--target-ms)"
            )

    def shape_by_link(self, port: int) -> None:
        """Limit a port to frames that follow each other on the link of a host."""
        here = self.server.times
        if len(here) == 1:
            (times,) = here.values()
            limit = self._grid.one_by_one(service_ns=times.service_ns, spacing_ns=times.wire_ns, ahead_ns=0)
        else:
            limit = self._grid.fluid(
                first_ns=max(times.service_ns for times in here.values()),
                ahead_ns=0,
                ratio=max(times.service_ns / times.wire_ns for times in here.values()),
            )
        self._ports[port] = _InputPort(limit)

    def shape_by_switch(self, port: int, before: FrameServer) -> None:
        """Limit a port to frames that left the CPU of another switch one after the other (lemma 4).

        They have sizes that can reach both switches. Without any, no frame comes, so any limit holds.
        """
        here = {size: times for size, times in self.server.times.items() if size in before.times}
        if not here:
            self.shape_by_link(port)
            return
        ahead_ns = before.bunching_ns + 2
        if len(here) == 1:
            ((size, times),) = here.items()
            limit = self._grid.one_by_one(
                service_ns=times.service_ns,
                spacing_ns=before.times[size].least_service_ns,
                ahead_ns=ahead_ns + before.times[size].work_ns - before.times[size].least_work_ns,
            )
        else:
            earlier = before.times.values()
            ahead_ns += max(each.links_ns for each in earlier) - min(each.links_ns for each in earlier)
            ahead_ns += max(each.work_ns for each in earlier) - min(each.least_work_ns for each in earlier)
            limit = self._grid.fluid(
                first_ns=max(times.service_ns for times in here.values()),
                ahead_ns=ahead_ns,
                ratio=max(here[size].service_ns / before.times[size].least_service_ns for size in here),
            )
        self._ports[port] = _InputPort(limit)

    def delay_ns(self, frame_bytes: int) -> int:
        """Return the delay bound for frames of a size, from release or previous departure to departure here.

        Raises `InputError` for frames that the server was not made for.
        """
        if frame_bytes not in self.server.times:
            known = ", ".join(str(size) for size in self.server.times)
            raise InputError(
                f"frame_bytes {frame_bytes} is not a size that {self.name} was planned for ({known})"
            )
        return self.server.delay_ns(frame_bytes, self.work_ns)

    def refusal(self, flow: Flow, load: PortLoad) -> Refusal | None:
        """Return the first limit that the flow would exceed, if any."""
        if not self._backlog.is_open or not self.has_backlog():
            return self._refusal(flow, load)
        refusal = self._refusal(flow, load)
        if refusal is not None:
            return refusal
        slack_ns = self._enough_ns(load) - self._backlog.amount
        return None if slack_ns >= 0 else self._too_late(flow, math.floor(slack_ns))

    def has_backlog(self) -> bool:
        """Return whether released flows still matter."""
        if self._backlog.is_open:
            self._settle()
        return self._backlog.is_open

    def fits_ns(self, flow: Flow, load: PortLoad) -> float:
        """Return the instant from which a flow fits, if nothing else is added; infinite if it never does."""
        leaving = [draining.payload for draining in self._backlog.draining]
        for other in leaving:
            self._forget(other)
        refusal = self._refusal(flow, load)
        enough_ns = max(self._enough_ns(load), -self._burst.value - _ROUNDING_NS)
        for other in leaving:
            self._note(other)
        return math.inf if refusal is not None else self._backlog.falls_below_ns(self._spare(), enough_ns)

    def _refusal(self, flow: Flow, load: PortLoad) -> Refusal | None:
        """Return the first limit exceeded by the flows that count now, without backlog (equation 1)."""
        if self._entries >= self._max_entries:
            counts = (self._entries, 1, self._max_entries)
            return refusal_of(flow, self.name, ("entries", "entries"), counts)._replace(hint=self._hint)
        used, whole = self._share.value, self._whole
        share, burst_ns = used + load.share, self._burst.value + load.burst_ns
        if share > whole:
            percents = (100 * used, 100 * load.share, 100 * whole)
            return refusal_of(flow, self.name, ("rate", "% of the CPU"), percents)
        if burst_ns > (most_ns := self._first_room + (whole - share) * self._grid.end_ns):
            times_us = (self._burst.value / 1e3, load.burst_ns / 1e3, most_ns / 1e3)
            return refusal_of(flow, self.name, ("burst", "us"), times_us)
        cells = self._cells(share, burst_ns, 0)
        slack_ns = self._slack_with(load, cells) if cells else 0
        return None if slack_ns >= 0 else self._too_late(flow, slack_ns)

    def _too_late(self, flow: Flow, slack_ns: int) -> Refusal:
        """Return a refusal by delay. `slack_ns` is what the flow would leave of the room; it is negative."""
        used_ns = self._worst_ns()
        # Beyond these cells there is room, so the worst is among them.
        asked_ns = self._allowed_ns - slack_ns - used_ns
        times_us = (used_ns / 1e3, asked_ns / 1e3, self._allowed_ns / 1e3)
        return refusal_of(flow, self.name, ("delay", "us"), times_us)

    def add(self, load: PortLoad) -> None:
        """Note a flow that fits."""
        if self._backlog.is_open:
            self._settle()
        self._note(load)

    def remove(self, load: PortLoad) -> None:
        """Forget a flow that was added with this load, and has sent nothing."""
        self.has_backlog()
        self._forget(load)

    def drain(self, until_ns: int, load: PortLoad) -> None:
        """Note that a flow was released; it counts until `until_ns`."""
        self._backlog.drain(until_ns, share=load.share, burst=load.burst_ns, payload=load)

    @property
    def backlog_ns(self) -> float | None:
        """K: what released flows that no longer count may have left, in CPU time; None if nothing."""
        return self._backlog.amount if self.has_backlog() and self._backlog.amount > NONE else None

    def restore(self, backlog_ns: float) -> None:
        """Take over a residual backlog as of now."""
        self._backlog.restore(backlog_ns, self._clock.now_ns)

    def _settle(self) -> None:
        self._backlog.settle(
            self._clock.now_ns,
            self._spare,
            self._forget,
            lambda: -self._burst.value - _ROUNDING_NS,
        )

    def _spare(self) -> float:
        """Return the fraction of the CPU's time that the flows leave."""
        return self._whole - self._share.value

    def _enough_ns(self, load: PortLoad) -> float:
        """Return the largest residual backlog with which a flow may be admitted (D)."""
        return self._first_room - _ROUNDING_NS - self._burst.value - load.burst_ns

    def _note(self, load: PortLoad) -> None:
        self._share.add(load.share)
        self._burst.add(load.burst_ns)
        self._entries += 1
        flows = self._ports[load.input_port].flows
        flows[load.staircase] = flows.get(load.staircase, 0) + 1
        self._changed()
        if self._known:
            self._shape(load.input_port, self._offered_with(load))

    def _forget(self, load: PortLoad) -> None:
        self._share.remove(load.share)
        self._burst.remove(load.burst_ns)
        self._entries -= 1
        flows = self._ports[load.input_port].flows
        flows[load.staircase] -= 1
        if not flows[load.staircase]:
            del flows[load.staircase]
        self._changed()
        if not self._entries:
            self._know_nothing()
        elif self._known:
            less = self._grid.work(load.staircase, self._known)
            self._shape(load.input_port, self._ports[load.input_port].offered - less)

    def clear(self) -> None:
        """Forget all flows, also released ones."""
        self._backlog.clear()
        self._share, self._burst = ExactSum(), ExactSum()
        self._entries = 0
        for port in self._ports.values():
            port.flows.clear()
        self._changed()
        self._know_nothing()

    def usage(self) -> Usage:
        """Return what is used now. It depends only on the set of flows that count, not on history."""
        self.has_backlog()
        shares = (
            ResourceShare("delay", self._worst_ns() / 1e3, self._allowed_ns / 1e3, "us"),
            ResourceShare("rate", 100 * self._share.value, 100 * self._whole, "% of the CPU"),
            ResourceShare("entries", self._entries, self._max_entries, "entries"),
        )
        return Usage(shares, self._allowed_ns)

    def demands(self, load: PortLoad) -> Iterator[ResourceDemand]:
        """Yield what a flow takes whatever others do: an entry, and CPU time in the long run."""
        yield ResourceDemand(self.name, "rate", load.share, self._whole)
        yield ResourceDemand(self.name, "entries", 1.0, float(self._max_entries))

    @property
    def room(self) -> Curve:
        """The most work that all flows may bring in each cell."""
        return self._room

    def limit(self, port: int) -> Curve:
        """Return the most work that can come through a port in each cell, whatever is offered."""
        return self._ports[port].limit

    def later_slack_ns(self, load: PortLoad | None, from_ns: int) -> int:
        """Return the least room left in intervals longer than `from_ns`, with `load` added if given."""
        share, burst_ns = self._share.value, self._burst.value
        if load is not None:
            share, burst_ns = share + load.share, burst_ns + load.burst_ns
        first = int(np.searchsorted(self._grid.right_ns, from_ns, side="right"))
        cells = self._cells(share, burst_ns, 0)
        if cells <= first:
            return self._first_room
        self._know(cells)
        left = self._left if load is None else self._left_with(load)
        return int(left[first:cells].min())

    def _worst_ns(self) -> int:
        """Return the delay bound with the present flows: what is allowed less what is left of the room."""
        if self._worst is None:
            self._know(1)
            left_ns = int(self._left[0])
            self._know(self._cells(self._share.value, self._burst.value, left_ns))
            self._worst = self._allowed_ns - _least(self._left)
        return self._worst

    def _slack_with(self, load: PortLoad, cells: int) -> int:
        """Return the least room left if `load` were added; negative if the room is exceeded.

        It looks at least at the first `cells`. Beyond them there is room: to look at them would change
        neither the decision nor by how much the room is exceeded.
        """
        key = load.input_port, load.staircase
        slack_ns = self._slacks.get(key)
        if slack_ns is None:
            self._know(cells)
            slack_ns = self._slacks[key] = _least(self._left_with(load))
        return slack_ns

    def _cells(self, share: float, burst_ns: float, left_ns: int) -> int:
        """Return how many cells come before work below burst + share t leaves `left_ns` of the room.

        In a cell from t to t + w the room is at least its first value + t - i (t + w) - 1. Cell 0 (w = 0)
        is reached only if cell 1 has room; then cell 0 has room, too.
        """
        spare, needed = self._whole - share, burst_ns + left_ns - self._first_room + _MARGIN_NS
        if spare <= 0:
            return len(self._room)
        busy = 1 - spare
        for zone in self._grid.zones[:-1]:  # the longest intervals first
            from_ns = (needed + busy * zone.width_ns) / spare
            if from_ns > zone.begin_ns:
                return zone.first + min(int((from_ns - zone.begin_ns) / zone.width_ns) + 1, zone.cells)
        return 0

    def _left_with(self, load: PortLoad) -> Curve:
        """Return what would be left of the room in the known cells if `load` were added."""
        port, known = self._ports[load.input_port], self._known
        shaped: Curve = np.minimum(self._offered_with(load), port.limit[:known])
        left: Curve = np.subtract(self._left, shaped, out=shaped)
        if len(port.shaped):
            left += port.shaped
        return left

    def _offered_with(self, load: PortLoad) -> Curve:
        """Return what would be offered to a port in the known cells if `load` were added."""
        offered, work = self._ports[load.input_port].offered, self._grid.work(load.staircase, self._known)
        return offered + work if len(offered) else work

    def _shape(self, port_number: int, offered: Curve) -> None:
        """Update what is offered to a port, and with it what is left of the room."""
        port, known = self._ports[port_number], self._known
        if len(port.shaped):
            self._left += port.shaped
        port.offered = offered
        port.shaped = np.minimum(offered, port.limit[:known])
        self._left -= port.shaped

    def _know(self, cells: int) -> None:
        """Compute the curves of the present flows in at least the first `cells`.

        Lengths double from one to the next: with few different lengths, switches can share curves.
        """
        if cells <= self._known:
            return
        known = self._known or _FIRST_CELLS
        while known < cells:
            known *= 2
        known = self._known = min(known, len(self._room))
        self._left = self._room[:known].copy()
        for port in self._ports.values():
            port.offered = port.shaped = _NOTHING
        for number, port in self._ports.items():
            if port.flows:
                self._shape(number, self._sum_of(port.flows))

    def _sum_of(self, flows: Mapping[Staircase, int]) -> Curve:
        total = np.zeros(self._known, dtype=np.int64)
        for staircase, count in flows.items():
            work = self._grid.work(staircase, self._known)
            total += work if count == 1 else count * work
        return total

    def _know_nothing(self) -> None:
        self._known, self._left = 0, _NOTHING
        for port in self._ports.values():
            port.offered = port.shaped = _NOTHING

    def _changed(self) -> None:
        """Forget results that held only for the previous set of flows."""
        self._slacks.clear()
        self._worst = None


def _least(curve: Curve) -> int:
    """Return the smallest value of a curve, several times as fast as `min`."""
    return int(curve[curve.argmin()])


def refusal_of(
    flow: Flow, switch: str, what: tuple[str, str], numbers: tuple[float, float, float]
) -> Refusal:
    """Return a refusal. `what`: quantity and unit; `numbers`: used, requested and allowed."""
    used, requested, allowed = numbers
    return Refusal(flow, switch, what[0], used, requested, allowed, what[1])
