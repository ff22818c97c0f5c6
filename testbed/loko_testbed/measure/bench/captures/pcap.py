"""pcap and pcapng files, record by record.

dpkt reads both, but keeps neither a frame's length on the wire nor its interface, and takes a file that was
cut off for a complete one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loko.document import InputError
from loko.units import NS_PER_S
from loko_testbed.measure.bench.captures.record import FCS_BYTES, CapturedFrame, CaptureReader

_ETHERNET: Final = 1
_COOKED: Final = 113
_COOKED2: Final = 276
_COOKED2_HEADER: Final = struct.Struct(">HHIHBB8s")
"""Header of the pseudo-interface `any` of Linux (SLL2): protocol, interface, address."""
_HAS_FCS: Final = 1 << 26
"""Bit of a pcap file's link type: the four highest bits count the words of 16 bits of the FCS."""
_LONGEST_RECORD: Final = 1 << 24
_MAX_SNAP: Final = 1 << 18

PCAP_MAGICS: Final = {
    bytes.fromhex("d4c3b2a1"): ("<", 1000),
    bytes.fromhex("a1b2c3d4"): (">", 1000),
    bytes.fromhex("4d3cb2a1"): ("<", 1),
    bytes.fromhex("a1b23c4d"): (">", 1),
}
"""By a file's first four bytes: byte order, and nanoseconds per unit of the stamps' fractions."""

PCAPNG_MAGIC: Final = bytes.fromhex("0a0d0d0a")
_ORDERS: Final = {bytes.fromhex("4d3c2b1a"): "<", bytes.fromhex("1a2b3c4d"): ">"}
_SECTION: Final = 0x0A0D0D0A
_INTERFACE: Final = 1
_OLD_PACKET: Final = 2
_SIMPLE_PACKET: Final = 3
_PACKET: Final = 6
_END, _NAME, _RESOLUTION, _FCS_LENGTH, _OFFSET = 0, 2, 9, 13, 14
_FLAGS: Final = 2
"""A packet's option whose bits 5 to 8 are the length of its FCS."""
_MICROSECONDS: Final = 6
_BINARY: Final = 0x80


def read_pcap(reader: CaptureReader) -> Iterator[CapturedFrame]:
    """Yield the frames of a pcap file. Raises `InputError`."""
    order, unit_ns = PCAP_MAGICS[reader.exactly(4, "the file's header")]
    _, _, _, _, _, field = struct.unpack(f"{order}HHiIII", reader.exactly(20, "the file's header"))
    link = _link(reader, field & 0xFFFF, field >> 28 << 1 if field & _HAS_FCS else 0)
    header = struct.Struct(f"{order}IIII")
    number = 0
    while data := reader.perhaps(header.size, f"the header of frame {number + 1}"):
        number += 1
        seconds, fraction, kept, length = header.unpack(data)
        if kept > _MAX_SNAP or fraction * unit_ns >= NS_PER_S:
            raise reader.damaged(f"frame {number} has an impossible header")
        frame = reader.exactly(kept, f"frame {number}")
        stamp_ns = seconds * NS_PER_S + fraction * unit_ns
        yield link.frame(stamp_ns, "0", None, max(length, kept), frame)


@dataclass(frozen=True, slots=True)
class _LinkFormat:
    """How the frames of a file or an interface are stored."""

    kind: int
    """Link type: Ethernet, or Linux's SLL2, which has a header of its own instead of Ethernet's."""
    fcs_bytes: int
    """Bytes of the FCS that belong to each stored frame."""

    def frame(
        self, stamp_ns: int, interface: str, name: str | None, length: int, data: bytes
    ) -> CapturedFrame:
        """Return the frame of a record with its length on the wire."""
        if self.kind == _ETHERNET:
            return CapturedFrame(stamp_ns, interface, name, length + FCS_BYTES - self.fcs_bytes, data)
        if len(data) < _COOKED2_HEADER.size:
            return CapturedFrame(stamp_ns, interface, name, length, b"")
        protocol, _, number, _, _, _, _ = _COOKED2_HEADER.unpack_from(data)
        header = bytes(12) + protocol.to_bytes(2, "big")
        on_wire = length - _COOKED2_HEADER.size + len(header) + FCS_BYTES
        return CapturedFrame(stamp_ns, str(number), None, on_wire, header + data[_COOKED2_HEADER.size :])


def _link(reader: CaptureReader, kind: int, fcs_bytes: int) -> _LinkFormat:
    """Return how frames are stored. Raises `InputError` for what is no Ethernet, or tells no interface."""
    if kind == _COOKED:
        raise InputError(
            f"{reader.path}: does not say by which interface each frame came (link type {kind}); capture with"
            " tcpdump -i any -y LINUX_SLL2, or one file for each interface"
        )
    if kind not in (_ETHERNET, _COOKED2):
        raise InputError(f"{reader.path}: holds no Ethernet frames (link type {kind}), only those count")
    return _LinkFormat(kind, fcs_bytes)


@dataclass(frozen=True, slots=True)
class _Interface:
    name: str | None
    link: int
    fcs_bytes: int
    resolution: int
    offset_s: int

    def stamp_ns(self, units: int) -> int:
        exponent = self.resolution & ~_BINARY
        per_second: int = (2 if self.resolution & _BINARY else 10) ** exponent
        return self.offset_s * NS_PER_S + units * NS_PER_S // per_second


def read_pcapng(reader: CaptureReader) -> Iterator[CapturedFrame]:
    """Yield the frames of a pcapng file. Interfaces count within their section. Raises `InputError`."""
    order = "<"
    interfaces: list[_Interface] = []
    number = 0
    while kind := reader.perhaps(4, "a block's header"):
        if kind == PCAPNG_MAGIC:
            order, interfaces = _section(reader), []
            continue
        block, body = _block(reader, order, kind)
        if block == _INTERFACE:
            interfaces.append(_interface(reader, order, body))
        elif block in (_PACKET, _OLD_PACKET):
            number += 1
            interface, units, length, data, options = _packet(reader, order, block, body, number)
            if interface >= len(interfaces):
                raise reader.damaged(
                    f"frame {number} belongs to interface {interface}, which is not described"
                )
            described = interfaces[interface]
            if described.link in (_ETHERNET, _COOKED, _COOKED2):
                flags = next(
                    (value for code, value in _options(reader, order, options) if code == _FLAGS), b""
                )
                (stated,) = struct.unpack(f"{order}I", flags) if len(flags) == 4 else (0,)
                link = _link(reader, described.link, stated >> 5 & 0xF or described.fcs_bytes)
                stamp_ns = described.stamp_ns(units)
                yield link.frame(stamp_ns, str(interface), described.name, length, data)
        elif block == _SIMPLE_PACKET:
            raise InputError(f"{reader.path}: frame {number + 1} has no time stamp; capture with stamps")


def _section(reader: CaptureReader) -> str:
    length = reader.exactly(4, "a section's header")
    order = _ORDERS.get(reader.exactly(4, "a section's header"))
    if order is None:
        raise reader.damaged("a section does not tell its order of bytes")
    (total,) = struct.unpack(f"{order}I", length)
    if not 28 <= total <= _LONGEST_RECORD or total % 4:
        raise reader.damaged(f"a section's header claims {total} bytes")
    rest = reader.exactly(total - 12, "a section's header")
    (major,) = struct.unpack_from(f"{order}H", rest)
    if major != 1:
        raise InputError(f"{reader.path}: is pcapng version {major}; only version 1 is known")
    return order


def _block(reader: CaptureReader, order: str, kind: bytes) -> tuple[int, bytes]:
    (block,) = struct.unpack(f"{order}I", kind)
    (total,) = struct.unpack(f"{order}I", reader.exactly(4, "a block's header"))
    if not 12 <= total <= _LONGEST_RECORD or total % 4:
        raise reader.damaged(f"a block claims {total} bytes")
    body = reader.exactly(total - 12, "a block")
    if struct.unpack(f"{order}I", reader.exactly(4, "a block")) != (total,):
        raise reader.damaged("a block's two lengths differ")
    return block, body


def _interface(reader: CaptureReader, order: str, body: bytes) -> _Interface:
    if len(body) < 8:
        raise reader.damaged("the description of an interface is too short")
    (link,) = struct.unpack_from(f"{order}H", body)
    name, resolution, offset_s, fcs_bytes = None, _MICROSECONDS, 0, 0
    for code, value in _options(reader, order, body[8:]):
        if code == _NAME:
            name = value.decode("utf-8", errors="replace").rstrip("\0")
        elif code == _RESOLUTION and len(value) == 1:
            resolution = value[0]
        elif code == _OFFSET and len(value) == 8:
            (offset_s,) = struct.unpack(f"{order}q", value)
        elif code == _FCS_LENGTH and len(value) == 1:
            fcs_bytes = value[0]
    return _Interface(name, link, fcs_bytes, resolution, offset_s)


def _options(reader: CaptureReader, order: str, body: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(body):
        code, length = struct.unpack_from(f"{order}HH", body, at)
        if code == _END:
            return
        if at + 4 + length > len(body):
            raise reader.damaged("an option is longer than its block")
        yield code, body[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def _packet(
    reader: CaptureReader, order: str, block: int, body: bytes, number: int
) -> tuple[int, int, int, bytes, bytes]:
    """Return interface, stamp in the interface's units, length, frame and options of a packet's block."""
    if len(body) < 20:
        raise reader.damaged(f"frame {number} is too short")
    place, high, low, kept, length = struct.unpack_from(f"{order}IIIII", body)
    if block == _OLD_PACKET:  # which has 16 bits of drops behind 16 of the interface
        (place,) = struct.unpack_from(f"{order}H", body)
    if 20 + kept > len(body):
        raise reader.damaged(f"frame {number} is longer than its block")
    frame, options = body[20 : 20 + kept], body[20 + (kept + 3) // 4 * 4 :]
    return place, high << 32 | low, max(length, kept), frame, options
