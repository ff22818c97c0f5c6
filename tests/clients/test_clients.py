"""Third-party controllers control a live board, with the outcomes recorded in `outcomes.yml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import outcomes
import pytest
import rest_trials
import trials
from bench import Bench
from live_harness import needs_namespaces
from programs import PROGRAMS

CONTROLLERS = {controller.name: controller for controller in outcomes.load()}
TRIALS = {"rest": rest_trials.rest} | {
    trial.__name__: trial
    for trial in (
        trials.learning_switch,
        trials.idle_flows,
        trials.first_packets,
        trials.vlan_with_acl,
        trials.hub,
        trials.no_flows,
        trials.early_burst,
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
SHEET = outcomes.DOCUMENT.parent / "lab-sheet.md"
EXERCISES_OF_POX = (
    ("pox-tutorial", "pox-tutorial-flood"),
    ("pox-multi", "pox-multi-data"),
    ("pox-l3", "pox-l3-data"),
)
CASES = [
    (name, mode)
    for name, controller in CONTROLLERS.items()
    for mode in outcomes.MODES
    if controller.expected(mode)
]


@dataclass(frozen=True, slots=True)
class Observed:
    """The outcome of a trial, and the emulator's log."""

    exercises: dict[str, bool]
    log: str


def attempt(name: str, mode: str, emulator: Path, folder: Path) -> Observed:
    controller = CONTROLLERS[name]
    settings = "".join(f"{key} = {value}\n" for key, value in controller.board.items())
    if mode == "spec":
        settings += 'quirks = "spec"\n'
    cable = CABLES.get(controller.trial)
    asked = frozenset(controller.expected(mode))
    native = mode == "network"
    with Bench(
        PROGRAMS[name], emulator, folder, settings=settings, asked=asked, native=native, cable=cable
    ) as bench:
        exercises = dict(TRIALS[controller.trial](bench))
        return Observed(exercises, bench.board.log())


@pytest.mark.namespaces
@pytest.mark.waits
@needs_namespaces
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_outcomes(case: tuple[str, str], program: Path, tmp_path: Path) -> None:
    name, mode = case
    if missing := PROGRAMS[name].missing():
        pytest.skip(missing)
    controller, observed = CONTROLLERS[name], attempt(name, mode, program, tmp_path)
    expected = controller.expected(mode, observed.log)
    exercises = observed.exercises
    if mode == "spec":  # only those recorded for this mode
        exercises = {name: worked for name, worked in exercises.items() if name in expected}
    assert exercises == expected, observed.log
    if mode == "firmware":  # over the network, a message may be lost before the board can report it
        failed = [it for it in controller.exercises.values() if it.expected(mode) == outcomes.FAILS]
        assert [outcome.log for outcome in failed if outcome.log not in observed.log] == []


def test_every_program_has_outcomes():
    assert set(CONTROLLERS) == set(PROGRAMS)


def test_documentation_tells_the_outcomes():
    text = outcomes.DOCUMENT.read_text()
    tables = outcomes.render(outcomes.load())
    assert outcomes.written(text, tables) == text, "run 'python tests/clients/outcomes.py'"


def test_the_lab_sheet_tells_what_comes_of_poxs_exercises():
    section = SHEET.read_text().split("## The exercises of POX\n")[1]
    rows = dict(re.findall(r"^\| `([a-z0-9_. ]+)` \| (.+) \|$", section, re.MULTILINE))
    assert len(rows) == len(EXERCISES_OF_POX)
    for name, changed in EXERCISES_OF_POX:
        row = rows[CONTROLLERS[name].title.split("`")[1]]
        exercises = CONTROLLERS[name].exercises
        ping = exercises["ARP and ping"]
        assert ping.firmware == outcomes.FAILS
        assert f"“{ping.log}”" in row if ping.log else "| nothing |" in row
        forwards = [it.firmware for by, it in exercises.items() if by.startswith("forwarding")]
        assert ("no ping is answered" in row) == (forwards == [outcomes.FAILS])
        pings = [it.firmware for by, it in CONTROLLERS[changed].exercises.items() if "bytes" not in by]
        assert set(pings) == {outcomes.WORKS}
