"""The imports between the rooms of `evaluation` are those drawn in docs/architecture.md."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest
import rooms


def test_no_arrow_is_against_the_picture() -> None:
    allowed = nx.transitive_closure(rooms.pictured())
    against = [
        f"{file}: {here} -> {there}"
        for here, there, file in rooms.arrows().edges(data="file")
        if not allowed.has_edge(here, there)
    ]
    assert against == []


def test_the_picture_is_drawn_from_the_code() -> None:
    assert rooms.drawn(rooms.arrows()) in rooms.PAGE.read_text(encoding="utf-8"), "make drawings"


def test_the_site_shows_the_same_picture(tmp_path: Path) -> None:
    rooms.picture(rooms.arrows(), tmp_path / "rooms.svg")
    assert (tmp_path / "rooms.svg").read_bytes() == rooms.PICTURE.read_bytes(), "make drawings"


def test_every_module_is_in_one_room() -> None:
    of_rooms = [module for modules in rooms.ROOMS.values() for module in modules]
    there = {path.stem for path in rooms.PACKAGE.glob("*.py")} - {"__init__"}
    assert sorted(of_rooms) == sorted(there)


def test_what_measures_a_switch_does_not_know_the_cost_model() -> None:
    bench = rooms.PACKAGE / "bench"
    model = bench / "cost_model"
    measuring = [
        path for path in bench.rglob("*.py") if path != bench / "commands.py" and model not in path.parents
    ]
    assert len(measuring) > len(list(model.glob("*.py")))
    knowing = [
        path.relative_to(rooms.ROOT).as_posix()
        for path in measuring
        if any(name.startswith("evaluation.bench.cost_model") for name in rooms.imported(path))
    ]
    assert knowing == []


def test_a_circle_cannot_be_drawn() -> None:
    with pytest.raises(nx.NetworkXError):
        rooms.drawn(nx.DiGraph([("live", "bench"), ("bench", "live")]))


def test_the_page_names_every_room() -> None:
    page = rooms.PAGE.read_text(encoding="utf-8")
    listed = page[page.index("\n    evaluation/ ") : page.index("\n    labs/ ")]
    packages = {path.parent.name for path in rooms.PACKAGE.glob("*/__init__.py")}
    assert {name for name in packages if f"{name}/" not in listed} == set()
