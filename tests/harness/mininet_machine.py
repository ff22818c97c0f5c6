"""A machine of its own for Mininet, which clears `/tmp` and ends processes by their names when it cleans up.

Processes, network, `/tmp` and `/run` are new and private; everything in there ends with the first process.
The project is where it is, also if that is in `/tmp`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from disposable_root import ROOT

_BUILD: Final = """
mount --make-rprivate /
mount -t tmpfs -o mode=0755 run /run
mkdir /run/test /run/bin /run/openvswitch /run/project
mount --bind "$0" /run/test
mount --rbind "$2" /run/project
mount -t tmpfs -o mode=1777 tmp /tmp
case "$2" in /tmp/*) mkdir -p "$2"; mount --rbind /run/project "$2";; esac
mount -t sysfs sysfs /sys
ln -s "$1" /run/bin/loko
printf '#!/bin/sh\\nexec "$@"\\n' >/run/bin/sudo
chmod +x /run/bin/sudo
shift 2
ip link set lo up
cd /run/test
"$@"
"""
_ALONE: Final = ("unshare", "--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc")


def run_alone(
    folder: Path, command: Sequence[str], *, timeout_s: float = 120, path: str = "", **variables: str
) -> str:
    """Run a command as root there, in this folder, and return what it prints on both outputs.

    `loko` and `sudo` are on the path, and the folders of `path`. Raises `AssertionError` if it fails.
    """
    environment: Mapping[str, str] = {
        **os.environ,
        **variables,
        "PATH": ":".join(filter(None, ("/run/bin", path, os.environ["PATH"]))),
    }
    loko = Path(sys.executable).with_name("loko")
    done = subprocess.run(
        [*_ALONE, "sh", "-ec", _BUILD, str(folder), str(loko), str(ROOT), *command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
