"""The modules of each Rust crate have no import cycle: each can be read and tested before its users."""

from __future__ import annotations

import re
from pathlib import Path

import networkx as nx
import pytest

_CRATES = Path(__file__).resolve().parents[2] / "switch-emulator"


def _arrows(source: Path) -> nx.DiGraph:
    """Return the graph of references between the modules at the root of a crate, without tests."""
    arrows = nx.DiGraph()
    for path in source.rglob("*.rs"):
        here, *_ = path.relative_to(source).with_suffix("").parts
        if path.stem == "tests" or here in ("lib", "main"):
            continue
        code = path.read_text(encoding="utf-8").split("#[cfg(test)]")[0]
        lines = [line for line in code.splitlines() if not line.lstrip().startswith("//")]
        for there in re.findall(r"\bcrate::([a-z]\w*)", "\n".join(lines)):
            if there != here:
                arrows.add_edge(here, there)
    return arrows


@pytest.mark.parametrize("crate", ["firmware", "simulator", "live", "python"])
def test_no_circle_between_the_modules_of_a_crate(crate: str) -> None:
    arrows = _arrows(_CRATES / crate / "src")
    assert arrows.size() > 0
    assert list(nx.simple_cycles(arrows)) == []


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "part.rs").write_text("use crate::other::Thing;\n", encoding="utf-8")
    (tmp_path / "other.rs").write_text("// crate::third\nfn f() { crate::one::go() }\n", encoding="utf-8")
    assert [sorted(circle) for circle in nx.simple_cycles(_arrows(tmp_path))] == [["one", "other"]]


def test_unsafe_code_is_where_the_page_says() -> None:
    page = (_CRATES.parent / "docs/robustness.md").read_text(encoding="utf-8")
    allowed = [
        path
        for path in (_CRATES / "live/src").rglob("*.rs")
        if "allow(unsafe_code)" in path.read_text(encoding="utf-8")
    ]
    blocks = sum(path.read_text(encoding="utf-8").count("unsafe {") for path in allowed)
    (told,) = re.findall(r"modules, (.+?), for system calls.*?There are (\d+) blocks", page, re.S)
    assert (sorted(re.findall(r"`(\w+)`", told[0])), int(told[1])) == (
        sorted(path.stem for path in allowed),
        blocks,
    )
