"""Every profile can be modelled: `loko model` tells its service curve."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import loko_acme_switches
import pytest

PROFILES = sorted(file.stem for file in Path(loko_acme_switches.__file__).parent.glob("*.toml"))


@pytest.mark.parametrize("profile", PROFILES)
def test_its_service_curve(profile: str) -> None:
    """It forwards at some rate."""
    command = ["loko", "model", profile, "--packet-size", "306", "--json"]
    curve = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert curve["rate_bps"] > 0
