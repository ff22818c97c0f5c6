"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from benchmarks.one_board import build

# The same examples at every run: a commit passes or fails, whatever ran before and wherever. How long an
# example takes says nothing on a machine that also runs other work; pytest limits each test.
settings.register_profile(
    "gate",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# Other examples at every run, more of them: `make random`. What fails is kept as an @example of the test.
settings.register_profile("random", settings.get_profile("gate"), derandomize=False, max_examples=500)
settings.load_profile("gate")


@pytest.fixture(scope="session")
def program() -> Path:
    """The emulator, built if need be."""
    return build()
