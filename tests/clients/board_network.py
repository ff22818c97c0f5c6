"""A board with a host at each OpenFlow port, each in its own namespace, and a namespace for a controller."""

from __future__ import annotations

import itertools
import re
import subprocess
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from loko_testbed.live.one_board import UNHURRIED, BenchmarkTap, EmulatorProcess, Namespace, udp_frame

CONTROLLER_PORT = 6633
DATAPATH_ID = 0x70B3_D56C_0001
"""The factory setting; appears in FEATURES_REPLY."""

HOSTS = (1, 2, 3)
NATIVE_PORT = 4
NATIVE_CONTROLLER = "10.0.1.8"
"""The address at which a board looks for its controller by default."""
_RECEIVED = re.compile(r"(\d+) received")


def address(host: int) -> str:
    """Return a host's IPv4 address."""
    return f"10.0.0.{host}"


def ipv6(host: int) -> str:
    """Return a host's IPv6 address."""
    return f"fd00::{host}"


def mac(host: int) -> str:
    """Return a host's MAC address."""
    return f"02:00:00:00:00:{host:02x}"


class BoardNetwork:
    """Namespaces and cables, and the board once it is switched on.

    Either the board and the controller share a namespace and connect through 127.0.0.1, or the controller has
    its own namespace, with the address that a board expects and a cable to the native port.
    """

    def __init__(self, folder: Path, *, native: bool = False, cable: tuple[int, int] | None = None) -> None:
        """With `cable`, two ports of the board are cabled to each other, and their hosts are disconnected."""
        self.folder = folder
        self._native = native
        self._open = ExitStack()
        self.hosts: dict[int, Namespace] = {}
        try:
            cables = [(f"h{host}", f"s1-eth{host}") for host in HOSTS]
            self.inside = self._open.enter_context(Namespace(cables))
            for host in HOSTS:
                self.hosts[host] = self._open.enter_context(Namespace([]))
                self.hosts[host].take(f"h{host}", self.inside, f"{address(host)}/24", mac=mac(host))
            if cable is not None:
                self._join(*cable)
            self.controller = self._controller_place() if native else self.inside
        except BaseException:
            self._open.close()
            raise

    @property
    def controller_address(self) -> str:
        """The address at which the board looks for its controller."""
        return NATIVE_CONTROLLER if self._native else "127.0.0.1"

    @property
    def controller_interface(self) -> str:
        """The interface that carries the controller's traffic, in the controller's namespace."""
        return "ctl" if self._native else "lo"

    def _controller_place(self) -> Namespace:
        place, near, far = self._open.enter_context(Namespace([])), "ctl", f"s1-eth{NATIVE_PORT}"
        self.inside.add_cable(near, far)
        place.take(near, self.inside, f"{NATIVE_CONTROLLER}/24")
        return place

    def _join(self, *hosts: int) -> None:
        for host in hosts:
            self.inside.run("ip", "link", "delete", f"s1-eth{host}")
        near, far = (f"s1-eth{host}" for host in hosts)
        self.inside.add_cable(near, far)

    def introduce(self, *hosts: int) -> None:
        """Add hosts to each other's neighbour tables, so that they need no ARP."""
        for host, other in itertools.permutations(hosts, 2):
            neighbour = ["to", address(other), "lladdr", mac(other), "dev", f"h{host}", "nud", "permanent"]
            self.hosts[host].run("ip", "neighbour", "replace", *neighbour)

    def enable_ipv6(self, *hosts: int) -> None:
        """Give hosts IPv6 addresses."""
        for host in hosts:
            self.hosts[host].run("sysctl", "-qw", f"net.ipv6.conf.h{host}.disable_ipv6=0")
            self.hosts[host].run("ip", "address", "add", f"{ipv6(host)}/64", "dev", f"h{host}", "nodad")

    def switch_on(self, program: Path, settings: str = "") -> EmulatorProcess:
        """Start the board, with the firmware's own housekeeping unless settings say otherwise."""
        return self._open.enter_context(
            EmulatorProcess(
                program,
                self.inside,
                self.folder,
                CONTROLLER_PORT,
                process=UNHURRIED,
                settings=settings + ('control = "network"\n' if self._native else ""),
                ports={port: f"s1-eth{port}" for port in (*HOSTS, *([NATIVE_PORT] if self._native else []))},
                controller_address=self.controller_address,
            )
        )

    def ping(
        self,
        source: int,
        target: int,
        *,
        count: int = 1,
        size: int = 56,
        interval_s: float = 0.05,
        version: int = 4,
    ) -> int:
        """Send echo requests from one host to another; return the number of replies."""
        where = ipv6(target) if version == 6 else address(target)
        options = ["-n", "-q", "-i", str(interval_s), "-c", str(count), "-s", str(size), "-W", "1"]
        command = self.hosts[source].command("ping", *options, where)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        received = _RECEIVED.search(done.stdout)
        assert received, f"ping: {done.stdout}{done.stderr}"
        return int(received[1])

    def udp_frames(self, source: int, target: int, *, ports: Iterable[int], gap_s: float = 0.005) -> int:
        """Send a frame to each UDP port; return how many arrive at the target's interface."""
        with (
            BenchmarkTap(self.hosts[source], f"h{source}") as near,
            BenchmarkTap(self.hosts[target], f"h{target}") as far,
        ):
            sent = 0
            for port in ports:
                near.send(udp_frame(sent, udp_port=port))
                sent += 1
                if gap_s:
                    time.sleep(gap_s)  # a board buffers eight frames at most
            seen = far.seen(outgoing=False, count=sent, timeout_s=0.5)
        return len(seen)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
