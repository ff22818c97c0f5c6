"""Run tests on Debian's kernel if this one lacks a module, in QEMU without KVM (`make other-kernel`).

The guest sees this machine's files read-only, with empty folders where programs write. It has one core, and
its time is virtual: each instruction takes 2 ns, and idle time is skipped. So the load of this machine does
not affect what is measured there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.builds import BUILD

ROOT = Path(__file__).resolve().parents[2]
HOME = BUILD / ".clients" / "other-kernel"
IS_HERE = (HOME / "initramfs").is_file() and shutil.which("qemu-system-x86_64") is not None
TIMEOUT_S = 1500
"""It takes five minutes on an idle machine, and several times as long on a busy one."""
_PATIENCE = 500
"""Factor for timeouts: files are read in real time, but the virtual time of a waiting program jumps ahead."""
_BEGIN, _END = "=== begin", "=== end"
_INIT = """
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run LOKO_PATIENCE={patience}
mount -t devtmpfs devices /dev
mount -t tmpfs tmpfs /run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
printf '#!/bin/sh\\nexec modprobe -d "%s" "$@"\\n' '{home}/unpacked' >/run/modprobe
chmod 755 /run/modprobe
echo /run/modprobe >/proc/sys/kernel/modprobe
/run/modprobe -a ipv6 tun
ip link set lo up
cp '{script}' /run/script.py
mount -t tmpfs tmpfs /tmp
cd '{root}'
echo '{begin}'
TMPDIR=/run '{python}' /run/script.py 2>&1
echo '{end}'
echo o >/proc/sysrq-trigger
sleep 60
"""


def said_in_other_kernel(script: str, folder: Path) -> str:
    """Run a Python script as root in the other kernel and return its output.

    `folder` is for temporary files; its path must not contain a space.
    """
    source, init = folder / "script.py", folder / "init.sh"
    source.write_text(script, encoding="utf-8")
    values = {"home": HOME, "root": ROOT, "script": source, "python": sys.executable, "patience": _PATIENCE}
    init.write_text(_INIT.format(begin=_BEGIN, end=_END, **values), encoding="utf-8")
    done = subprocess.run(
        [
            *("setpriv", "--pdeathsig", "KILL", "--"),
            *("qemu-system-x86_64", "-machine", "q35", "-cpu", "max", "-m", "2G", "-nic", "none"),
            *("-icount", "shift=1,sleep=off", "-nographic", "-no-reboot"),
            *("-kernel", HOME / "kernel", "-initrd", HOME / "initramfs"),
            *("-append", f"console=ttyS0 quiet panic=-1 mitigations=off script={init}"),
            "-virtfs",
            "local,path=/,mount_tag=machine,security_model=none,readonly=on,multidevs=remap",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        timeout=TIMEOUT_S,
        check=False,
    )
    printed = done.stdout.decode(errors="replace").replace("\r", "")
    _, _, after = printed.partition(f"{_BEGIN}\n")
    text, end, _ = after.partition(f"{_END}\n")
    assert end, f"the other kernel did not come to its end: {printed[-2000:]}"
    return text
