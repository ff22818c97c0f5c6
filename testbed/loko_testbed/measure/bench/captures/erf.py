"""Endace ERF files, as DAG cards write them: records without a file header.

A record: the stamp, 64 bits in little-endian order, the upper half seconds since 1970 and the lower half
their binary fraction; type, flags, length of the record, losses, length on the wire with FCS; extension
headers of 8 bytes if the upper bit of the type says so; for Ethernet two bytes of padding; what was kept of
the frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from loko.document import InputError
from loko.units import NS_PER_S
from loko_testbed.measure.bench.captures.record import CapturedFrame, CaptureReader

_HEADER: Final = struct.Struct("<QBB")
_LENGTHS: Final = struct.Struct(">HHH")
_HEADER_BYTES: Final = 16
_EXTENSION_BYTES: Final = 8
_MORE: Final = 0x80
_PADDING_BYTES: Final = 2

ETHERNET: Final = 2
_COLOURED: Final = frozenset({11, 16, 20})
"""Ethernet as well, but with a classification in place of the number of losses."""
_PROVENANCE: Final = 27
_PAD: Final = 48
_KNOWN_TYPES: Final = frozenset({*range(1, 30), _PAD})
_RECEIVE_ERRORS: Final = 0x10 | 0x20


def looks_like_erf(head: bytes) -> bool:
    """Return whether a file can be ERF, which has no magic number: its first record must be plausible."""
    if len(head) < _HEADER_BYTES:
        return False
    _, kind, _ = _HEADER.unpack_from(head)
    record, _, wire = _LENGTHS.unpack_from(head, _HEADER.size)
    kind &= ~_MORE
    # A file may start with records about the card itself, which have no length on a wire.
    return kind in _KNOWN_TYPES and record >= _HEADER_BYTES and (wire > 0 or kind == _PROVENANCE)


def read_erf(reader: CaptureReader) -> Iterator[CapturedFrame]:
    """Yield the Ethernet frames of an ERF file. Raises `InputError`, also if the card had to drop frames."""
    number = 0
    while head := reader.perhaps(_HEADER_BYTES, f"record {number + 1}"):
        number += 1
        stamp, kind, flags = _HEADER.unpack_from(head)
        record, losses, wire = _LENGTHS.unpack_from(head, _HEADER.size)
        if kind & ~_MORE not in _KNOWN_TYPES or record < _HEADER_BYTES:
            raise reader.damaged(f"record {number} is none of ERF (type {kind & ~_MORE}, {record} bytes)")
        body = reader.exactly(record - _HEADER_BYTES, f"record {number}")
        if kind & ~_MORE == _PAD:
            continue
        if kind & ~_MORE == ETHERNET and losses:
            raise InputError(
                f"{reader.path}: the card lost {losses} frames before record {number}; capture more slowly"
            )
        if kind & ~_MORE not in (ETHERNET, *_COLOURED) or flags & _RECEIVE_ERRORS:
            continue
        start = _frame_at(reader, kind, body, number)
        interface = flags >> 4 & 0xC | flags & 0x3
        # The padding of a record to whole words does not belong to the frame.
        yield CapturedFrame(_stamp_ns(stamp), str(interface), None, wire, body[start : start + wire])


def _frame_at(reader: CaptureReader, kind: int, body: bytes, number: int) -> int:
    """Return where the frame starts, behind extension headers and padding."""
    at, more = 0, kind & _MORE
    while more:
        if at + _EXTENSION_BYTES > len(body):
            raise reader.damaged(f"record {number} ends in its extension headers")
        more = body[at] & _MORE
        at += _EXTENSION_BYTES
    if at + _PADDING_BYTES > len(body):
        raise reader.damaged(f"record {number} ends before its frame")
    return at + _PADDING_BYTES


def _stamp_ns(stamp: int) -> int:
    """Convert a stamp, whose unit is 2^-32 s, to the nearest nanosecond."""
    return (stamp >> 32) * NS_PER_S + ((stamp & 0xFFFFFFFF) * NS_PER_S + (1 << 31) >> 32)
