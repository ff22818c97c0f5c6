"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from own_machine import own_machine

from benchmarks.one_board import build
from evaluation.live.background import BackgroundLab
from evaluation.live.cores import CorePlan
from evaluation.live.exclusion import claim

# A shell without job control, as CI has it, starts its background jobs with Ctrl-C ignored, and what they
# start inherits that: tests that press Ctrl-C need it heard, wherever they run.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["stalls", "strays"]

# The same examples at every run: a commit passes or fails, whatever ran before and wherever. How long an
# example takes says nothing on a machine that also runs other work; pytest limits each test.
settings.register_profile(
    "gate",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# Hypothesis would also draw numbers that stand in our modules, as far as they are loaded by then: the same
# test would have other examples alone than after others.
providers._get_local_constants = Constants
# Other examples at every run, more of them: `make random`. What fails is kept as an @example of the test.
settings.register_profile("random", settings.get_profile("gate"), derandomize=False, max_examples=500)
settings.load_profile("gate")


@pytest.fixture(scope="session")
def program() -> Path:
    """The emulator, built if need be."""
    return build()


@pytest.fixture
def apart() -> Iterator[None]:
    """The test has a machine of its own, but for the cores."""
    with own_machine():
        yield


@pytest.fixture
def relaxed(apart: None) -> Iterator[CorePlan]:
    """The plan for labs on a machine of the test's own; only relaxed ones are let on it.

    Another would take a core of the real machine for itself, and lift the limit for real-time threads there.
    """
    with claim(relaxed=True):
        yield CorePlan.relaxed_here()


@pytest.fixture(autouse=True)
def _no_lab_outlives_its_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """A lab in the background ends with the test that started it, and the test fails."""
    if request.node.get_closest_marker("namespaces") is None:
        yield
        return
    if "apart" in request.fixturenames:  # the labs of its machine are meant
        request.getfixturevalue("apart")
    before = {lab.pid for lab in BackgroundLab.all()}
    yield
    left = [lab for lab in BackgroundLab.all() if lab.pid not in before]
    for lab in left:
        lab.down()
    assert not left, f"the test left labs: {', '.join(lab.name for lab in left)}"
