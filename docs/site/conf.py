"""The documentation as a site: the pages of `docs` in the order of their index, and references."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pygments.lexers.special import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(CHECKOUT), str(CHECKOUT / "controller")]

project = "The Loko testbed"
copyright = "the Loko testbed's authors"  # noqa: A001
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "navigation", "command_reference"]

exclude_patterns = [".*", "controller", "dist", "evaluation", "labs", "results", "switch-emulator", "tests"]
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "docs/site/*.md"]
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


def setup(app: Sphinx) -> None:
    """Called by Sphinx. Mermaid's drawings stay text: to draw them takes a network or a browser."""
    app.add_lexer("mermaid", TextLexer)
