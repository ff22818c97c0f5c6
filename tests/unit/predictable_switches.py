"""Ideal switches of which something is changed, for tests of the verdict."""

from __future__ import annotations

from pathlib import Path

from loko.device import profile_text

IDEAL = "ideal-1g"


def mutated(folder: Path, *, append: str = "", ports: int = 8, **values: int) -> str:
    """The path of the ideal switch's profile with other values, more text, and fewer ports."""
    text = profile_text(IDEAL, count=ports, **values)
    # Read profiles are remembered by their paths.
    path = folder / f"mutant{len(list(folder.glob('mutant*.toml')))}.toml"
    path.write_text(text + append, encoding="utf-8")
    return str(path)
