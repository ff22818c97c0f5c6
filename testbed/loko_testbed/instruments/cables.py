"""Cables between interfaces of this machine: pairs of veths that pass frames as a wire would."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from loko_testbed.instruments.emulator import OFFLOADS
from loko_testbed.instruments.programs import run, run_json


def add_cable(near: str, far: str, *, what: str, prefix: Sequence[str] = ()) -> None:
    """Add a pair of veths, up and without offloads. Raises `RunError`."""
    run(["ip", "link", "add", "name", near, "type", "veth", "peer", "name", far], what=what, prefix=prefix)
    for end in (near, far):
        set_up(end, what=what, prefix=prefix)


def set_up(interface: str, *, what: str, prefix: Sequence[str] = ()) -> None:
    """Put an interface up that passes frames as they are. Raises `RunError`."""
    switch_off_offloads(interface, what=what, prefix=prefix)
    run(["ip", "link", "set", "dev", interface, "up"], what=what, prefix=prefix)


def switch_off_offloads(interface: str, *, what: str, prefix: Sequence[str] = ()) -> None:
    """Switch all offloads off, so that frames pass as they are. Raises `RunError`."""
    switches = itertools.chain.from_iterable((key, "off") for key in OFFLOADS)
    run(["ethtool", "-K", interface, *switches], what=what, prefix=prefix)


def link_flags(interface: str, *, prefix: Sequence[str] = ()) -> list[str]:
    """Return the flags of an interface as ``ip link`` shows them, such as ``UP`` and ``LOWER_UP``.

    Raises `RunError`, also if there is no such interface.
    """
    [shown] = run_json(["ip", "-json", "link", "show", "dev", interface], what=interface, prefix=prefix)
    flags: list[str] = shown["flags"]
    return flags
