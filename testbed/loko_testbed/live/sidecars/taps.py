"""Taps at the hosts: what became of the frames of each flow."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final

from loko.service.delays import DelayObservation

LOST_AFTER_NS: Final = 100_000_000
"""After this time a frame counts as lost: even full queues have emptied by then."""


@dataclass(slots=True)
class _Flow:
    under_way: dict[Hashable, deque[int]] = field(default_factory=dict)
    second_began_ns: dict[Hashable, int] = field(default_factory=dict)
    """By frame under way, when its second copy began, if it has one."""
    order: deque[tuple[int, Hashable]] = field(default_factory=deque)
    sent: int = 0
    lost: int = 0
    delays_ns: list[int] = field(default_factory=list)


class Taps:
    """Joins what the taps of sender and receiver see of each flow. Instants are of one clock, in ns.

    A frame is recognised by an identification; frames with the same one are told apart by their order. Of the
    two copies of a frame the one that arrives first counts, from its own beginning; the other is dropped
    (IEEE 802.1CB, FRER).
    """

    def __init__(self) -> None:
        self._flows: dict[str, _Flow] = {}

    def watch(self, flow_ids: set[str]) -> None:
        """Watch these flows from now on, and no others."""
        self._flows = {name: self._flows.get(name) or _Flow() for name in flow_ids}

    def sent(self, flow_id: str, frame: Hashable, at_ns: int, *, is_second: bool = False) -> None:
        """Note that a frame began at the sender's tap, or the second copy of one."""
        if (flow := self._flows.get(flow_id)) is not None:
            if is_second and frame in flow.under_way:
                flow.second_began_ns[frame] = at_ns
                return
            flow.sent += 1
            flow.under_way.setdefault(frame, deque()).append(at_ns)
            flow.order.append((at_ns, frame))

    def received(self, flow_id: str, frame: Hashable, at_ns: int, *, is_second: bool = False) -> None:
        """Note that a frame began at the receiver's tap. One never sent, or received before, is ignored."""
        flow = self._flows.get(flow_id)
        if flow is None or not (began := flow.under_way.get(frame)):
            return
        began_ns = began.popleft()
        second_ns = flow.second_began_ns.pop(frame, began_ns)
        flow.delays_ns.append(at_ns - (second_ns if is_second else began_ns))
        if not began:
            del flow.under_way[frame]

    def purge(self) -> None:
        """Forget the frames under way: they count neither as received nor as lost."""
        for flow in self._flows.values():
            flow.under_way.clear()
            flow.second_began_ns.clear()
            flow.order.clear()

    def observations(self, now_ns: int) -> Iterator[DelayObservation]:
        """Yield what the taps saw since the last call, for each flow of which they saw anything."""
        for name, flow in self._flows.items():
            while flow.order and now_ns - flow.order[0][0] > LOST_AFTER_NS:
                began_ns, frame = flow.order.popleft()
                began = flow.under_way.get(frame)
                if began and began[0] == began_ns:
                    flow.lost += 1
                    began.popleft()
                    flow.second_began_ns.pop(frame, None)
                    if not began:
                        del flow.under_way[frame]
            if flow.sent or flow.lost or flow.delays_ns:
                yield DelayObservation(
                    flow=name, sent=flow.sent, lost=flow.lost, delays_ns=tuple(flow.delays_ns)
                )
                flow.sent = flow.lost = 0
                flow.delays_ns = []
