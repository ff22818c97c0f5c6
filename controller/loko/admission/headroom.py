"""Headroom: how many more flows of one kind fit between each two hosts, and what limits them first.

Each pair of hosts is asked alone, beside the flows that are admitted: copies of the flow are requested one by
one, each on the best path that has room, until one is refused. So the number is what the admission control
would grant.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, NamedTuple

from loko.admission.answer import Refusal
from loko.admission.routing import admit
from loko.admission.scheme import Admission
from loko.admission.token_buckets import LokoAdmission
from loko.solvers.program import TimeBudget
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.topology.requests import Request

MOST_MORE: Final = 250
"""No more copies than this are requested between two hosts."""
_GOLDEN_RATIO: Final = (math.sqrt(5) - 1) / 2
_LAST_PORT: Final = 65_535


@dataclass(frozen=True, kw_only=True)
class PairHeadroom:
    """How many more flows fit from one host to another, and between pairs of which the same is true."""

    source: str
    destination: str
    switches: tuple[str, str]
    """The switches of the source and of the destination."""
    pairs: int
    """How many ordered pairs of hosts at these switches this is true of."""
    more: int
    """`MOST_MORE` means at least so many."""
    limit: Refusal | None
    """The refusal of the next flow; None if `MOST_MORE` fit."""

    def as_values(self) -> dict[str, object]:
        """Return it as plain values, for JSON."""
        limit = self.limit
        return {
            "source": self.source,
            "destination": self.destination,
            "switches": list(self.switches),
            "pairs": self.pairs,
            "more": self.more,
            "limit": None if limit is None else {**limit.excess_values(), "hint": limit.hint},
        }


class SharedLimit(NamedTuple):
    """A quantity at a switch that limits pairs of hosts."""

    quantity: str
    switch: str
    pairs: int
    """How many pairs of hosts it limits first."""
    least: int
    """The least headroom of these pairs."""
    most: int
    hint: str
    """Advice to whoever runs the network, as `Refusal.hint`."""


@dataclass(frozen=True, kw_only=True)
class Headroom:
    """The headroom of a lab for flows of one kind."""

    template: Request
    """The flow; its hosts, ports and id do not count."""
    rows: tuple[PairHeadroom, ...]
    """The pairs that were asked, the least headroom first."""
    pairs: int
    """All ordered pairs of hosts in the lab."""

    @property
    def asked(self) -> int:
        """The pairs whose headroom is known: fewer than `pairs` if the time was up before."""
        return sum(row.pairs for row in self.rows)

    @property
    def unlimited(self) -> int:
        """The pairs between which `MOST_MORE` fit."""
        return sum(row.pairs for row in self.rows if row.limit is None)

    @property
    def limits(self) -> tuple[SharedLimit, ...]:
        """The limits that pairs of hosts meet first, those of most pairs at the beginning."""
        groups: defaultdict[tuple[str, str], list[PairHeadroom]] = defaultdict(list)
        for row in self.rows:
            if row.limit is not None:
                groups[row.limit.quantity, row.limit.switch].append(row)
        limits = [
            SharedLimit(
                quantity=quantity,
                switch=switch,
                pairs=sum(row.pairs for row in rows),
                least=min(row.more for row in rows),
                most=max(row.more for row in rows),
                hint=next((row.limit.hint for row in rows if row.limit and row.limit.hint), ""),
            )
            for (quantity, switch), rows in groups.items()
        ]
        return tuple(sorted(limits, key=lambda limit: (-limit.pairs, limit.least)))

    def as_values(self) -> dict[str, object]:
        """Return it as plain values, for JSON."""
        flow = self.template.flow
        return {
            "flow": {
                "rate_bps": flow.rate_bps,
                "burst_bytes": flow.burst_bytes,
                "frame_bytes": flow.frame_bytes,
                **({} if flow.traffic_class == 1 else {"traffic_class": flow.traffic_class}),
                "deadline_ns": self.template.deadline_ns,
            },
            "pairs": self.pairs,
            "asked": self.asked,
            "limits": [limit._asdict() for limit in self.limits],
            "rows": [row.as_values() for row in self.rows],
        }


def headroom(lab: Lab, admission: Admission, template: Request, *, clock: TimeBudget) -> Headroom:
    """Return how many more flows like the template fit between each two hosts, until the clock has run out.

    Each must meet the template's deadline, if it has one. Of hosts that are alike, one is asked for all: of
    those at one switch that no admitted flow uses, and for Loko's scheme of all at one switch. If the time
    does not suffice, the pairs that were asked are spread over the lab. The admission control must be
    monotonic, as for `loko.admission.largest`, and is left as it was. Raises `InputError` for frames that it
    does not cover.
    """
    groups = _alike(lab, admission)
    found: dict[int, PairHeadroom] = {}
    for number in _spread(len(groups) ** 2):
        (switch, sources), (other, destinations) = (groups[at] for at in divmod(number, len(groups)))
        is_within = sources is destinations
        pairs = len(sources) * (len(destinations) - is_within)
        if not pairs:
            continue
        flow = template.flow._replace(source=sources[0], destination=destinations[is_within])
        counted = _counted(lab, admission, template._replace(flow=flow), clock)
        if counted is None:
            break
        more, limit = counted
        found[number] = PairHeadroom(
            source=flow.source,
            destination=flow.destination,
            switches=(switch, other),
            pairs=pairs,
            more=more,
            limit=limit,
        )
    rows = _merged([found[number] for number in sorted(found)])
    return Headroom(template=template, rows=rows, pairs=len(lab.hosts) * (len(lab.hosts) - 1))


def _spread(count: int) -> Iterator[int]:
    """Yield the numbers below `count`, each once, in steps such that the first ones are spread over all."""
    step = max(1, round(count * _GOLDEN_RATIO))
    while math.gcd(step, count) > 1:
        step += 1
    yield from (number * step % count for number in range(count))


def _alike(lab: Lab, admission: Admission) -> list[tuple[str, list[str]]]:
    """Return groups of hosts that are alike, each with its switch.

    Loko's scheme counts by switch alone. For others a host that a flow uses is alone, since they may also
    count by cable or by port.
    """
    used: set[str] = set()
    if not isinstance(admission, LokoAdmission):
        used = {host for admitted in admission.admitted.values() for host in admitted.flow[1:3]}
    groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for host in lab.hosts:
        end = lab.far_end(host, 1)
        groups["" if end is None else end.node, host if host in used else ""].append(host)
    return [(switch, hosts) for (switch, _), hosts in groups.items()]


def _counted(
    lab: Lab, admission: Admission, template: Request, clock: TimeBudget
) -> tuple[int, Refusal | None] | None:
    """Return how many more flows fit between the template's hosts, and why no other; None out of time."""
    admitted: list[str] = []
    try:
        for flow in islice(_copies(admission, template.flow), MOST_MORE):
            if not clock.remaining_s:
                return None
            answer = admit(lab, admission, flow, template.deadline_ns)
            if isinstance(answer, Refusal):
                return len(admitted), answer
            admitted.append(flow.id)
        return len(admitted), None
    finally:
        for flow_id in reversed(admitted):
            admission.cancel(flow_id)


def _copies(admission: Admission, flow: Flow) -> Iterator[Flow]:
    """Yield flows like one, whose ids and ports are free: no flow of a list may have a plus in its id."""
    used = {admitted.flow[1:5] for admitted in admission.admitted.values()}
    for port in range(1, _LAST_PORT + 1):
        copy = flow._replace(id=f"{flow.id}+{port}", udp_source=port)
        if copy[1:5] not in used:
            yield copy


def _merged(rows: list[PairHeadroom]) -> tuple[PairHeadroom, ...]:
    """Join rows of the same switches that say the same, and put the least headroom first."""
    pairs: Counter[object] = Counter()
    first: dict[object, PairHeadroom] = {}
    for row in rows:
        key = row.switches, row.more, row.limit and tuple(row.limit.excess_values().items())
        first.setdefault(key, row)
        pairs[key] += row.pairs
    merged = [replace(row, pairs=pairs[key]) for key, row in first.items()]
    return tuple(sorted(merged, key=lambda row: row.more))
