"""Measure speed and memory of `loko bench analyse`, with a generated capture of a gigabyte.

``python -m benchmarks.captures`` prints JSON. The file is in ERF format with both taps in one file, as a DAG
card writes it; it contains single frames that take 207 us to cross a switch.
"""

from __future__ import annotations

import json
import struct
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.measure import LOKO, Spread, run
from loko_testbed.instruments.numbered_frame import frame

GIGABYTE: Final = 1_000_000_000
FRAME_BYTES: Final = 306
_HEADER_BYTES: Final = 18
_FCS: Final = bytes(4)
_WORD_BYTES: Final = 8
_SPACING_NS: Final = 260_000
_PASSAGE_NS: Final = 207_000 + 314 * 80
_BEGIN_S: Final = 1_700_000_000
_AT_ONCE: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of analysing a file several times."""

    file_bytes: int
    frames: int
    megabytes_per_second: Spread
    peak_memory_bytes: int
    small_file_memory_bytes: int
    """Peak memory for a file of a hundredth of the length."""


def measure(*, file_bytes: int = GIGABYTE, repetitions: int = 3) -> Reading:
    """Generate a file and analyse it. Raises `BenchmarkError`."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        large, small = Path(folder) / "large.erf", Path(folder) / "small.erf"
        frames = write(large, file_bytes)
        write(small, file_bytes // 100)
        usages = [run(_command(large)) for _ in range(repetitions)]
        speeds = [large.stat().st_size / 1e6 / usage.wall_s for usage in usages]
        return Reading(
            file_bytes=large.stat().st_size,
            frames=frames,
            megabytes_per_second=Spread.of(speeds),
            peak_memory_bytes=max(usage.peak_memory_bytes for usage in usages),
            small_file_memory_bytes=run(_command(small)).peak_memory_bytes,
        )


def write(path: Path, file_bytes: int) -> int:
    """Write a capture of about `file_bytes`; return the number of its records."""
    wire_frame = frame(FRAME_BYTES, 0) + _FCS
    padding = -(_HEADER_BYTES + len(wire_frame)) % _WORD_BYTES
    record = struct.pack("<QBB", 0, 2, 4) + struct.pack(
        ">HHH", _HEADER_BYTES + len(wire_frame) + padding, 0, FRAME_BYTES
    )
    template = np.frombuffer(record + bytes(2) + wire_frame + bytes(padding), dtype=np.uint8)
    pairs = max(file_bytes // (2 * len(template)), 1)
    number_at = _HEADER_BYTES + FRAME_BYTES - 8
    with path.open("wb") as file:
        for first in range(0, pairs, _AT_ONCE):
            numbers = np.arange(first, min(first + _AT_ONCE, pairs), dtype=np.int64)
            both = np.tile(template, (len(numbers), 2, 1))
            entered_ns = numbers * _SPACING_NS
            for tap, at_ns in enumerate((entered_ns, entered_ns + _PASSAGE_NS)):
                stamps = (_BEGIN_S + at_ns // 10**9 << 32) + (at_ns % 10**9 << 32) // 10**9
                both[:, tap, :8] = stamps.astype("<u8").view(np.uint8).reshape(-1, 8)
                both[:, tap, 9] = 4 | tap
                both[:, tap, number_at : number_at + 4] = numbers.astype(">u4").view(np.uint8).reshape(-1, 4)
            file.write(both.tobytes())
    return 2 * pairs


def _command(path: Path) -> list[str | Path | int]:
    return [LOKO, "bench", "analyse", path, "--json"]


if __name__ == "__main__":
    json.dump(asdict(measure()), sys.stdout, indent=1)
    print()
