"""The command `loko docs`: where the documentation of this version is."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Final

import typer

from loko.document import DATA, find

_PAGES: Final = DATA / "docs"
_SITE: Final = DATA / "dist" / "site" / "docs"
"""The pages that `make site` builds in a checkout."""


def docs(
    page: Annotated[
        str, typer.Argument(help="A page, such as planning; README is the index of all pages.")
    ] = "README",
    *,
    open_it: Annotated[bool, typer.Option("--open", help="Also open it in the browser.")] = False,
) -> None:
    """Print the path of the documentation, or of one of its pages.

    It is part of the installation, and needs no network. In a checkout where `make site` has built the site,
    the path is that of the site's page; elsewhere it is that of the Markdown.

    Example: less $(loko docs planning)
    """
    path = _path_of(page)
    typer.echo(path)
    if open_it:
        webbrowser.open(path.as_uri())


def _path_of(page: str) -> Path:
    """Return the file of a page. Raises `InputError`, listing the pages, if there is none."""
    text = find(page, _PAGES, ".md", "page")
    built = _SITE / f"{text.stem}.html"
    return built if built.is_file() else text
