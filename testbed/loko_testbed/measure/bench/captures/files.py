"""Capture files of any known format, told apart by their first bytes, compressed or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from loko.document import InputError
from loko_testbed.measure.bench.captures.erf import looks_like_erf, read_erf
from loko_testbed.measure.bench.captures.pcap import PCAP_MAGICS, PCAPNG_MAGIC, read_pcap, read_pcapng
from loko_testbed.measure.bench.captures.record import CapturedFrame, CaptureReader

_GZIP: Final = bytes.fromhex("1f8b")
_HEAD_BYTES: Final = 16


def read_capture(path: Path) -> Iterator[CapturedFrame]:
    """Yield the Ethernet frames of a capture file, in its order. Raises `InputError` in one line."""
    try:
        with path.open("rb") as plain:
            compressed = plain.read(len(_GZIP)) == _GZIP
            plain.seek(0)
            if compressed:
                with gzip.open(plain) as stream:
                    yield from _frames(path, cast(BinaryIO, stream))
            else:
                yield from _frames(path, plain)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _frames(path: Path, stream: BinaryIO) -> Iterator[CapturedFrame]:
    try:
        head = stream.read(_HEAD_BYTES)
        stream.seek(0)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be unpacked: {error}") from None
    reader = CaptureReader(path, stream)
    if head[:4] in PCAP_MAGICS:
        return read_pcap(reader)
    if head[:4] == PCAPNG_MAGIC:
        return read_pcapng(reader)
    if looks_like_erf(head):
        return read_erf(reader)
    if not head:
        raise InputError(f"{path}: is empty")
    raise InputError(f"{path}: is no capture file of a known format (pcap, pcapng, Endace ERF)")
