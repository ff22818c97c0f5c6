"""Versions of the programs that take part in live runs, as they report them."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import subprocess

from loko_testbed.instruments.emulator import emulator
from loko_testbed.instruments.programs import locate

_ASKED = {
    "iproute2": ("ip", "-V"),
    "ethtool": ("ethtool", "--version"),
    "tcpdump": ("tcpdump", "--version"),
    "iperf3": ("iperf3", "--version"),
    "mgen": ("mgen", "version"),
    "mininet": ("mn", "--version"),
    "openvswitch": ("ovs-vswitchd", "--version"),
    "docker": ("docker", "--version"),
    "containerlab": ("containerlab", "version"),
}
_TIMEOUT_S = 5.0


def versions() -> dict[str, str]:
    """Return versions by name. Programs that are missing or report none are left out."""
    versions = {"python": platform.python_version(), "os-ken": importlib.metadata.version("os-ken")}
    asked = {**_ASKED, "zodiac-fx": (str(emulator()), "--version")}
    for name, (program, option) in asked.items():
        if version := _version(program, option):
            versions[name] = version
    return versions


def _version(program: str, option: str) -> str | None:
    path = locate(program)
    if path is None:
        return None
    try:
        done = subprocess.run([path, option], capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    number = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
    return number[0] if number else None
