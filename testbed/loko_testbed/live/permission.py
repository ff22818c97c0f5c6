"""The permission to make the namespaces and interfaces of a live lab, found out by trying.

Root in a container often lacks the capabilities, so the user id alone says too little.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from typing import Final

from loko_testbed.instruments.programs import require
from loko_testbed.simulation.runner import RunError

NEW_TREE: Final = ("unshare", "--fork", "--pid", "--kill-child", "--net", "--mount", "--mount-proc", "--")
"""Put before a command, this makes the command's process PID 1 of a tree with namespaces of its own."""

_TRIAL: Final = '"$0" -t tmpfs none /dev/shm && "$1" link add probe0 type veth peer name probe1'
_TIMEOUT_S: Final = 10.0
_NEEDS_ROOT: Final = "live runs make network namespaces, which needs root: run it with sudo"


def obstacle() -> str | None:
    """Return in one line why no live lab can be made here, or `None` if one can."""
    if os.geteuid() != 0:
        return _NEEDS_ROOT
    return _trial_failure()


def require_namespaces() -> None:
    """Raise `RunError` if no live lab can be made here."""
    if reason := obstacle():
        raise RunError(reason)


def require_root() -> None:
    """Raise `RunError` unless this is root, which running labs belong to."""
    if os.geteuid() != 0:
        raise RunError(_NEEDS_ROOT)


@cache
def _trial_failure() -> str | None:
    try:
        trial = ["/bin/sh", "-c", _TRIAL, require("mount"), require("ip")]
        command = [require(NEW_TREE[0]), *NEW_TREE[1:], *trial]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    except RunError as error:
        return str(error)
    except subprocess.TimeoutExpired:
        return f"live runs make network namespaces, and making one took longer than {_TIMEOUT_S:.0f} s"
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return (
        f"live runs make network namespaces, which root may not do here ({said[-1]}): use the machine itself,"
        " or a container with --privileged"
    )


def main() -> None:
    """End with status 2 and one line on standard error if no live lab can be made here."""
    if reason := obstacle():
        print(f"error: {reason}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
