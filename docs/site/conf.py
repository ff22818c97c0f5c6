"""The documentation as a site: the pages of `docs` in the order of their index, and references."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(CHECKOUT), str(CHECKOUT / "controller")]

project = "The Loko testbed"
copyright = "the Loko testbed's authors"  # noqa: A001
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "navigation", "command_reference"]

exclude_patterns = [".*", "controller", "dist", "labs", "results", "switch-emulator", "testbed", "tests"]
include_patterns = [
    "README.md",
    "ARTIFACT.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/*.md",
    "docs/site/*.md",
]
root_doc = "docs/README"
language = "en"
default_role = "literal"  # as the docstrings use it

myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 6

autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": False}

suppress_warnings = ["ref.python"]  # `bytes` is a type, and an attribute of two classes of the emulator

html_theme = "furo"
html_title = project
html_last_updated_fmt = ""
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = "$ "
html_extra_path = ["index.html"]


_MERMAID = re.compile(r"```mermaid\n.*?```\n", re.S)
_PACKAGES = "![The Python packages, each above those that it imports](images/packages.svg)\n"


def _draw_packages(_app: Sphinx, name: str, source: list[str]) -> None:
    """Show the one drawing in Mermaid as the picture that is made with it: Mermaid takes a browser."""
    if name == "docs/architecture":
        source[0] = _MERMAID.sub(_PACKAGES, source[0])


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _draw_packages)
