"""The imports between the modules and packages of `loko` and `loko_testbed`.

``python tests/harness/packages.py`` redraws them in docs/architecture.md, and as a picture for the site
(`make drawings`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import networkx as nx

from loko_testbed.reproduce.plots import drawing
from loko_testbed.reproduce.plots.drawing import Box
from loko_testbed.reproduce.plots.rendering import svg_of

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = {"loko": ROOT / "controller/loko", "loko_testbed": ROOT / "testbed/loko_testbed"}
"""The import packages of the product."""
PAGE: Final = ROOT / "docs/architecture.md"
PICTURE: Final = ROOT / "docs/images/packages.svg"
BLOCK: Final = re.compile(r"```mermaid\nflowchart TD\n.*?```\n", re.S)

LIBRARY: Final = {"loko", "loko.notebook_api"}
"""The front door for other programs (docs/library.md). The other modules at the root are the base of all."""


def modules(folder: Path, name: str) -> dict[str, Path]:
    """Return the path of every module of an import package, by its dotted name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [name, *path.relative_to(folder).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each module that a file imports, with the name that it takes of it, or itself if it takes none.

    At any level of nesting, also for types alone.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from ((node.module, f"{node.module}.{alias.name}") for alias in node.names)


def imported_names(path: Path) -> set[str]:
    """Return the modules that a file imports, and the names that it takes of them."""
    return {name for pair in imports(path) for name in pair}


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yield the modules of `known` that a file imports."""
    for module, member in imports(path):
        if member in known or module in known:
            yield member if member in known else module


@cache
def product_graph() -> nx.DiGraph[str]:
    """Return the graph of imports between all modules of the product."""
    return module_graph(FOLDERS)


def module_graph(folders: dict[str, Path]) -> nx.DiGraph[str]:
    """Return the graph of imports between all modules of these import packages."""
    known = {
        name: path for package, folder in folders.items() for name, path in modules(folder, package).items()
    }
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(known)
    for name, path in known.items():
        graph.add_edges_from((name, other) for other in imported(path, known) if other != name)
    return graph


def cycles(graph: nx.DiGraph[str]) -> list[list[str]]:
    """Return the sets of modules that import each other, however long the way round is."""
    return [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]


def package_of(module: str) -> str:
    """Return the package of a module: a folder, or a group at the root of `loko`."""
    name, *rest = module.split(".")
    if module in LIBRARY:
        return "library"
    if rest and (FOLDERS[name] / rest[0]).is_dir():
        return rest[0]
    return "base" if name == "loko" else name


def arrows() -> nx.DiGraph[str]:
    """Return the graph of imports between packages; each edge names one import."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for here, there in product_graph().edges:
        if package_of(here) != package_of(there):
            graph.add_edge(package_of(here), package_of(there), file=f"{here} imports {there}")
    return graph


def drawn(graph: nx.DiGraph[str]) -> str:
    """Return the transitive reduction as Mermaid. Raises `networkx.NetworkXError` if there is a cycle."""
    reduced = nx.transitive_reduction(graph)
    lines = [f"    {here} --> {there}" for here, there in sorted(reduced.edges)]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```", ""])


def pictured() -> nx.DiGraph[str]:
    """Return the graph that the page shows."""
    [block] = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    return nx.DiGraph(re.findall(r"^    (\w+) --> (\w+)$", block, re.M))


def picture(graph: nx.DiGraph[str], file: Path) -> None:
    """Draw the same as SVG: each package above those that it imports, near the middle of its neighbours."""
    reduced = nx.transitive_reduction(graph)
    rows = [sorted(row) for row in nx.topological_generations(reduced)]
    places: dict[str, float] = {}
    for _ in range(8):
        for row in rows:
            middles = {package: _middle(reduced, package, places) for package in row}
            row.sort(key=lambda package: (middles[package], package))
            places |= {package: (number + 0.5) / len(row) for number, package in enumerate(row)}
    boxes = {
        package: Box(middle=(600 * places[package], 52 * number), text=package, fill="#dfe8f7")
        for number, row in enumerate(rows)
        for package in row
    }
    ends = [(_at_edge(boxes[here], 1), _at_edge(boxes[there], -1)) for here, there in sorted(reduced.edges)]
    layers = [*drawing.arrows(ends), *drawing.boxes(list(boxes.values()), cornerRadius=5)]
    file.write_bytes(svg_of(drawing.drawing(layers)))


def _at_edge(box: Box, below: int) -> tuple[float, float]:
    """Return the middle of a box's lower edge, or with -1 of its upper edge."""
    x, y = box.middle
    return x, y + below * box.height / 2


def _middle(graph: nx.DiGraph[str], package: str, places: dict[str, float]) -> float:
    near = [places[name] for name in nx.all_neighbors(graph, package) if name in places]
    return sum(near) / len(near) if near else 0.5


if __name__ == "__main__":
    picture(arrows(), PICTURE)
    PAGE.write_text(BLOCK.sub(drawn(arrows()), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
