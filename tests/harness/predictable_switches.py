"""Variants of the ideal switch with one property changed, for tests of the verdict."""

from __future__ import annotations

from pathlib import Path

from loko.switch_model.device import profile_text

IDEAL = "ideal-1g"


def mutated(folder: Path, *, append: str = "", ports: int = 8, **values: int) -> str:
    """Return the path of a copy of the ideal switch's profile with other values, more text, fewer ports."""
    text = profile_text(IDEAL, count=ports, **values)
    # Profiles are cached by path, so each copy needs its own.
    path = folder / f"mutant{len(list(folder.glob('mutant*.toml')))}.toml"
    path.write_text(text + append, encoding="utf-8")
    return str(path)
