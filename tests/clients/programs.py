"""The controllers as their authors ship them, and how to start each."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.builds import BUILD

HERE = Path(__file__).parent
INSTALLED = BUILD / ".clients"
REST_PORT = 8080

_EARLY_PYTHON = INSTALLED / "python" / "bin" / "python"
_MEND = "run 'make clients' (set-up says why if it cannot be had here)"
_ECHO_SETTINGS = "[DEFAULT]\necho_request_interval = 1\nmaximum_unreplied_echo_requests = 3\n"
"""Without these, neither framework ever sends an echo request."""
_AND_SEND = "; event.connection.send(of.ofp_packet_out(in_port=inport, data=event.ofp, actions=actions))"
"""For `l3_learning`: the packet itself, which no buffer of the switch holds."""


@dataclass(frozen=True, slots=True)
class Program:
    """A controller that can be started: `command(folder, address, port)`."""

    needs: Path | None
    """The file that must be installed."""
    command: Callable[[Path, str, int], Sequence[str]]

    def missing(self) -> str | None:
        """Return why it cannot be started here, and how to fix that; None if it can."""
        if self.needs is None or not self.needs.exists():
            return f"{self.needs or 'ovs-testcontroller'} is not installed: {_MEND}"
        return None


def testcontroller(*options: str) -> Program:
    """The ovs-testcontroller of Open vSwitch; `with-flows.txt` is in this folder."""
    path = shutil.which("ovs-testcontroller") or INSTALLED / "openvswitch/usr/bin/ovs-testcontroller"
    program = Path(path)
    options = tuple(option.replace("with-flows.txt", str(HERE / "with-flows.txt")) for option in options)

    def command(folder: Path, address: str, port: int) -> Sequence[str]:
        control = f"--unixctl={folder / 'testcontroller.ctl'}"
        return [str(program), "-vvconn:dbg", control, *options, f"ptcp:{port}:{address}"]

    return Program(program, command)


def early(framework: str, *applications: str, echo: bool = False) -> Program:
    """Applications of Ryu 4.34 (`ryu`) or os-ken 1.4.1 (`os_ken`)."""

    def command(folder: Path, address: str, port: int) -> Sequence[str]:
        options = _framework_options(folder, address, port, echo=echo)
        rest = ["--wsapi-host", address, "--wsapi-port", str(REST_PORT)]
        return [
            str(_EARLY_PYTHON),
            str(HERE / "start_early.py"),
            framework,
            *options,
            *rest,
            *applications,
        ]

    return Program(_EARLY_PYTHON, command)


def os_ken(*applications: str, echo: bool = False) -> Program:
    """Applications on the os-ken that the testbed itself uses.

    This version ships no applications. A name that ends in `.py` is an application of os-ken 1.4.1, the last
    release with examples, or one in this folder.
    """
    examples = INSTALLED / "python" / "lib"

    def command(folder: Path, address: str, port: int) -> Sequence[str]:
        files = [str(_application(examples, name)) if name.endswith(".py") else name for name in applications]
        options = _framework_options(folder, address, port, echo=echo)
        return [sys.executable, str(HERE / "start_os_ken.py"), *options, "--", *files]

    return Program(_EARLY_PYTHON, command)


def faucet(configuration: str = "faucet.yaml") -> Program:
    """Faucet with a configuration file in this folder. Its log is `faucet.log`."""
    program = INSTALLED / "faucet" / "bin" / "faucet"

    def command(folder: Path, address: str, port: int) -> Sequence[str]:
        settings = {
            "PATH": f"{program.parent}:{os.environ['PATH']}",  # it starts another of its programs
            "FAUCET_CONFIG": HERE / configuration,
            "FAUCET_LOG": folder / "faucet.log",
            "FAUCET_EXCEPTION_LOG": folder / "faucet-exception.log",
        }
        listen = ["--ryu-ofp-listen-host", address, "--ryu-ofp-tcp-listen-port", str(port)]
        return ["env", *(f"{name}={value}" for name, value in settings.items()), str(program), *listen]

    return Program(program, command)


def pox(*components: str, edit: tuple[str, str] | None = None) -> Program:
    """Components of POX. With `edit`, the last one runs with part of its source replaced."""
    program = INSTALLED / "pox" / "pox.py"

    def command(folder: Path, address: str, port: int) -> Sequence[str]:
        *others, last = components
        if edit is not None:
            last = _edited(program.parent / "pox" / f"{last.replace('.', '/')}.py", edit, folder)
        listen = ["openflow.of_01", f"--address={address}", f"--port={port}"]
        python = ["env", f"PYTHONPATH={folder}", sys.executable, str(program), "log.level", "--DEBUG"]
        return [*python, *listen, *others, last]

    return Program(program, command)


def _edited(source: Path, edit: tuple[str, str], folder: Path) -> str:
    """Write an edited copy of a component; return the name by which POX finds it on the path of Python."""
    text = source.read_text()
    assert edit[0] in text, f"{source} has no {edit[0]!r}"
    copy = folder / f"edited_{source.name}"
    copy.write_text(text.replace(*edit))
    return copy.stem


def _application(examples: Path, name: str) -> Path:
    own = HERE / name
    return own if own.exists() else next(examples.glob(f"python3*/site-packages/os_ken/app/{name}"))


def _framework_options(folder: Path, address: str, port: int, *, echo: bool) -> list[str]:
    settings = folder / "framework.conf"
    settings.write_text(_ECHO_SETTINGS if echo else "")
    return [
        *("--ofp-listen-host", address, "--ofp-tcp-listen-port", str(port)),
        *("--config-file", str(settings)),
    ]


PROGRAMS = {
    "ovs-learning": testcontroller("-O", "OpenFlow10"),
    "ovs-wildcards": testcontroller("-O", "OpenFlow10", "--wildcards", "--max-idle=2"),
    "ovs-hub": testcontroller("-O", "OpenFlow10", "--hub"),
    "ovs-noflow": testcontroller("-O", "OpenFlow10", "--noflow"),
    "ovs-burst": testcontroller("-O", "OpenFlow10", "--noflow"),
    "ovs-queue": testcontroller("-O", "OpenFlow10", "--queue=1"),
    "ovs-flows": testcontroller("-O", "OpenFlow10", "--with-flows=with-flows.txt"),
    "ovs-default": testcontroller(),
    "ryu-switch": early("ryu", "ryu.app.simple_switch"),
    "ryu-echo": early("ryu", "ryu.app.simple_switch", echo=True),
    "ryu-switch-13": early("ryu", "ryu.app.simple_switch_13"),
    "ryu-rest": early("ryu", "ryu.app.ofctl_rest"),
    "ryu-topology": early("ryu", "--observe-links", "ryu.app.rest_topology"),
    "ryu-firewall": early("ryu", "ryu.app.rest_firewall"),
    "faucet": faucet(),
    "osken-switch": os_ken("simple_switch.py"),
    "osken-switch-13": os_ken("simple_switch_13.py"),
    "osken-echo": os_ken("simple_switch.py", echo=True),
    "osken-ofctl": os_ken("os_ken.app.ofctl.service", "ask_by_ofctl.py"),
    "osken-early-rest": early("os_ken", "os_ken.app.ofctl_rest"),
    "pox-tutorial": pox("misc.of_tutorial"),
    "pox-tutorial-flood": pox("misc.of_tutorial", edit=("OFPP_ALL", "OFPP_FLOOD")),
    "pox-multi": pox("openflow.discovery", "forwarding.l2_multi"),
    "pox-multi-data": pox(
        "openflow.discovery",
        "forwarding.l2_multi",
        edit=("msg.buffer_id = event.ofp.buffer_id", "msg.data = event.ofp"),
    ),
    "pox-l3": pox("forwarding.l3_learning"),
    "pox-l3-data": pox("forwarding.l3_learning", edit=("send(msg.pack())", f"send(msg.pack()){_AND_SEND}")),
}
