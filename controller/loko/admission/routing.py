"""Routing: the shortest path on which a flow is admitted, and within a deadline if one is given.

Cost is the number of switches; among equally short paths the one of lowest ports comes first. Paths are tried
in order of cost, so the first that is admitted is a delay-constrained least-cost path, whatever the admission
scheme counts. Switches without any room are left out of the search. The search is exact as long as no more
than `MOST_PATHS` paths are cheaper than the answer; rings and trees have one or two. In a large network with
many ways that is soon reached, so what a refusal costs is bounded, however many switches there are.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from loko.admission import Admission, Admitted, Ask, Check, Refusal, Suggestion, suggest_smaller
from loko.document import InputError
from loko.lazy_mapping import LazyMapping
from loko.switch_model.flow import Flow
from loko.topology.lab import Endpoint, Lab
from loko.topology.network import Hop, refuse_ends

MOST_PATHS: Final = 256
Ends = frozenset[tuple[str, int]]
"""Ends of cables: nodes, each with a port."""


def route(
    lab: Lab,
    admission: Admission,
    flow: Flow,
    deadline_ns: float | None = None,
    dead_ends: Ends = frozenset(),
) -> Admitted | Refusal:
    """Return the admission control's answer on the best path, without admitting the flow.

    Paths out of `dead_ends`, nodes with their ports, are left out; if only such are left, the answer is that
    of the shortest. If no path will do, the refusal is that of the shortest path, or, if the flow fits but is
    too slow, that of the fastest. Its advice says what would be granted instead, on any path. Raises
    `InputError` as `Admission.check` does.
    """
    best, first, tried, hint = _tried(lab, admission, flow, deadline_ns, dead_ends)
    if best is not None and _in_time(best, deadline_ns):
        return best
    if best is None and isinstance(first, Admitted):
        return first
    smaller = partial(route, lab, admission, deadline_ns=deadline_ns, dead_ends=dead_ends)
    if best is not None and deadline_ns is not None:
        again = partial(_fastest, lab, admission, flow, dead_ends)
        refusal = _too_slow(best, deadline_ns, partial(_longer, again, smaller, admission.check))
    else:
        assert isinstance(first, Refusal)
        shortest = paths(lab, flow.source, flow.destination)
        refusal = _advised(first, smaller, admission, deadline_ns, shortest)
    return refusal._replace(paths=max(tried - 1, 1), hint=refusal.hint or hint)


def _tried(
    lab: Lab, admission: Admission, flow: Flow, deadline_ns: float | None, dead_ends: Ends
) -> tuple[Admitted | None, Admitted | Refusal, int, str]:
    """Return the first path in time, else the fastest; the shortest path's answer; how many paths were asked.

    The shortest is asked twice if it will not do. The last value is the hint of the first refusal that has
    one: whatever is said of the other paths, it may be what keeps the flow off its best path.
    """
    first = admission.check(flow)
    fastest = (
        first if isinstance(first, Admitted) and not leaves_by(dead_ends, flow.source, first.path) else None
    )
    if fastest is not None and _in_time(fastest, deadline_ns):
        return fastest, first, 1, ""
    tried, hint = 1, first.hint if isinstance(first, Refusal) else ""
    for path in paths(
        lab, flow.source, flow.destination, leave_out=_FullSwitches(admission), dead_ends=dead_ends
    ):
        answer = admission.check(flow, path)
        tried += 1
        if isinstance(answer, Refusal):
            hint = hint or answer.hint
            continue
        if _in_time(answer, deadline_ns):
            return answer, first, tried, ""
        if fastest is None or answer.guarantee_ns < fastest.guarantee_ns:
            fastest = answer
    return fastest, first, tried, hint


def _fastest(lab: Lab, admission: Admission, flow: Flow, dead_ends: Ends) -> Admitted | None:
    """Return the flow on the path with the lowest guarantee among those that have room."""
    fastest, _, _, _ = _tried(lab, admission, flow, 0.0, dead_ends)
    return fastest


def leaves_by(dead_ends: Ends, source: str, path: Sequence[Hop]) -> bool:
    """Return whether a path from a host crosses a dead cable."""
    leaves = ((hop.switch, hop.output_port) for hop in path)
    return bool(dead_ends) and not dead_ends.isdisjoint([(source, 1), *leaves])


def _in_time(admitted: Admitted, deadline_ns: float | None) -> bool:
    return deadline_ns is None or admitted.guarantee_ns <= deadline_ns


def admit(
    lab: Lab,
    admission: Admission,
    flow: Flow,
    deadline_ns: float | None = None,
    path: Sequence[Hop] | None = None,
    *,
    dead_ends: Ends = frozenset(),
) -> Admitted | Refusal:
    """Admit a flow on the best path, or on the one that is given, or say why not. See `route`.

    Raises `InputError` as `Admission.request` does.
    """
    if path is None:
        answer = route(lab, admission, flow, deadline_ns, dead_ends)
    else:
        answer = on_path(admission, path, deadline_ns, flow)
    if isinstance(answer, Refusal):
        return answer
    return admission.request(flow, answer.path)


def on_path(
    admission: Admission, path: Sequence[Hop], deadline_ns: float | None, flow: Flow
) -> Admitted | Refusal:
    """Answer as `route` does, but for one path only. Raises `InputError` as `Admission.check` does."""
    answer = admission.check(flow, path)
    if isinstance(answer, Refusal):
        ask = partial(on_path, admission, path, deadline_ns)
        return _advised(answer, ask, admission, deadline_ns, iter([path]))
    if deadline_ns is not None and not _in_time(answer, deadline_ns):
        smaller = partial(on_path, admission, path, deadline_ns)
        again = partial(_if_admitted, admission, flow, path)
        return _too_slow(answer, deadline_ns, partial(_longer, again, smaller, admission.check))
    return answer


def _if_admitted(admission: Admission, flow: Flow, path: Sequence[Hop]) -> Admitted | None:
    answer = admission.check(flow, path)
    return answer if isinstance(answer, Admitted) else None


def _advised(
    refusal: Refusal,
    ask: Ask,
    admission: Admission,
    deadline_ns: float | None,
    refused: Iterator[Sequence[Hop]],
) -> Refusal:
    """Return the refusal with advice on a request that would fit, unless the scheme already advises to wait.

    The scheme knows no deadlines, so its advice is kept only if the first of the refused paths is in time.
    """
    if isinstance(refusal.advice, Suggestion):
        in_time = deadline_ns is None or (
            sum(admission.usage(hop.switch).delay_ns for hop in next(refused)) <= deadline_ns
        )
        if in_time:
            return refusal
    return refusal._replace(advice=partial(suggest_smaller, ask, admission.check))


def _longer(again: Callable[[], Admitted | None], smaller: Ask, check: Check, refusal: Refusal) -> Suggestion:
    """Advise the deadline that would be kept now; others may have taken the room since the refusal."""
    try:
        admitted = again()
    except InputError:  # the id may be in use by now
        return Suggestion()
    if admitted is None:
        return suggest_smaller(smaller, check, refusal)
    return Suggestion(deadline_ns=math.ceil(admitted.guarantee_ns))


def _too_slow(admitted: Admitted, deadline_ns: float, advice: Callable[[Refusal], Suggestion]) -> Refusal:
    """Return the refusal of a flow that fits, but whose guarantee exceeds its deadline."""
    hop, delay_ns = max(
        zip(admitted.path, admitted.delays_ns, strict=True), key=lambda hop_and_delay: hop_and_delay[1]
    )
    if admitted.whole_path_ns is not None:  # no part of it belongs to one switch
        delay_ns = admitted.whole_path_ns
    return Refusal(
        flow=admitted.flow,
        switch=hop.switch,
        quantity="delay",
        used=admitted.guarantee_ns - delay_ns,
        requested=delay_ns,
        allowed=deadline_ns,
        unit="ns",
        advice=advice,
    )


def paths(
    lab: Lab,
    source: str,
    destination: str,
    *,
    leave_out: Container[str] = frozenset(),
    visits: int = 1,
    dead_ends: Ends = frozenset(),
) -> Iterator[tuple[Hop, ...]]:
    """Yield paths in order of cost, at most `MOST_PATHS`. Raises `InputError` as `shortest_path` does.

    None leaves a node by one of the `dead_ends`.

    None crosses a cable twice, or visits a switch more than `visits` times: by default none has a loop. The
    search first extends what can become a path of least cost (A*: Hart, Nilsson, Raphael 1968).
    """
    refuse_ends(lab, source, destination)
    left = _RemainingHops(lab, destination, leave_out)
    marks: LazyMapping[str, int] = LazyMapping(lambda _: 1 << len(marks))
    """A bit for each node. One step tells whether a node is on a path, however long that is.

    For paths that may visit switches again, a bit for each cable.
    """

    def mark_of(node: str, port: int, far: Endpoint) -> int:
        return marks[far.node if visits == 1 else min(f"{node}:{port}", str(far))]

    def ways_on(node: str) -> list[_Approach]:
        return [
            _Approach(port, far.node, mark_of(node, port, far), switches, Hop(switch=node, output_port=port))
            for port, far in lab.outgoing_cables(node)
            if (node, port) not in dead_ends and (switches := left.switches(far.node)) is not None
        ]

    ways: LazyMapping[str, list[_Approach]] = LazyMapping(ways_on)
    # Beginnings of paths: least cost, ports, the node they lead to, what they cross, hops.
    waiting: list[tuple[int, tuple[int, ...], str, int, tuple[Hop, ...]]] = [
        (way.switches, (), way.node, way.mark, ()) for way in ways[source]
    ]
    yielded = examined = 0
    while waiting and yielded < MOST_PATHS and examined < 64 * MOST_PATHS:
        _, ports, node, crossed, hops = heapq.heappop(waiting)
        examined += 1
        if node == destination:
            yielded += 1
            yield hops
            continue
        count = len(hops) + 1
        for port, far, mark, switches, hop in ways[node]:
            if not crossed & mark:
                onward = (*hops, hop)
                if visits > 1 and sum(visited.switch == far for visited in onward) >= visits:
                    continue
                beginning = (count + switches, (*ports, port), far, crossed | mark, onward)
                heapq.heappush(waiting, beginning)


class _Approach(NamedTuple):
    """A cable on the way to a destination."""

    port: int
    node: str
    """The node that the cable leads to."""
    mark: int
    switches: int
    """The least number of switches from that node to the destination, with itself."""
    hop: Hop


class _RemainingHops:
    """The least number of switches from each node to the destination, found only as far as needed."""

    def __init__(self, lab: Lab, destination: str, leave_out: Container[str]) -> None:
        self._lab = lab
        self._leave_out = leave_out
        self._known = {destination: 0}
        self._farthest = [destination]

    def switches(self, node: str) -> int | None:
        """Return this number, with the node itself counted; None if no path leads on from it."""
        known = self._known
        if node not in known and node in self._lab.switches and node not in self._leave_out:
            while self._farthest and node not in known:
                self._go_back()
        return known.get(node)

    def _go_back(self) -> None:
        lab, known, leave_out = self._lab, self._known, self._leave_out
        reached = []
        for there in self._farthest:
            for near in lab.arrivals(there):
                name = near.node
                if name not in known and name in lab.switches and name not in leave_out:
                    known[name] = known[there] + 1
                    reached.append(name)
        self._farthest = reached


def path_through(lab: Lab, source: str, destination: str, switches: Sequence[str]) -> tuple[Hop, ...]:
    """Return the path that visits these switches in order, by the lowest ports; it crosses no cable twice.

    A switch may be listed several times. Raises `InputError` if there is no such path.
    """
    hops = []
    crossed: set[tuple[str, int]] = set()
    for switch, following in zip(switches, [*switches[1:], destination], strict=False):
        if switch not in lab.switches:
            raise InputError(f"path: lab '{lab.name}' has no switch '{switch}'")
        way = next(
            (
                (port, far)
                for port, far in lab.outgoing_cables(switch)
                if far.node == following and (switch, port) not in crossed
            ),
            None,
        )
        if way is None:
            again = " that it has not crossed" if crossed else ""
            raise InputError(f"path: no cable{again} leads from {switch} to {following}")
        port, far = way
        crossed |= {(switch, port), (far.node, far.port)}
        hops.append(Hop(switch=switch, output_port=port))
    if not hops or hops[0].switch not in (far.node for _, far in lab.outgoing_cables(source)):
        raise InputError(f"path: does not begin at the switch of {source}")
    return tuple(hops)


class _FullSwitches(Container[str]):
    """The switches without room for any flow. Each is checked when the search reaches it."""

    def __init__(self, admission: Admission) -> None:
        self._known: LazyMapping[str, bool] = LazyMapping(lambda name: admission.usage(name).is_full)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._known[name]
