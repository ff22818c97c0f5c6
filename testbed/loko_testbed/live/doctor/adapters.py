"""Network cards for real boards and their taps: offloads and time stamps, as reported by ethtool."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loko_testbed.instruments.programs import locate, run, run_json
from loko_testbed.live.doctor.facts import Adapter
from loko_testbed.simulation.runner import RunError

_INTERFACES = Path("/sys/class/net")

_CHANGING_FRAMES = {
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
    "generic-segmentation-offload": "gso",
    "tcp-segmentation-offload": "tso",
}
"""Offloads that merge or split frames, with the names by which ethtool sets them."""

_HARDWARE_STAMPS = ("hardware-transmit", "hardware-receive")


def adapters() -> tuple[Adapter, ...]:
    """Return every interface that has a device behind it."""
    return tuple(_adapter(path) for path in sorted(_INTERFACES.iterdir()) if (path / "device").exists())


def _adapter(path: Path) -> Adapter:
    driver = path / "device" / "driver"
    return Adapter(
        name=path.name,
        driver=driver.resolve().name if driver.exists() else "unknown driver",
        offloads=_offloads(path.name),
        hardware_stamps=_hardware_stamps(path.name),
    )


def _offloads(name: str) -> Sequence[str] | None:
    if locate("ethtool") is None:
        return None
    try:
        shown = run_json(["ethtool", "--json", "-k", name], what=name)[0]
    except RunError:
        return None
    return tuple(short for long, short in _CHANGING_FRAMES.items() if shown.get(long, {}).get("active"))


def _hardware_stamps(name: str) -> bool | None:
    if locate("ethtool") is None:
        return None
    try:
        return stamps_in_hardware(run(["ethtool", "-T", name], what=name))
    except RunError:
        return None


def stamps_in_hardware(shown: str) -> bool:
    """Return whether the answer of ``ethtool -T`` names stamps of both directions (no JSON before 2025)."""
    words = set(shown.split())
    return all(word in words for word in _HARDWARE_STAMPS)
