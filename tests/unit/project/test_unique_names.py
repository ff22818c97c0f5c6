"""A class or type has a name of its own, in the whole product: in Python, and in Rust."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PYTHON = ("controller/loko", "testbed/loko_testbed")
RUST_TYPE = re.compile(r"^(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type) (\w+)", re.MULTILINE)
RUST_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod ", re.MULTILINE)

BINDING = "python"
"""The crate that gives Python what the others have; its types are called as those that they wrap."""


def python_types(text: str) -> Iterator[str]:
    """Yield the classes of a module, also those inside of classes and functions."""
    return (node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))


def rust_types(text: str) -> Iterator[str]:
    """Yield the types that a file defines at its top level, without those of its tests."""
    tests = RUST_TESTS.search(text)
    return (found[1] for found in RUST_TYPE.finditer(text[: tests.start()] if tests else text))


def duplicates() -> dict[tuple[str, str], list[str]]:
    """Return the names defined more than once, by language (or `BINDING`) and name, with their files."""
    files: dict[tuple[str, str], list[str]] = defaultdict(list)
    for file in sorted(file for folder in PYTHON for file in (ROOT / folder).rglob("*.py")):
        for name in python_types(file.read_text()):
            files["Python", name].append(str(file.relative_to(ROOT)))
    for file in sorted((ROOT / "switch-emulator").glob("*/src/**/*.rs")):
        within = file.relative_to(ROOT / "switch-emulator")
        if "tests" not in within.stem:
            for name in rust_types(file.read_text()):
                files[BINDING if within.parts[0] == BINDING else "Rust", name].append(str(within))
    return {key: places for key, places in files.items() if len(places) > 1}


def test_every_class_and_type_has_a_name_of_its_own() -> None:
    assert duplicates() == {}


def test_duplicates_are_found() -> None:
    assert list(python_types("class A:\n    class B: ...\ndef f():\n    class A: ...\n")).count("A") == 2
    rust = "pub struct A;\npub(crate) enum B {}\nimpl T for A {\n    type C = A;\n}\n"
    rust += "#[cfg(test)]\nmod tests {\nstruct D;\n"
    assert list(rust_types(rust)) == ["A", "B"]
