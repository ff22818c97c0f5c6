"""Datapaths of Open vSwitch: in its own program, in the kernel, or with DPDK.

Each needs something of the machine. What is missing is reported in one line, before anything is started.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loko_testbed.simulation.runner import RunError


@dataclass(frozen=True, slots=True, kw_only=True)
class Datapath:
    """How to start Open vSwitch, and configure its ports, so that it forwards in one of these places."""

    program: str = "ovs-vswitchd"
    kind: str = "netdev"
    """The bridge's `datapath_type`."""
    options: Sequence[str] = ("--disable-system",)
    """Command-line options of the program."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """`other_config` of the whole switch, before it starts."""
    polls: bool = False
    """Whether a thread of it polls the ports and never sleeps."""

    def interface(self, name: str) -> list[str]:
        """Return the settings of a port with this interface of the kernel."""
        if not self.polls:
            return ["type=system"]
        # Without qdisc_bypass=0 frames would leave past the queues of tc.
        device = f"net_af_packet_{name},iface={name},qdisc_bypass=0,framecnt={RING_FRAMES}"
        return ["type=dpdk", f"options:dpdk-devargs={device}"]

    def forwarding_thread(self, pid: int) -> int:
        """Return the thread of the running switch that forwards frames. Raises `RunError`."""
        if not self.polls:
            return pid
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "comm").read_text(encoding="utf-8").startswith("pmd-"):
                return int(task.name)
        raise RunError("Open vSwitch with DPDK has no polling thread: no port is in its place")


USER_SPACE: Final = Datapath()
"""The program itself forwards, by packet sockets: needs nothing of the kernel."""

DPDK_PROGRAM: Final = Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")
"""Where Debian's package puts the program. `ovs-vswitchd` on the path stays another one."""
RING_FRAMES: Final = 512
"""Room of a ring of DPDK's driver for packet sockets; a port has one for each direction.

A frame that goes out has its place in the ring until it leaves the queue of tc. One that the queue refuses
stays there until the port has another frame to send. While that ring is full, the polling thread waits for
room in it, and what comes in waits in the other ring, at all ports.
"""
LEAST_NICE: Final = -20
"""Niceness of a thread that polls: it gets almost all of its core, and other programs there get the rest."""
_DRIVERS: Final = ("librte_net_af_packet.so", "librte_mempool_ring.so", "librte_bus_vdev.so")
_DRIVER_FOLDERS: Final = "*/dpdk/pmds-*"
_MEMORY_MB: Final = 512

_NETLINK_GENERIC: Final = 16
_CONTROL_FAMILY, _GET_FAMILY, _FAMILY_NAME = 16, 3, 2
_REQUEST: Final = 1
_NETLINK_ERROR: Final = 2
_KERNEL_FAMILY: Final = b"ovs_datapath\0"


def dpdk(*, polling_core: int, other_core: int) -> Datapath:
    """Return the datapath with DPDK, over packet sockets, without huge pages or network cards.

    One thread polls on a core; the program's main thread is busy about half of the time, too. Raises
    `RunError` if DPDK is not installed.
    """
    require_dpdk()
    # `--legacy-mem`: Open vSwitch would add `--in-memory` otherwise, which DPDK refuses without huge pages.
    extra = f"--no-huge --legacy-mem -m {_MEMORY_MB} --no-pci --no-telemetry"
    return Datapath(
        program=str(DPDK_PROGRAM),
        settings={
            "dpdk-init": "true",
            "dpdk-extra": extra,
            "dpdk-lcore-mask": hex(1 << other_core),
            "pmd-cpu-mask": hex(1 << polling_core),
        },
        polls=True,
    )


def require_dpdk() -> None:
    """Raise `RunError` if Open vSwitch with DPDK cannot run on this machine."""
    if (missing := missing_for_dpdk()) is not None:
        raise RunError(f"Open vSwitch with DPDK is not here: {missing} is missing: run 'make dpdk'")


def instead_of_dpdk(what: str) -> str | None:
    """Return the remark that something is replayed in virtual time without DPDK; None if DPDK can run."""
    if (missing := missing_for_dpdk()) is None:
        return None
    return (
        f"{what} is replayed in virtual time: Open vSwitch with DPDK is not here"
        f" ({missing} is missing; 'make dpdk' installs it)"
    )


def missing_for_dpdk() -> str | None:
    """Return a file that Open vSwitch with DPDK lacks on this machine; None if it can run."""
    if not DPDK_PROGRAM.is_file():
        return str(DPDK_PROGRAM)
    folders = [folder for folder in Path("/usr/lib").glob(_DRIVER_FOLDERS) if folder.is_dir()]
    return next((name for name in _DRIVERS if not any(_driver(folder, name) for folder in folders)), None)


def _driver(folder: Path, name: str) -> bool:
    return any(folder.glob(f"{name}*"))


def kernel() -> Datapath:
    """Return the datapath in the kernel's module `openvswitch`. Raises `RunError` if this kernel has none."""
    if not kernel_has_datapath():
        raise RunError(
            "this kernel has no datapath of Open vSwitch (module openvswitch): choose open-vswitch, whose"
            " datapath is in user space, or another kernel"
        )
    return Datapath(kind="system", options=())


def kernel_has_datapath() -> bool:
    """Return whether the kernel has the datapath. Asking loads the module, where there is one."""
    name = struct.pack("HH", 4 + len(_KERNEL_FAMILY), _FAMILY_NAME) + _KERNEL_FAMILY
    name += b"\0" * (-len(name) % 4)
    body = struct.pack("BBH", _GET_FAMILY, 1, 0) + name
    request = struct.pack("IHHII", 16 + len(body), _CONTROL_FAMILY, _REQUEST, 1, 0) + body
    try:
        asked = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_GENERIC)
    except OSError as error:
        if error.errno != errno.EPROTONOSUPPORT:
            raise
        return False  # without generic netlink, as under QEMU's emulation of programs and in some sandboxes
    with asked:
        asked.send(request)
        reply = asked.recv(4096)
    (kind,) = struct.unpack_from("H", reply, 4)
    return bool(kind != _NETLINK_ERROR)
