"""The switch driver: keeps one switch's table in the wanted state. Events and `now` in, segments out.

It uses only sequences that are safe on a Zodiac FX with firmware 0.84, in OpenFlow 1.0 and in 1.3;
docs/driver.md lists what it avoids. What differs between versions or switches is in `SwitchDialect`.

- A segment is one write of at most 536 bytes, and one segment is outstanding at a time.
- A segment with FLOW_MODs begins with a barrier. So errors come behind its barrier reply, which is safe; the
  other way round, two refusals stall the connection. The barrier of the next segment confirms that the
  FLOW_MODs are done, and whether all were accepted.
- Entries are removed one by one with their own bytes and cookie, never by a non-strict DELETE.
- In 1.0, an entry that gets old is removed and added again within one segment, between two frames.
- Entries are listed only if the reply can never exceed the board's memory for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Final

from loko.control.dialect import (
    DIALECTS,
    LEAK_LIMIT,
    MOST_ENTRIES,
    PACED_BATCH,
    REFRESH_NS,
    SwitchDialect,
    dialect_of,
    refuse_version,
)
from loko.control.framing import SEGMENT_BYTES
from loko.control.notices import Diagnostic, Failed, Installed, LinkChanged, Notice, Rejected, Removed
from loko.control.port_links import PortsReply
from loko.control.wire import (
    BARRIER_BYTES,
    AddEntry,
    BarrierReply,
    BarrierRequest,
    DeleteEntry,
    ErrorReply,
    FlowStatsReply,
    FlowStatsRequest,
    PortsRequest,
    TableStatsReply,
    TableStatsRequest,
    WireEntry,
    WireReply,
    WireRequest,
)
from loko.switch_model.control_traffic import COMPARED_ENTRIES, HEARTBEAT_NS, KEEPALIVE_AFTER_NS
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Switch

OWN_MARK: Final = 0x4C6F
"""The first 16 bits of the cookies of this project's entries."""
REPLY_TIMEOUT_NS: Final = 5_000_000_000
"""Silence after which a connection counts as dead. The board itself gives up after 6 s (quirk 7)."""
RETRY_NS: Final = 10_000_000_000
"""Time until a refused entry is tried again."""
_LEAST_BATCH: Final = 2
"""FLOW_MODs that fit into a segment even at their longest: a board stores no longer entries (quirk 122)."""

Segment = list[WireRequest]
"""Requests to send in one write."""


class SessionPhase(Enum):
    """The state of a connection."""

    AWAY = auto()
    """Not connected."""
    COUNTING = auto()
    """Asking for the number of entries: at the beginning, and after some have appeared or vanished."""
    LISTING = auto()
    """Asking for the entries."""
    REWRITING = auto()
    """Writing the wanted entries anew without knowing what is in the table."""
    KEEPING = auto()
    """The table is known, and kept in the wanted state."""
    CHECKING = auto()
    """Reading the first entries back."""
    COMPARING = auto()
    """Reading all entries of a known table back, to see whether anybody has changed them."""


_Op = AddEntry | DeleteEntry
_Change = tuple[type[_Op], WireEntry]


class Driver:
    """Keeps the table of one switch. Every event returns the segments to send, each in one write.

    `ensure` and `remove` change what is wanted; call `poll` afterwards. `notices()` returns what has
    happened. Entries whose cookie begins with the 16 bits of `own_mark` belong to this service. Others are
    foreign entries: they are reported, and left alone unless `delete_foreign_entries` is set.

    While it keeps a table, at least `pace_ns` pass between two segments. Each has at most `batch` FLOW_MODs
    (2 or more), and no more than its dialect allows. A `fixed` table is not meant to change: it is counted as
    soon as it is complete, and its entries keep their order when they are renewed. While `quiet` is set,
    entries are renewed only at twice the usual age. A known table is compared again every `compare_ns` (0:
    never); one that cannot be listed within what is reserved for that is renewed entry by entry. As often it
    asks for the links of the ports, half of this time after a comparison.
    """

    def __init__(
        self,
        *,
        capacity: int,
        own_mark: int,
        dialect: SwitchDialect = DIALECTS[OpenFlow.V1_0],
        delete_foreign_entries: bool = False,
        pace_ns: int = 0,
        batch: int | None = None,
        fixed: bool = False,
        compare_ns: int = 0,
    ) -> None:
        self.phase = SessionPhase.AWAY
        self.quiet = False
        self.links: dict[int, bool] = {}
        """Whether a port has a link, as the switch last said, by port; kept while it is away."""
        self._capacity = capacity
        self._own_mark = own_mark
        self._dialect = dialect
        self._delete_foreign_entries = delete_foreign_entries
        self._pace_ns = pace_ns
        self._batch = dialect.max_batch if batch is None else min(batch, dialect.max_batch)
        self._fixed = fixed
        self._compare_ns = compare_ns
        self._desired: dict[int, WireEntry] = {}
        self._removing: dict[int, WireEntry] = {}
        self._notices: list[Notice] = []
        self._xid = 0
        self._forget()

    def _forget(self) -> None:
        """Reset what is known only while connected."""
        self.foreign_entries: tuple[str, ...] = ()
        self._actual: dict[int, int] = {}  # by cookie, oldest first: when the entry was installed
        self._rejected: dict[int, int] = {}  # by cookie: when to try the entry again
        self._sent: list[_Op] = []  # after the barrier that is outstanding
        self._processed: list[_Op] = []  # after the previous barrier: refusals may still be on their way
        self._refusals: dict[int, ErrorReply] = {}
        self._urgent: deque[list[_Change]] = deque()  # to do before all else; each list within one segment
        self._listed: list[WireEntry] = []
        self._awaited = 0
        self._asked_ns = self._heard_ns = self._compared_ns = self._links_ns = 0
        self._paced_ns = -self._pace_ns
        self._is_verified = not self._dialect.reads_back
        self._leaked = 0
        self._active = 0  # entries, as last counted
        self._counted = False
        self._unverified: list[int] = []  # added before the first entries were read back

    @property
    def ready(self) -> bool:
        """Whether the table is known and can be changed."""
        return self.phase in (SessionPhase.KEEPING, SessionPhase.CHECKING, SessionPhase.COMPARING)

    @property
    def complete(self) -> bool:
        """Whether the table holds all that is wanted, and nothing else of this service."""
        unsettled = self._sent or self._processed or self._urgent or self._unverified
        return self.ready and not unsettled and self._actual.keys() == self._desired.keys()

    @property
    def holds_all(self) -> bool:
        """Whether the table holds all that is wanted, as far as is known."""
        return self.ready and self._desired.keys() <= self._actual.keys()

    @property
    def counted(self) -> bool:
        """Whether the table is complete, and was counted after it became so."""
        return self.complete and self._counted and (self._is_verified or not self._actual)

    def holds(self, cookie: int) -> bool:
        """Return whether an entry is in the table."""
        return cookie in self._actual

    def ensure(self, entry: WireEntry) -> None:
        """Keep an entry in the table from now on. Its cookie identifies it."""
        self._removing.pop(entry.cookie, None)
        self._rejected.pop(entry.cookie, None)
        self._desired[entry.cookie] = entry
        fit = (SEGMENT_BYTES - BARRIER_BYTES) // entry.flow_mod_bytes
        self._batch = min(self._batch, max(fit, _LEAST_BATCH))

    def remove(self, entry: WireEntry) -> None:
        """Keep an entry out of the table from now on. The notice `Removed` tells when it is gone."""
        self._desired.pop(entry.cookie, None)
        self._rejected.pop(entry.cookie, None)
        self._removing[entry.cookie] = entry

    def replace(self, former: WireEntry, entry: WireEntry) -> None:
        """Put an entry in the place of another, between two frames. They may have the same cookie."""
        self.remove(former)
        self.ensure(entry)
        if former.cookie in self._actual:
            self._urgent.append([(DeleteEntry, former), (AddEntry, entry)])

    @property
    def most_entries(self) -> int:
        """The entries of this service that the table may have until all that is wanted is confirmed."""
        return len(self._desired.keys() | self._actual.keys())

    def notices(self) -> list[Notice]:
        """Return, and forget, what has happened since the last call."""
        taken, self._notices = self._notices, []
        return taken

    def connected(self, now_ns: int) -> list[Segment]:
        """Note that the switch has introduced itself on a new connection."""
        self._forget()
        self.phase = SessionPhase.COUNTING
        self._paced_ns = now_ns - self._pace_ns
        self._compared_ns = self._links_ns = now_ns  # the handshake has told of the links
        return self.poll(now_ns)

    def disconnected(self) -> None:
        """Note that the connection is gone."""
        self.phase = SessionPhase.AWAY
        self._forget()

    def reply(self, now_ns: int, reply: WireReply) -> list[Segment]:
        """Take in an answer of the switch."""
        if isinstance(reply, PortsReply):
            self._take_links(reply.are_up)
            if reply.more or not self._awaited:  # unasked, it must not put off the next count
                return []
        if isinstance(reply, ErrorReply):
            self._refusals[reply.xid] = reply
        if self.phase is SessionPhase.AWAY or isinstance(reply, ErrorReply) or reply.xid != self._awaited:
            return []
        if isinstance(reply, FlowStatsReply):
            self._listed += reply.entries
            if reply.more:
                return []
        self._awaited = 0
        self._heard_ns = now_ns
        match reply:
            case TableStatsReply():
                self._take_count(reply.active)
            case FlowStatsReply():
                listed, self._listed = self._listed, []
                self._take_listing(now_ns, listed)
            case PortsReply():
                self._links_ns = now_ns
            case BarrierReply():
                processed, self._processed, self._sent = self._processed, self._sent, []
                self._settle(now_ns, processed)
        return self.poll(now_ns)

    def poll(self, now_ns: int) -> list[Segment]:
        """Do what is due. Call it a few times a second, and after `ensure` and `remove`."""
        if self.phase is SessionPhase.AWAY:
            return []
        self._announce_absent()
        if self._awaited:
            if now_ns - self._asked_ns > REPLY_TIMEOUT_NS:
                self._fail(f"it did not answer within {REPLY_TIMEOUT_NS / 1e9:g} s")
            return []
        if now_ns - self._paced_ns < self._pace_ns:
            return []
        requests = self._due(now_ns)
        if not requests:
            return []
        if self.phase in (SessionPhase.KEEPING, SessionPhase.REWRITING, SessionPhase.COMPARING):
            self._paced_ns = now_ns
        self._check_timeout(now_ns)
        self._awaited = requests[0].xid
        self._asked_ns = now_ns
        return [requests]

    def _check_timeout(self, now_ns: int) -> None:
        """Warn of a broken promise: after so long a silence, the board may have asked (quirk 7)."""
        silent_ns = now_ns - self._asked_ns
        if self._asked_ns and self._pace_ns <= HEARTBEAT_NS and silent_ns >= KEEPALIVE_AFTER_NS:
            self._note(
                f"nothing was sent for {silent_ns / 1e9:.1f} s: it may have asked for a sign of life,"
                " for which nothing is reserved",
                warning=True,
            )

    def _due(self, now_ns: int) -> Segment:
        look = None if self._processed else self._next_query(now_ns)
        if look is FlowStatsRequest:
            self.phase = SessionPhase.COMPARING
        if look is None and self.phase in (SessionPhase.KEEPING, SessionPhase.REWRITING):
            segment = self._changes(now_ns)
            if segment or self._urgent:
                return segment
        if look is not None or self.phase in (SessionPhase.LISTING, SessionPhase.COMPARING):
            return [
                PortsRequest(self._next_xid()) if look is PortsRequest else FlowStatsRequest(self._next_xid())
            ]
        if self.phase is not SessionPhase.KEEPING or now_ns - self._heard_ns >= HEARTBEAT_NS:
            return [TableStatsRequest(self._next_xid())]
        if not self._is_verified and self._actual:
            return self._check_first()
        if self._fixed and self.complete and not self._counted:
            return [TableStatsRequest(self._next_xid())]
        return []

    def _next_query(self, now_ns: int) -> type[FlowStatsRequest | PortsRequest] | None:
        """Return whether to compare the table, or to ask for the links, before anything else is changed.

        Either takes the turn of a change or a heartbeat, for which more is reserved (`Message.COMPARISON`).
        """
        has_turn = self._pace_ns > 0 or now_ns - self._heard_ns >= HEARTBEAT_NS
        if self._compare_ns == 0 or not has_turn or self.phase is not SessionPhase.KEEPING or self._urgent:
            return None
        since_ns = now_ns - max(self._compared_ns, self._links_ns)
        if since_ns < self._compare_ns // 2:
            return None
        if now_ns - self._compared_ns >= self._compare_ns and self._is_verified and self._is_comparable:
            return FlowStatsRequest
        return PortsRequest if now_ns - self._links_ns >= self._compare_ns else None

    @property
    def _is_comparable(self) -> bool:
        """Whether the table can be listed safely, at the cost that is reserved for that."""
        if self._dialect.max_listed is None:
            return True
        return len(self._actual) <= COMPARED_ENTRIES and not self.foreign_entries

    def _check_first(self) -> Segment:
        """Read the first entries back if the reply is short enough, whatever their actions are (quirk 28)."""
        most = self._dialect.max_listed
        if most is None or len(self._actual) + len(self.foreign_entries) <= most:
            self.phase = SessionPhase.CHECKING
            return [FlowStatsRequest(self._next_xid())]
        self._note("its entries cannot be read back safely (quirk 28)", warning=True)
        self._read_back()
        return []

    def _changes(self, now_ns: int) -> Segment:
        """Return a barrier with FLOW_MODs behind it, or a barrier alone to confirm the previous ones."""
        ops = [] if self._next_query(now_ns) else self._next_ops(now_ns)
        if not ops and not self._processed:
            return []
        barrier = BarrierRequest(self._next_xid())
        self._sent = [kind(self._next_xid(), entry) for kind, entry in ops]
        return [barrier, *self._sent]

    def _next_ops(self, now_ns: int) -> list[_Change]:
        """Return the FLOW_MODs that are due, as many as fit into a segment."""
        ops: list[_Change] = []
        while self._urgent and len(ops) + len(self._urgent[0]) <= self._batch:
            ops += self._urgent.popleft()
        if ops or self.phase is not SessionPhase.KEEPING:
            return ops
        unsettled = {op.entry.cookie for op in self._processed}
        for cookie, entry in self._removing.items():
            if len(ops) < self._batch // 2 and cookie in self._actual and cookie not in unsettled:
                ops.append((DeleteEntry, entry))
        if self._is_verified or not self._actual:
            ops += self._additions(now_ns, unsettled, self._batch - len(ops))
        if self._refresh_ns is not None and not ops:
            ops += self._renewals(now_ns, unsettled, self._refresh_ns)
        return ops

    @property
    def _refresh_ns(self) -> int | None:
        """Age at which entries are renewed, because the switch forgets them, or they cannot be compared."""
        renews = self._compare_ns > 0 and self._pace_ns > 0 and not self._is_comparable
        return self._dialect.refresh_ns or (REFRESH_NS if renews else None)

    def _additions(self, now_ns: int, unsettled: set[int], room: int) -> list[_Change]:
        adds: list[_Change] = []
        missing = self._desired.keys() - self._actual.keys() - unsettled if room else ()
        if not missing:
            return adds
        coming = sum(
            isinstance(op, AddEntry) and op.entry.cookie not in self._actual for op in self._processed
        )
        free = self._capacity - len(self._actual) - len(self.foreign_entries) - coming
        for cookie in self._desired:
            if cookie not in missing:
                continue
            if len(adds) == room:
                break
            if self._rejected.get(cookie, 0) > now_ns:
                continue
            if len(adds) >= free:
                self._reject(now_ns, cookie, f"its table is full ({self._capacity} entries)")
            else:
                adds.append((AddEntry, self._desired[cookie]))
        return adds

    def _renewals(self, now_ns: int, unsettled: set[int], refresh_ns: int) -> list[_Change]:
        """Return the changes that renew the oldest entry, if it is too old, between two frames."""
        for cookie, since_ns in self._actual.items():
            if now_ns - since_ns < (2 * refresh_ns if self.quiet else refresh_ns):
                break
            if cookie in self._desired and cookie not in unsettled:
                entry = self._desired[cookie]
                renewed: list[_Change] = [(DeleteEntry, entry), (AddEntry, entry)]
                last = next(reversed(self._desired.values()))
                if self._fixed and entry is not last:
                    # The last entry moves into the gap, and the renewed one becomes the last: swap them back.
                    renewed += [(DeleteEntry, last), (AddEntry, last)]
                return renewed
        return []

    def _settle(self, now_ns: int, processed: list[_Op]) -> None:
        """Note FLOW_MODs that are done. Their refusals, if any, have arrived by now."""
        self._counted = self._counted and not processed
        for op in processed:
            cookie = op.entry.cookie
            refusal = self._refusals.pop(op.xid, None)
            self._actual.pop(cookie, None)
            if isinstance(op, DeleteEntry):
                continue
            if refusal is not None:
                self._leaked += self._dialect.refusals_leak
                self._reject(now_ns, cookie, str(refusal))
                continue
            self._actual[cookie] = now_ns
            wanted = self._desired.get(cookie)
            if wanted is not None and wanted != op.entry:  # it was replaced before it was confirmed
                if not self._is_coming(wanted):
                    self._urgent.append([(DeleteEntry, op.entry), (AddEntry, wanted)])
            elif wanted is not None and self._is_verified:
                self._notices.append(Installed(cookie))
            elif wanted is not None:
                self._unverified.append(cookie)
        if not self._processed:
            self._refusals.clear()
        if self._leaked > LEAK_LIMIT:
            self._fail_for_memory()

    def _is_coming(self, entry: WireEntry) -> bool:
        """Return whether an entry is to be added next, or has been sent and is not confirmed yet."""
        sent = any(isinstance(op, AddEntry) and op.entry == entry for op in (*self._processed, *self._sent))
        return sent or any((AddEntry, entry) in changes for changes in self._urgent)

    def _take_links(self, are_up: Mapping[int, bool]) -> None:
        for port, is_up in are_up.items():
            if self.links.get(port) is not is_up:
                self._notices.append(LinkChanged(port, is_up))
            self.links[port] = is_up

    def _take_count(self, active: int) -> None:
        self._active = active
        if active > MOST_ENTRIES:
            self._fail(f"it counts {active} entries (quirk 52); its table begins anew with a new connection")
        elif self.phase is SessionPhase.KEEPING:
            expected = len(self._actual) + len(self.foreign_entries)
            self._counted = active == expected
            if active != expected:
                self._resynchronise(expected, active)
        elif self.phase is SessionPhase.REWRITING:
            foreign = active - len(self._actual)
            self.foreign_entries = ("an entry that cannot be listed safely",) * max(foreign, 0)
            self._begin_keeping(foreign)
        elif active == 0:
            self._begin_keeping(0)
        elif self._dialect.max_listed is None or active <= self._dialect.max_listed:
            self.phase = SessionPhase.LISTING
        else:
            self.phase = SessionPhase.REWRITING
            self._is_verified, quirk = True, self._dialect.listing_quirk
            self._note(
                f"writes {len(self._desired)} entries anew: {active} cannot be listed safely (quirk {quirk})"
            )
            heirs = {cookie: self._replacement(entry) for cookie, entry in self._removing.items()}
            for entry in self._desired.values():
                # First what matches the same frames: later, its strict DELETE might find this entry.
                self._urgent += [
                    [(DeleteEntry, self._removing[name])] for name in heirs if heirs[name] is entry
                ]
                self._urgent.append([(DeleteEntry, entry), (AddEntry, entry)])
            self._urgent += [[(DeleteEntry, self._removing[name])] for name in heirs if heirs[name] is None]

    def _resynchronise(self, expected: int, active: int) -> None:
        self._note(f"its table has {active} entries instead of {expected}; comparing", warning=True)
        self._leaked += max(expected - active, 0) * self._dialect.vanished_entries_leak
        if self._leaked > LEAK_LIMIT and active > 0:
            self._fail_for_memory()
            return
        self._actual = {}
        self.foreign_entries = ()
        self.phase = SessionPhase.COUNTING

    def _fail_for_memory(self) -> None:
        what = "vanished (quirk 47)" if self._dialect.vanished_entries_leak else "were refused (quirk 123)"
        self._fail(f"its memory may run out: so many entries {what}")

    def _take_listing(self, now_ns: int, listed: list[WireEntry]) -> None:
        self._compared_ns = now_ns
        if self.phase is SessionPhase.CHECKING:
            self._check(now_ns, listed)
            return
        if self.phase is SessionPhase.COMPARING:
            self._compare(listed)
            return
        doubles: set[int] = set()
        foreign = self._record_foreign_entries(listed)
        for entry in self._own(listed):
            wanted = self._desired.get(entry.cookie)
            if wanted is None or not self._same(wanted, entry) or entry.cookie in self._actual:
                doubles |= {entry.cookie} & self._actual.keys()
                heir = self._replacement(entry)
                is_missing = heir is not None and not any(
                    other.cookie == heir.cookie and self._same(heir, other) for other in listed
                )
                self._urgent.append(
                    [(DeleteEntry, entry), *([(AddEntry, heir)] if heir and is_missing else [])]
                )
            else:
                self._actual[entry.cookie] = now_ns - (self._dialect.refresh_ns or 0)  # of unknown age
                self._notices.append(Installed(entry.cookie))
        for cookie in doubles:  # a strict DELETE passes over what moves into the gap (quirk 49)
            del self._actual[cookie]
            self._urgent.append([(DeleteEntry, self._desired[cookie])])
        unlisted = max(self._active - len(listed), 0)  # left by a session of the other version (quirk 85)
        self.foreign_entries = (*foreign, *("an entry that it does not list",) * unlisted)
        self._is_verified = self._is_verified or bool(self._actual)
        self._begin_keeping(0)

    def _replacement(self, entry: WireEntry) -> WireEntry | None:
        """Return the wanted entry that matches the same frames as one that is not wanted, if any."""
        for wanted in self._desired.values():
            if wanted.fields == entry.fields and (
                not self._dialect.lists_priorities or wanted.priority == entry.priority
            ):
                return wanted
        return None

    def _own(self, listed: list[WireEntry]) -> Iterator[WireEntry]:
        return (entry for entry in listed if entry.cookie >> 48 == self._own_mark)

    def _record_foreign_entries(self, listed: list[WireEntry]) -> tuple[str, ...]:
        """Report foreign entries that are new, and delete them if that is wanted. Return those that stay."""
        foreign = [entry for entry in listed if entry.cookie >> 48 != self._own_mark]
        for text in map(str, foreign):
            if text not in self.foreign_entries:
                deleted = ", deleted" * self._delete_foreign_entries
                self._note(f"foreign entry in its table{deleted}: {text}", warning=True)
        if self._delete_foreign_entries:
            self._urgent += [[(DeleteEntry, entry)] for entry in foreign]
            return ()
        return tuple(map(str, foreign))

    def _same(self, wanted: WireEntry, listed: WireEntry) -> bool:
        if self._dialect.lists_priorities and wanted.priority != listed.priority:
            return False
        return wanted.fields == listed.fields and wanted.actions == listed.actions

    def _check(self, now_ns: int, listed: list[WireEntry]) -> None:
        """Compare what the first entries do with what they should do: slots are never cleared (quirk 55)."""
        self.phase = SessionPhase.KEEPING
        harmed = []
        for entry in listed:
            wanted = self._desired.get(entry.cookie)
            if wanted is not None and wanted.actions != entry.actions and not self._is_coming(wanted):
                harmed.append(entry.cookie)
                self._urgent.append([(DeleteEntry, wanted)])
                reason = "its memory holds actions of former entries (quirk 55); switch it off and on"
                self._reject(now_ns, entry.cookie, reason)
        self._unverified = [cookie for cookie in self._unverified if cookie not in harmed]
        if not harmed:
            self._read_back()

    def _compare(self, listed: list[WireEntry]) -> None:
        """Restore what somebody has changed in a known table since it was last compared."""
        self.phase = SessionPhase.KEEPING
        self.foreign_entries = self._record_foreign_entries(listed)
        right: set[int] = set()
        wrong: set[int] = set()
        for entry in self._own(listed):
            known = self._desired.get(entry.cookie) or self._removing.get(entry.cookie)
            is_known = known is not None and (self._same(known, entry) or self._is_coming(known))
            if is_known and entry.cookie not in right:
                right.add(entry.cookie)
                continue
            self._note(f"an entry is not as it was made, restoring it: {entry}", warning=True)
            self._urgent.append([(DeleteEntry, entry)])
            wrong |= {entry.cookie} & self._desired.keys()
        for cookie in wrong:  # whichever of several a strict DELETE has found
            self._urgent.append([(DeleteEntry, self._desired[cookie]), (AddEntry, self._desired[cookie])])
        for cookie in self._actual.keys() - right - wrong:
            del self._actual[cookie]
            self._leaked += self._dialect.vanished_entries_leak
            if cookie in self._desired:
                self._note(f"an entry has vanished, restoring it: {self._desired[cookie]}", warning=True)

    def _read_back(self) -> None:
        """Report the first entries as installed: they are right, as far as that can be known."""
        self._is_verified = True
        wanted = (self._desired.get(cookie) for cookie in self._unverified)
        self._notices += [
            Installed(entry.cookie) for entry in wanted if entry is not None and not self._is_coming(entry)
        ]
        self._unverified = []

    def _begin_keeping(self, foreign: int) -> None:
        self.phase = SessionPhase.KEEPING
        if foreign < 0:
            self._note(f"{-foreign} entries are missing that it did not refuse", warning=True)

    def _announce_absent(self) -> None:
        if not self._removing or self.phase is not SessionPhase.KEEPING or self._urgent:
            return
        unsettled = {op.entry.cookie for op in (*self._processed, *self._sent)}
        gone = [cookie for cookie in self._removing if cookie not in self._actual and cookie not in unsettled]
        for cookie in gone:
            del self._removing[cookie]
            self._notices.append(Removed(cookie))

    def _reject(self, now_ns: int, cookie: int, reason: str) -> None:
        self._rejected[cookie] = now_ns + RETRY_NS
        self._notices.append(Rejected(cookie, reason))

    def _fail(self, reason: str) -> None:
        self.disconnected()
        self._notices.append(Failed(reason))

    def _note(self, text: str, *, warning: bool = False) -> None:
        self._notices.append(Diagnostic(text, warning))

    def _next_xid(self) -> int:
        self._xid = self._xid % 0xFFFF_FFFF + 1
        return self._xid


def driver_of(
    switch: Switch,
    *,
    openflow: OpenFlow = OpenFlow.V1_0,
    delete_foreign_entries: bool = False,
    pace_ns: int = 0,
    fixed: bool = False,
    compare_ns: int = 0,
) -> Driver:
    """Return a driver for a switch of a lab, whatever its backend.

    Raises `InputError` if the switch does not speak the version.
    """
    refuse_version(switch, openflow)
    return Driver(
        capacity=switch.profile.table.entries.value,
        own_mark=OWN_MARK,
        dialect=dialect_of(switch, openflow),
        delete_foreign_entries=delete_foreign_entries,
        pace_ns=pace_ns,
        batch=PACED_BATCH if pace_ns else None,
        fixed=fixed,
        compare_ns=compare_ns,
    )
