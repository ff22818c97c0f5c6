"""Finds out what this machine can do, by trying it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluation.live.confinement import NEW_TREE
from evaluation.live.cores import CorePlan
from evaluation.live.programs import PACKAGES, TWIN_PACKAGES, emulator, locate

_TIMEOUT_S = 10.0

_SHAPED_VETH = (
    "ip link add probe0 type veth peer name probe1 && ip link set probe0 up && "
    "tc qdisc add dev probe0 root tbf rate 1mbit burst 2000 limit 9000 && "
    'tc -json qdisc show dev probe0 | grep -q \'"kind":"tbf"\''
)

_COARSE_PARTS = {
    "twin: ifb": ("ip link add probe0 type ifb && ip link set probe0 up", "ifb"),
    "twin: a queue of tbf and pfifo": (
        "ip link add probe0 type veth peer name probe1 && "
        "tc qdisc add dev probe0 root handle 1: tbf rate 1mbit burst 2000 limit 9000 && "
        "tc qdisc add dev probe0 parent 1:1 handle 10: pfifo limit 9 && "
        'tc -json qdisc show dev probe0 | grep -q \'"kind":"pfifo"\'',
        "sch_tbf and sch_fifo",
    ),
    "twin: clsact, u32 and mirred": (
        "ip link add probe0 type veth peer name probe1 && tc qdisc add dev probe0 clsact && "
        "tc filter add dev probe0 ingress protocol all prio 1 u32 match u32 0 0 "
        "action mirred egress redirect dev probe1 && "
        "tc -json filter show dev probe0 ingress | grep -q mirred",
        "sch_ingress, cls_u32 and act_mirred",
    ),
    "twin: bridges": (
        "ip link add probe0 type bridge && ip link add probe1 type veth peer name probe2 && "
        "ip link set probe1 master probe0 && ip link set probe1 type bridge_slave learning off",
        "bridge",
    ),
    "twin: tap interfaces": ("ip tuntap add probe0 mode tap", "tun"),
    "mininet-link: htb": (
        "ip link add probe0 type veth peer name probe1 && tc qdisc add dev probe0 root handle 5: htb && "
        "tc class add dev probe0 parent 5: classid 5:1 htb rate 1mbit",
        "sch_htb",
    ),
    "mininet-link: netem": (
        "ip link add probe0 type veth peer name probe1 && tc qdisc add dev probe0 root netem limit 9",
        "sch_netem; without it the queue has 1000 places",
    ),
}
"""What the coarse backends are made of: how to try it, and the modules of the kernel that it needs."""

_WHOLE_CORE = ("--sched-runtime", "1000000", "--sched-deadline", "1000000", "--sched-period", "1000000")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a live run needs or profits from."""

    what: str
    ok: bool
    needed: bool
    """Whether live runs are impossible without it."""
    found: str
    remedy: str


def examine() -> list[Finding]:
    """Everything that matters for live runs; it changes nothing on the machine."""
    return [*_system(), *_programs(), *_timing(), *_coarse()]


def _system() -> Iterator[Finding]:
    root = os.geteuid() == 0
    yield _finding("root", root, f"user {os.geteuid()}", "run it with sudo")
    confined = root and _works([*NEW_TREE, "true"])
    yield _finding(
        "namespaces",
        confined,
        _tried(confined, root=root),
        "use a kernel with PID, network and mount namespaces; in a container, run it privileged",
    )
    shaped = confined and _works([*NEW_TREE, "/bin/sh", "-c", _SHAPED_VETH])
    yield _finding(
        "veth and tc tbf",
        shaped,
        _tried(shaped, root=root),
        "install iproute2; the kernel needs the modules veth and sch_tbf",
    )


def _programs() -> Iterator[Finding]:
    for program, package in PACKAGES.items():
        path = locate(program)
        yield _finding(program, path is not None, path or "missing", f"apt-get install {package}")
    mininet = importlib.util.find_spec("mininet") is not None
    yield _finding(
        "Mininet for Python",
        mininet,
        "importable" if mininet else "not importable",
        "apt-get install mininet; make the environment with 'make setup'",
    )
    built = emulator().is_file()
    yield _finding("zodiac-fx", built, str(emulator()) if built else "not built", "run 'make setup'")


def _timing() -> Iterator[Finding]:
    plan = CorePlan.here()
    cores = len(plan.others | {plan.emulator})
    yield _finding(
        "cores",
        plan.warning is None,
        f"{cores} usable, the emulator on {plan.emulator}",
        "give the machine a second core: the emulator busy-waits on one",
        needed=False,
    )
    root = os.geteuid() == 0
    deadline = root and _works(["chrt", "--deadline", *_WHOLE_CORE, "0", "true"])
    yield _finding(
        "SCHED_DEADLINE",
        deadline,
        _tried(deadline, root=root),
        "sysctl -w kernel.sched_rt_runtime_us=-1 (the emulator does this itself where it may)",
        needed=False,
    )


def _coarse() -> Iterator[Finding]:
    """What the backends `ovs` and `mininet-link` need beside all that."""
    root = os.geteuid() == 0
    missing = {program: package for program, package in TWIN_PACKAGES.items() if locate(program) is None}
    yield _finding(
        "twin: Open vSwitch",
        not missing,
        f"missing: {', '.join(missing)}" if missing else locate("ovs-vswitchd") or "",
        f"apt-get install {' '.join(sorted(set(missing.values())))} (no kernel module is needed)",
        needed=False,
    )
    for what, (script, modules) in _COARSE_PARTS.items():
        works = root and _works([*NEW_TREE, "/bin/sh", "-c", script])
        yield _finding(
            what,
            works,
            _tried(works, root=root),
            f"the kernel needs {modules}",
            needed=False,
        )


def _finding(what: str, ok: bool, found: str, remedy: str, *, needed: bool = True) -> Finding:
    return Finding(what=what, ok=ok, needed=needed, found=found, remedy="" if ok else remedy)


def _tried(ok: bool, *, root: bool) -> str:
    return "works" if ok else "refused by the kernel" if root else "not tried without root"


def _works(command: Sequence[str]) -> bool:
    program = locate(command[0])
    if program is None:
        return False
    try:
        done = subprocess.run([program, *command[1:]], capture_output=True, check=False, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
