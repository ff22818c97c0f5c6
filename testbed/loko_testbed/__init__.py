"""Replay the papers' evaluation: run, capture, analyse, draw, report.

``lab -> traffic -> records -> figure -> report``. Virtual, live and hardware runs yield the same records
(`loko_testbed.simulation.runner.RunRecords`), so each analysis is written once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loko_testbed.notebook_api import ReplayedFigure, evaluate, open_figure

__all__ = ["ReplayedFigure", "evaluate", "open_figure"]


def __getattr__(name: str) -> Any:
    """Import a name of `loko_testbed.notebook_api` on first use: every module imports this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.notebook_api"), name)
