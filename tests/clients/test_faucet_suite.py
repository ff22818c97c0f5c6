"""Faucet's own tests with boards as switches have the outcomes recorded in `faucet-suite.yml`."""

from __future__ import annotations

from pathlib import Path

import faucet_trial
import pytest
from live_harness import needs_namespaces

SAMPLE = ("firmware", "FaucetSingleStack3RingOfDPReversePortOrderTest")
"""Three boards in a ring, with the ports in both orders."""


@pytest.mark.namespaces
@pytest.mark.waits
@needs_namespaces
def test_outcome(program: Path) -> None:
    if lacks := faucet_trial.missing():
        pytest.skip(lacks)
    mode, name = SAMPLE
    assert faucet_trial.difference(name, faucet_trial.load()[name], mode, program) is None


def test_documentation_tells_the_outcomes() -> None:
    text = faucet_trial.DOCUMENT.read_text()
    assert faucet_trial.written(text) == text, "run 'python tests/clients/faucet_trial.py --write'"
