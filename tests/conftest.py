"""Fixtures and settings shared by all tests."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from private_machine import private_machine

from benchmarks.builds import build
from loko_testbed.live.background import BackgroundLab
from loko_testbed.live.cores import CorePlan
from loko_testbed.live.exclusion import claim

# A shell without job control, as in CI, starts background jobs with SIGINT ignored, and their children
# inherit that. Tests that press Ctrl-C need SIGINT to be delivered wherever they run.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["stalls", "leaked_processes", "passed_before"]

# Use the same examples in every run, so that whether a commit passes does not depend on earlier runs or on
# the machine. No deadline per example: its duration means nothing on a machine with other work, and pytest
# limits each test.
settings.register_profile(
    "gate",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# Hypothesis also draws constants that it finds in the modules loaded so far. Then a test would see different
# examples when run alone than when run after others.
providers._get_local_constants = Constants
# `make random`: different examples in every run, and more of them. What fails is then kept as an @example.
settings.register_profile("random", settings.get_profile("gate"), derandomize=False, max_examples=500)
settings.load_profile("gate")


def pytest_collection() -> None:
    """Keep the garbage collector from what is imported: nearly all of it lives to the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep the garbage collector from all that lives to the end, which it would visit a hundred times."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 10)
    gc.enable()


@pytest.fixture(scope="session")
def program() -> Path:
    """Build the emulator if necessary and return its path."""
    return build()


@pytest.fixture
def apart() -> Iterator[None]:
    """Give the test a machine of its own, except for the cores."""
    with private_machine():
        yield


@pytest.fixture
def relaxed(apart: None) -> Iterator[CorePlan]:
    """The core plan for labs on the test's own machine, where only relaxed labs are allowed.

    Any other lab would reserve a core of the real machine and lift its limit for real-time threads.
    """
    with claim(relaxed=True):
        yield CorePlan.relaxed_here()


@pytest.fixture(autouse=True)
def _no_lab_outlives_its_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Shut down labs that the test left running in the background, and fail the test if there are any."""
    if request.node.get_closest_marker("namespaces") is None:
        yield
        return
    if "apart" in request.fixturenames:  # then labs are looked for on the test's own machine
        request.getfixturevalue("apart")
    before = {lab.pid for lab in BackgroundLab.all()}
    yield
    left = [lab for lab in BackgroundLab.all() if lab.pid not in before]
    for lab in left:
        lab.down()
    assert not left, f"the test left labs: {', '.join(lab.name for lab in left)}"
