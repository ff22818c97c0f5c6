"""CITATION.cff names the project as its package does, and the papers as their facts do."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import yaml
from anyascii import anyascii

ROOT = Path(__file__).resolve().parents[3]
CITATION: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAPERS = {
    path.stem: yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["meta"]
    for path in (ROOT / "labs/papers").glob("*.yml")
    if path.stem != "studies"
}
REFERENCES = [each for each in CITATION["references"] if each["type"] != "slides"]


def family_names(reference: dict[str, Any]) -> list[str]:
    return [anyascii(author["family-names"]) for author in reference["authors"]]


def test_it_has_what_the_format_and_archives_with_a_doi_demand() -> None:
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION.keys() >= {"message", "title", "authors", "abstract"}
    for reference in CITATION["references"]:
        assert reference.keys() >= {"type", "title", "authors"}
        assert all(author.keys() == {"family-names", "given-names"} for author in reference["authors"])


def test_it_describes_the_package() -> None:
    for key in ("version", "license", "keywords"):
        assert CITATION[key] == PROJECT[key]


def test_it_names_every_paper_that_is_replayed_with_its_authors() -> None:
    assert sorted(each["title"] for each in REFERENCES) == sorted(meta["title"] for meta in PAPERS.values())
    by_title = {each["title"]: each for each in REFERENCES}
    for meta in PAPERS.values():
        named = [name.replace("Duerr", "Durr") for name in meta["authors"].split(", ")]
        assert family_names(by_title[meta["title"]]) == named


def test_it_names_the_slides_beside_their_paper() -> None:
    [slides] = [each for each in CITATION["references"] if each["type"] == "slides"]
    paper = next(each for each in REFERENCES if each["title"] == slides["title"])
    assert family_names(slides) == family_names(paper)


def test_the_only_doi_is_that_of_the_paper_that_the_package_names() -> None:
    dois = [each["doi"] for each in (CITATION, *CITATION["references"]) if "doi" in each]
    assert [f"https://doi.org/{doi}" for doi in dois] == [PROJECT["urls"]["Paper"]]
