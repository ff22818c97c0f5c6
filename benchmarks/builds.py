"""Build the Rust programs that benchmarks and tests run, and find what set-up has built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKSPACE = ROOT / "switch-emulator"
BUILD = Path(sys.prefix).parent
"""Folder of the files that set-up made: the repository, or LOKO_BUILD."""


def build() -> Path:
    """Build the program if it is not up to date; return its path."""
    # Build all packages: for some only, cargo would choose other features of libraries than for the tests.
    command = ["cargo", "build", "--quiet", "--release", "--workspace", "--bins", "--examples"]
    subprocess.run(command, cwd=WORKSPACE, check=True)
    return built() / "zodiac-fx"


def built(profile: str = "release") -> Path:
    """Return the folder to which cargo writes programs of this profile."""
    return Path(os.environ.get("CARGO_TARGET_DIR", WORKSPACE / "target")) / profile
