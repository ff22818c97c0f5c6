"""A controller's end of a session in virtual time, before the run: it installs entries and reports errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from os_ken.ofproto import ofproto_v1_0 as of

from loko.control.framing import whole_messages
from loko.control.messages import barrier_request, features_request, hello
from loko_testbed.simulation.runner import RunError


class RefusedError(RunError):
    """The switch refused an entry."""


class Sessions(Protocol):
    """Holder of the controller's ends of sessions: `switch_emulator.Network`, or its like in real time."""

    def control(
        self, board: str, segments: Sequence[bytes], *, spacing_ns: int = ..., await_reply: bool = ...
    ) -> list[bytes]:
        """Send each as one segment, and return what the switch sent meanwhile."""


def install(
    network: Sessions,
    switch: str,
    entries: Sequence[bytes],
    *,
    spacing_ns: int = 10_000_000,
    settles_ns: int = 0,
) -> None:
    """Open the session of a switch and fill its table with `entries`, which are FLOW_MODs.

    `spacing_ns` pass after each of them, and `settles_ns` at the end. Raises `RefusedError` if the switch
    refuses one, `RunError` if it does not answer the barrier that follows them.
    """
    replies = network.control(switch, [hello(1), features_request(2)])
    replies += network.control(switch, entries, spacing_ns=spacing_ns)
    replies += network.control(switch, [barrier_request(3)], await_reply=True, spacing_ns=settles_ns)
    messages, _ = whole_messages(b"".join(replies))
    errors = [message for message in messages if message[1] == of.OFPT_ERROR]
    if errors:
        raise RefusedError(f"{switch}: refused an entry: error {errors[0][8:12].hex()}")
    if not any(message[1] == of.OFPT_BARRIER_REPLY for message in messages):
        raise RunError(f"{switch}: stopped answering: its barrier has no reply")
