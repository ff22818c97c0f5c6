"""Comments that name the quirk where a board's firmware deviates from OpenFlow (docs/quirks.md)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from loko.control.framing import whole_messages
from loko.units import NS_PER_MS
from loko_testbed.simulation.captures.control_stream import Payload
from loko_testbed.simulation.quirks import has_quirk
from loko_testbed.simulation.virtual import BoardEvent

_AT_ONCE_NS: Final = 100 * NS_PER_MS
"""A board has carried out a segment within this time, even behind a full ring of frames."""
_NAMES_A_QUIRK: Final = re.compile(r"\(quirks? \d")
_OF_TYPE: Final = re.compile(r"^(?:OpenFlow )?message of type (\d+)")
_OF_FRAME: Final = re.compile(r"^(?:the board hangs: )?(?:a )?frames? ")
_ETHERTYPE: Final = re.compile(r"type 0x([0-9a-f]{4})")
_TAG: Final = 0x8100
_UNASKED: Final = frozenset({2, 10, 11, 12})
"""Types that a board sends of its own accord: ECHO_REQUEST, PACKET_IN, FLOW_REMOVED, PORT_STATUS."""
_MULTIPART_REQUEST, _MULTIPART_REPLY = 18, 19
_BARRIER_REQUEST, _BARRIER_REPLY = 20, 21


class ReplyQuirk(NamedTuple):
    """Contents of a board's messages that always deviate, so that no event reports them."""

    version: int
    """On the wire."""
    message_type: int
    part: int | None
    """Kind of statistics; None: the message has none, or whatever it is."""
    name: str
    """Name of the quirks in settings."""
    quirks: str
    """Their numbers."""
    text: str

    @property
    def comment(self) -> str:
        """The comment."""
        return f"{self.text} (quirk{'s' if not self.quirks.isdigit() else ''} {self.quirks})"


REPLY_QUIRKS: Final = (
    ReplyQuirk(4, 0, None, "newest-hello", "1", "HELLO has the newest version, and no list of versions"),
    ReplyQuirk(1, 6, None, "random-port-addresses", "19", "addresses of ports are new in every reply"),
    ReplyQuirk(1, 8, None, "no-reassembly", "23", "flags are 0x8000, whatever was set"),
    ReplyQuirk(1, 11, None, "flow-removed-byte-order", "53", "counters are in the byte order of the CPU"),
    ReplyQuirk(1, 12, None, "random-port-addresses", "19", "addresses of ports are new in every message"),
    ReplyQuirk(1, 17, 1, "no-reassembly", "26, 27", "the first 20 entries; priorities, timeouts unrelated"),
    ReplyQuirk(1, 17, 3, "no-reassembly", "30", "claims 512 entries"),
    ReplyQuirk(1, 17, 4, "coarse-port-counters", "32", "counts of bytes and drops are those of 6 s, cut"),
    ReplyQuirk(4, 6, None, "openflow13", "94", "reserved fields are garbage; group statistics are claimed"),
    ReplyQuirk(4, 8, None, "openflow13", "95", "flags 0 and 256 bytes, whatever was set"),
    ReplyQuirk(4, 10, None, "openflow13", "150, 186", "reason ACTION always; total_len is that of the data"),
    ReplyQuirk(4, 12, None, "openflow13", "99", "the address is new, the reason always MODIFY"),
    ReplyQuirk(4, 19, 4, "openflow13", "110", "durations are garbage, counts of errors 0"),
    ReplyQuirk(4, 19, 6, "openflow13", "111", "counters of groups are 0, a length may be wrong"),
    ReplyQuirk(4, 19, 7, "openflow13", "112", "the first bucket only, a length may be wrong"),
    ReplyQuirk(4, 19, 8, "openflow13", "113", "limits of three types are garbage"),
    ReplyQuirk(4, 19, 9, "openflow13", "114 to 116", "packets and bytes of the bands are swapped"),
    ReplyQuirk(4, 19, 10, "openflow13", "117", "prec_level is garbage"),
    ReplyQuirk(4, 19, 12, "openflow13", "108", "one table of ten, with wrong lengths of fields"),
    ReplyQuirk(4, 19, 13, "openflow13", "97, 99", "addresses are new in every reply; links by position"),
)
_OVERTAKES: Final = ReplyQuirk(
    4, _BARRIER_REPLY, None, "openflow13", "87", "BARRIER_REPLY overtakes replies to earlier requests"
)
_WITHOUT_VERSION: Final = ReplyQuirk(0, 19, None, "openflow13", "92", "a part of an earlier session's reply")


class _MessageHeader(NamedTuple):
    """The fields of a message that matter here."""

    version: int
    message_type: int
    xid: bytes
    part: int | None
    """Its first two bytes: the kind, if it is a message of statistics."""


class ReplyQuirks:
    """The messages of a board whose contents always deviate, found payload by payload of its session."""

    def __init__(self) -> None:
        """Begin with the session."""
        self._overtaken: dict[bytes, set[bytes]] = {}
        """By barrier, the requests before it whose replies may still come."""

    def of(self, payload: Payload) -> Iterator[ReplyQuirk]:
        """Yield the quirks of the next payload."""
        headers = _headers(payload.data)
        if not payload.is_from_board:
            self._note(headers)
            return
        for header in headers:
            if header.version == _OVERTAKES.version and header.message_type == _MULTIPART_REPLY:
                for waiting in self._overtaken.values():
                    waiting.discard(header.xid)
            if header.message_type == _BARRIER_REPLY and self._overtaken.pop(header.xid, set()):
                yield _OVERTAKES
            if header.version == 0 and header.message_type == _MULTIPART_REPLY:
                yield _WITHOUT_VERSION
            for reply in REPLY_QUIRKS:
                if (
                    reply.message_type == header.message_type
                    and reply.version == header.version
                    and reply.part in (None, header.part)
                ):
                    yield reply

    def _note(self, headers: Sequence[_MessageHeader]) -> None:
        earlier: set[bytes] = set()
        for header in headers:
            if header.message_type == _MULTIPART_REQUEST:
                earlier.add(header.xid)
            elif header.message_type == _BARRIER_REQUEST and earlier:
                self._overtaken[header.xid] = set(earlier)


def names_a_quirk(event: BoardEvent) -> bool:
    """Return whether an event of a board comes from a quirk that it has."""
    return _NAMES_A_QUIRK.search(event.text) is not None


def is_of_frame(event: BoardEvent) -> bool:
    """Return whether an event is about a frame, not about the control session."""
    return _OF_FRAME.match(event.text) is not None


def frame_of(event: BoardEvent, frames: Sequence[tuple[int, bytes]]) -> int | None:
    """Return which of the frames that a board received, in order of time, an event is about.

    That is the latest of the named type, or else the latest; None if none came before.
    """
    end = bisect_right(frames, event.at_ns, key=lambda frame: frame[0])
    if named := _ETHERTYPE.search(event.text):
        wanted = int(named[1], 16)
        for place in reversed(range(end)):
            at_ns, data = frames[place]
            if event.at_ns - at_ns > _AT_ONCE_NS:
                break
            if _ethertype(data) == wanted:
                return place
    return end - 1 if end else None


def session_comments(
    session: Sequence[Payload], events: Sequence[BoardEvent], quirks: object
) -> dict[int, str]:
    """Return the comments for payloads of a board's session, by place.

    An event goes to the request that it is about and to the replies, or else to the payload before it, with
    its instant. `quirks` is the board's setting.
    """
    said: defaultdict[int, list[str]] = defaultdict(list)
    told = [_headers(payload.data) for payload in session]
    for event in events:
        places = list(_places(event, session, told))
        if places:
            for place in places:
                said[place].append(event.text)
        elif session:
            before = bisect_right(session, event.at_ns, key=lambda payload: payload.at_ns) - 1
            said[max(0, before)].append(f"at {event.at_ns / 1e9:.9f} s: {event.text}")
    replies = ReplyQuirks()
    for place, payload in enumerate(session):
        said[place] += [reply.comment for reply in replies.of(payload) if has_quirk(quirks, reply.name)]
    return {place: "; ".join(dict.fromkeys(texts)) for place, texts in said.items() if texts}


def _places(
    event: BoardEvent, session: Sequence[Payload], told: Sequence[list[_MessageHeader]]
) -> Iterator[int]:
    """Yield the places of the request that an event is about, and of its replies."""
    end = bisect_right(session, event.at_ns, key=lambda payload: payload.at_ns)
    request = _request(event, session, told, end)
    if request is None:
        return
    yield request
    xids = {header.xid for header in told[request]}
    is_answer_to_it = True
    replied_ns: int | None = None
    for place in range(end, len(session)):
        payload = session[place]
        if payload.at_ns > event.at_ns + _AT_ONCE_NS or replied_ns not in (None, payload.at_ns):
            return
        if not payload.is_from_board:
            is_answer_to_it = False
        elif any(
            header.xid in xids or (is_answer_to_it and header.message_type not in _UNASKED)
            for header in told[place]
        ):
            yield place
            replied_ns = payload.at_ns


def _request(
    event: BoardEvent, session: Sequence[Payload], told: Sequence[list[_MessageHeader]], end: int
) -> int | None:
    """Return the latest segment of the controller before an event that has a message of the named type."""
    named = _OF_TYPE.match(event.text)
    wanted = int(named[1]) if named else None
    latest = None
    for place in reversed(range(end)):
        payload = session[place]
        if payload.at_ns < event.at_ns - _AT_ONCE_NS:
            break
        if payload.is_from_board:
            continue
        if wanted is None or any(header.message_type == wanted for header in told[place]):
            return place
        latest = place if latest is None else latest
    return latest


def _headers(data: bytes) -> list[_MessageHeader]:
    messages, rest = whole_messages(data)
    return [
        _MessageHeader(
            message[0],
            message[1],
            message[4:8],
            int.from_bytes(message[8:10]) if len(message) >= 10 else None,
        )
        for message in (*messages, *([rest] if len(rest) >= 8 else []))
    ]


def _ethertype(frame: bytes) -> int:
    at = 12
    while (found := int.from_bytes(frame[at : at + 2])) == _TAG:
        at += 4
    return found
