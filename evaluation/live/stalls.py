"""Whose fault was it? A late or lost packet is *explained* by a stall of the emulator's thread in its time.

The emulator reports each time in which the host's kernel kept its thread from running. Such a stall delays or
loses packets that a board would have forwarded in time, so it says something of the host and nothing of the
switch. A late or lost packet without a stall is the switch's (or the model's).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.runner import LOST, RunRecords, Stall

EXPLANATION_MARGIN_NS = 1_000_000
"""How much longer than the guarantee a lost packet might have been under way: its last switch may have
dropped it behind others that a stall had delayed."""


def explained(
    sent_ns: NDArray[np.int64],
    received_ns: NDArray[np.int64],
    stalls: Sequence[Stall],
    *,
    guarantee_ns: int,
    margin_ns: int = EXPLANATION_MARGIN_NS,
) -> NDArray[np.bool_]:
    """For each packet whether some stall overlaps its time in the network.

    That time is [sent, received], or [sent, sent + guarantee + margin] if it was lost. A stall counts twice
    its duration: what it held back meets later traffic at the next switch, and a network that is at most
    half loaded needs no longer than the stall itself to be rid of it. Touching counts.
    """
    until = np.where(received_ns == LOST, sent_ns + guarantee_ns + margin_ns, received_ns)
    if not stalls:
        return np.zeros(len(sent_ns), dtype=np.bool_)
    ordered = sorted(stalls, key=lambda stall: stall.start_ns)
    starts = np.array([stall.start_ns for stall in ordered], dtype=np.int64)
    ends = np.maximum.accumulate(np.array([s.start_ns + 2 * s.duration_ns for s in ordered], dtype=np.int64))
    begun = np.searchsorted(starts, until, side="right")  # stalls that began in time; the last end decides
    latest_end = np.concatenate(([np.iinfo(np.int64).min], ends))[begun]
    result: NDArray[np.bool_] = latest_end >= sent_ns
    return result


def unexplained(records: RunRecords, *, guarantee_ns: int) -> NDArray[np.int64]:
    """Rows of the packets that were lost or later than the guarantee although no stall explains it."""
    lost = records.received_ns == LOST
    late = ~lost & (records.received_ns - records.sent_ns > guarantee_ns)
    excuse = explained(records.sent_ns, records.received_ns, records.host.stalls, guarantee_ns=guarantee_ns)
    return np.flatnonzero((lost | late) & ~excuse)
