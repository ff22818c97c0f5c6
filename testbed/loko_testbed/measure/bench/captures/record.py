"""A frame as a capture file stores it."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple

from loko.document import InputError

FCS_BYTES = 4


class CapturedFrame(NamedTuple):
    """A frame of an Ethernet interface."""

    stamp_ns: int
    """The stamp in the file. `Stamp` says which instant of the frame it means."""
    interface: str
    """Number of the interface in the file."""
    interface_name: str | None
    length_bytes: int
    """Length on the wire, with FCS, without preamble."""
    data: bytes
    """The bytes kept of the frame. They may be cut short, and may end with the FCS."""


class CaptureReader:
    """Reads a capture file and knows the position in it. Every fault is an `InputError` in one line."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self.path = path
        self.at = 0
        self._stream = stream

    def exactly(self, count: int, what: str) -> bytes:
        """Read this many bytes. Raises `InputError` if the file ends before."""
        data = self.perhaps(count, what)
        if len(data) < count:
            raise self.damaged(f"the file ends in the middle of {what}")
        return data

    def perhaps(self, count: int, what: str) -> bytes:
        """Read this many bytes, or none at the end of the file. Raises `InputError` if it ends in between."""
        try:
            data = self._stream.read(count)
        except (OSError, EOFError, zlib.error) as error:  # a compressed file that is damaged
            raise self.damaged(f"cannot be read: {error}") from None
        if data and len(data) < count:
            raise self.damaged(f"the file ends in the middle of {what}")
        self.at += len(data)
        return data

    def damaged(self, what: str) -> InputError:
        """Return the error that says where the file is damaged."""
        return InputError(f"{self.path}: byte {self.at}: {what}; capture again, or cut the file off before")
