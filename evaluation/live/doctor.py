"""Finds out what this machine can do, by trying it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluation.live.confinement import NEW_TREE
from evaluation.live.cores import CorePlan
from evaluation.live.programs import PACKAGES, emulator, locate

_TIMEOUT_S = 10.0

_SHAPED_VETH = (
    "ip link add probe0 type veth peer name probe1 && ip link set probe0 up && "
    "tc qdisc add dev probe0 root tbf rate 1mbit burst 2000 limit 9000 && "
    'tc -json qdisc show dev probe0 | grep -q \'"kind":"tbf"\''
)

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
    return [*_system(), *_programs(), *_timing()]


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
