"""Requirements of live runs, tried or looked for one by one."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Iterator, Sequence

from loko_testbed.instruments.emulator import emulator
from loko_testbed.instruments.programs import PACKAGES, STAND_IN_PACKAGES, locate
from loko_testbed.live.doctor.facts import Requirement
from loko_testbed.live.permission import NEW_TREE

WHOLE_CORE = ("--sched-runtime", "1000000", "--sched-deadline", "1000000", "--sched-period", "1000000")
"""The emulator's request to `SCHED_DEADLINE`, as options of ``chrt``."""

_TIMEOUT_S = 10.0

_USERS = {"stand-in": ("ovs",), "stand-ins": ("ovs", "ovs-timed"), "mininet-link": ("mininet-link",)}
"""Which backends need a part, by the first word of its name."""

_COARSE_BACKENDS = ("ovs", "ovs-timed", "mininet-link")

_NETEM = "mininet-link: netem"

_SHAPED_VETH = (
    "ip link add probe0 type veth peer name probe1 && ip link set probe0 up && "
    "tc qdisc add dev probe0 root tbf rate 1mbit burst 2000 limit 9000 && "
    'tc -json qdisc show dev probe0 | grep -q \'"kind":"tbf"\''
)

_COARSE = {
    "stand-in: ifb": ("ip link add probe0 type ifb && ip link set probe0 up", "ifb"),
    "stand-in: a queue of tbf and pfifo": (
        "ip link add probe0 type veth peer name probe1 && "
        "tc qdisc add dev probe0 root handle 1: tbf rate 1mbit burst 2000 limit 9000 && "
        "tc qdisc add dev probe0 parent 1:1 handle 10: pfifo limit 9 && "
        'tc -json qdisc show dev probe0 | grep -q \'"kind":"pfifo"\'',
        "sch_tbf and sch_fifo",
    ),
    "stand-in: clsact, u32 and mirred": (
        "ip link add probe0 type veth peer name probe1 && tc qdisc add dev probe0 clsact && "
        "tc filter add dev probe0 ingress protocol all prio 1 u32 match u32 0 0 "
        "action mirred egress redirect dev probe1 && "
        "tc -json filter show dev probe0 ingress | grep -q mirred",
        "sch_ingress, cls_u32 and act_mirred",
    ),
    "stand-in: bridges": (
        "ip link add probe0 type bridge && ip link add probe1 type veth peer name probe2 && "
        "ip link set probe1 master probe0 && ip link set probe1 type bridge_slave learning off",
        "bridge",
    ),
    "stand-ins: tap interfaces": ("ip tuntap add probe0 mode tap", "tun"),
    "mininet-link: htb": (
        "ip link add probe0 type veth peer name probe1 && tc qdisc add dev probe0 root handle 5: htb && "
        "tc class add dev probe0 parent 5: classid 5:1 htb rate 1mbit",
        "sch_htb",
    ),
    _NETEM: (
        "ip link add probe0 type veth peer name probe1 && tc qdisc add dev probe0 root netem limit 9",
        "sch_netem; without it the queue has 1000 places",
    ),
}
"""Requirements of the coarse backends: a script that tries each, and the kernel modules behind it."""


def requirements(*, root: bool) -> tuple[Requirement, ...]:
    """Return every part; those that all live runs need come first."""
    return (*_kernel(root=root), *_programs(), *_coarse(root=root))


def works(command: Sequence[str]) -> bool:
    """Return whether a command succeeds."""
    program = locate(command[0])
    if program is None:
        return False
    try:
        done = subprocess.run([program, *command[1:]], capture_output=True, check=False, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _kernel(*, root: bool) -> Iterator[Requirement]:
    confined = works([*NEW_TREE, "true"]) if root else None
    change = "use a kernel with PID, network and mount namespaces; in a container, run it privileged"
    yield Requirement(name="namespaces", there=confined, change=change)
    shaped = confined and _script(_SHAPED_VETH)
    change = "install iproute2; the kernel needs the modules veth and sch_tbf"
    yield Requirement(name="veth and tc tbf", there=shaped, change=change)


def _programs() -> Iterator[Requirement]:
    for program, package in PACKAGES.items():
        yield _program(program, package)
    mininet = importlib.util.find_spec("mininet") is not None
    change = "apt-get install mininet; make the environment with 'make setup'"
    yield Requirement(name="Mininet for Python", there=mininet, change=change, found="importable")
    built = emulator()
    yield Requirement(name="zodiac-fx", there=built.is_file(), change="run 'make setup'", found=str(built))


def _coarse(*, root: bool) -> Iterator[Requirement]:
    """Yield what the backends that run Open vSwitch need besides."""
    for program, package in STAND_IN_PACKAGES.items():
        if program not in PACKAGES:
            yield _program(program, package, _COARSE_BACKENDS)
    for what, (script, modules) in _COARSE.items():
        yield Requirement(
            name=what,
            there=_script(script) if root else None,
            change=f"the kernel needs {modules}",
            backends=_USERS[what.partition(":")[0]],
            optional=what == _NETEM,
        )


def _program(program: str, package: str, backends: Sequence[str] = ()) -> Requirement:
    path = locate(program)
    change = f"apt-get install {package}"
    return Requirement(
        name=program, there=path is not None, change=change, backends=backends, found=path or ""
    )


def _script(script: str) -> bool:
    return works([*NEW_TREE, "/bin/sh", "-c", script])
