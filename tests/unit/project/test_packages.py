"""The imports between packages are those drawn in docs/architecture.md, and no modules import each other."""

from __future__ import annotations

import re
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


def test_no_modules_import_each_other() -> None:
    assert packages.cycles(packages.product_graph()) == []


def test_a_cycle_deep_inside_is_found(tmp_path: Path) -> None:
    """The way round leads through three levels of folders, and one import is for types alone."""
    for path, text in {
        "one/__init__.py": "",
        "one/two/__init__.py": "from own.one.two import three",
        "one/two/three/__init__.py": "",
        "one/two/three/deep.py": "import typing\nif typing.TYPE_CHECKING:\n    from own import other",
        "one/two/three/apart.py": "from own.one.two.three.deep import name",
        "other.py": "def late():\n    from own.one.two.three import apart",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    deep = "own.one.two.three"
    assert packages.cycles(packages.module_graph({"own": tmp_path})) == [
        [f"{deep}.apart", f"{deep}.deep", "own.other"]
    ]


def test_loko_knows_nothing_of_the_testbed() -> None:
    """It names no module of it either, such as in a command that starts a program."""
    naming = [
        str(path.relative_to(packages.ROOT))
        for path in packages.FOLDERS["loko"].rglob("*.py")
        if "loko_testbed" in path.read_text(encoding="utf-8")
    ]
    assert naming == []


def test_only_the_command_line_imports_typer() -> None:
    importing = {
        packages.package_of(name)
        for folder, path in packages.FOLDERS.items()
        for name, file in packages.modules(path, folder).items()
        if any(line.startswith(("import typer", "from typer")) for line in file.read_text().splitlines())
    }
    assert importing == {"cli"}


def test_what_measures_a_switch_does_not_know_the_cost_model() -> None:
    bench = packages.FOLDERS["loko_testbed"] / "measure/bench"
    model = bench / "cost_model"
    known = packages.modules(bench, "loko_testbed.measure.bench")
    measuring = [path for path in bench.rglob("*.py") if model not in path.parents]
    assert len(measuring) > len(list(model.glob("*.py")))
    knowing = [
        path.relative_to(packages.ROOT).as_posix()
        for path in measuring
        if any("cost_model" in name for name in packages.imported(path, known))
    ]
    assert knowing == []


def test_a_circle_cannot_be_drawn() -> None:
    with pytest.raises(nx.NetworkXError):
        packages.drawn(nx.DiGraph([("live", "bench"), ("bench", "live")]))


@pytest.mark.parametrize("name", packages.FOLDERS)
def test_the_page_names_every_package(name: str) -> None:
    page = packages.PAGE.read_text(encoding="utf-8")
    folder = packages.FOLDERS[name]
    listed = page[page.index(f"\n    {folder.relative_to(packages.ROOT)}/ ") :]
    listed = listed[: re.search(r"\n    \w", listed[1:]).end()]
    packaged = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert {package for package in packaged if f"{package}/" not in listed} == set()
