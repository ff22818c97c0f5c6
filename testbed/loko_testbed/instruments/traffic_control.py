"""The kernel's traffic control at an interface, by tc: disciplines, HTB's classes, filters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from loko_testbed.instruments.programs import run
from loko_testbed.simulation.runner import RunError

_UNKNOWN: Final = ("qdisc kind is unknown", "Unknown qdisc", "No such file or directory")
"""Messages of tc if kernel or tc lacks a discipline."""
_EVERY_FRAME: Final = ("protocol", "all", "u32", "match", "u32", "0", "0")
_VALUES: Final = re.compile(r"\b(rate|ceil|burst|cburst) ([0-9.]+)([KMG]?bit|[KMG]?b)\b")
_UNITS: Final = {
    **{"bit": 1.0, "Kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9},
    **{"b": 1.0, "Kb": 2.0**10, "Mb": 2.0**20, "Gb": 2.0**30},
}


def class_id(minor: int) -> str:
    """Return a class of the discipline ``1:`` as tc writes it; 0 is the discipline itself."""
    return f"1:{minor:x}"


def htb_rates(rate_bps: int, ceiling_bps: int, burst_bytes: int, ceiling_burst_bytes: int) -> list[str]:
    """Return a class's rates and buckets as arguments of tc."""
    rates = ["rate", f"{rate_bps}bit", "ceil", f"{ceiling_bps}bit"]
    return [*rates, "burst", str(burst_bytes), "cburst", str(ceiling_burst_bytes)]


class Htb:
    """HTB at an interface: a tree of classes, each by its minor number."""

    def __init__(self, interface: str, *, default: int, what: str, prefix: Sequence[str] = ()) -> None:
        """Replace the discipline. Frames that no filter directs are of class `default`. Raises `RunError`."""
        self._device, self._what, self._prefix = ["dev", interface], what, prefix
        at_root = [*self._device, "root", "handle", "1:", "htb", "default", f"{default:x}"]
        replace_discipline("htb", at_root, what=what, prefix=prefix)

    def add(self, minor: int, settings: Sequence[str], *, below: int = 0, leaf: Sequence[str] = ()) -> None:
        """Add a class below another, with the discipline of its frames if it is a leaf. Raises `RunError`."""
        where = ["parent", class_id(below), "classid", class_id(minor)]
        add = ["tc", "class", "add", *self._device, *where, "htb", *settings]
        run(add, what=self._what, prefix=self._prefix)
        if leaf:
            at = [*self._device, "parent", class_id(minor), *leaf]
            replace_discipline(leaf[0], at, what=self._what, prefix=self._prefix)


def replace_discipline(kind: str, arguments: Sequence[str], *, what: str, prefix: Sequence[str] = ()) -> None:
    """Set a queueing discipline with ``tc qdisc replace``.

    Raises `RunError`; if this kernel lacks the discipline `kind`, the message names the module to load.
    """
    try:
        run(["tc", "qdisc", "replace", *arguments], what=what, prefix=prefix)
    except RunError as error:
        if any(words in str(error) for words in _UNKNOWN):
            raise RunError(
                f"{what}: this kernel has no queueing discipline '{kind}' (module sch_{kind}): load it,"
                " or use --mode virtual"
            ) from None
        raise


def direct_udp(
    interface: str,
    end: Literal["sport", "dport"],
    port: int,
    minor: int,
    *,
    what: str,
    prefix: Sequence[str] = (),
) -> None:
    """Direct packets with this UDP port to a class of an interface's HTB. Raises `RunError`."""
    udp = ["match", "ip", "protocol", "17", "0xff", "match", "ip", end, str(port), "0xffff"]
    below = ["parent", "1:", "protocol", "ip", "prio", "1", "u32", *udp, "flowid", class_id(minor)]
    run(["tc", "filter", "add", "dev", interface, *below], what=what, prefix=prefix)


def redirect(source: str, target: str, *, what: str) -> None:
    """Send all that comes in at one interface out of another one. Raises `RunError`."""
    replace_discipline("ingress", ["dev", source, "clsact"], what=what)
    out = ["action", "mirred", "egress", "redirect", "dev", target]
    run(["tc", "filter", "add", "dev", source, "ingress", *_EVERY_FRAME, *out], what=what)


def shown_classes(shown: str) -> dict[str, dict[str, float]]:
    """Return rates (bit/s) and buckets (bytes) in the output of ``tc class show``, by class of HTB.

    Their JSON is broken in iproute2 of 2023. tc rounds values, to 1001Kbit for 1000500.
    """
    return {
        line.split()[2]: {name: float(number) * _UNITS[unit] for name, number, unit in _VALUES.findall(line)}
        for line in shown.splitlines()
        if line.startswith("class htb ")
    }
