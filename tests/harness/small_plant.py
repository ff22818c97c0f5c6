"""Four simple switches and two flows, written by the program itself, for tests of its commands."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from typer.testing import CliRunner

from loko_testbed.cli.main import app

FLOWS: Final = """\
- {id: drive, source: h1, destination: h2, udp_source: 5000, udp_destination: 6000,
   rate: 700 kbit/s, burst: 2 frames, frame: 306 bytes}
- {id: valve, source: h1, destination: h3, udp_source: 5001, udp_destination: 6000,
   rate: 100 kbit/s, burst: 1 frames, frame: 306 bytes}
"""


def write_plant(folder: Path, *, shape: str = "ring") -> tuple[str, str]:
    """Write a lab of a shape, with a host at each switch, and its flows; return the paths of both."""
    lab, flows = folder / "lab", folder / "flows.yml"
    made = CliRunner().invoke(
        app, ["lab", "new", shape, "--switches", "4", "--rate", "95 Mbit/s", "--out", str(lab)]
    )
    assert made.exit_code == 0, made.output
    flows.write_text(FLOWS)
    return str(lab), str(flows)
