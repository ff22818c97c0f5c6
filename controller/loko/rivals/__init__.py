"""The systems that the paper compares itself with, as admission schemes: `silo` and `qjump` (section 2.3).

Both assume that a switch forwards at line rate and that its ports do not disturb each other. On a switch with one CPU
for all ports neither holds, so their guarantees are broken (figures 3 and 15).
"""

from loko.rivals.qjump import Epsilon, QJump, QJumpAdmission
from loko.rivals.silo import SiloAdmission, SiloPort

__all__ = ["Epsilon", "QJump", "QJumpAdmission", "SiloAdmission", "SiloPort"]
