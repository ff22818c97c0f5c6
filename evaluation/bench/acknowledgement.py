"""What receiving a TCP acknowledgement costs: a request that comes while the CPU works on one waits for it.

An echo request is answered; the bench's controller acknowledges the answer a known time later; right behind
that comes a second request. Not in the paper.
"""

from __future__ import annotations

from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.bench.device import ControlFrame, Device
from evaluation.bench.equations import Wire
from evaluation.runner import RunError
from loko.controller.messages import echo_request

ACKNOWLEDGEMENT_NS: Final = 200_000
"""When the controller of a bench acknowledges that does it at a time of its own choice."""
PART: Final = "cp-time/acknowledgement"
_BEHIND_NS: Final = 15_000
"""The second request comes so long after the acknowledgement: while the CPU works on that."""
_SPACING_NS: Final = 6_000_000
_JITTER_NS: Final = 100_000


def measure(device: Device, *, samples: int, seed: int) -> NDArray[np.int64]:
    """From the first reply to the second. Empty if nobody knows when the bench acknowledges."""
    later_ns = device.acknowledgement_ns
    if later_ns is None:
        return np.array([], dtype=np.int64)
    device.load([])
    random = np.random.default_rng(seed)
    first, reply = _frames(device, [_SPACING_NS], 1)
    apart_ns = reply.at_ns - first.at_ns + later_ns + _BEHIND_NS
    # Both ways of the request to the CPU are in the time of the first reply already, but for its own.
    apart_ns -= device.wire.time_ns(2 * (first.length_bytes + device.wire.preamble_bytes))
    times = []
    for gap in _SPACING_NS + random.integers(0, _JITTER_NS, samples):
        *_, one, other = _frames(device, [int(gap), apart_ns], 2)
        times.append(other.at_ns - one.at_ns)
    return np.array(times, dtype=np.int64)


def _frames(device: Device, gaps_ns: list[int], replies: int) -> list[ControlFrame]:
    seen = device.control(gaps_ns, [echo_request(number) for number in range(len(gaps_ns))])
    came = [one for one in seen if one.from_switch]
    if len(came) != replies:
        raise RunError(f"{device.name}: {len(came)} replies to {replies} echo requests")
    return [next(one for one in seen if not one.from_switch), *came]


def cost_ns(
    between_ns: float,
    *,
    echo_ns: float,
    loop_ns: float,
    transit_ns: float,
    wire: Wire,
    later_ns: int = ACKNOWLEDGEMENT_NS,
) -> float:
    """The acknowledgement's share in what `measure` gives; `echo_ns` is what the CPU needs for a request.

    Idle since the first reply, the CPU finds the acknowledgement after a whole number of passes.
    """
    back_ns = wire.time_ns(wire.preamble_bytes + _REPLY_BYTES + wire.tag_bytes) + transit_ns
    passes = ceil((back_ns + later_ns) / loop_ns)
    return between_ns - passes * loop_ns - echo_ns


_REPLY_BYTES: Final = 66
"""An echo reply's frame: the headers of Ethernet, IP and TCP, 8 bytes, and FCS."""
