"""Fixtures of pytest for whoever tests a controller against emulated boards; docs/library.md shows them.

Every run of pytest loads this module, so it loads the emulator only where a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from evaluation.emulation.for_tests import DrivenBoard, RunningNetwork
    from loko.lab import Lab


@pytest.fixture
def emulated_board() -> DrivenBoard:
    """A Zodiac FX in virtual time, with an OpenFlow 1.0 session; the test is its controller."""
    from evaluation.emulation.for_tests import DrivenBoard  # noqa: PLC0415

    return DrivenBoard()


@pytest.fixture
def emulated_network() -> Iterator[Callable[[Lab | str, tuple[str, int]], RunningNetwork]]:
    """Start a lab, by name or path, whose boards connect to the controller at (address, TCP port).

    It runs in real time, without root, until the test ends.
    """
    from evaluation.emulation.for_tests import RunningNetwork  # noqa: PLC0415
    from loko.lab import Lab, load_lab  # noqa: PLC0415

    with ExitStack() as running:

        def start(lab: Lab | str, controller: tuple[str, int]) -> RunningNetwork:
            loaded = lab if isinstance(lab, Lab) else load_lab(lab)
            return running.enter_context(RunningNetwork(loaded, controller))

        yield start
