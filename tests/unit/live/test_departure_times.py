"""The BPF program that sets departure times, run instruction by instruction next to a token bucket."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loko.slicing.document import HtbPort, load_slices
from loko_testbed.live.departure_times import HoldingDiscipline, program
from loko_testbed.measure.slices import htb_port
from loko_testbed.simulation.runner import RunError

ARRAY = 7
PASSES, DROPPED = 0, 2
MASK = (1 << 64) - 1


@dataclass
class Kernel:
    """The part of the kernel's BPF machine that the program needs: an array of one value, and the clock."""

    code: bytes
    clock: int
    """Number of the helper function that reads the clock."""
    paid_ns: int = 0

    def passes(self, length: int, now_ns: int) -> int | None:
        """Run the program for a frame. Return its departure time, or None if it is dropped."""
        registers: list[int | str] = [0] * 10 + ["stack"]
        registers[1] = "frame"
        departure, place = None, 0
        lines = [struct.unpack_from("<BBhi", self.code, at) for at in range(0, len(self.code), 8)]
        while True:
            operation, both, offset, value = lines[place]
            to, source = both & 15, both >> 4
            place += 1
            match operation:
                case 0xB7:
                    registers[to] = value
                case 0xBF:
                    registers[to] = registers[source]
                case 0x07:
                    assert (registers[to], value) == ("stack", -4)
                case 0x62:
                    assert (registers[to], offset, value) == ("stack", -4, 0)
                case 0x18:
                    low, high = value & 0xFFFFFFFF, lines[place][3] & 0xFFFFFFFF
                    registers[to] = "array" if source == 1 else low | high << 32
                    assert source == 0 or low == ARRAY
                    place += 1
                case 0x85 if value == 1:
                    assert registers[1:3] == ["array", "stack"]
                    registers[0] = "state"
                case 0x85 if value == self.clock:
                    registers[0] = now_ns
                case 0x55:
                    place += offset if registers[to] != value else 0
                case 0x79:
                    assert (registers[source], offset) == ("state", 0)
                    registers[to] = self.paid_ns
                case 0x61:
                    assert (registers[source], offset) == ("frame", 0)
                    registers[to] = length
                case 0x7B if registers[to] == "state":
                    self.paid_ns = _number(registers[source])
                case 0x7B:
                    assert (registers[to], offset) == ("frame", 152)
                    departure = _number(registers[source])
                case 0x0F:
                    registers[to] = _number(registers[to]) + _number(registers[source]) & MASK
                case 0x1F:
                    registers[to] = _number(registers[to]) - _number(registers[source]) & MASK
                case 0x2F:
                    registers[to] = _number(registers[to]) * _number(registers[source]) & MASK
                case 0x77:
                    registers[to] = _number(registers[to]) >> value
                case 0x3D:
                    place += offset if _number(registers[to]) >= _number(registers[source]) else 0
                case 0xBD:
                    place += offset if _number(registers[to]) <= _number(registers[source]) else 0
                case 0x95:
                    assert registers[0] == (DROPPED if departure is None else PASSES)
                    return departure
                case _:
                    raise AssertionError(f"operation {operation:#x}")


def _number(value: int | str) -> int:
    assert isinstance(value, int)
    return value


@given(
    st.integers(10**5, 10**10),
    st.integers(64, 10**6),
    st.integers(1, 10**8),
    st.lists(st.tuples(st.integers(0, 10**7), st.integers(60, 1514)), min_size=1, max_size=60),
    st.sampled_from(HoldingDiscipline),
)
def test_frames_leave_by_the_bucket_within_the_bound_or_never(
    rate_bps: int, burst_bytes: int, after_ns: int, frames: list[tuple[int, int]], holder: HoldingDiscipline
) -> None:
    bucket = {"rate_bps": rate_bps, "burst_bytes": burst_bytes, "after_ns": after_ns}
    code = program(**bucket, array_descriptor=ARRAY, holder=holder)
    kernel, now_ns, last_ns = Kernel(code, holder.clock), 10**18, 0
    byte_ns = 8e9 / rate_bps
    backlog_bytes = 0.0
    backlog_at_ns = now_ns
    rounding_ns = 2 * len(frames) + burst_bytes / 2**20
    for gap_ns, length in frames:
        now_ns += gap_ns
        backlog_bytes = max(0.0, backlog_bytes - (now_ns - backlog_at_ns) / byte_ns)
        backlog_at_ns = now_ns
        waits_ns = max(0.0, (backlog_bytes - burst_bytes) * byte_ns)
        due_ns = kernel.passes(length, now_ns)
        if due_ns is None:
            assert waits_ns > after_ns - rounding_ns
            continue
        departure_ns = due_ns - holder.ahead_ns
        assert last_ns <= departure_ns <= now_ns + after_ns
        assert departure_ns - now_ns == pytest.approx(waits_ns, abs=rounding_ns)
        backlog_bytes += length
        last_ns = departure_ns


def test_a_bound_beside_another_queue_is_refused_before_anything_is_built() -> None:
    port = load_slices("bounded")
    assert isinstance(port, HtbPort)
    [late] = port.queues
    for queues in (
        [late, late.model_copy(update={"name": "other", "drops": None})],
        [late.model_copy(update={"ceil_bps": 2 * late.rate_bps})],
    ):
        with pytest.raises(RunError, match=r"^htb on the port: queue 'slice' drops what is late, .*virtual"):
            htb_port.check(port.model_copy(update={"queues": queues}))
    htb_port.check(port)
