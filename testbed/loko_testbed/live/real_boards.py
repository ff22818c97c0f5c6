"""The real boards of a running lab. This machine sees nothing of them but their connections."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psutil

from loko.topology.lab import Switch
from loko_testbed.instruments.timeouts import scaled_timeout
from loko_testbed.live.boards import BoardsReport
from loko_testbed.simulation.runner import RunError

_CONNECT_S = 25.0
_POLL_S = 0.1


def connect_s() -> float:
    """Return how long to wait for boards to connect, in s. Raises `RunError`.

    A powered board tries again every two seconds; connections that it has given up may be accepted first.
    """
    return scaled_timeout(_CONNECT_S)


class RealBoards:
    """Observes real boards by their connections to the controller in the current network namespace."""

    def __init__(self, switches: Sequence[Switch], controller: str) -> None:
        self._addresses = {switch.name: str(switch.config["ip_address"]) for switch in switches}
        self._controller = controller

    def report(self) -> BoardsReport:
        """Report which boards are connected: they tell no counters, and this machine does not delay them."""
        connected = self._connected()
        return BoardsReport(
            counters={name: {} for name in self._addresses},
            connected={name: address in connected for name, address in self._addresses.items()},
            lateness_ns={},
            stalls=(),
            stalls_truncated=False,
            interface_losses=0,
            scheduling=f"real boards: {', '.join(self._addresses)}",
        )

    def wait(self) -> None:
        """Wait until all are connected. Raises `RunError`."""
        deadline = time.monotonic() + connect_s()
        while missing := [name for name, is_there in self.report().connected.items() if not is_there]:
            if time.monotonic() > deadline:
                addresses = ", ".join(f"{name} ({self._addresses[name]})" for name in missing)
                raise RunError(silence(addresses, self._controller))
            time.sleep(_POLL_S)

    def _connected(self) -> frozenset[str]:
        return frozenset(
            connection.raddr.ip
            for connection in psutil.net_connections(kind="tcp4")
            if connection.status == psutil.CONN_ESTABLISHED and connection.raddr
        )


def silence(boards: str, controller: str) -> str:
    """Return the error message for boards that do not connect: one line, with the remedy."""
    return (
        f"{boards}: no connection to the controller at {controller} within {connect_s():g} s: check power,"
        " the cable of the control port, and the board's settings"
        " (ansible-playbook playbooks/board.yml --check --diff)"
    )
