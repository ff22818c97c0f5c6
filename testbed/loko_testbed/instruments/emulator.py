"""The emulator `zodiac-fx`: where the program is, and the text of its configuration file.

Mininet's own Python imports this module (docs/mininet.md). So it needs nothing but the standard library, and
runs on Python 3.8 and later.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loko.topology.ring import Setting

OFFLOADS = {
    "tx": "tx-checksumming",
    "rx": "rx-checksumming",
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
}
"""Offloads by ethtool's name for setting and for showing: a frame must pass as it would on a wire."""

POWERED_FOR_MS = 1900
"""For how long boards have had power when their lab begins: 0.1 s later they look for their controller."""

SHARED_REST_US = 100
"""How long an emulator that shares its core rests when nothing is due, so that the others get it in time."""

RELAXED_REST_US = 1000
"""How long an emulator rests whose delays nobody judges: then each uses only a tenth of a core."""

_NAME = "zodiac-fx"


def emulator() -> Path:
    """Return the emulator's path: ``LOKO_EMULATOR``, or else beside Python, where set-up links it.

    Another Python than that of this package, such as Mininet's, finds it in the environment that this file is
    in: `PREFIX/lib/pythonX.Y/site-packages`, or a checkout with `.venv`.
    """
    named = os.environ.get("LOKO_EMULATOR")
    if named:
        return Path(named)
    beside_python = Path(sys.prefix) / "bin" / _NAME
    above = Path(__file__).resolve().parents
    places = [beside_python, *(folder / bin_ / _NAME for folder in above for bin_ in ("bin", ".venv/bin"))]
    return next((place for place in places if place.is_file()), beside_python)


def scheduling(cpu: int | None, *, shares_core: bool) -> list[str]:
    """Return the keys of ``[process]`` for an emulator with this core, or without one of its own."""
    if cpu is None:
        return ['scheduling = "other"', f"rest_us = {RELAXED_REST_US}"]
    # SCHED_DEADLINE gives a core to one thread alone; of several with SCHED_FIFO, the running one goes on.
    shared = ['scheduling = "fifo"', f"rest_us = {SHARED_REST_US}"]
    return [f"cpu = {cpu}", *(shared if shares_core else ['scheduling = "deadline"'])]


def board_tables(
    name: str,
    ports: Mapping[int, str],
    *,
    profile: str,
    controller: str,
    seed: int,
    console: str,
    settings: Mapping[str, Setting],
) -> list[str]:
    """Return the lines for one board, with the interface of each port; more settings may be appended."""
    return [
        "[[board]]",
        f"name = {json.dumps(name)}",
        f"profile = {json.dumps(profile)}",
        f"controller = {json.dumps(controller)}",
        f"seed = {seed}",
        f"console = {json.dumps(console)}",
        "[board.ports]",
        *(f"{port} = {json.dumps(interface)}" for port, interface in sorted(ports.items())),
        "[board.config]",
        *(f"{key} = {_toml(value)}" for key, value in settings.items()),
    ]


def _toml(value: Setting) -> str:
    """Return a setting as TOML writes it, which has tables of its own and the rest as in JSON."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {json.dumps(names)}' for key, names in value.items())} }}"
    return json.dumps(value)
