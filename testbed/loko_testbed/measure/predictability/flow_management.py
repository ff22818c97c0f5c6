"""FM: whether the switch installs what it says, and whether its table keeps its size (section III-A).

Entries are added at a given rate until the first error. Then the switch is asked which it has, and a frame
for each entry shows which it really forwards. The same is done over and over on one switch, since some tables
shrink, and with a barrier after each entry, since some switches read no faster than they work.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from os_ken.ofproto import ofproto_v1_0 as of
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.framing import whole_messages
from loko.control.messages import barrier_request, echo_request, flow_stats_request
from loko.control.os_ken_messages import flow_mod
from loko.units import NS_PER_MS, NS_PER_S, NS_PER_US
from loko_testbed.instruments.numbered_table import OUT_PORT
from loko_testbed.instruments.virtual_session import install
from loko_testbed.measure.predictability.marks import DimensionVerdict, Mark, Thresholds, thresholds
from loko_testbed.measure.predictability.numbered_entries import (
    FIGURE_ACTIONS,
    FRAME_BYTES,
    MatchAction,
    add_message,
    max_entries,
    probe,
)
from loko_testbed.measure.predictability.subject import (
    SETTLED_NS,
    SWITCH,
    FrameStream,
    SwitchUnderTest,
    fresh,
)
from loko_testbed.simulation.runner import LOST, RunError

DEFAULT: Final = MatchAction()
"""Five-tuple and output, as in figures 8 and 9."""
RATES_PER_S: Final = (1, 4, 16, 85)
"""FLOW_MODs per second: the slowest and fastest rates of section III-A.2, and some between."""
FAST_PER_S: Final = 85
SETTLED_S: Final = SETTLED_NS // 1_000_000_000
PAUSE_MS: Final = 10
"""Pause between the reply to a barrier and the next entry (section III-A.2d)."""
ALTERNATING: Final = (MatchAction(action="set-dl-src"), MatchAction(action="set-dl-dst"))
"""Combinations that take turns, as in figure 9b."""
_ECHOES: Final = 3
"""If this many echo requests, one a second, have no reply, the switch does not read what it is sent."""
_SAMPLED: Final = 20
"""How many entries of a full table are probed to see whether the chip forwards them."""
_BATCH: Final = 64
_APART_NS: Final = 1_000_000
"""Distance between segments that would otherwise be one."""
_MORE_PROBES: Final = 2
_ANY_XID: Final = 0xFFFFFFF0
_STATISTICS_AT: Final = 12
_LENGTH: Final = struct.Struct("!H")
_ENTRY_COOKIE_AT: Final = 64
"""Offset of an entry's cookie in a FLOW_STATS reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """Fates of the entries up to the first error."""

    sent: int
    """Entries sent without an error."""
    listed: int
    """Entries that the switch says it has."""
    forwarded: int
    """Listed entries whose frames come out."""
    full: bool
    """Whether an error ended the filling. If not, the table is larger than the campaign asks for."""
    throttled: bool = False
    """Whether the filling ended because the switch did not read at that rate."""
    unreported: int = 0
    """Entries by which the switch forwards although it does not report them."""

    @property
    def held(self) -> int:
        """Entries by which the switch forwards."""
        return self.forwarded + self.unreported

    @property
    def room(self) -> int:
        """Entries known to fit: those that are forwarded if the switch said that it is full, else all."""
        return self.held if self.full else self.sent

    @property
    def only_listed(self) -> int:
        """Entries reported, but not forwarded."""
        return self.listed - self.forwarded

    @property
    def ignored(self) -> int:
        """Entries neither refused, nor reported, nor forwarded."""
        return self.sent - self.listed - self.unreported


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedFill:
    """The result of filling a table with a barrier after each entry."""

    fill: Fill
    at_s: list[float]
    """When the table had reached each number of `entries`: after each batch."""
    entries: list[int]
    slowest_s: float
    """Mean time of an entry in the slowest batch."""


class Controlled:
    """A fresh switch and its controller, until frames are sent."""

    def __init__(self, subject: SwitchUnderTest, seed: int) -> None:
        self.subject = subject
        self._network = fresh(subject, seed)
        install(self._network, SWITCH, [])

    @property
    def now_ns(self) -> int:
        """The current virtual time."""
        return self._network.now_ns()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._messages([b""], spacing_ns=round(seconds * NS_PER_S))

    def add_at_rate(self, combination: MatchAction, *, per_s: float, at_most: int) -> tuple[int, bool, bool]:
        """Add entries until the first error. Return how many, whether one came, and if it stopped reading."""
        gap_ns, a_second = round(NS_PER_S / per_s), max(1, round(per_s))
        at_most = max(1, int(min(at_most, per_s * self.subject.pace.fill_s)))
        echoes = 0
        for number in range(at_most):
            left_ns, messages = gap_ns, []
            if number % a_second == 0:
                # In a segment of its own: two replies to one segment break the session of a Zodiac FX.
                messages = self._messages([echo_request(_ANY_XID)], spacing_ns=_APART_NS)
                echoes += 1
                left_ns -= _APART_NS
            messages += self._messages([add_message(combination, number)], spacing_ns=left_ns)
            echoes -= _count(messages, of.OFPT_ECHO_REPLY)
            if (refused := _first_error(messages)) is not None:
                return refused, True, False
            if echoes >= _ECHOES:
                return number + 1, False, True
        return at_most, False, False

    def add_paced(
        self, combination: MatchAction, *, pause_ns: int, at_most: int
    ) -> tuple[int, bool, list[tuple[int, int]]]:
        """Add entries, each with a barrier, until the first error.

        Returns how many were added, whether an error came, and (instant, entries) after each batch. Whole
        batches are sent, also entries behind the first error. A board gets each message in a segment of its
        own. Raises `RunError` if the switch stops answering.
        """
        steps: list[tuple[int, int]] = []
        batch = 1 if self.subject.is_board else _BATCH
        for first in range(0, at_most, batch):
            numbers = range(first, min(first + batch, at_most))
            if self.subject.is_board:
                messages = self._messages([add_message(combination, first)], spacing_ns=_APART_NS)
                segments = [barrier_request(_ANY_XID)]
            else:
                messages = []
                segments = [add_message(combination, number, barrier=True) for number in numbers]
            messages += self._messages(segments, spacing_ns=pause_ns, await_reply=True)
            if (refused := _first_error(messages)) is not None:
                return refused, True, steps
            if _count(messages, of.OFPT_BARRIER_REPLY) < len(segments):
                raise RunError(f"{self.subject.device}: stopped answering after {first} entries or more")
            steps.append((self.now_ns, numbers[-1] + 1))
        return at_most, False, steps

    def listed(self) -> set[int]:
        """Return the numbers of the entries that the switch says it has."""
        numbers: set[int] = set()
        for message in self._messages([flow_stats_request(_ANY_XID)]):
            if message[1] == of.OFPT_STATS_REPLY:
                numbers.update(_cookies(message))
        return numbers

    def clear(self) -> None:
        """Delete all entries."""
        self._messages([flow_mod(parser.OFPMatch(), [], priority=0, xid=1, command=of.OFPFC_DELETE)])

    def forwarded(
        self, combination: MatchAction, numbers: Sequence[int], *, slowly: bool = False
    ) -> dict[int, int | None]:
        """Send each of these entries its frame. Return the times in ns, or None for frames that are lost.

        In real time a lost one is sent twice more, since a stall of the host may have lost it. In virtual
        time, call no other method afterwards.
        """
        took_ns = self._probed(combination, numbers, slowly=slowly)
        for _ in range(_MORE_PROBES if self.subject.live is not None else 0):
            lost = [number for number, ns in took_ns.items() if ns is None]
            took_ns |= self._probed(combination, lost, slowly=slowly)
        return took_ns

    def _probed(
        self, combination: MatchAction, numbers: Sequence[int], *, slowly: bool
    ) -> dict[int, int | None]:
        pace = self.subject.pace
        gap_ns = pace.slow_probe_gap_ns if slowly else pace.probe_gap_ns
        streams = []
        for place, number in enumerate(numbers):
            enters, data = probe(combination, number)
            instants_ns = np.array([place * gap_ns], dtype=np.int64)
            streams.append(FrameStream(enters=enters, leaves=OUT_PORT, frame=data, instants_ns=instants_ns))
        if not streams:
            return {}
        sent = self._network.send(streams, drain_ns=NS_PER_S)
        return {
            number: None if stream.received_ns[0] == LOST else int(stream.received_ns[0] - stream.sent_ns[0])
            for number, stream in zip(numbers, sent, strict=True)
        }

    def _messages(
        self, segments: Sequence[bytes], *, spacing_ns: int = PAUSE_MS * NS_PER_MS, await_reply: bool = False
    ) -> list[bytes]:
        replies = self._network.control(SWITCH, segments, spacing_ns=spacing_ns, await_reply=await_reply)
        messages, _ = whole_messages(b"".join(replies))
        return messages


def fill_at_rate(
    subject: SwitchUnderTest, per_s: float, *, at_most: int, seed: int, combination: MatchAction = DEFAULT
) -> tuple[Fill, list[int]]:
    """Fill a fresh table at a rate. Return the result, and the entries forwarded after it has settled."""
    switch = Controlled(subject, seed)
    sent, full, throttled = switch.add_at_rate(combination, per_s=per_s, at_most=at_most)
    switch.wait(subject.pace.settles_ns / NS_PER_S)
    return _query_entries(switch, combination, sent, full=full, throttled=throttled)


def fill_paced(
    subject: SwitchUnderTest, *, at_most: int, seed: int, combination: MatchAction = DEFAULT
) -> PacedFill:
    """Fill a fresh table with a barrier after each entry."""
    switch = Controlled(subject, seed)
    begin_ns = switch.now_ns
    sent, full, steps = switch.add_paced(combination, pause_ns=PAUSE_MS * NS_PER_MS, at_most=at_most)
    switch.wait(subject.pace.settles_ns / NS_PER_S)
    fill, _ = _query_entries(switch, combination, sent, full=full)
    at_s = [0.0, *((at_ns - begin_ns) / NS_PER_S for at_ns, _ in steps)]
    entries = [0, *(count for _, count in steps)]
    batches = zip(at_s, at_s[1:], entries, entries[1:], strict=False)
    slowest_s = max((((late - early) / (more - less)) for early, late, less, more in batches), default=0.0)
    return PacedFill(fill=fill, at_s=at_s, entries=entries, slowest_s=slowest_s)


def age(
    subject: SwitchUnderTest, *, wait_s: float, runs: int, at_most: int, seed: int, per_s: float = FAST_PER_S
) -> list[Fill]:
    """Fill, wait, ask, probe and delete, over and over on one switch.

    Frames do not change a table, so the probes of each run go to a copy of the switch with the same past.
    """
    fills: list[Fill] = []
    for last in range(runs):
        switch = Controlled(subject, seed)
        for number in range(last + 1):
            sent, full, throttled = switch.add_at_rate(DEFAULT, per_s=per_s, at_most=at_most)
            if number < last:
                if throttled:
                    switch.wait(subject.pace.settles_ns / NS_PER_S)
                switch.wait(wait_s)
                switch.listed()
                switch.clear()
        switch.wait(wait_s)
        fill, _ = _query_entries(switch, DEFAULT, sent, full=full, throttled=throttled)
        fills.append(fill)
        if throttled:
            break
    return fills


def alternate(subject: SwitchUnderTest, *, runs: int, at_most: int, seed: int) -> dict[str, list[int]]:
    """Return how many entries the table takes in each run, with two combinations in turn; one per second."""
    switch = Controlled(subject, seed)
    taken: dict[str, list[int]] = {combination.action: [] for combination in ALTERNATING}
    for place in range(runs):
        combination = ALTERNATING[place % len(ALTERNATING)]
        sent, _, _ = switch.add_paced(combination, pause_ns=subject.pace.entry_gap_ns, at_most=at_most)
        taken[combination.action].append(sent)
        switch.clear()
    return taken


def size(subject: SwitchUnderTest, combination: MatchAction, *, at_most: int, seed: int) -> int:
    """Return how many such entries the chip holds, or a board.

    0 if it refuses them, or if of a few probed ones none is forwarded, or, with a chip, only slowly.
    """
    switch = Controlled(subject, seed)
    at_most = min(at_most, max_entries(combination, subject.ports))
    sent, _, _ = switch.add_paced(combination, pause_ns=subject.pace.entry_gap_ns, at_most=at_most)
    if not sent:
        return 0
    few = sorted({round(place) for place in np.linspace(0, sent - 1, _SAMPLED)})
    took_ns = switch.forwarded(combination, few, slowly=True)
    wire_ns = subject.wire_ns(FRAME_BYTES)
    came = [ns - wire_ns for ns in took_ns.values() if ns is not None]
    fast = subject.on_cpu or (
        bool(came) and float(np.median(came)) / NS_PER_US <= thresholds().software_us.value
    )
    return sent if came and fast else 0


def sizes(subject: SwitchUnderTest, match: str, *, at_most: int, seed: int) -> dict[str, int]:
    """Return `size` for each action of table III."""
    return {
        action: size(subject, MatchAction(match=match, action=action), at_most=at_most, seed=seed)
        for action in FIGURE_ACTIONS
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowResults:
    """All that the mark depends on."""

    rates: Mapping[float, Fill]
    paced: PacedFill
    aging: Mapping[float, list[Fill]]
    """The result of each run, by the wait in seconds."""
    alternating: Mapping[str, list[int]]
    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def judge(results: FlowResults, limits: Thresholds) -> DimensionVerdict:
    """Give the mark, and the reasons."""
    fills = [results.paced.fill, *results.rates.values()]
    rates = list(results.rates.items())
    largest = max(fills, key=lambda fill: fill.held)
    numbers: dict[str, float] = {
        "table_entries": largest.held,
        "slowest_entry_s": results.paced.slowest_s,
    }
    for per_s, fill in rates:
        numbers |= {
            f"sent_at_{per_s:g}_per_s_entries": fill.sent,
            f"only_listed_at_{per_s:g}_per_s_entries": fill.only_listed,
            f"ignored_at_{per_s:g}_per_s_entries": fill.ignored,
            f"unreported_at_{per_s:g}_per_s_entries": fill.unreported,
        }
    shrinks = {
        f"in {len(of)} runs at {FAST_PER_S} entries/s, {wait_s:g} s after each": _shrinks(
            [fill.room for fill in of]
        )
        for wait_s, of in results.aging.items()
    }
    shrinks |= {
        f"in {len(of)} runs with {action}, one after the other": _shrinks(of)
        for action, of in results.alternating.items()
    }
    numbers["shrinks_percent"] = max(shrinks.values(), default=0.0)
    several = [count for of in results.sizes.values() for count in of.values() if count]
    if several:
        numbers |= {"smallest_table_entries": min(several), "largest_table_entries": max(several)}
    unfit, partly = [], []
    false = max(fill.only_listed for fill in fills)
    if false > limits.only_listed_entries.value:
        rate = min(per_s for per_s, fill in rates if fill.only_listed > limits.only_listed_entries.value)
        unfit.append(f"reports up to {false} entries that it does not forward, from {rate:g} entries/s on")
    for where, percent in shrinks.items():
        if percent > limits.shrinks_percent.value:
            unfit.append(f"the table shrinks by {percent:.3g} % {where}")
    if results.paced.slowest_s > limits.entry_s.value:
        unfit.append(f"an entry takes up to {results.paced.slowest_s:.3g} s")
    ignored = max(fill.ignored for fill in fills)
    if ignored > limits.ignored_entries.value:
        partly.append(f"ignores up to {ignored} entries without an error, but does not report them")
    hidden = max(fill.unreported for fill in fills)
    if hidden > limits.unreported_entries.value:
        partly.append(f"does not report {hidden} entries by which it forwards")
    if largest.full and largest.held < limits.enough_entries.value:
        partly.append(f"holds {largest.held} entries only")
    early = min((fill.room for fill in fills if fill.full), default=largest.room)
    if _shrinks([largest.room, early]) > limits.shrinks_percent.value:
        partly.append(f"refuses entries after {early} if they come fast, after {largest.room} otherwise")
    if unfit:
        return DimensionVerdict(mark=Mark.UNFIT, reasons=tuple(unfit + partly), numbers=numbers)
    if partly:
        return DimensionVerdict(mark=Mark.PARTLY, reasons=tuple(partly), numbers=numbers)
    holds = "holds" if largest.full else "holds at least"
    reason = f"{holds} {largest.held} entries, forwards all that it reports, at any rate and again"
    return DimensionVerdict(mark=Mark.FIT, reasons=(reason,), numbers=numbers)


def _shrinks(counts: Sequence[int]) -> float:
    """Return the loss from the first run to the smallest one, in per cent."""
    return 100 * (1 - min(counts) / counts[0]) if counts and counts[0] else 0.0


def _query_entries(
    switch: Controlled, combination: MatchAction, sent: int, *, full: bool, throttled: bool = False
) -> tuple[Fill, list[int]]:
    """Ask for the entries, send each its frame. Return the result, and the entries by which it forwards."""
    listed = {number for number in switch.listed() if number < sent}
    took_ns = switch.forwarded(combination, range(sent), slowly=switch.subject.is_board)
    there = [number for number in range(sent) if took_ns[number] is not None]
    fill = Fill(
        sent=sent,
        listed=len(listed),
        forwarded=len(listed.intersection(there)),
        full=full,
        throttled=throttled,
        unreported=len(set(there) - listed),
    )
    return fill, there


def _first_error(messages: Iterable[bytes]) -> int | None:
    """Return the number of the first entry that was refused; None if all were taken."""
    refused = (int.from_bytes(message[4:8], "big") for message in messages if message[1] == of.OFPT_ERROR)
    return min(refused, default=None)


def _count(messages: Iterable[bytes], kind: int) -> int:
    return sum(message[1] == kind for message in messages)


def _cookies(reply: bytes) -> Iterable[int]:
    """Yield the cookies of the entries in a reply.

    os-ken's parser gives up a reply in which an entry has lost its actions (quirk 46), so it is no use here.
    """
    at = _STATISTICS_AT
    while at < len(reply):
        yield int.from_bytes(reply[at + _ENTRY_COOKIE_AT : at + _ENTRY_COOKIE_AT + 8], "big")
        at += max(1, _LENGTH.unpack_from(reply, at)[0])
