"""Admission that counts whole frames instead of bytes (docs/packet-granular.md).

It admits more flows than the sums of rates and bursts of section 5, under stricter guarantees. It uses
staircase arrival curves and a server that takes one frame at a time; jitter instead of delay makes bursts
grow; and links between switches carry no more than the CPU before them forwards.
"""

from loko.admission.packets.admission import PacketAdmission, default_targets
from loko.admission.packets.joint import JointAdmission
from loko.admission.packets.optimise import optimised_targets
from loko.admission.packets.server import FrameServer, frame_server
from loko.admission.packets.staircase import Grid

__all__ = [
    "FrameServer",
    "Grid",
    "JointAdmission",
    "PacketAdmission",
    "default_targets",
    "frame_server",
    "optimised_targets",
]
