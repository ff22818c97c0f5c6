"""Sets the departure time of each frame by a BPF program; `fq` or `etf` holds it until then.

The program runs in front of the queueing discipline of an interface. It keeps a token bucket, like a class of
HTB that does not borrow. It drops a frame that would leave later than the bound, and none that already has a
departure time: so what is dropped would certainly be late (docs/slicing.md, section 10).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Final

from loko.units import NS_PER_S
from loko_testbed.instruments.programs import run
from loko_testbed.instruments.traffic_control import replace_discipline
from loko_testbed.simulation.runner import RunError

_SYSCALLS: Final = {"x86_64": 321, "aarch64": 280}
"""Number of bpf(2)."""
_MAP_CREATE, _PROGRAM_LOAD, _OBJECT_PIN = 0, 5, 6
_ARRAY: Final = 2
_CLASSIFIER: Final = 3
_LOOK_UP: Final = 1
"""The helper bpf_map_lookup_elem."""
_LENGTH_AT, _DEPARTURE_AT = 0, 152
"""Offsets in `struct __sk_buff` of a frame's length, without FCS, and of its departure time."""
_PASSES, _DROPPED = 0, 2
"""TC_ACT_OK and TC_ACT_SHOT."""
_SHIFT: Final = 20
"""Fractional bits of the time per byte."""
_SHORTEST_BYTES: Final = 60
_LOG_BYTES: Final = 65536
_SLACK_NS: Final = 1000
"""Slack that the timer of `fq` is allowed."""
_ATTRIBUTES_BYTES: Final = 128
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class HoldingDiscipline(Enum):
    """Queueing discipline that holds a frame until its departure."""

    FQ = (5, 0)
    """Sends a frame at once if it is already due."""
    ETF = (208, 200_000)
    """Drops a frame that is already due, on arrival or when it should leave.

    So each frame is due a while after its departure, and leaves earlier by that much. Its clock needs Linux
    6.1.
    """

    def __init__(self, clock: int, ahead_ns: int) -> None:
        self.clock = clock
        """The helper of BPF that reads the discipline's clock: bpf_ktime_get_ns, or bpf_ktime_get_tai_ns."""
        self.ahead_ns = ahead_ns
        """How long after its departure a frame is due."""


def program(
    *,
    rate_bps: int,
    burst_bytes: int,
    after_ns: int,
    array_descriptor: int,
    holder: HoldingDiscipline = HoldingDiscipline.FQ,
) -> bytes:
    """Return the BPF program that gives departure times.

    Its state is the single value of an array: the instant at which the bucket's backlog is drained.
    """
    byte = round((8 * NS_PER_S << _SHIFT) / rate_bps)
    return b"".join(
        [
            _to_register(6, 1),  # 6: the frame
            _write_int(10, -4, 0),
            _to_register(2, 10),
            _add(2, -4),
            _load_long(1, array_descriptor, is_map=True),
            _call(_LOOK_UP),
            _skip_unless_zero(0, 2),
            _set(0, _PASSES),
            _EXIT,
            _to_register(7, 0),  # 7: the state
            _call(holder.clock),
            _to_register(8, 0),  # 8: now
            _read_long(1, 7, 0),  # 1: when the backlog is drained; the bucket is full at most
            _to_register(2, 8),
            _load_long(3, burst_bytes * byte >> _SHIFT),
            _subtract(2, 3),
            _skip_from(1, 2, 1),
            _to_register(1, 2),
            _to_register(9, 1),  # 9: the departure
            _skip_from(9, 8, 1),
            _to_register(9, 8),
            _to_register(3, 9),
            _subtract(3, 8),
            _load_long(4, after_ns),
            _skip_up_to(3, 4, 2),
            _set(0, _DROPPED),
            _EXIT,
            _read_int(2, 6, _LENGTH_AT),
            _load_long(4, byte),
            _multiply(2, 4),
            _shift_right(2, _SHIFT),
            _add_register(1, 2),
            _write_long(7, 0, 1),
            _load_long(4, holder.ahead_ns),
            _add_register(9, 4),
            _write_long(6, _DEPARTURE_AT, 9),
            _set(0, _PASSES),
            _EXIT,
        ]
    )


@contextmanager
def departures(
    interface: str,
    folder: Path,
    *,
    rate_bps: int,
    burst_bytes: int,
    after_ns: int,
    holder: HoldingDiscipline = HoldingDiscipline.FQ,
) -> Iterator[None]:
    """Within the context, let frames leave an interface by a token bucket.

    A frame leaves at most `after_ns` after it came, or is dropped. Drops are counted by the interface's
    discipline `clsact`. `folder` becomes the mount point of a file system in which the program has a name.
    Raises `RunError`, also if this kernel lacks the holder or BPF.
    """
    what = f"departure times at {interface}"
    at_root = ["dev", interface, "root", *_discipline(holder, rate_bps, burst_bytes, after_ns)]
    replace_discipline(holder.name.lower(), at_root, what=what)
    replace_discipline("ingress", ["dev", interface, "clsact"], what=what)
    folder.mkdir(mode=0o700)
    run(["mount", "-t", "bpf", "bpf", str(folder)], what=f"{what}: this kernel's file system of BPF")
    try:
        named = folder / "departures"
        bucket = {"rate_bps": rate_bps, "burst_bytes": burst_bytes, "after_ns": after_ns}
        _load(named, **bucket, holder=holder, what=what)
        at = ["dev", interface, "egress", "prio", "1", "bpf", "da", "object-pinned", str(named)]
        run(["tc", "filter", "add", *at], what=what)
        yield
    finally:
        run(["umount", str(folder)], what=f"{what}: the file system of BPF")


def _discipline(holder: HoldingDiscipline, rate_bps: int, burst_bytes: int, after_ns: int) -> list[str]:
    """Return tc's words for the holder, with room for all frames that may wait."""
    if holder is HoldingDiscipline.ETF:
        # It has no limit, and takes frames also of senders that gave them no time.
        return ["etf", "clockid", "CLOCK_TAI", "delta", str(holder.ahead_ns), "skip_sock_check"]
    shortest_ns = _SHORTEST_BYTES * 8 * NS_PER_S // rate_bps
    frames = str(after_ns // max(shortest_ns, 1) + burst_bytes // _SHORTEST_BYTES + 1)
    return ["fq", "limit", frames, "flow_limit", frames, "nopacing", "timer_slack", str(_SLACK_NS)]


def _load(
    named: Path, *, rate_bps: int, burst_bytes: int, after_ns: int, holder: HoldingDiscipline, what: str
) -> None:
    """Load the program into the kernel, and pin it by name in the file system. Raises `RunError`."""
    array = _bpf(_MAP_CREATE, struct.pack("=IIIII", _ARRAY, 4, 8, 1, 0), what=f"{what}: an array")
    try:
        code = program(
            rate_bps=rate_bps,
            burst_bytes=burst_bytes,
            after_ns=after_ns,
            array_descriptor=array,
            holder=holder,
        )
        held, licensed = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"MIT")
        log = ctypes.create_string_buffer(_LOG_BYTES)
        pointers = [ctypes.addressof(held), ctypes.addressof(licensed)]
        values = struct.pack(
            "=IIQQIIQ", _CLASSIFIER, len(code) // 8, *pointers, 1, _LOG_BYTES, ctypes.addressof(log)
        )
        try:
            loaded = _bpf(_PROGRAM_LOAD, values, what=f"{what}: the program")
        except RunError as error:
            said = log.value.decode(errors="replace").strip().splitlines()
            raise RunError(f"{error}{': ' + said[-1] if said else ''}") from None
        try:
            path = ctypes.create_string_buffer(os.fsencode(named))
            _bpf(_OBJECT_PIN, struct.pack("=QI", ctypes.addressof(path), loaded), what=f"{what}: its name")
        finally:
            os.close(loaded)
    finally:
        os.close(array)


def _bpf(command: int, values: bytes, *, what: str) -> int:
    """Call bpf(2); return its result. Raises `RunError`."""
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise RunError(f"{what}: the number of bpf(2) on {platform.machine()} is not known here")
    attributes = ctypes.create_string_buffer(values.ljust(_ATTRIBUTES_BYTES, b"\0"), _ATTRIBUTES_BYTES)
    result: int = _LIBC.syscall(number, command, attributes, _ATTRIBUTES_BYTES)
    if result < 0:
        raise RunError(f"{what}: the kernel refuses it: {os.strerror(ctypes.get_errno())}")
    return result


# Instructions: operation, registers, offset, value (RFC 9669).


def _instruction(operation: int, *, to: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", operation, source << 4 | to, offset, value)


def _set(to: int, value: int) -> bytes:
    return _instruction(0xB7, to=to, value=value)


def _to_register(to: int, source: int) -> bytes:
    return _instruction(0xBF, to=to, source=source)


def _add(to: int, value: int) -> bytes:
    return _instruction(0x07, to=to, value=value)


def _add_register(to: int, source: int) -> bytes:
    return _instruction(0x0F, to=to, source=source)


def _subtract(to: int, source: int) -> bytes:
    return _instruction(0x1F, to=to, source=source)


def _multiply(to: int, source: int) -> bytes:
    return _instruction(0x2F, to=to, source=source)


def _shift_right(to: int, digits: int) -> bytes:
    return _instruction(0x77, to=to, value=digits)


def _read_int(to: int, source: int, offset: int) -> bytes:
    return _instruction(0x61, to=to, source=source, offset=offset)


def _read_long(to: int, source: int, offset: int) -> bytes:
    return _instruction(0x79, to=to, source=source, offset=offset)


def _write_int(to: int, offset: int, value: int) -> bytes:
    return _instruction(0x62, to=to, offset=offset, value=value)


def _write_long(to: int, offset: int, source: int) -> bytes:
    return _instruction(0x7B, to=to, source=source, offset=offset)


def _load_long(to: int, value: int, *, is_map: bool = False) -> bytes:
    """Load 64 bits, by two instructions; or, if `is_map`, a map by its descriptor."""
    first = _instruction(0x18, to=to, source=int(is_map), value=_signed(value & 0xFFFFFFFF))
    return first + _instruction(0, value=_signed(value >> 32))


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def _call(helper: int) -> bytes:
    return _instruction(0x85, value=helper)


def _skip_unless_zero(register: int, count: int) -> bytes:
    return _instruction(0x55, to=register, offset=count)


def _skip_from(register: int, other: int, count: int) -> bytes:
    """Skip instructions if a register is at least another one, without sign."""
    return _instruction(0x3D, to=register, source=other, offset=count)


def _skip_up_to(register: int, other: int, count: int) -> bytes:
    """Skip instructions if a register is at most another one, without sign."""
    return _instruction(0xBD, to=register, source=other, offset=count)


_EXIT: Final = b"\x95" + bytes(7)
