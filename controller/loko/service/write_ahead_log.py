"""SQLite's write-ahead log: whether a part of it is damaged, and its pages.

SQLite ends the log, without a word, at the first frame whose checksum is wrong. After a power cut this drops
at most the transaction that was being written. If a disk has damaged an earlier part, it drops transactions
that somebody has been told of. The file format is at https://www.sqlite.org/fileformat2.html#walformat.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_MAGIC: Final = 0x377F0682
"""With the lowest bit set, checksums count the log in big-endian words, else in little-endian ones."""


class WalFrame(NamedTuple):
    """A page as a transaction has left it."""

    page: int
    """Number of the page, from 1."""
    is_last: bool
    """Whether it is the last frame of its transaction."""
    data: bytes


def log_damage(log: bytes) -> str | None:
    """Return what is wrong with a log beyond a transaction that was being written; None if nothing is."""
    if len(log) < _HEADER + _FRAME_HEADER:
        return None  # no transaction begins before the header is on disk
    words = struct.unpack(">8I", log[:_HEADER])
    page_bytes = words[2]
    if words[0] & ~1 != _MAGIC or page_bytes & (page_bytes - 1) or not 512 <= page_bytes <= 65536:
        return "the beginning of its log is damaged"
    sums = _summed(log[: _HEADER - 8], words[0], (0, 0))
    if sums != words[6:]:
        return "the beginning of its log is damaged"
    frames = list(_frames(log))
    whole = 0
    for number, at in enumerate(
        range(_HEADER, len(log) - page_bytes - _FRAME_HEADER + 1, page_bytes + _FRAME_HEADER)
    ):
        if log[at + 8 : at + 16] != log[16:24]:
            break
        sums = _summed(log[at : at + 8], words[0], sums)
        sums = _summed(log[at + _FRAME_HEADER : at + _FRAME_HEADER + page_bytes], words[0], sums)
        if sums != struct.unpack(">2I", log[at + 16 : at + 24]):
            break
        whole = number + 1
    dropped = [frame for place, frame in frames if place >= whole]
    pages = [frame.page for frame in dropped]
    if any(frame.is_last for frame in dropped[:-1]) or len(set(pages)) < len(pages):
        return f"its log is damaged after {whole} of {frames[-1][0] + 1} pages"
    return None


def pages_of(log: bytes) -> Mapping[int, bytes]:
    """Return each page as the log has it last, damaged or not, up to its last complete transaction."""
    pages: dict[int, bytes] = {}
    open_: dict[int, bytes] = {}
    for _, frame in _frames(log):
        open_[frame.page] = frame.data
        if frame.is_last:
            pages |= open_
            open_.clear()
    return pages


def _frames(log: bytes) -> Iterator[tuple[int, WalFrame]]:
    """Yield the frames that were written since the log was last begun anew, each with its place from 0."""
    if len(log) < _HEADER:
        return
    page_bytes = int.from_bytes(log[8:12], "big")
    if not 512 <= page_bytes <= 65536:
        return
    step = page_bytes + _FRAME_HEADER
    for place, at in enumerate(range(_HEADER, len(log) - step + 1, step)):
        page, pages_after, *_ = struct.unpack(">2I", log[at : at + 8])
        if log[at + 8 : at + 16] == log[16:24] and page:
            yield place, WalFrame(page, pages_after > 0, log[at + _FRAME_HEADER : at + step])


def _summed(data: bytes, magic: int, sums: tuple[int, int]) -> tuple[int, int]:
    """Return the log's running checksum after further data, whose length is a multiple of eight bytes."""
    words = array("I", data)
    if (sys.byteorder == "little") == bool(magic & 1):
        words.byteswap()
    first, second = sums
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
