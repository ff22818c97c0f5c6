"""The emulated board as a switch of Mininet (docs/mininet.md): ``from loko_testbed.mininet import ZodiacFX``.

Mininet's own Python imports this package, so it needs only Mininet and the standard library, and runs on
Python 3.8 and later. `custom` is the file for ``mn --custom``.
"""

from loko_testbed.mininet.switch import ZodiacFX

__all__ = ["ZodiacFX"]
