"""``python -m loko_testbed.reproduce.studies.pages``: make the pages of the studies from their results.

No number on these pages is typed by hand. A page is a template in `labs/studies/pages`; its values come from
the results in `docs/measurements`, to which the command first copies those of a folder, if one is named, from
the facts of the papers, and from the documents of the figures.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Final

from loko.document import LABS, InputError
from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.facts import Fact, facts, order, paper_title, papers
from loko_testbed.reproduce.main_claims import MainClaim, main_claims
from loko_testbed.reproduce.result import FigureResult, read_result
from loko_testbed.tasks.files import write_atomically
from loko_testbed.tasks.provenance import checkout

_TEMPLATES: Final = LABS / "studies" / "pages"
_COLUMNS: Final = 120
_UNFILLED: Final = ("|", "#", "    ", "![")
_ITEM: Final = r"- |\d+\. "
_HOLDS: Final = {True: "reached", False: "**missed**", None: "not tested"}


def main(words: Sequence[str]) -> None:
    """Make all pages, with the results of the folder that `words` name, if any."""
    docs = checkout() / "docs"
    try:
        for folder in map(Path, words):
            found = sorted((folder / "studies").glob("*.json"))
            if not found:
                raise InputError(
                    f"{folder}: has no results of studies; loko evaluate studies/growth makes one"
                )
            for path in found:
                shutil.copyfile(path, docs / "measurements" / path.name)
        results = measurements(docs / "measurements")
        made = pages(results)
        for name, text in made.items():
            write_atomically(checkout() / page_file(name), text.encode())
        for name in pictured(made):
            drawn = pictures.svg(results[name], captioned=False)
            write_atomically(docs / "images" / f"{name}.svg", drawn)
    except InputError as error:
        print(f"pages: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def measurements(folder: Path) -> dict[str, FigureResult]:
    """Return the results from which pages are made, by study. Raises `InputError`."""
    paths = (folder / f"{study}.json" for study in order("studies"))
    return {path.stem: read_result(path) for path in paths if path.is_file()}


def page_file(name: str) -> Path:
    """Return the path of a page in the checkout: in `docs`, or at the top if its name is in capitals."""
    return Path(f"{name}.md" if name.isupper() else f"docs/{name}.md")


def pages(results: Mapping[str, FigureResult]) -> dict[str, str]:
    """Return the text of each page by its name. Raises `InputError` if a result is missing."""
    values = {f"{name}_{key}": text for name, result in results.items() for key, text in _values(result)}
    values["not_covered"] = _not_covered()
    values["main_claims"] = _main_claims()
    made = {}
    for path in sorted(_TEMPLATES.glob("*.md")):
        try:
            text = Template(path.read_text(encoding="utf-8")).substitute(values)
        except KeyError as missing:
            raise InputError(f"{path}: no result in docs/measurements has {missing}") from None
        made[path.stem] = "\n\n".join(map(_filled, text.rstrip("\n").split("\n\n"))) + "\n"
    return made


def pictured(made: Mapping[str, str]) -> list[str]:
    """Return the studies whose pictures these pages show."""
    studies = order("studies")
    shown = (name for text in made.values() for name in re.findall(r"\(images/(\w+)\.svg\)", text))
    return [name for name in shown if name in studies]


def _values(result: FigureResult) -> Iterable[tuple[str, str]]:
    made = result.provenance
    yield "machine", made.machine
    yield "commit", made.commit
    yield "seed", str(result.seed)
    yield "command", result.command
    yield (
        "claims",
        markdown_table(
            ("measured", result.reference, "here", ""),
            ((claim.claim, claim.paper, claim.here, _HOLDS[claim.holds]) for claim in result.claims),
        ),
    )
    if result.table is not None:
        yield "table", markdown_table(result.table.columns, result.table.rows)
    yield "notes", markdown_table(("where", ""), ((note.where, note.text) for note in result.notes))
    for name, value in result.findings.items():
        yield name, f"{value:,.0f}" if value == int(value) else f"{value:.3f}"


def _not_covered() -> str:
    """Return, paper by paper, a table of the facts that are not covered, with the reasons."""
    sections = []
    for paper in papers():
        left_out = (fact for fact in facts(paper).values() if fact.not_covered)
        if rows := [(fact.where, _statement(fact), fact.not_covered) for fact in left_out]:
            table = markdown_table(("where", "the paper says", "why it is not covered"), rows)
            sections.append(f"## {paper_title(paper)}\n\n{table}")
    return "\n\n".join(sections)


def _main_claims() -> str:
    """Return, paper by paper, a table of the claims that reviewers check."""
    columns = ("figure", "claim", "the paper says", "where", "holds if", "command", "minutes")
    sections = []
    for paper, claims in main_claims().items():
        kind = "" if claims[0].unmeasured.kind == "predicted" else ": calibrated, not predicted"
        table = markdown_table(columns, map(_main_claim, claims))
        sections.append(f"### {paper_title(paper)}{kind}\n\n{table}")
    return "\n\n".join(sections)


def _main_claim(main: MainClaim) -> Sequence[str]:
    claim, unmeasured = main.claim, main.unmeasured
    seeds = f"; judged at {claim.seeds} seeds" if claim.seeds > 1 else ""
    return (
        main.figures[0].title,
        f"{claim.claim}{' †' if claim.if_not else ''}",
        claim.paper,
        unmeasured.where,
        f"{unmeasured.tolerance}{seeds}",
        f"`{main.command}`",
        str(main.minutes),
    )


def _statement(fact: Fact) -> str:
    """Return what a fact says, with its value."""
    return f"{fact.text}: {fact.value_in_words}" if fact.value_in_words else fact.text


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str | float]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    cells = ([cell if isinstance(cell, str) else f"{cell:.5g}" for cell in row] for row in rows)
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in cells)])


def _filled(paragraph: str) -> str:
    """Return a paragraph, or the items of a list, in lines of at most `_COLUMNS` characters."""
    if paragraph.startswith(_UNFILLED):
        return paragraph
    items = re.split(rf"\n(?={_ITEM})", paragraph)
    marks = [re.match(_ITEM, item) for item in items]
    return "\n".join(
        textwrap.fill(
            re.sub(r"\s*\n\s*", " ", item),
            _COLUMNS,
            subsequent_indent=" " * (mark.end() if mark else 0),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for item, mark in zip(items, marks, strict=True)
    )


if __name__ == "__main__":
    main(sys.argv[1:])
