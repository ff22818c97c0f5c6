"""How many examples a property test draws, in each profile of tests/conftest.py."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

GATE = 100
"""Examples of a test that does not say how many, in `make test`."""


def examples(count: int, **others: Any) -> settings:
    """Return the settings of so many examples in `make test`, and of as many times more as a profile has."""
    return settings(max_examples=count * settings().max_examples // GATE, **others)
