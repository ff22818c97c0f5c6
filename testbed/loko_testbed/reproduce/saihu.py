"""Delay bounds by xTFA and panco, through Saihu, their common interface (docs/port-queues.md).

The user provides it: `LOKO_SAIHU` names its clone, and `LOKO_SAIHU_PYTHON` a Python with its dependencies.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from loko.document import LABS, InputError
from loko.switch_model.calculus.token_buckets import RateLatency, TokenBucket
from loko.units import BPS_PER_MBPS, NS_PER_US, US_PER_S
from loko_testbed.simulation.runner import RunError

_PEER: Final = LABS / "studies" / "peers" / "saihu.py"
_PATIENCE_S: Final = 300


class Saihu(NamedTuple):
    """Where Saihu is, and what runs it."""

    clone: str
    python: str


def saihu_of_environment() -> Saihu | None:
    """Return the Saihu that the environment names; None if it names none. Raises `InputError`."""
    clone = os.environ.get("LOKO_SAIHU", "")
    if not clone:
        return None
    if not Path(clone, "src", "saihu").is_dir():
        raise InputError(f"LOKO_SAIHU: {clone} is no clone of Saihu: it has no src/saihu")
    return Saihu(clone, os.environ.get("LOKO_SAIHU_PYTHON", sys.executable))


@dataclass(frozen=True, slots=True, kw_only=True)
class SaihuNetwork:
    """Servers that are alike, and the flows through them."""

    name: str
    paths: Mapping[str, tuple[str, ...]]
    buckets: Mapping[str, TokenBucket]
    service: RateLatency
    line_rate_bps: float
    frame_bytes: int
    shortest_frame_bytes: int
    is_shaped: bool
    """Whether cables bring frames no faster than at their rate."""
    has_packetizer: bool
    """Whether cables deliver whole frames, in panco's model."""


class SaihuBounds(NamedTuple):
    """The answer of a method: the bounds by flow, or an error."""

    seconds: float | None
    delays_us: Mapping[str, float]
    error: str = ""


def saihu_bounds(saihu: Saihu, network: SaihuNetwork, methods: Sequence[str]) -> dict[str, SaihuBounds]:
    """Return the bounds by method, `tool/method`. Raises `RunError` if Saihu does not run."""
    with tempfile.TemporaryDirectory() as scratch:
        document = Path(scratch, "network.json")
        document.write_text(json.dumps(_document(network)), encoding="utf-8")
        shaping = "ON" if network.is_shaped else "OFF"
        words = [saihu.python, str(_PEER), f"{saihu.clone}/src", str(document), shaping, *methods]
        try:
            ran = subprocess.run(
                words, cwd=scratch, capture_output=True, text=True, timeout=_PATIENCE_S, check=True
            )
        except subprocess.TimeoutExpired:
            raise RunError(f"Saihu took more than {_PATIENCE_S} s for {network.name}") from None
        except (OSError, subprocess.CalledProcessError) as error:
            said = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1]
            raise RunError(f"Saihu does not run: {said} (docs/port-queues.md says how)") from None
    return {
        method: SaihuBounds(None, {}, result["error"])
        if "error" in result
        else SaihuBounds(
            result["seconds"], {flow: delay_s * US_PER_S for flow, delay_s in result["delays_s"].items()}
        )
        for method, result in json.loads(ran.stdout).items()
    }


def _document(network: SaihuNetwork) -> dict[str, Any]:
    """Return the network in Saihu's output-port format."""
    return {
        "network": {
            "name": network.name,
            "packetizer": network.has_packetizer,
            "multiplexing": "FIFO",
            "analysis_option": ["IS"],
            "time_unit": "us",
            "data_unit": "B",
            "rate_unit": "Mbps",
            "min_packet_length": network.shortest_frame_bytes,
        },
        "flows": [
            {
                "name": flow,
                "path": list(path),
                "arrival_curve": {
                    "bursts": [network.buckets[flow].burst_bytes],
                    "rates": [network.buckets[flow].rate_bps / BPS_PER_MBPS],
                },
                "max_packet_length": network.frame_bytes,
            }
            for flow, path in network.paths.items()
        ],
        "servers": [
            {
                "name": name,
                "service_curve": {
                    "latencies": [network.service.latency_ns / NS_PER_US],
                    "rates": [network.service.rate_bps / BPS_PER_MBPS],
                },
                "capacity": network.line_rate_bps / BPS_PER_MBPS,
            }
            for name in sorted({server for path in network.paths.values() for server in path})
        ],
    }
