"""Admission that counts whole frames instead of bytes (docs/packet-granular.md).

More flows than the sums of rates and bursts of section 5 under stricter guarantees: staircase arrival curves,
a server that takes one frame at a time, jitter in place of delay as what makes bursts grow, and links between
switches that carry no more than the CPU before them forwards.
"""

from loko.packets.admission import PacketAdmission, default_targets
from loko.packets.joint import JointAdmission
from loko.packets.optimise import optimised_targets
from loko.packets.server import FrameServer, frame_server
from loko.packets.staircase import Grid

__all__ = [
    "FrameServer",
    "Grid",
    "JointAdmission",
    "PacketAdmission",
    "default_targets",
    "frame_server",
    "optimised_targets",
]
