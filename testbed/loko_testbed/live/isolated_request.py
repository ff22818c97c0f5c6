"""Carries out one request in a process tree of its own, which the kernel removes with all its interfaces.

``python -m loko_testbed.live.isolated_request`` is the first process of the tree: it reads the request and
writes the reply.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from loko_testbed.instruments.network_namespace import set_up_namespace
from loko_testbed.instruments.programs import require, run
from loko_testbed.live.confinement import SCRATCH
from loko_testbed.live.exclusion import claim
from loko_testbed.live.permission import NEW_TREE, require_namespaces
from loko_testbed.live.realtime_limit import RealtimeLimit
from loko_testbed.simulation.runner import RunError

IsolatedRequest = TypeVar("IsolatedRequest")
IsolatedReply = TypeVar("IsolatedReply")


def run_isolated(
    carry: Callable[[IsolatedRequest, Path], IsolatedReply], request: IsolatedRequest
) -> IsolatedReply:
    """Call a module-level function in such a tree, with a request and a folder for files; return its result.

    Raises `RunError` without the permission, while another live lab runs, and if the function raises it.
    """
    require_namespaces()
    command = [require("setpriv"), "--pdeathsig", "KILL", "--", require(NEW_TREE[0]), *NEW_TREE[1:]]
    command += [sys.executable, "-m", _NAME]
    with claim():
        limit = RealtimeLimit()
        try:
            done = subprocess.run(
                command,
                input=pickle.dumps((carry, request)),
                capture_output=True,
                check=False,
                pass_fds=limit.descriptors,
            )
        finally:
            limit.wait()
    if done.returncode != 0 or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise RunError(f"the live run ended by itself (exit status {done.returncode}): {said[-1]}")
    reply: IsolatedReply | RunError = pickle.loads(done.stdout)  # noqa: S301 - of our own process
    if isinstance(reply, RunError):
        raise reply
    return reply


def main() -> None:
    """Serve the one request on standard input."""
    carry, request = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - of our own process
    try:
        # A private file system for sockets and logs: it goes with the tree.
        run(["mount", "-t", "tmpfs", "-o", "mode=0700", "loko", str(SCRATCH)], what="private files")
        set_up_namespace("private network")
        reply = carry(request, SCRATCH)
    except RunError as error:
        reply = error
    sys.stdout.buffer.write(pickle.dumps(reply))
    sys.stdout.buffer.flush()


_NAME: Final = "loko_testbed.live.isolated_request"

if __name__ == "__main__":
    main()
