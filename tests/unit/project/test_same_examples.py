"""A property test has the same examples whatever ran before it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

NUMBERS = range(1_234_567, 1_234_667)


def test_numbers_of_modules_that_others_loaded_are_not_drawn(tmp_path: Path) -> None:
    path = tmp_path / "loaded_by_others.py"
    path.write_text("\n".join(f"N{number} = {number}" for number in NUMBERS), encoding="utf-8")
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    drawn: set[int] = set()

    # Use an otherwise unused range, because Hypothesis remembers what it has drawn from a range.
    @settings(max_examples=500)
    @given(number=st.integers(0, 10**9 + 7))
    def note(number: int) -> None:
        drawn.add(number)

    try:
        specification.loader.exec_module(module)
        note()
    finally:
        del sys.modules[path.stem]
    assert len(drawn) > 250
    assert not drawn & set(NUMBERS)
