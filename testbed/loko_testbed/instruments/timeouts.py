"""Time limits for programs and boards of a live lab: longer on slow machines.

An emulated processor, as in the virtual machine of docs/vagrant.md without hardware virtualisation, takes 13
to 15 times as long for the same work. The time limits of the live lab are for ordinary machines;
`LOKO_PATIENCE` multiplies them. A factor below 1 is for users who know that waiting is useless.
"""

from __future__ import annotations

import math
import os
from typing import Final

from loko_testbed.simulation.runner import RunError

VARIABLE: Final = "LOKO_PATIENCE"
_LEAST: Final = 0.1
_LARGEST: Final = 1000.0


def scaled_timeout(seconds: float) -> float:
    """Return the time limit on this machine for what an ordinary one does in so many seconds.

    Raises `RunError` if `LOKO_PATIENCE` is not a valid factor.
    """
    text = os.environ.get(VARIABLE) or "1"
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not _LEAST <= factor <= _LARGEST:
        raise RunError(
            f"{VARIABLE}={text}: give a number from {_LEAST:g} to {_LARGEST:g},"
            " by which limits are multiplied"
        )
    return seconds * factor
