"""The programs that the live lab starts: where they are, how they are run, what they say when they fail."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loko_testbed.instruments.emulator import emulator
from loko_testbed.instruments.timeouts import scaled_timeout
from loko_testbed.simulation.runner import RunError

PACKAGES = {
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "mount": "util-linux",
    "ip": "iproute2",
    "tc": "iproute2",
    "ifconfig": "net-tools",
    "ethtool": "ethtool",
    "sysctl": "procps",
    "mnexec": "mininet",
    "mgen": "mgen",
    "tcpdump": "tcpdump",
}
"""Every program that a live run needs, and its Debian package."""

STAND_IN_PACKAGES = {
    "ovsdb-server": "openvswitch-switch",
    "ovsdb-tool": "openvswitch-common",
    "ovs-vswitchd": "openvswitch-switch",
    "ovs-vsctl": "openvswitch-switch",
    "taskset": "util-linux",
}
"""Further programs, and their packages, that a lab needs if Open vSwitch stands in for a switch."""

_POLL_S = 0.005
_CALLS = 4
"""How many kernel functions of a hanging program's stack are named, from the innermost on."""
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


SLICE_PACKAGES = {"iperf3": "iperf3", "ss": "iproute2"}
"""Further programs, and their packages, for transfers through a sliced port."""


def locate(program: str) -> str | None:
    """Return the path of a program, from ``PATH`` or the system's own directories; None if missing."""
    return shutil.which(program) or shutil.which(program, path=_SYSTEM_PATH)


def require(program: str) -> str:
    """Return the path of a program. If it is missing, raises `RunError` that names the package to install."""
    path = locate(program)
    if path is None:
        package = {**PACKAGES, **STAND_IN_PACKAGES, **SLICE_PACKAGES}.get(program, program)
        raise RunError(f"the program '{program}' is missing: install it with 'apt-get install {package}'")
    return path


def require_emulator() -> Path:
    """Return the emulator's path. Raises `RunError` if it was not built."""
    path = emulator()
    if not path.is_file():
        raise RunError(f"{path}: the emulator is not built: run 'make setup'")
    return path


def run(arguments: Sequence[str], *, what: str, prefix: Sequence[str] = (), stdin: str = "") -> str:
    """Run a program to its end and return what it printed.

    `prefix` is put before the program, to enter a namespace; it reads `stdin`. Raises `RunError` with the
    program's own message if it fails, where Mininet would only print it and go on.
    """
    command = [*prefix, require(arguments[0]), *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, input=stdin, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise RunError(f"{what}: '{' '.join(arguments)}' failed: {said}")
    return done.stdout


def run_json(arguments: Sequence[str], *, what: str, prefix: Sequence[str] = ()) -> Any:
    """Run a program that prints JSON, and return the parsed output. See `run`."""
    text = run(arguments, what=what, prefix=prefix)
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise RunError(f"{what}: '{' '.join(arguments)}' printed no JSON; update iproute2") from None


def tail(log: Path, *, lines: int = 5) -> str:
    """Return the end of a program's log in one line, for an error message."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "no log"
    kept = [line.strip() for line in text.splitlines() if line.strip()][-lines:]
    return " | ".join(kept) or "empty log"


def wait_for_words(
    words: str, process: subprocess.Popen[bytes], log: Path, timeout_s: float, complaint: str
) -> None:
    """Wait until a program's log has these words, with which it begins its work.

    Ends the program and raises `RunError` with the complaint if it ends without them or takes too long.
    """
    deadline = time.monotonic() + scaled_timeout(timeout_s)
    while words not in log.read_text(encoding="utf-8", errors="replace"):
        if process.poll() is not None or time.monotonic() > deadline:
            why = standstill(process, log)
            process.kill()
            process.wait()
            raise RunError(f"{complaint}: {why}")
        time.sleep(_POLL_S)


def standstill(process: subprocess.Popen[bytes], log: Path) -> str:
    """Describe, for an error message, the state and the output of a program that did not begin its work.

    A program that hangs prints nothing, but the kernel functions on its stack tell what it waits for.
    """
    status = process.poll()
    if status is not None:
        return f"{tail(log)} (it ended with status {status})"
    folder = Path(f"/proc/{process.pid}")
    try:
        state = folder.joinpath("stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return f"{tail(log)} (it has just ended)"
    try:
        stack = folder.joinpath("stack").read_text("ascii", "replace")
    except OSError:
        stack = ""  # only root may read it
    calls = [line.split()[-1].partition("+")[0] for line in stack.splitlines()[:_CALLS]]
    where = f" in {' < '.join(calls)}" if calls else ""
    return f"{tail(log)} (its state is {state}{where})"
