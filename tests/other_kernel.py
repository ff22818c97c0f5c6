"""Another kernel for tests of what this one lacks: user-mode Linux, which is a program (`make other-kernel`).

It sees the files of this machine, read-only, with empty folders in place of those where programs write.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.one_board import BUILD

ROOT = Path(__file__).resolve().parents[1]
HOME = BUILD / ".clients" / "user-mode-linux"
KERNEL = HOME / "usr" / "bin" / "linux.uml"
_TIMEOUT_S = 1500
_BEGIN, _END = "=== begin", "=== end"
_INIT = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run
mount -t tmpfs tmpfs /run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
printf '#!/bin/sh\\nexec modprobe -d {home} "$@"\\n' >/run/modprobe
chmod 755 /run/modprobe
echo /run/modprobe >/proc/sys/kernel/modprobe
/run/modprobe ipv6
ip link set lo up
cp {script} /run/script.py
mount -t tmpfs tmpfs /tmp
cd {root}
echo '{begin}'
TMPDIR=/run {python} /run/script.py 2>&1
echo '{end}'
poweroff -f
"""


def said_in_other_kernel(script: str, folder: Path) -> str:
    """Run a script of Python as root in the other kernel; return what it printed. `folder` is for files."""
    source, init = folder / "script.py", folder / "init.sh"
    source.write_text(script, encoding="utf-8")
    values = {"home": HOME, "root": ROOT, "script": source, "python": sys.executable}
    init.write_text(_INIT.format(begin=_BEGIN, end=_END, **values), encoding="utf-8")
    init.chmod(0o755)
    done = subprocess.run(
        [
            *(KERNEL, "mem=1G", "quiet", f"uml_dir={folder}", "con0=fd:0,fd:1", "con=null"),
            *("rootfstype=hostfs", "rootflags=/", "ro", f"init={init}"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        timeout=_TIMEOUT_S,
        check=False,
    )
    printed = done.stdout.decode(errors="replace").replace("\r", "")
    _, _, after = printed.partition(f"{_BEGIN}\n")
    text, end, _ = after.partition(f"{_END}\n")
    assert end, f"the other kernel did not come to its end: {printed[-2000:]}"
    return text
