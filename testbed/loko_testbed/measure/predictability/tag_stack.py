"""Source routing: the switch matches the outermost of several VLAN tags and strips it (section IV).

A table then has an entry for each port and never changes, whatever flows there are.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.os_ken_messages import flow_mod
from loko.control.vlan_stack import tagged_frame, vid_of
from loko.topology.network import Hop
from loko_testbed.instruments.numbered_frame import TAG_BYTES
from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.instruments.virtual_session import RefusedError
from loko_testbed.measure.predictability.subject import (
    FRAMING_BYTES,
    SEQUENCE_OFFSET,
    FrameStream,
    SwitchUnderTest,
    evenly,
    transmit,
)
from loko_testbed.measure.predictability.table_iii import TimingScenario, frame

_PRIORITY: Final = 100
_FRAME_BYTES: Final = TimingScenario().frame_bytes
"""Length without tags."""


def measure(subject: SwitchUnderTest, tags: int, *, packets: int, seed: int) -> NDArray[np.int64] | None:
    """Measure processing times, in ns, of frames with this many tags; None if the entry is refused.

    Raises `RunError`.
    """
    subject = subject.at_card_rate()
    frame_bytes = _FRAME_BYTES + tags * TAG_BYTES
    gap_ns = (frame_bytes + FRAMING_BYTES) * 8e3 / TimingScenario().rate_mbps
    path = [Hop(switch=f"s{place}", output_port=OUT_PORT) for place in range(tags)]
    stream = FrameStream(
        enters=IN_PORT,
        leaves=OUT_PORT,
        frame=tagged_frame(frame(_FRAME_BYTES), path),
        instants_ns=evenly(packets, gap_ns),
        sequence_offset=SEQUENCE_OFFSET + tags * TAG_BYTES,
    )
    pop = [parser.OFPActionStripVlan(), parser.OFPActionEnqueue(OUT_PORT, 0)]
    entry = flow_mod(parser.OFPMatch(dl_vlan=vid_of(OUT_PORT)), pop, priority=_PRIORITY, xid=1)
    try:
        [sent] = transmit(subject, [entry], [stream], seed=seed)
    except RefusedError:
        return None
    return sent.processing_ns(subject, frame_bytes)
