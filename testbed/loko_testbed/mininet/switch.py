"""A switch of Mininet whose ports are served by the emulator `zodiac-fx`: one process for each board."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mininet.node import Switch

from loko_testbed.instruments.emulator import OFFLOADS, POWERED_FOR_MS, board_tables, emulator, scheduling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loko.topology.ring import Setting

_PORTS = 4
"""Ports of a board."""
_VERSIONS = {"1.0": 1, "1.3": 4}
"""Values of the board's setting `openflow_version` for versions of OpenFlow."""
_LONGEST_DATAPATH_ID = (1 << 48) - 1
_NO_CONTROLLER = "0.0.0.0:1"
"""An address at which nothing listens, for a board without a controller."""
_OF_OPEN_VSWITCH = {
    "protocols": "write openflow='1.3' or openflow='1.0'",
    "failMode": "write settings={'fail_state': 'safe'} or 'secure', which keeps or clears the entries",
    "datapath": "leave it out",
    "inband": "leave it out",
    "reconnectms": "leave it out",
    "stp": "leave it out; the controller has to avoid loops",
    "batch": "leave it out",
}
"""Parameters of Mininet's `OVSSwitch` that a board cannot have, and the remedy for each."""
_CARRIER_S = 3.0
_START_S = 20.0
_REPORT_S = 5.0
_END_S = 5.0
_POLL_S = 0.005


class ZodiacFX(Switch):  # type: ignore[misc]  # Mininet carries no types
    """An emulated Zodiac FX in real time, with the board's tables, timing and quirks."""

    def __init__(
        self,
        name: str,
        *,
        profile: str = "zodiac-fx",
        quirks: str | dict[str, list[str]] = "firmware",
        openflow: str | float | None = None,
        cpu: int | None = None,
        settings: Mapping[str, Setting] | None = None,
        external: bool = False,
        **params: Any,
    ) -> None:
        """Describe a board that `start` switches on.

        profile: ``zodiac-fx``, or the path of a device profile (TOML).
        quirks: ``firmware``, ``spec``, or ``{"without": [...]}`` (docs/quirks.md).
        openflow: ``1.0`` or ``1.3``; without it, what the controller offers.
        cpu: core that boards with this parameter share, with real-time priority; without it, they run as any
            other process.
        settings: further settings of the board, as under `config` of a switch in docs/own-labs.md.
        external: another program runs the board; Mininet has its interfaces only.
        params: those of every switch of Mininet: `dpid` (at most 48 bits, the board's MAC address), ...

        Raises `ValueError` in one line for a parameter that a board cannot have.
        """
        for key, remedy in _OF_OPEN_VSWITCH.items():
            if key in params:
                raise ValueError(
                    f"{name}: {key} is a parameter of Open vSwitch, not of a Zodiac FX: {remedy}"
                )
        if params.get("opts"):
            raise ValueError(f"{name}: opts: the emulator takes none; write settings={{...}}")
        if openflow is not None and str(openflow) not in _VERSIONS:
            raise ValueError(f"{name}: openflow={openflow!r}: a Zodiac FX speaks 1.0 and 1.3")
        self._external = external
        self._process: subprocess.Popen[bytes] | None = None
        super().__init__(name, **params)
        if external:
            return
        self._cpu = cpu
        is_path = "/" in profile or profile.endswith(".toml")
        self._profile = os.path.abspath(profile) if is_path else profile  # noqa: PTH100 - `resolve` follows links
        number = int(self.dpid, 16)
        if number > _LONGEST_DATAPATH_ID:
            self.terminate()
            raise ValueError(f"{name}: dpid {self.dpid} has more than 48 bits: it is the board's MAC address")
        self._seed = number
        self._settings: dict[str, Setting] = {
            "mac": number.to_bytes(6, "big").hex(":"),
            "quirks": quirks,
            "openflow_ports": list(range(1, _PORTS + 1)),
            "native_ports": [],
        }
        if openflow is not None:
            self._settings["openflow_version"] = _VERSIONS[str(openflow)]
        self._settings.update(settings or {})

    # Ports.

    def addIntf(self, intf: Any, port: int | None = None, **options: Any) -> None:  # noqa: N802 - Mininet's name
        """Add an interface as a port. Raises `ValueError` if the board has no such port, or runs."""
        number = self.newPort() if port is None else port
        if not self._external:
            if number > _PORTS:
                raise ValueError(
                    f"{self.name}: no port {number} for {intf}: a Zodiac FX has ports 1 to {_PORTS};"
                    " use another switch"
                )
            if self._process is not None:
                raise ValueError(
                    f"{self.name}: no port for {intf} while the board runs: call stop(deleteIntfs=False)"
                    " before, and start(controllers) afterwards"
                )
        super().addIntf(intf, port=number, **options)

    # Power.

    def start(self, controllers: Sequence[Any]) -> None:
        """Switch the board on; if it runs, off and on again.

        Raises `ValueError` for what no board can have, `RuntimeError` if the emulator does not start.
        """
        if self._external:
            return
        self._end()
        _remove(self.log)
        controller = self._address_of(controllers)
        self._end_offloads()
        self._settle()
        program = emulator()
        if not program.is_file():
            raise RuntimeError(
                f"{self.name}: no emulator at {program}: install loko-testbed, or set LOKO_EMULATOR"
            )
        inside = ["mnexec", "-a", str(self.pid)] if self.inNamespace else []
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            self._process = subprocess.Popen(
                [*inside, str(program), "run", "/dev/stdin", "--die-with-parent"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C at Mininet's prompt is not for the boards
            )
        finally:
            os.close(log)
        assert self._process.stdin is not None
        with self._process.stdin as configuration:
            configuration.write(self._configuration(controller).encode())
        self._wait_until(self._file("ready").exists, _START_S, "is not ready")

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 - Mininet's parameter
        """Switch the board off: its tables are lost. Its log stays until the next start, or `mn -c`."""
        self._end()
        super().stop(deleteIntfs)

    def terminate(self) -> None:
        """Switch the board off, and end the node."""
        self._end()
        super().terminate()

    # Questions.

    def connected(self) -> bool:
        """Return whether the board's session with the controller is established."""
        if self._external:
            return bool(super().connected())
        if self._process is None:
            return False
        return bool(self.report()["boards"][self.name]["connected"])

    def report(self) -> dict[str, Any]:
        """Return the emulator's report: counters, connection, lateness, stalls. Raises `RuntimeError`."""
        file = self._file("report")
        _remove(file)
        if self._process is None:
            raise RuntimeError(f"{self.name}: the board is off")
        self._process.send_signal(signal.SIGUSR1)
        self._wait_until(file.exists, _REPORT_S, "writes no report")
        report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return report

    def dpctl(self, *arguments: str) -> str:
        """Return the entries as `ovs-ofctl dump-flows` prints them, without durations, for ``dump-flows``.

        Anything else is answered with one line: a board listens to its controller only. The entries come from
        the emulator, so the board's controller does not notice.
        """
        if arguments != ("dump-flows",):
            return (
                f"{self.name}: no 'dpctl {' '.join(arguments)}': a Zodiac FX answers only its controller;"
                f" there are 'dump-flows', report(), and the board's console, {self.console}\n"
            )
        try:
            report = self.report()["boards"][self.name]
        except RuntimeError as error:  # it would end Mininet's prompt
            return f"{error}\n"
        messages = b"".join(bytes.fromhex(text) for text in report.get("flow_statistics", ()))
        try:
            done = subprocess.run(
                ["ovs-ofctl", "ofp-parse", "/dev/stdin"], input=messages, stdout=subprocess.PIPE, check=False
            )
        except FileNotFoundError:
            return f"{self.name}: the program 'ovs-ofctl' is missing: install openvswitch-common\n"
        lines = done.stdout.decode("utf-8", "replace").splitlines(keepends=True)
        return "".join(line.replace("duration=0s, ", "") for line in lines if "OFPST_FLOW" not in line)

    @property
    def log(self) -> Path:
        """The file of the emulator's output, such as why a message was not answered."""
        return Path(f"/tmp/{self.name}-zodiac-fx.log")  # noqa: S108 - where `mn -c` removes it

    @property
    def console(self) -> Path:
        """The board's serial console while it runs: a link to a pseudo-terminal (docs/console.md)."""
        return self._file("console")

    def _file(self, kind: str) -> Path:
        return Path(f"/tmp/{self.name}-zodiac-fx-{kind}.out")  # noqa: S108 - where `mn -c` removes it

    def _end_offloads(self) -> None:
        """Have both ends of each link pass frames as on a wire. Raises `RuntimeError` without ethtool."""
        for intf in self._port_interfaces().values():
            ends = (intf.link.intf1, intf.link.intf2) if intf.link else (intf,)
            for end in ends:
                said = end.node.cmd("ethtool -K", end.name, *(f"{offload} off" for offload in OFFLOADS))
                if "not found" in said:
                    raise RuntimeError(f"{self.name}: the program 'ethtool' is missing: install its package")

    def _settle(self) -> None:
        """Wait until the kernel reports the carrier of links that are up, which takes it up to a second."""
        deadline = time.monotonic() + _CARRIER_S
        for intf in self._port_interfaces().values():
            while "LOWER_UP" in (shown := self.cmd("ip -o link show dev", intf)) and "state UP" not in shown:
                if time.monotonic() > deadline:
                    return
                time.sleep(_POLL_S)

    def _port_interfaces(self) -> dict[int, Any]:
        """Return the interface of each connected port."""
        return {port: intf for port, intf in self.intfs.items() if port > 0}

    def _address_of(self, controllers: Sequence[Any]) -> str:
        """Return the controller's address, as the emulator wants it."""
        if not controllers:
            return _NO_CONTROLLER
        if len(controllers) > 1:
            names = ", ".join(controller.name for controller in controllers)
            raise ValueError(
                f"{self.name}: a Zodiac FX has one controller, not {names}: start it with one of them"
            )
        [controller] = controllers
        if controller.protocol != "tcp":
            raise ValueError(
                f"{self.name}: a Zodiac FX has no {controller.protocol}: {controller.name} must use tcp"
            )
        try:
            address = socket.gethostbyname(controller.IP())
        except OSError as error:
            raise ValueError(f"{self.name}: {controller.name} at {controller.IP()}: {error}") from None
        return f"{address}:{controller.port}"

    def _configuration(self, controller: str) -> str:
        lines = [
            "[process]",
            *scheduling(self._cpu, shares_core=True),
            f"powered_for_ms = {POWERED_FOR_MS}",
            f"report = {json.dumps(str(self._file('report')))}",
            f"ready = {json.dumps(str(self._file('ready')))}",
            "flow_statistics = true",
            "links_may_be_down = true",
            *board_tables(
                self.name,
                {port: intf.name for port, intf in self._port_interfaces().items()},
                profile=self._profile,
                controller=controller,
                seed=self._seed,
                console=str(self.console),
                settings=self._settings,
            ),
        ]
        return "\n".join(lines) + "\n"

    def _wait_until(self, condition: Any, timeout_s: float, complaint: str) -> None:
        """Wait for a condition. Raises `RuntimeError` if the emulator ends, or after the time."""
        assert self._process is not None
        deadline = time.monotonic() + timeout_s
        while not condition():
            status = self._process.poll()
            if status is not None or time.monotonic() > deadline:
                self._end()
                raise RuntimeError(f"{self.name}: the emulator {self._what_happened(status, complaint)}")
            time.sleep(_POLL_S)

    def _what_happened(self, status: int | None, complaint: str) -> str:
        if status is not None and status < 0:
            return f"was killed by signal {-status}"
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        last = lines[-1] if lines else "it has printed nothing"
        for prefix in ("zodiac-fx: ", "/dev/stdin, ", f"board {self.name}, "):
            last = last[len(prefix) :] if last.startswith(prefix) else last
        return f"{complaint if status is None else 'has ended'}: {last}"

    def _end(self) -> None:
        """End the emulator, which restores what it has changed, and remove its files but the log."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for kind in ("report", "ready", "console"):
            _remove(self._file(kind))


def _remove(file: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
