"""The modules of each Rust crate have no import cycle: each can be read and tested before its users.

This holds at every level: for the modules side by side in any module, each with all that is inside it. A
module and those inside it count as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import networkx as nx
import pytest

_CRATES: Final = Path(__file__).resolve().parents[3] / "switch-emulator"

Name = tuple[str, ...]
"""The path of a module, or of an item in one, from the root of its crate."""


class Crate:
    """The modules of a crate, without tests, and what their code names in each other."""

    def __init__(self, source: Path) -> None:
        self._code = {
            name: code for path in sorted(source.rglob("*.rs")) for name, code in _module(path, source)
        }
        self._exported: dict[Name, Name] = {}
        for here, code in self._code.items():
            for used in self._uses(here, code):
                self._exported.setdefault((*here, used[-1]), used)

    def cycles(self) -> list[list[str]]:
        """Return the sets of modules that name each other, at every level."""
        references = self.references()
        parents = {here[:depth] for here in self._code for depth in range(len(here) + 1)}
        found = []
        for parent in sorted(parents):
            depth = len(parent)
            inside = [
                (here[depth], there[depth])
                for here, there in references
                if here[:depth] == parent == there[:depth] and len(here) > depth < len(there)
            ]
            graph = nx.DiGraph((here, there) for here, there in inside if here != there)
            found += [
                sorted("::".join((*parent, name)) for name in group)
                for group in nx.strongly_connected_components(graph)
                if len(group) > 1
            ]
        return found

    def references(self) -> set[tuple[Name, Name]]:
        """Return the pairs of modules of which the first names the second."""
        return set(self._references())

    def _references(self) -> Iterator[tuple[Name, Name]]:
        for here, code in self._code.items():
            body = re.sub(r"\buse\s+[^;]+;", "", code)
            named = [name.split("::") for name in re.findall(r"\b[a-z]\w*(?:::\w+)+", body)]
            absolute = (self._absolute(here, tuple(name)) for name in named)
            for used in [*self._uses(here, code), *(name for name in absolute if name)]:
                yield here, self._module_of(used)

    def _uses(self, here: Name, code: str) -> Iterator[Name]:
        for tree in re.findall(r"\buse\s+([^;]+);", code):
            for name in _leaves(" ".join(tree.split())):
                if used := self._absolute(here, name):
                    yield used

    def _absolute(self, here: Name, name: Name) -> Name | None:
        """Return a name as seen from the root; None if it is not of this crate."""
        first, *rest = name
        if first == "super":
            return self._absolute_of_parent(here[:-1], tuple(rest))
        if first in ("crate", "self"):
            return (*(here if first == "self" else ()), *rest)
        return (*here, *name) if (*here, first) in self._code else None

    def _absolute_of_parent(self, parent: Name, rest: Name) -> Name:
        return self._absolute_of_parent(parent[:-1], rest[1:]) if rest[:1] == ("super",) else (*parent, *rest)

    def _module_of(self, name: Name) -> Name:
        """Return the module that defines an item, also if others export it under their names."""
        for _ in range(8):
            module = next(
                name[:end] for end in range(len(name), -1, -1) if name[:end] in self._code or not end
            )
            item = name[: len(module) + 1]
            if item == module or self._exported.get(item, item) == item:
                return module
            name = (*self._exported[item], *name[len(item) :])
        raise AssertionError(f"{name}: exported in a circle")


def _module(path: Path, source: Path) -> Iterator[tuple[Name, str]]:
    *folders, stem = path.relative_to(source).with_suffix("").parts
    if "tests" in (*folders, stem):
        return
    is_root = not folders and stem in ("lib", "main")
    code = re.sub(r"//.*", "", path.read_text(encoding="utf-8")).split("#[cfg(test)]\nmod tests {")[0]
    yield () if is_root else (*folders, *([] if stem == "mod" else [stem])), code


def _leaves(tree: str) -> Iterator[Name]:
    """Yield the names in a tree of `use`, such as `a::{b, c::D}`."""
    head, brace, rest = tree.partition("{")
    if not brace:
        yield tuple(part.strip() for part in tree.split(" as ", maxsplit=1)[0].split("::"))
        return
    prefix = tuple(part for part in head.strip().split("::") if part)
    depth, item = 0, ""
    for sign in rest.rpartition("}")[0] + ",":
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth == 0:
            if item.strip():
                yield from ((*prefix, *leaf) for leaf in _leaves(item.strip()))
            item = ""
        else:
            item += sign


@pytest.mark.parametrize("crate", sorted(path.parent.name for path in _CRATES.glob("*/src")))
def test_no_modules_of_a_crate_name_each_other(crate: str) -> None:
    assert Crate(_CRATES / crate / "src").cycles() == []


def test_a_cycle_three_levels_deep_is_found(tmp_path: Path) -> None:
    """One way leads through the name under which a parent exports an item, the other through `super`."""
    for path, code in {
        "lib.rs": "mod one;",
        "one/mod.rs": "mod two;",
        "one/two.rs": "mod first; mod second; pub use second::deep::Thing;",
        "one/two/first.rs": "use super::{Other, Thing};\npub struct Own;",
        "one/two/second.rs": "pub mod deep; // crate::one::two::second",
        "one/two/second/deep.rs": "pub struct Thing;\nfn of() -> super::super::first::Own { todo!() }",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(code, encoding="utf-8")
    assert Crate(tmp_path).cycles() == [["one::two::first", "one::two::second"]]


def test_a_dataplane_knows_neither_the_others_nor_the_agent() -> None:
    """The agent alone decides which version is in force."""
    dataplanes = {"firmware10", "firmware13", "spec13"}
    agent = {"agent", "console", "control_traffic", "housekeeping", "messages"}
    named: dict[str, set[str]] = {dataplane: set() for dataplane in dataplanes}
    for here, there in Crate(_CRATES / "firmware" / "src").references():
        if here[:1] == there[:1] == ("openflow",) and len(there) > 1 and here[1:2] != there[1:2]:
            named.setdefault("".join(here[1:2]), set()).add(there[1])
    assert all("dataplane" in named[dataplane] for dataplane in dataplanes)
    assert {name: seen for name in dataplanes if (seen := named[name] & (dataplanes | agent))} == {}


def test_unsafe_code_is_where_the_page_says() -> None:
    page = (_CRATES.parent / "docs/robustness.md").read_text(encoding="utf-8")
    allowed = [
        path
        for path in _CRATES.glob("*/src/**/*.rs")
        if "allow(unsafe_code)" in path.read_text(encoding="utf-8")
    ]
    blocks = sum(path.read_text(encoding="utf-8").count("unsafe {") for path in allowed)
    (told,) = re.findall(r"modules, (.+?), for system calls.*?There are (\d+) blocks", page, re.S)
    assert (sorted(re.findall(r"`(\w+)`", told[0])), int(told[1])) == (
        sorted(path.stem for path in allowed),
        blocks,
    )
