"""The import graph of the packages in `evaluation`.

``python tests/packages.py`` redraws it in docs/architecture.md, and as a picture for the site (`make
drawings`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import matplotlib as mpl
import networkx as nx
from matplotlib.figure import Figure

from evaluation.pictures.canvas import EDGE, STYLE

ROOT: Final = Path(__file__).resolve().parents[1]
EVALUATION: Final = ROOT / "evaluation"
PAGE: Final = ROOT / "docs/architecture.md"
PICTURE: Final = ROOT / "docs/images/packages.svg"
BLOCK: Final = re.compile(r"```mermaid\nflowchart TD\n.*?```\n", re.S)

PACKAGES: Final = {
    "commands": {"benching", "cli", "commands", "scheduling", "serving", "smoke", "hardware"},
    "publish": {"evaluate", "report", "report_sources"},
    "results": {
        *("analysis", "chart", "claims", "facts", "figure", "finding_checks", "flow_figure", "folder"),
        *("guarantees", "outcome", "records", "result", "runs", "verdicts"),
    },
    "runs": {"options", "planned_control", "quirks", "runner", "senders", "traffic", "virtual"},
    "work": {"executor", "files", "progress", "provenance"},
}
"""The modules at the root of `evaluation`, in groups that count as packages. Each subfolder is one, too."""


def package_of(module: str) -> str:
    """Return the package of a module `evaluation.NAME…`."""
    name = module.split(".")[1]
    if (EVALUATION / name).is_dir():
        return name
    return next(package for package, modules in PACKAGES.items() if name in modules)


def arrows() -> nx.DiGraph[str]:
    """Return the graph of imports between packages; each edge names one importing file."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for path in sorted(EVALUATION.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if module == "evaluation.__init__":
            continue
        here = package_of(module)
        graph.add_node(here)
        for name in imported(path):
            if (there := package_of(name)) != here:
                graph.add_edge(here, there, file=path.relative_to(ROOT).as_posix())
    return graph


def imported(path: Path) -> Iterator[str]:
    """Yield the modules of the package that a file imports, at any level of nesting."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("evaluation."))
        elif isinstance(node, ast.ImportFrom) and node.module == "evaluation":
            yield from (f"evaluation.{name.name}" for name in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evaluation."):
            yield str(node.module)


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
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 0.72 * len(rows)))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, 1)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.axis("off")
        height = {package: number for number, row in enumerate(rows) for package in row}
        for here, there in sorted(reduced.edges):
            axes.annotate(
                "",
                xy=(places[there], height[there] - 0.22),
                xytext=(places[here], height[here] + 0.22),
                arrowprops={"arrowstyle": "-|>", "color": EDGE, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0},
            )
        box = {"boxstyle": "round,pad=0.35", "facecolor": "#dfe8f7", "edgecolor": EDGE, "linewidth": 0.8}
        for package, place in sorted(places.items()):
            axes.text(
                place, height[package], package, ha="center", va="center", color=EDGE, fontsize=9, bbox=box
            )
        figure.savefig(file, facecolor="white", metadata={"Date": None, "Creator": None})


def _middle(graph: nx.DiGraph[str], package: str, places: dict[str, float]) -> float:
    near = [places[name] for name in nx.all_neighbors(graph, package) if name in places]
    return sum(near) / len(near) if near else 0.5


if __name__ == "__main__":
    picture(arrows(), PICTURE)
    PAGE.write_text(BLOCK.sub(drawn(arrows()), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
