"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from benchmarks.one_board import build

pytest_plugins = ["stalls"]

# How long an example takes says nothing on a machine that also runs other work; pytest limits each test.
settings.register_profile("loko", deadline=None)
settings.load_profile("loko")


@pytest.fixture(scope="session")
def program() -> Path:
    """The emulator without optimisation, built if need be."""
    return build(release=False)
