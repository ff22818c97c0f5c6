"""Tells systemd, if that has started the service, that it is ready, that it lives, and that it ends.

The protocol is a datagram of lines to a socket (sd_notify(3), sd_watchdog_enabled(3)).
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from typing import Final

from loko.units import US_PER_S

_A_PERIOD: Final = 3
"""How often to report within the watchdog's time, so that one late report does no harm."""


class Systemd:
    """The connection to systemd, as described by the environment."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        is_meant = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        period = environment.get("WATCHDOG_USEC", "") if is_meant else ""
        self.watchdog_s = int(period) / US_PER_S if period.isdecimal() else 0.0
        """Time within which systemd must hear that the service lives; 0 if it does not ask."""
        self._watching: asyncio.Task[None] | None = None

    def ready(self, works: Callable[[], bool]) -> None:
        """Report that the service is ready, and from then on that it lives while `works` returns true."""
        self._tell("READY=1")
        if self.watchdog_s:
            self._watching = asyncio.get_running_loop().create_task(self._watch(works))

    def ending(self) -> None:
        """Report that the service ends."""
        if self._watching is not None:
            self._watching.cancel()
        self._tell("STOPPING=1")

    async def _watch(self, works: Callable[[], bool]) -> None:
        while True:
            if works():
                self._tell("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_s / _A_PERIOD)

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
            try:
                connection.sendto(text.encode(), address)
            except OSError:
                return  # nobody listens; if somebody should, the watchdog will notice
