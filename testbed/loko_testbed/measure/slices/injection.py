"""Injection of frames from Open vSwitch into tc's queues, which should decide what waits and what is lost."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from loko_testbed.instruments.cables import set_up
from loko_testbed.instruments.traffic_control import redirect
from loko_testbed.live.datapaths import USER_SPACE, Datapath, kernel, kernel_has_datapath


class InjectionMethod(StrEnum):
    """How a frame gets from the switch into the queues of its port."""

    KERNEL = "kernel"
    """The datapath in the kernel puts it there, as in the slicing paper (OVS-KP)."""
    TAP = "tap"
    """The datapath in user space writes it to a tap, and the kernel redirects what comes from there."""
    SOCKET = "socket"
    """The datapath in user space sends it by a packet socket.

    All that waits in the queues, of all slices, has to fit into the socket's send buffer (some 90 full
    frames). What does not fit is lost before it reaches its queue.
    """

    @property
    def remark(self) -> str:
        """A sentence for readers of what was measured."""
        place = {
            InjectionMethod.KERNEL: "in the kernel",
            InjectionMethod.TAP: "in user space, and a tap leads from there to the queues of HTB",
            InjectionMethod.SOCKET: (
                "in user space, and a packet socket leads from there to the queues of HTB"
            ),
        }
        return f"The datapath of Open vSwitch is {place[self]}."

    @property
    def datapath(self) -> Datapath:
        """The datapath. Raises `RunError` if this kernel lacks it."""
        return kernel() if self is InjectionMethod.KERNEL else USER_SPACE


def best_injection_method() -> InjectionMethod:
    """Return the kernel's where this kernel has Open vSwitch's datapath, a tap elsewhere."""
    return InjectionMethod.KERNEL if kernel_has_datapath() else InjectionMethod.TAP


TAP: Final = "s1-tap2"
"""The tap in front of a sliced port."""


def join_tap(tap: str, egress: str) -> None:
    """Lead what the switch writes to its tap to an interface, and what comes in there back.

    Raises `RunError`.
    """
    what = f"tap in front of {egress}"
    set_up(tap, what=what)
    redirect(tap, egress, what=what)
    redirect(egress, tap, what=what)
