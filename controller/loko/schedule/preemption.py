"""How long a time-triggered frame waits for one frame of other traffic, with and without frame preemption."""

from __future__ import annotations

from typing import Final

from loko.units import NS_PER_S

FRAMING_BYTES: Final = 20
"""Preamble and gap, which a frame or a fragment takes on the wire besides its length."""
LONGEST_UNDIVIDED_BYTES: Final = 123
"""The longest frame that cannot be preempted: each part needs 64 bytes, of which the first has a check sum of
its own of 4 (802.1Qbu with 802.3br, smallest fragments)."""


def longest_wait_ns(frame_bytes: int, link_rate_bps: int, *, preempted: bool) -> int:
    """Return the longest wait of a frame with priority for one other frame on the wire, in ns, rounded up.

    `frame_bytes` is the length of the longest other frame, with its FCS. If the link preempts other frames,
    only what cannot be divided is waited for.
    """
    waited_for = min(frame_bytes, LONGEST_UNDIVIDED_BYTES) if preempted else frame_bytes
    return -(-(waited_for + FRAMING_BYTES) * 8 * NS_PER_S // link_rate_bps)
