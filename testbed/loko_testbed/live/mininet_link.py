"""The usual emulation: plain Mininet, its links limited with ``TCLink(bw=..., max_queue_size=...)``.

If tc refuses something, Mininet only prints an error and leaves the link as it is. So this asks the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from loko.switch_model.device import Profile
from loko.switch_model.scenario import Scenario
from loko.switch_model.service_curve import capacity_frames, service_curve
from loko.units import BPS_PER_MBPS
from loko_testbed.instruments.programs import run, run_json
from loko_testbed.instruments.traffic_control import shown_classes
from loko_testbed.live.shaping import FCS_BYTES
from loko_testbed.simulation.runner import RunError

_TOLERANCE = 1e-3
"""tc shows four to five digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLimit:
    """Mininet's parameters of a link."""

    bw_mbps: float
    """Rate, as Linux counts it: without the FCS."""
    max_queue_size: int
    """Frames that may wait; Mininet makes it a limit of netem."""

    @classmethod
    def of(cls, profile: Profile, scenario: Scenario) -> Self:
        """Return the limits for the rate and the buffer of a switch. Raises `InputError`."""
        service = service_curve(profile, scenario)
        frame_bytes = service.largest_frame_bytes
        rate_bps = service.rate_bps * (frame_bytes - FCS_BYTES) / frame_bytes
        return cls(
            bw_mbps=rate_bps / BPS_PER_MBPS,
            max_queue_size=capacity_frames(profile, frame_bytes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedLink:
    """The limits that a link really has."""

    interface: str
    bw_mbps: float
    queue_frames: int | None
    """None if tc refused the queue's size: then it has the kernel's default, usually 1000 frames, and Open
    vSwitch drops what its socket's send buffer does not hold."""


def limit(interface: str, wanted: LinkLimit) -> LimitedLink:
    """Have Mininet limit what leaves through an interface of the current network namespace.

    Call this after Open vSwitch has taken the interface: it removes the queueing disciplines that it finds,
    so Mininet sets them again. Raises `RunError` if the rate is not set afterwards; if the queue size is not
    set, the result says so.
    """
    # Figures name their parameters, which need no Mininet.
    from mininet.link import TCIntf  # noqa: PLC0415
    from mininet.log import setLogLevel  # noqa: PLC0415
    from mininet.node import Node  # noqa: PLC0415

    setLogLevel("critical")  # what tc says is found out below
    shell = Node(f"{interface}-tc", inNamespace=False)
    try:
        TCIntf(interface, node=shell, bw=wanted.bw_mbps, max_queue_size=wanted.max_queue_size)
    finally:
        shell.terminate()
        setLogLevel("error")
    what = f"rate limit of {interface}"
    rates = rates_mbps(run(["tc", "class", "show", "dev", interface], what=what))
    if len(rates) != 1 or abs(rates[0] - wanted.bw_mbps) > _TOLERANCE * wanted.bw_mbps:
        raise RunError(
            f"{what}: tc did not set {wanted.bw_mbps:g} Mbit/s as Mininet asked it to (found: "
            f"{', '.join(f'{rate:g}' for rate in rates) or 'no limit'}): the kernel needs the module sch_htb"
        )
    shown = run_json(["tc", "-json", "qdisc", "show", "dev", interface], what=what)
    sizes = [entry.get("options", {}).get("limit") for entry in shown if entry.get("kind") == "netem"]
    return LimitedLink(interface=interface, bw_mbps=rates[0], queue_frames=int(sizes[0]) if sizes else None)


def rates_mbps(shown: str) -> list[float]:
    """Return the rates in the output of ``tc class show``."""
    return [htb["rate"] / BPS_PER_MBPS for htb in shown_classes(shown).values()]
