"""Fixtures of pytest for whoever tests a controller against emulated boards; docs/library.md shows them.

Every run of pytest loads this module, so it loads the emulator only where a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from loko.topology.lab import Lab
    from loko_testbed.live.emulation.for_tests import DrivenBoard, RunningNetwork
    from loko_testbed.simulation.quirks import Quirks

_MARKER: Final = "quirks"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f'{_MARKER}("spec"), {_MARKER}(without=[names]), {_MARKER}(only=[names]):'
        " deviations from OpenFlow that the emulated boards of the test have (docs/quirks.md)",
    )


@pytest.fixture
def board_quirks(request: pytest.FixtureRequest) -> Quirks | None:
    """The deviations of the test's boards by its marker, or else by the environment, if either names some."""
    from loko_testbed.simulation.quirks import check_quirks, from_environment  # noqa: PLC0415

    marker = request.node.get_closest_marker(_MARKER)
    if marker is None:
        return from_environment()
    quirks: Quirks = marker.args[0] if marker.args else marker.kwargs
    check_quirks(quirks, f"marker {_MARKER}")
    return quirks


@pytest.fixture
def emulated_board(board_quirks: Quirks | None) -> DrivenBoard:
    """A Zodiac FX in virtual time, with an OpenFlow 1.0 session; the test is its controller."""
    from loko_testbed.live.emulation.for_tests import DrivenBoard  # noqa: PLC0415

    return DrivenBoard(quirks=board_quirks or "firmware")


@pytest.fixture
def emulated_network(
    board_quirks: Quirks | None,
) -> Iterator[Callable[[Lab | str, tuple[str, int]], RunningNetwork]]:
    """Start a lab, by name or path, whose boards connect to the controller at (address, TCP port).

    It runs in real time, without root, until the test ends. Its boards have the deviations that the lab says,
    unless the test's marker or the environment names others.
    """
    from loko.topology.lab import Lab, load_lab  # noqa: PLC0415
    from loko_testbed.live.emulation.for_tests import RunningNetwork  # noqa: PLC0415
    from loko_testbed.simulation.quirks import with_quirks  # noqa: PLC0415

    with ExitStack() as running:

        def start(lab: Lab | str, controller: tuple[str, int]) -> RunningNetwork:
            loaded = lab if isinstance(lab, Lab) else load_lab(lab)
            if board_quirks is not None:
                loaded = with_quirks(loaded, board_quirks)
            return running.enter_context(RunningNetwork(loaded, controller))

        yield start
