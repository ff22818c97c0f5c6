"""A private Open vSwitch: a database and a switch daemon of its own, with any of its datapaths.

Its sockets, database and logs are in one folder, so it does not interfere with an Open vSwitch of the system.
Both programs end when the thread that started them ends, however that happens.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import psutil

from loko_testbed.instruments.programs import require, run
from loko_testbed.instruments.timeouts import scaled_timeout
from loko_testbed.live.daemon import Daemon
from loko_testbed.live.datapaths import LEAST_NICE, USER_SPACE, Datapath
from loko_testbed.simulation.runner import RunError

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")

_START_TIMEOUT_S = 20.0
_COMMAND_TIMEOUT_S = 30
_NEVER_MS = 86_400_000
"""Silence after which a switch checks whether its controller still answers: practically never."""
_PRIORITY = 50


def hurry(pid: int, cores: Collection[int] = ()) -> None:
    """Give all threads of a switch's process real-time priority, on these cores if any are given.

    Without it, the switch shares the cores with all other programs, and wakes up only when they let it. It
    keeps its priority if the kernel refuses another.
    """
    for task in Path(f"/proc/{pid}/task").iterdir():
        if cores:
            os.sched_setaffinity(int(task.name), cores)
    with contextlib.suppress(RunError):
        raise_priority(pid, _PRIORITY)


def prefer(switch: OpenVSwitch) -> None:
    """Give a switch's polling thread almost all of its core, and leave a rest to other programs.

    The thread never sleeps, so with real-time priority nothing else would run there, not even the kernel's
    own work.
    """
    os.setpriority(os.PRIO_PROCESS, switch.forwarding_thread, LEAST_NICE)
    # Where the kernel shares cores among sessions first (sched(7)), niceness counts within one only.
    with contextlib.suppress(OSError):
        Path(f"/proc/{switch.pid}/autogroup").write_text(str(LEAST_NICE), encoding="ascii")


def raise_priority(pid: int, priority: int) -> None:
    """Give all threads of a process this real-time priority. Raises `RunError` if the kernel refuses."""
    try:
        for thread in psutil.Process(pid).threads():
            os.sched_setscheduler(thread.id, os.SCHED_FIFO, os.sched_param(priority))
    except (OSError, psutil.Error) as error:
        raise RunError(f"the kernel refuses real-time priority ({error})") from None


class OpenVSwitch:
    """The running Open vSwitch. Switches are added one by one, in the current network namespace."""

    def __init__(self, folder: Path, *, cpus: Collection[int] = (), datapath: Datapath = USER_SPACE) -> None:
        """Start both programs with their files in `folder`, on these cores if any. Raises `RunError`.

        `folder` is an absolute path of at most about 80 characters: sockets are in it.
        """
        if not SCHEMA.is_file():
            raise RunError(f"{SCHEMA}: is missing: install it with 'apt-get install openvswitch-switch'")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self.datapath = datapath
        self._socket = folder / "db.sock"
        database = folder / "conf.db"
        database.unlink(missing_ok=True)
        run(["ovsdb-tool", "create", str(database), str(SCHEMA)], what="Open vSwitch's database")
        start = [require("setpriv"), "--pdeathsig", "KILL", "--"]
        if cpus:
            start += [require("taskset"), "--cpu-list", ",".join(map(str, sorted(cpus)))]
        # The last is where DPDK has its files.
        start += ["env", f"OVS_RUNDIR={folder}", f"OVS_LOGDIR={folder}", f"RUNTIME_DIRECTORY={folder}"]
        self._daemons = [self._database(start, database)]
        try:
            self._daemons[0].wait_ready(_START_TIMEOUT_S)
            self._vsctl("--no-wait", "init")
            if datapath.settings:
                values = [f'other_config:{name}="{value}"' for name, value in datapath.settings.items()]
                self._vsctl("--no-wait", "set", "Open_vSwitch", ".", *values)
            self._daemons.append(self._switch(start))
        except BaseException:
            self.close()
            raise

    def add_switch(
        self,
        name: str,
        *,
        datapath_id: int,
        ports: Mapping[int, str],
        controller: str | None,
        taps: Collection[str] = (),
    ) -> None:
        """Add a switch for OpenFlow 1.0 with these interfaces; it forwards nothing without entries.

        `taps` are those of them that it makes itself: what a datapath in user space sends there, the kernel
        receives.
        `controller` is an address and a TCP port; without one, `ovs-ofctl` may be used at `management`. It
        must answer within 5 s whenever it is asked, or the switch ends the session (`bear_silence`).
        Raises `RunError` if an interface is not taken at its port.
        """
        settings = [
            *(f"datapath_type={self.datapath.kind}", "protocols=OpenFlow10", "fail_mode=secure"),
            *(f"other_config:datapath-id={datapath_id:016x}", "other_config:disable-in-band=true"),
        ]
        command = ["add-br", name, "--", "set", "bridge", name, *settings]
        if controller:
            command += ["--", "set-controller", name, f"tcp:{controller}"]
        for port, interface in sorted(ports.items()):
            command += ["--", "add-port", name, interface]
            settings = ["type=internal"] if interface in taps else self.datapath.interface(interface)
            command += ["--", "set", "interface", interface, *settings, f"ofport_request={port}"]
        self._vsctl(*command)
        for port, interface in sorted(ports.items()):
            number, error = json.loads(self._show("interface", interface, "ofport", "error"))["data"][0]
            if number != port:
                reason = error if isinstance(error, str) else f"its number is {number}"
                raise RunError(f"{name}: Open vSwitch does not take {interface} as port {port}: {reason}")

    def bear_silence(self, name: str) -> None:
        """Let a switch tolerate silence of its controller from now on, until its session ends.

        Open vSwitch 3.1 applies this only to a session that is already open. Raises `RunError`.
        """
        self._vsctl("set", "controller", name, f"inactivity_probe={_NEVER_MS}")

    def leave_queues(self, interfaces: Collection[str]) -> None:
        """Make Open vSwitch leave the queues of these interfaces alone: else it removes them now and then."""
        command = ["--", "--id=@others", "create", "qos", "type=linux-noop"]
        for interface in interfaces:
            command += ["--", "set", "port", interface, "qos=@others"]
        self._vsctl(*command[1:])

    def police(
        self, interface: str, kind: str, values: Mapping[str, int], queues: Mapping[int, Mapping[str, int]]
    ) -> None:
        """Put a policer behind a port: `values` are its own, `queues` those of its queues, if it has any.

        A frame has to pass the policer of its queue and then the port's own. Queue 0 has the port's values if
        it is not named. Open vSwitch reports no failure, so the result is read back. Raises `RunError`.
        """
        qos = [f"other_config:{name}={value}" for name, value in values.items()]
        qos += [f"queues:{number}=@queue{number}" for number in queues]
        command = ["set", "port", interface, "qos=@policer"]
        command += ["--", "--id=@policer", "create", "qos", f"type={kind}", *qos]
        for number, its in queues.items():
            settings = [f"other_config:{name}={value}" for name, value in its.items()]
            command += ["--", f"--id=@queue{number}", "create", "queue", *settings]
        self._vsctl(*command)
        shown = self._control("qos/show", interface)
        if f"QoS: {interface} {kind}" not in shown:
            said = shown.splitlines()[0] if shown.strip() else "nothing"
            raise RunError(f"{interface}: Open vSwitch has not made the {kind}; it shows: {said}")

    def management(self, switch: str) -> str:
        """Return the socket at which `ovs-ofctl` reaches a switch."""
        return f"unix:{self._folder / switch}.mgmt"

    @property
    def version(self) -> str:
        """The version that the running program reports. Raises `RunError`."""
        return self._control("version").splitlines()[0].rsplit(" ", 1)[-1]

    @property
    def pid(self) -> int:
        """Process id of the switch daemon."""
        return self._daemons[-1].pid

    @property
    def forwarding_thread(self) -> int:
        """Id of the daemon's thread that forwards frames. Raises `RunError`."""
        return self.datapath.forwarding_thread(self.pid)

    def connected(self, switches: Collection[str]) -> dict[str, bool]:
        """Return whether each switch is connected to its controller. Raises `RunError`.

        The database knows this for each switch, but up to 5 s late. So it is asked only if too few
        connections are established.
        """
        self.check()
        connections = psutil.Process(self.pid).net_connections(kind="tcp")
        if sum(connection.status == psutil.CONN_ESTABLISHED for connection in connections) >= len(switches):
            return dict.fromkeys(switches, True)
        return {
            name: self._vsctl("get", "controller", name, "is_connected").strip() == "true"
            for name in switches
        }

    def check(self) -> None:
        """Raise `RunError` if a program has ended."""
        for daemon in self._daemons:
            daemon.check()

    def close(self) -> None:
        """End both programs."""
        for daemon in reversed(self._daemons):
            daemon.end()

    def _database(self, start: list[str], database: Path) -> Daemon:
        return Daemon(
            "Open vSwitch's database",
            [
                *start,
                *(require("ovsdb-server"), str(database), f"--remote=punix:{self._socket}"),
                *(f"--unixctl={self._folder / 'ovsdb.ctl'}", "-vconsole:warn", "-vsyslog:off"),
            ],
            log=self._folder / "ovsdb.log",
            ready=self._socket,
        )

    def _switch(self, start: list[str]) -> Daemon:
        return Daemon(
            "Open vSwitch",
            [
                *start,
                *([require("setsid")] if self.datapath.polls else []),  # so that it can be preferred
                *(require(self.datapath.program), f"unix:{self._socket}"),
                f"--unixctl={self._folder / 'vswitchd.ctl'}",
                # Not the machine's routes; and the kernel's datapath only where that is wanted.
                *(*self.datapath.options, "--disable-system-route", "-vconsole:warn", "-vsyslog:off"),
            ],
            log=self._folder / "vswitchd.log",
            ready=self._folder / "vswitchd.ctl",
        )

    def _control(self, *arguments: str) -> str:
        """Ask the switch daemon by ovs-appctl. Raises `RunError`."""
        target = f"--target={self._folder / 'vswitchd.ctl'}"
        return run(["ovs-appctl", target, *arguments], what="Open vSwitch")

    def _show(self, table: str, record: str, *columns: str) -> Any:
        return self._vsctl("--format=json", f"--columns={','.join(columns)}", "list", table, record)

    def _vsctl(self, *arguments: str) -> str:
        options = [f"--db=unix:{self._socket}", f"--timeout={round(scaled_timeout(_COMMAND_TIMEOUT_S))}"]
        try:
            return run(["ovs-vsctl", *options, *arguments], what="Open vSwitch")
        except RunError:
            self.check()  # if a program has ended, that is the reason
            raise
