"""Fixtures for the tests of the role `board`, as a pytest plugin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from board_role import BoardAtPseudoTerminal


@pytest.fixture
def board(program: Path, tmp_path: Path) -> Iterator[BoardAtPseudoTerminal]:
    """A board whose console is a pseudo-terminal."""
    made = BoardAtPseudoTerminal(program, tmp_path)
    yield made
    made.switch_off()
