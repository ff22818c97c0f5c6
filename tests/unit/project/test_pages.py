"""The documentation: each page names its readers, the index lists it, and its internal links work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loko_testbed.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
ARTIFACT = ROOT / "ARTIFACT.md"
PAGES = sorted(path for path in DOCS.glob("*.md") if path != INDEX)
PROGRAMS = (
    *("controller/**/*.py", "testbed/**/*.py", "tests/**/*.py", "benchmarks/**/*.py", "playbooks/**/*.py"),
    *("switch-emulator/*/src/**/*.rs", "switch-emulator/*/tests/**/*.rs"),
    *("switch-emulator/*/examples/*.rs", "switch-emulator/fuzz/*.sh", "setup/**/*.sh", "tests/**/*.sh"),
)
OTHERS = {
    *("tests/integrated/test_request_reply_v12.py", "test_hub.py", "test_mine.py"),
    *("my_controller.py", "test_my_controller.py", "lost.py", "jitter.py", "two-boards.py"),
}
"""Files of other projects, and of readers."""
FILE = re.compile(r"`([a-z_][\w-]*(?:/[\w-]+)*\.(?:py|rs|sh))`")
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def beginning_of(path: Path) -> tuple[str, str]:
    """Return the title, and the readers named below it."""
    beginning = re.match(r"# (.+)\n\n\*For (.+)\*\n\n", text_of(path))
    assert beginning, f"{path.name}: begins with no title and no '*For …*'"
    return beginning.group(1), beginning.group(2)


def anchors_of(path: Path) -> set[str]:
    """Return the anchors that GitHub generates for headings, and those that the page defines itself."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text_of(path), flags=re.M | re.S), re.M)
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a (?:id|name)="([^"]+)"', text_of(path)))


def test_the_index_lists_every_page_once_as_it_begins() -> None:
    listed = re.findall(r"^- \[(.+)\]\((.+)\), for (.+)$", text_of(INDEX), re.M)
    assert sorted(name for _, name, _ in listed) == [page.name for page in PAGES]
    for title, name, reader in listed:
        assert (title, reader) == beginning_of(DOCS / name)


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ARTIFACT, INDEX, *PAGES],
    ids=lambda page: page.name,
)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    missing = []
    for target, anchor in LINK.findall(text_of(page)):
        if ":" in target:  # another site
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors_of(path)):
            missing.append(f"{target}#{anchor}")
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_program_that_a_page_names_is_there(page: Path) -> None:
    """A page may leave out the first folders. Words in capitals stand for any name."""
    there = [f"/{path.relative_to(ROOT).as_posix()}" for glob in PROGRAMS for path in ROOT.glob(glob)]
    named = {name for name in FILE.findall(text_of(page)) if not re.search(r"[A-Z]{3}", name)}
    assert {name for name in named if not any(path.endswith(f"/{name}") for path in there)} <= OTHERS


@pytest.mark.parametrize("page", [ARTIFACT, *PAGES], ids=lambda page: page.name)
def test_prose_has_no_long_lines(page: Path) -> None:
    """Not checked: tables, pictures and links, which cannot be wrapped, and generated text and output."""
    text = re.sub(r"<!-- (\w+): begin -->.*?<!-- \1: end -->", "", text_of(page), flags=re.S)
    lines = [line for line in text.splitlines() if len(line) > 120 and " " in line[:120].strip()]
    prose = [line for line in lines if not re.match(r"\||!\[|    |Machine: |bench ARGS=", line)]
    assert prose == []


def test_the_architecture_names_every_command() -> None:
    [listed] = re.findall(r"The commands of `loko` are (.+?)\s\(\[", text_of(DOCS / "architecture.md"), re.S)
    assert re.findall(r"`([\w-]+)`", listed) == list(COMMANDS)
