"""A build of the emulator that is killed, interrupted, or meets another build.

An incomplete build does not count and is repeated by the next set-up. Concurrent set-ups run one after
another.
"""

from __future__ import annotations

import os
import signal

import pytest
from building_step import TIMEOUT_S, Step


@pytest.fixture
def step(tmp_path):
    step = Step(tmp_path)
    yield step
    step.end()


def test_the_first_build_killed(step):
    step.kill_while_building()
    assert step.program.read_text() == "half\n"
    assert "building the emulator" in step.run()
    assert step.program.read_text() == "first\n"
    assert step.run() == "", "done already"


def test_a_later_build_killed(step):
    step.run()
    step.source.write_text("second\n")
    step.kill_while_building()
    assert "building the emulator" in step.run(), "neither the half-built nor the earlier program counts"
    assert step.program.read_text() == "second\n"


def test_a_build_killed_whose_sources_were_put_back(step):
    step.run()
    step.source.write_text("second\n")
    step.kill_while_building()
    step.source.write_text("first\n")
    step.run()
    assert step.program.read_text() == "first\n", "not the half-built program of the second sources"


def test_a_python_environment_made_anew_gets_the_module_again(step):
    step.run()
    step.make_environment()
    step.run()
    assert (step.folder / ".venv/module").exists()
    assert step.run() == ""


def test_of_two_at_once_the_second_waits_says_for_whom_and_finds_nothing_to_do(step):
    first = step.begin_building()
    second = step.begin()
    waiting = second.stderr.readline()
    assert waiting == (
        f"setup: another set-up of this folder is at work (process {first.pid}: bash {step.script}): "
        "waiting until it has ended\n"
    )
    assert second.poll() is None

    step.go_on()
    said, _ = first.communicate(timeout=TIMEOUT_S)
    assert (first.returncode, said) == (0, "setup: building the emulator (Rust, release)\n")
    said, _ = second.communicate(timeout=TIMEOUT_S)
    assert (second.returncode, said) == (0, ""), "nothing was left to be built"
    assert step.builds() == 1


def test_the_children_of_a_killed_set_up_are_waited_for_and_what_they_left_does_not_count(step):
    first = step.begin_building()
    first.kill()  # kills only this process; its compiler continues
    first.wait()
    second = step.begin()
    assert "(process " in (waiting := second.stderr.readline()), waiting
    assert f"process {first.pid}:" not in waiting, "it is dead; its child is named"
    assert "programs/cargo" in waiting

    step.go_on()
    said, _ = second.communicate(timeout=TIMEOUT_S)
    assert (second.returncode, said) == (0, "setup: building the emulator (Rust, release)\n")
    assert step.builds() == 2
    assert step.program.read_text() == "first\n"


def test_who_waits_for_too_long_is_told_whom_to_end(step):
    first = step.begin_building()
    second = step.begin(LOKO_SETUP_WAIT_S="0")
    said, errors = second.communicate(timeout=TIMEOUT_S)
    assert (second.returncode, said) == (1, "")
    assert errors.splitlines()[-1] == (
        "setup: another set-up of this folder is still at work after 0 s: "
        f"end it (process {first.pid}: bash {step.script}), then repeat"
    )


def test_the_lock_ends_with_the_set_up_and_not_with_its_file(step):
    step.run()
    (step.folder / ".setup/lock").unlink()  # as `make clean` does
    assert step.run() == ""


def test_ctrl_c_during_a_build_is_one_line_and_the_next_set_up_builds(step):
    running = step.begin_building()
    os.killpg(running.pid, signal.SIGINT)
    said, errors = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 130
    assert said == "setup: building the emulator (Rust, release)\n"
    assert errors == "setup: interrupted: repeat it to go on; what is done is kept\n"
    step.go_on()
    step.run()
    assert step.program.read_text() == "first\n"
