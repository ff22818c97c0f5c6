"""Fixtures of the tests of the role `board`; a plugin of pytest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from board_role import BoardAtPseudoTerminal


@pytest.fixture
def board(program: Path, tmp_path: Path) -> Iterator[BoardAtPseudoTerminal]:
    """A board at a pseudo-terminal."""
    made = BoardAtPseudoTerminal(program, tmp_path)
    yield made
    made.switch_off()
