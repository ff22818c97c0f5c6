"""Describe the machine on which benchmarks ran."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

import psutil


def describe() -> dict[str, str]:
    """Return processor, cores, memory, system and date as texts."""
    return {
        "processor": _processor(),
        "cores": f"{len(os.sched_getaffinity(0))} cores",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": _distribution(),
        "kernel": f"Linux {platform.release()}",
        "date": datetime.now(UTC).date().isoformat(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()
