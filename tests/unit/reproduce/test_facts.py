"""Facts of the papers: their values in words."""

from __future__ import annotations

from typing import Any

import pytest

from loko_testbed.reproduce.facts import Fact


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (None, "us", ""),
        (709.8, "us", "709.8 us"),
        ([100, 700], "us", "100 to 700 us"),
        ([1000, 500, 100], "byte", "1000, 500, 100 byte"),
        (["dl-vlan", "all"], "", "dl-vlan, all"),
        ({"path_nodes": 5, "slots": [3, 5]}, "", "path nodes 5, slots 3 to 5"),
    ],
)
def test_a_value_in_words(value: Any, unit: str, words: str) -> None:
    fact = Fact(reference="a", where="sec 1", role="validation", text="", value=value, unit=unit)
    assert fact.value_in_words == words
