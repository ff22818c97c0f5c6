"""The private machine of a test of labs: nothing is visible outside, and no lab in it reserves a core."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest
from live_harness import Machine, needs_namespaces
from private_machine import private_machine

from loko_testbed.live.exclusion import claim
from loko_testbed.live.realtime_limit import LIMIT
from loko_testbed.live.state import LABS
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.executor import each_done

pytestmark = [pytest.mark.namespaces, pytest.mark.waits, needs_namespaces]

TRACES = """
ip link add near type veth peer name far
ip netns add left
mkdir -p "$1"
touch "$1/left.json" /dev/shm/left
echo -1 >"$2"
"""


def test_nothing_is_seen_outside_though_a_thread_that_began_inside_goes_on(apart: None) -> None:
    folder, before = Path.cwd(), Machine.now()
    ended = threading.Event()
    with private_machine():
        subprocess.run(["sh", "-ec", TRACES, "traces", str(LABS), str(LIMIT)], check=True)
        lasting = threading.Thread(target=ended.wait)
        lasting.start()
        there = Machine.now()
    try:
        assert Machine.now() == before
        assert Path.cwd() == folder
    finally:
        ended.set()
        lasting.join()
    assert "near" in there.interfaces
    assert "left" in there.named_namespaces
    assert (there.shared_memory, there.state_files, there.realtime_limit) == (("left",), ("left.json",), "-1")


def test_tasks_are_computed_before_there_and_afterwards() -> None:
    def computed() -> list[tuple[int, int]]:
        return sorted(each_done(abs, (-5, -7), jobs=2))

    before = computed()
    with private_machine():
        there = computed()
    assert before == there == computed() == [(0, 5), (1, 7)]


def test_only_relaxed_labs_are_let_on_it(relaxed: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loko_testbed.live.exclusion._PATIENCE_S", 0.0)
    with pytest.raises(RunError, match="another live lab runs"):
        claim()
    with claim(relaxed=True):
        pass
