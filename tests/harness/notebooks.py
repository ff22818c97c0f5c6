"""Run the notebooks of docs/notebooks. As a program (`make notebooks`), also store their output in them."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parents[2] / "docs/notebooks"
TIMEOUT_S = 120


def notebooks() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path, folder: Path) -> NotebookNode:
    """Run a notebook in `folder` and return it with its output. Raises `CellExecutionError`."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        coalesce_streams=True,  # how output is split into pieces is random
    )
    client.execute()
    notebook.metadata.pop("language_info", None)  # the version of Python, which does not matter here
    return notebook


def outputs(notebook: NotebookNode) -> list[list[str]]:
    """Return the printed text and the results of each cell."""
    return [[shown(output) for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]


def shown(output: NotebookNode) -> str:
    return output.text if output.output_type == "stream" else output.data["text/plain"]


if __name__ == "__main__":
    for path in notebooks():
        nbformat.write(executed(path, FOLDER), path)
        print(f"written: {path}")
