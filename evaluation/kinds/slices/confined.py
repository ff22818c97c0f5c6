"""Carries a request in a process tree of its own, which the kernel removes with all its interfaces.

``python -m evaluation.kinds.slices.confined`` is the first process of the tree: request in, reply out.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

from evaluation.kinds.slices.htb_port import Reply, Request, carry
from evaluation.live.confinement import NEW_TREE, SCRATCH
from evaluation.live.exclusion import claim
from evaluation.live.programs import require, run
from evaluation.runner import RunError


def carry_confined(request: Request) -> Reply:
    """What becomes of the frames. Raises `RunError` without root, or while another live lab runs."""
    if os.geteuid() != 0:
        raise RunError("live runs make network namespaces, which needs root: run it with sudo")
    command = [require("setpriv"), "--pdeathsig", "KILL", "--", require(NEW_TREE[0]), *NEW_TREE[1:]]
    command += [sys.executable, "-m", _NAME]
    with claim():
        done = subprocess.run(command, input=pickle.dumps(request), capture_output=True, check=False)
    if done.returncode != 0 or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise RunError(f"the sliced port ended by itself (exit status {done.returncode}): {said[-1]}")
    reply = pickle.loads(done.stdout)  # noqa: S301 - of our own process
    if isinstance(reply, RunError):
        raise reply
    assert isinstance(reply, Reply)
    return reply


def main() -> None:
    """Serve the one request on standard input."""
    request = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - of our own process
    reply: Reply | RunError
    try:
        # A private file system for sockets and logs: it goes with the tree.
        run(["mount", "-t", "tmpfs", "-o", "mode=0700", "loko", str(SCRATCH)], what="private files")
        reply = carry(request, SCRATCH)
    except RunError as error:
        reply = error
    sys.stdout.buffer.write(pickle.dumps(reply))
    sys.stdout.buffer.flush()


_NAME = "evaluation.kinds.slices.confined"

if __name__ == "__main__":
    main()
