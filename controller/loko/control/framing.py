"""OpenFlow messages in the bytes of a TCP connection: split into messages, and packed into segments."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

SEGMENT_BYTES: Final = 536
"""TCP segment size of the board (MSS option in its SYN); it reassembles nothing (quirks 10 and 11)."""

HEADER: Final = struct.Struct("!BBHI")
"""Version, type, length of the whole message, transaction (OpenFlow 1.0.0, section 5.1)."""


def framed(version: int, kind: int, xid: int, body: bytes = b"") -> bytes:
    """Return a whole message: its header, and the body behind it."""
    return HEADER.pack(version, kind, HEADER.size + len(body), xid) + body


def whole_messages(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the complete messages, and the bytes after them.

    A header that states less than its own length counts as a message that is only a header.
    """
    messages, at = [], 0
    while len(data) - at >= HEADER.size:
        end = at + max(int.from_bytes(data[at + 2 : at + 4], "big"), HEADER.size)
        if end > len(data):
            break
        messages.append(data[at:end])
        at = end
    return messages, data[at:]


def segments_of(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Pack as many whole messages as fit into each TCP segment; a longer one is a segment by itself."""
    segment = b""
    for message in messages:
        if segment and len(segment) + len(message) > SEGMENT_BYTES:
            yield segment
            segment = b""
        segment += message
    if segment:
        yield segment
