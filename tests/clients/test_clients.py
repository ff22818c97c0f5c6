"""Controllers that others wrote drive a live board; what comes of it is what `outcomes.yml` says."""

from __future__ import annotations

import os
from pathlib import Path

import outcomes
import pytest
import rest_trials
import trials
from bench import Bench
from programs import PROGRAMS

from benchmarks.one_board import build

CONTROLLERS = {controller.name: controller for controller in outcomes.load()}
TRIALS = {"rest": rest_trials.rest} | {
    trial.__name__: trial
    for trial in (
        trials.learning_switch,
        trials.idle_flows,
        trials.hub,
        trials.no_flows,
        trials.queues,
        trials.prepared_flows,
        trials.newer_version,
        trials.topology,
        trials.firewall,
        trials.barriers,
        trials.asking_controller,
    )
}
CABLES = {"topology": (1, 2)}
CASES = [
    pytest.param(name, mode, id=f"{name}-{mode}")
    for name, controller in CONTROLLERS.items()
    for mode in ("firmware", "spec")
    if controller.expected(mode)
]


@pytest.fixture(scope="module")
def emulator():
    return build(release=False)


@pytest.mark.namespaces
@pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces and raw sockets: needs root")
@pytest.mark.xdist_group("live")
@pytest.mark.parametrize(("name", "mode"), CASES)
def test_outcomes(name: str, mode: str, emulator: Path, tmp_path: Path) -> None:
    controller, program = CONTROLLERS[name], PROGRAMS[name]
    if missing := program.missing():
        pytest.skip(missing)
    expected = controller.expected(mode)
    settings = "".join(f"{key} = {value}\n" for key, value in controller.board.items())
    if mode == "spec":
        settings += 'quirks = "spec"\n'
    cable = CABLES.get(controller.trial)
    asked = frozenset(expected)
    with Bench(program, emulator, tmp_path, settings=settings, asked=asked, cable=cable) as bench:
        observed = dict(TRIALS[controller.trial](bench))
        log = bench.board.log()
    if mode == "spec":  # what works with the firmware is not told again
        observed = {exercise: worked for exercise, worked in observed.items() if exercise in expected}
    assert observed == expected, log
    if mode == "firmware":
        for exercise in controller.exercises.values():
            assert exercise.log in log


def test_every_program_has_outcomes():
    assert set(CONTROLLERS) == set(PROGRAMS)


def test_documentation_tells_the_outcomes():
    text = outcomes.DOCUMENT.read_text()
    tables = outcomes.render(outcomes.load())
    assert outcomes.written(text, tables) == text, "run 'python tests/clients/outcomes.py'"
