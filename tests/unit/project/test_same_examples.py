"""A property test has the same examples whatever ran before it, and more of them in `make random`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from gate_examples import examples
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


def test_another_profile_has_as_many_times_more_examples_of_each_test() -> None:
    before = settings.get_current_profile_name()
    try:
        counted = {}
        for name in ("gate", "random"):
            settings.load_profile(name)
            counted[name] = examples(20).max_examples
    finally:
        settings.load_profile(before)
    assert counted == {"gate": 20, "random": 20 * settings.get_profile("random").max_examples // 100}
