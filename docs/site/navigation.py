"""The navigation: the sections of the index, so that a page is listed in one place only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_REFERENCE = ["site/commands", "site/library"]
_SECTION = re.compile(r"^## (.+)$", re.M)
_PAGE = re.compile(r"\]\(((?:\.\./)?[A-Za-z0-9/-]+)\.md\)")


def sections(index: str) -> dict[str, list[str]]:
    """Return each section of an index page with the pages that it links to, without suffix."""
    _, *parts = _SECTION.split(index)
    return {
        title: list(dict.fromkeys(_PAGE.findall(text)))
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }


def _add_toctrees(app: Sphinx, name: str, source: list[str]) -> None:
    if name != app.config.root_doc:
        return
    for title, pages in {
        "Begin": ["../README", "../CHANGELOG"],
        **sections(source[0]),
        "Reference": _REFERENCE,
    }.items():
        listed = "\n".join(pages)
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{listed}\n```\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", _add_toctrees)
    return {"parallel_read_safe": True}
