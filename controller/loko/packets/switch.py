"""What is used of one switch under packet-granular admission, and what may be (docs/packet-granular.md).

Of the grid of intervals only a part is looked at and kept, as `SwitchUse` says: no limit can be exceeded in
the longer ones. The numbers are those of the whole grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from loko.admission import Demand, Refusal, Share, Usage
from loko.admission.debt import NONE, Clock, Debt
from loko.admission.exact import ExactSum
from loko.document import InputError
from loko.flow import Flow
from loko.packets.server import FrameServer
from loko.packets.staircase import Curve, Grid, Staircase

_MARGIN_NS: Final = 1000
"""Far above what floating point may put a staircase above its affine curve."""
_FIRST_CELLS: Final = 256
"""With so few cells a curve costs as much as with one."""
_NOTHING: Final[Curve] = np.zeros(0, dtype=np.int64)
"""A curve of which no cell is known."""
_ROUNDING_NS: Final = 1
"""Far above what floating point may take from a debt."""


ServerKey = tuple[int, int]
"""A server, by its identity, and the most unfinished work in ns."""


class Load(NamedTuple):
    """What a flow brings to a switch, by one of its ports."""

    input_port: int
    staircase: Staircase
    share: float
    """Part of the CPU's time that it takes in the long run."""
    burst_ns: float
    """With `share`, an affine curve of work above the staircase."""


class _Port:
    """What arrives by one port. Its curves are as long as the switch knows them (`SwitchUse._know`)."""

    __slots__ = ("flows", "limit", "offered", "shaped")

    def __init__(self, limit: Curve) -> None:
        self.limit = limit
        """What can come through it, whatever is offered."""
        self.flows: dict[Staircase, int] = {}
        """How many have the same staircase."""
        self.offered: Curve = _NOTHING
        """Sum of the flows' staircases, if there are flows."""
        self.shaped: Curve = _NOTHING
        """The lesser of the two."""


class SwitchUse:
    """The flows through a switch.

    The work that arrives in an interval of length t, less the time that the CPU has for it, is to stay below
    what the delay target allows (equation 1). It lies below an affine curve. Where even that keeps to the
    limit, or to more than is left at t = 0, no staircase needs to be known: `_cells` says how many cells of
    the grid come before that.
    """

    def __init__(
        self,
        name: str,
        server: FrameServer,
        grid: Grid,
        *,
        target_ns: float,
        max_entries: int,
        clock: Clock,
    ) -> None:
        """Raises `InputError` if not even one frame would be in time."""
        self.name = name
        self.server = server
        self.work_ns = server.work_for(target_ns)
        """Most unfinished work: what the delay target allows."""
        self.kind: ServerKey = id(server), self.work_ns
        """Of switches that agree in it, a flow's delay and jitter are the same."""
        self._grid = grid
        self._max_entries = max_entries
        self._clock = clock
        self._debt: Debt[Load] = Debt()
        self._entries = 0
        self._share, self._burst = ExactSum(), ExactSum()
        self._ports: dict[int, _Port] = {}
        self._left: Curve = _NOTHING
        """What the ports' shaped curves leave of the room, as far as it is known."""
        self._known = 0
        """So many cells."""
        self._slacks: dict[tuple[int, Staircase], int] = {}
        """What `_slack_with` has found since flows last changed: by port and staircase of one more."""
        self._worst: int | None = None
        """The same of `_worst_ns`."""
        interruption = server.interruption
        self._whole = 1 - interruption.share
        # An interruption counts until a frame's service begins, which is up to `work_ns` after its arrival.
        late = np.int64(np.ceil(interruption.share * self.work_ns))
        taken = grid.interruption(interruption.share) + late
        self._room: Curve = self.work_ns - server.first_work_ns() + grid.left_ns - taken
        """What the total may be."""
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
            least = target_ns + needed - self._first_room
            raise InputError(
                f"{name}: no frame is forwarded within {target_ns / 1e6:.3f} ms; allow {least / 1e6:.3f} ms"
            )

    def shape_by_link(self, port: int) -> None:
        """Frames that come by this port follow each other on the link of a host."""
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
        self._ports[port] = _Port(limit)

    def shape_by_switch(self, port: int, before: FrameServer) -> None:
        """Frames that come by this port left the CPU of another switch one after the other (lemma 4)."""
        here = self.server.times
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
        self._ports[port] = _Port(limit)

    def delay_ns(self, frame_bytes: int) -> int:
        """The bound for frames of a size: from release or departure before to departure here.

        Raises `InputError` for frames that the server was not made for.
        """
        if frame_bytes not in self.server.times:
            known = ", ".join(str(size) for size in self.server.times)
            raise InputError(
                f"frame_bytes {frame_bytes} is not a size that {self.name} was planned for ({known})"
            )
        return self.server.delay_ns(frame_bytes, self.work_ns)

    def refusal(self, flow: Flow, load: Load) -> Refusal | None:
        """The first limit that the flow would exceed, if any."""
        if not self._debt.is_open or not self.owes():
            return self._refusal(flow, load)
        refusal = self._refusal(flow, load)
        if refusal is not None:
            return refusal
        slack_ns = self._enough_ns(load) - self._debt.amount
        return None if slack_ns >= 0 else self._too_late(flow, math.floor(slack_ns))

    def owes(self) -> bool:
        """Whether what was released matters still."""
        if self._debt.is_open:
            self._settle()
        return self._debt.is_open

    def fits_ns(self, flow: Flow, load: Load) -> float:
        """From when on a flow fits, if nothing else comes; infinite if it does not even then."""
        leaving = [one.kept for one in self._debt.leaving]
        for other in leaving:
            self._forget(other)
        refusal = self._refusal(flow, load)
        enough_ns = max(self._enough_ns(load), -self._burst.value - _ROUNDING_NS)
        for other in leaving:
            self._note(other)
        return math.inf if refusal is not None else self._debt.paid_ns(self._spare(), enough_ns)

    def _refusal(self, flow: Flow, load: Load) -> Refusal | None:
        """By what counts now, whatever was released before (equation 1)."""
        if self._entries >= self._max_entries:
            return refused(flow, self.name, ("entries", "entries"), (self._entries, 1, self._max_entries))
        used, whole = self._share.value, self._whole
        share, burst_ns = used + load.share, self._burst.value + load.burst_ns
        if share > whole or burst_ns > self._first_room + (whole - share) * self._grid.end_ns:
            percents = (100 * used, 100 * load.share, 100 * whole)
            return refused(flow, self.name, ("rate", "% of the CPU"), percents)
        cells = self._cells(share, burst_ns, 0)
        slack_ns = self._slack_with(load, cells) if cells else 0
        return None if slack_ns >= 0 else self._too_late(flow, slack_ns)

    def _too_late(self, flow: Flow, slack_ns: int) -> Refusal:
        """With the flow, so much less than nothing would be left of the room."""
        used_ns = self._worst_ns()
        # Beyond these cells there is room, so the worst is among them.
        asked_ns = self._allowed_ns - slack_ns - used_ns
        times_us = (used_ns / 1e3, asked_ns / 1e3, self._allowed_ns / 1e3)
        return refused(flow, self.name, ("delay", "us"), times_us)

    def add(self, load: Load) -> None:
        """Note a flow that fits."""
        if self._debt.is_open:
            self._settle()
        self._note(load)

    def remove(self, load: Load) -> None:
        """Forget a flow that was added with this load, and has sent nothing."""
        self.owes()
        self._forget(load)

    def leave(self, until_ns: int, load: Load) -> None:
        """A flow was released; it counts until then."""
        self._debt.leave(until_ns, share=load.share, burst=load.burst_ns, kept=load)

    @property
    def debt_ns(self) -> float | None:
        """K: what released flows that count no longer may have left, in time of the CPU; none if nothing."""
        return self._debt.amount if self.owes() and self._debt.amount > NONE else None

    def restore(self, debt_ns: float) -> None:
        """Take over a debt as of now."""
        self._debt.restore(debt_ns, self._clock.now_ns)

    def _settle(self) -> None:
        self._debt.settle(
            self._clock.now_ns,
            self._spare,
            self._forget,
            lambda: -self._burst.value - _ROUNDING_NS,
        )

    def _spare(self) -> float:
        """Part of the CPU's time that the flows leave."""
        return self._whole - self._share.value

    def _enough_ns(self, load: Load) -> float:
        """So much of a debt may be left if a flow is to be admitted (D)."""
        return self._first_room - _ROUNDING_NS - self._burst.value - load.burst_ns

    def _note(self, load: Load) -> None:
        self._share.add(load.share)
        self._burst.add(load.burst_ns)
        self._entries += 1
        flows = self._ports[load.input_port].flows
        flows[load.staircase] = flows.get(load.staircase, 0) + 1
        self._changed()
        if self._known:
            self._shape(load.input_port, self._offered_with(load))

    def _forget(self, load: Load) -> None:
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
        """Forget all flows, and all that was released."""
        self._debt.clear()
        self._share, self._burst = ExactSum(), ExactSum()
        self._entries = 0
        for port in self._ports.values():
            port.flows.clear()
        self._changed()
        self._know_nothing()

    def usage(self) -> Usage:
        """What is used now. It depends on the set of flows that count only, not on their history."""
        self.owes()
        shares = (
            Share("delay", self._worst_ns() / 1e3, self._allowed_ns / 1e3, "us"),
            Share("rate", 100 * self._share.value, 100 * self._whole, "% of the CPU"),
            Share("entries", self._entries, self._max_entries, "entries"),
        )
        return Usage(shares, self._allowed_ns)

    def demands(self, load: Load) -> Iterator[Demand]:
        """What a flow takes whatever others do: an entry, and of the CPU's time in the long run."""
        yield Demand(self.name, "rate", load.share, self._whole)
        yield Demand(self.name, "entries", 1.0, float(self._max_entries))

    @property
    def room(self) -> Curve:
        """What the work of all flows may be in each cell."""
        return self._room

    def limit(self, port: int) -> Curve:
        """Work that can come by a port in each cell, whatever is offered."""
        return self._ports[port].limit

    def later_slack_ns(self, load: Load | None, from_ns: int) -> int:
        """What is left of the room in intervals longer than that, with this load, if any, beside the rest."""
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
        """The bound on the delay with what there is: less than allowed by what is left of the room."""
        if self._worst is None:
            self._know(1)
            left_ns = int(self._left[0])
            self._know(self._cells(self._share.value, self._burst.value, left_ns))
            self._worst = self._allowed_ns - _least(self._left)
        return self._worst

    def _slack_with(self, load: Load, cells: int) -> int:
        """The least that so much more would leave of the room; negative if that is exceeded.

        In the first cells at least. In those beyond there is room: to look at them changes no decision, nor
        by how much the room is exceeded.
        """
        key = load.input_port, load.staircase
        slack_ns = self._slacks.get(key)
        if slack_ns is None:
            self._know(cells)
            slack_ns = self._slacks[key] = _least(self._left_with(load))
        return slack_ns

    def _cells(self, share: float, burst_ns: float, left_ns: int) -> int:
        """From so many cells on, work below burst + share t leaves at least so much of the room.

        In a cell from t to t + w the room is at least its first value + t - i (t + w) - 1. Cell 0 (w = 0)
        is only reached if cell 1 has room; then it has, too.
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

    def _left_with(self, load: Load) -> Curve:
        """What so much more would leave of the room."""
        port, known = self._ports[load.input_port], self._known
        shaped: Curve = np.minimum(self._offered_with(load), port.limit[:known])
        left: Curve = np.subtract(self._left, shaped, out=shaped)
        if len(port.shaped):
            left += port.shaped
        return left

    def _offered_with(self, load: Load) -> Curve:
        """What would come by a port with so much more."""
        offered, work = self._ports[load.input_port].offered, self._grid.work(load.staircase, self._known)
        return offered + work if len(offered) else work

    def _shape(self, port_number: int, offered: Curve) -> None:
        """Note what comes by a port now."""
        port, known = self._ports[port_number], self._known
        if len(port.shaped):
            self._left += port.shaped
        port.offered = offered
        port.shaped = np.minimum(offered, port.limit[:known])
        self._left -= port.shaped

    def _know(self, cells: int) -> None:
        """Work out the curves of the flows that are there, at least so far.

        As far as one of few lengths, so that switches share curves, each twice the one before.
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
        """What was found before holds no longer."""
        self._slacks.clear()
        self._worst = None


def _least(curve: Curve) -> int:
    """Its smallest value; several times as fast as `min`."""
    return int(curve[curve.argmin()])


def refused(flow: Flow, switch: str, what: tuple[str, str], numbers: tuple[float, float, float]) -> Refusal:
    """Why a flow does not fit. `what`: quantity and unit; `numbers`: used, requested and allowed."""
    used, requested, allowed = numbers
    return Refusal(flow, switch, what[0], used, requested, allowed, what[1])
