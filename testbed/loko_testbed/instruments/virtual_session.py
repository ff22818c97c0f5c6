"""A controller's end of a session in virtual time, before the run: it installs entries and reports errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from loko.control.framing import whole_messages
from loko.control.messages import barrier_request, features_request, hello
from loko.control.wire import BarrierReply, ErrorReply, decode
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
    told = [decode(message) for message in messages]
    errors = [reply for reply in told if isinstance(reply, ErrorReply)]
    if errors:
        raise RefusedError(f"{switch}: refused an entry: error {errors[0].kind:04x}{errors[0].code:04x}")
    if not any(isinstance(reply, BarrierReply) for reply in told):
        raise RunError(f"{switch}: stopped answering: its barrier has no reply")
