"""Adds ``--switch zodiac`` to `mn`: ``sudo mn --custom "$(loko mininet)" --switch zodiac``.

`mn` executes this file under its own Python, as text: the file has no ``__file__`` there, and its folder is
not on Python's path.
"""

import inspect
import sys
from pathlib import Path

_FILE = inspect.getfile(inspect.currentframe())  # type: ignore[arg-type]  # None in no Python that runs Mininet
sys.path.append(str(Path(_FILE).resolve().parents[2]))

from loko_testbed.mininet import ZodiacFX  # noqa: E402 - found by the path above

switches = {"zodiac": ZodiacFX}
