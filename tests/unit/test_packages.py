"""The imports between the packages of `evaluation` are those drawn in docs/architecture.md."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import packages
import pytest


def test_no_arrow_is_against_the_picture() -> None:
    allowed = nx.transitive_closure(packages.pictured())
    against = [
        f"{file}: {here} -> {there}"
        for here, there, file in packages.arrows().edges(data="file")
        if not allowed.has_edge(here, there)
    ]
    assert against == []


def test_the_picture_is_drawn_from_the_code() -> None:
    assert packages.drawn(packages.arrows()) in packages.PAGE.read_text(encoding="utf-8"), "make drawings"


def test_the_site_shows_the_same_picture(tmp_path: Path) -> None:
    packages.picture(packages.arrows(), tmp_path / "packages.svg")
    assert (tmp_path / "packages.svg").read_bytes() == packages.PICTURE.read_bytes(), "make drawings"


def test_every_module_is_in_one_package() -> None:
    grouped = [module for modules in packages.PACKAGES.values() for module in modules]
    existing = {path.stem for path in packages.EVALUATION.glob("*.py")} - {"__init__"}
    assert sorted(grouped) == sorted(existing)


def test_what_measures_a_switch_does_not_know_the_cost_model() -> None:
    bench = packages.EVALUATION / "bench"
    model = bench / "cost_model"
    measuring = [
        path for path in bench.rglob("*.py") if path != bench / "commands.py" and model not in path.parents
    ]
    assert len(measuring) > len(list(model.glob("*.py")))
    knowing = [
        path.relative_to(packages.ROOT).as_posix()
        for path in measuring
        if any(name.startswith("evaluation.bench.cost_model") for name in packages.imported(path))
    ]
    assert knowing == []


def test_a_circle_cannot_be_drawn() -> None:
    with pytest.raises(nx.NetworkXError):
        packages.drawn(nx.DiGraph([("live", "bench"), ("bench", "live")]))


def test_the_page_names_every_package() -> None:
    page = packages.PAGE.read_text(encoding="utf-8")
    listed = page[page.index("\n    evaluation/ ") : page.index("\n    labs/ ")]
    folders = {path.parent.name for path in packages.EVALUATION.glob("*/__init__.py")}
    assert {name for name in folders if f"{name}/" not in listed} == set()
