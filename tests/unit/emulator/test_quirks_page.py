"""Every deviation on `docs/quirks.md` is named in the code and shown by a test, both where the page says."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FIRMWARE = ROOT / "switch-emulator/firmware"
PAGE = (ROOT / "docs/quirks.md").read_text()
ROWS = {
    int(cells[1]): [cell.strip() for cell in cells]
    for cells in (line.split("|") for line in PAGE.splitlines())
    if len(cells) > 5 and cells[1].strip().isdigit()
}
IN_13 = range(84, 190)
_NAMED = re.compile(r"[Qq]uirks? (\d+(?:(?:, | and | to )\d+)*)")
_ALL_OF_THEM = 20
"""A larger range of numbers describes what a module is about, and names none of them."""


@cache
def named_in(path: Path) -> frozenset[int]:
    """Return the numbers of the quirks that a file names."""
    text = re.sub(r"\s*\n\s*//[/!]?\s*", " ", path.read_text())
    spans = [span for names in _NAMED.findall(text) for span in re.findall(r"(\d+)(?: to (\d+))?", names)]
    numbers = [range(int(first), int(last or first) + 1) for first, last in spans]
    return frozenset(number for span in numbers if len(span) <= _ALL_OF_THEM for number in span)


@cache
def exchanges() -> dict[str, list[int]]:
    """Return the recorded 1.3 exchanges, each with the quirks that it shows."""
    lines = (FIRMWARE / "tests/exchanges13/examples.jsonl").read_text().splitlines()
    return {case["name"]: case["quirks"] for case in map(json.loads, lines)}


@cache
def functions(folder: str) -> frozenset[str]:
    """Return the firmware's test functions in a file or folder."""
    place = FIRMWARE / "tests" / folder
    files = [place] if place.is_file() else place.rglob("*.rs")
    return frozenset(name for file in files for name in re.findall(r"fn (q\d+_\w+)", file.read_text()))


def test_the_page_has_all():
    assert sorted(ROWS) == list(range(1, 203))


@pytest.mark.parametrize("number", sorted(ROWS))
def test_a_quirk_is_shown(number: int):
    where, shown = ROWS[number][4], ROWS[number][5].strip("`")
    assert (FIRMWARE / "src" / where).is_file()
    if number not in IN_13:
        assert shown in functions("quirks")
    elif shown.startswith("q"):
        assert shown in functions("quirks13.rs")
    else:
        assert number in exchanges()[shown]


@pytest.mark.parametrize("number", IN_13)
def test_a_quirk_of_13_is_named_in_the_code(number: int):
    assert number in named_in(FIRMWARE / "src" / ROWS[number][4])
