"""The notebooks run, and print what is stored in them."""

from __future__ import annotations

import nbformat
import pytest
from notebooks import executed, notebooks, outputs

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
"""Warnings from the client of the notebook kernel."""


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path, tmp_path):
    kept = nbformat.read(path, as_version=4)
    assert outputs(executed(path, tmp_path)) == outputs(kept)
    assert any(outputs(kept)), "it shows something"


def test_there_are_notebooks_to_run():
    assert len(notebooks()) == 5
