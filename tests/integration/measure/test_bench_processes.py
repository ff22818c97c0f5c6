"""A campaign on several processes gives the same samples as on one, and loses nothing when it is killed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest

from loko.switch_model.scenario import Scenario
from loko_testbed.measure.bench import campaign, processes
from loko_testbed.measure.bench.device_choice import choose
from loko_testbed.measure.bench.part import Combinations, Design, Key, MeasurementPart
from loko_testbed.measure.bench.procedures import EVERY_PROCEDURE, dp_time
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.executor import Workers

SCENARIO = Scenario(entries=17)
MAKE = partial(campaign.parts, (dp_time.PROCEDURE,), samples=4, scenario=SCENARIO)
PARTS, SIZES = 192, 7

SCRIPT = """
import signal
import sys
from pathlib import Path
from test_bench_processes import measure

def wait_to_be_killed(count):
    if count == 3:
        print("three parts", flush=True)
        signal.pause()

measure(Path(sys.argv[1]), jobs=2, on_count=wait_to_be_killed)
"""


def measure(
    path: Path, *, jobs: int, make: processes.Parts = MAKE, on_count: Callable[[int], object] = bool
) -> int:
    """Measure what a store lacks; return how many parts were reported. `on_count` gets each new count."""
    told: list[Key] = []

    def on_part(part: MeasurementPart) -> None:
        told.append(part.key)
        on_count(len(told))

    store = SampleStore(path, {"seed": 1})
    processes.run(choose("zodiac-fx"), make, store, seed=1, workers=Workers(jobs=jobs), on_part=on_part)
    assert len(told) == len(set(told))
    return len(told)


def samples(path: Path) -> dict[tuple[Key, int], list[int]]:
    store = SampleStore(path, {"seed": 1})
    every_part = [
        part for design in Design for part in campaign.parts(EVERY_PROCEDURE, samples=1, design=design)
    ]
    keys = {part.key for part in every_part}
    return {(part, size): times.tolist() for part, size, times, _ in store.rows(keys)}


def test_two_processes_measure_what_one_does(tmp_path: Path) -> None:
    some = partial(
        campaign.parts,
        (dp_time.PROCEDURE,),
        samples=3,
        scenario=Scenario(entries=1, packet_sizes_bytes=(64,)),
    )
    assert measure(tmp_path / "one", jobs=1, make=some) == measure(tmp_path / "two", jobs=2, make=some)
    assert samples(tmp_path / "one") == samples(tmp_path / "two")


def test_threads_of_a_worker_have_a_board_each() -> None:
    """A Dask worker uses several threads by default."""
    blob = pickle.dumps(MAKE)
    tasks = [processes._PartTask("zodiac-fx", 1, blob, part.key) for part in MAKE()[:12]]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(processes._measured, tasks))
    for beside, again in zip(together, map(processes._measured, tasks), strict=True):
        assert [(size, times.tolist()) for size, (times, _) in beside.items()] == [
            (size, times.tolist()) for size, (times, _) in again.items()
        ]


def test_a_campaign_that_is_killed_loses_no_finished_combination(tmp_path: Path) -> None:
    path = tmp_path / "killed"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", SCRIPT, str(path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "three parts\n"
            workers = psutil.Process(process.pid).children(recursive=True)
            assert len(workers) >= 2
        finally:
            process.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(workers, timeout=120)
    assert not alive
    before = samples(path)
    assert 3 * SIZES <= len(before) < PARTS * SIZES
    store = SampleStore(path, {"seed": 1})
    complete = store.complete_among(part.key for part in MAKE())
    assert measure(path, jobs=2) == PARTS
    after = samples(path)
    assert len(after) == PARTS * SIZES
    assert {key: after[key] for key in before} == before
    assert complete
    measure(tmp_path / "whole", jobs=1)
    assert samples(tmp_path / "whole") == after


@pytest.mark.timeout(60)
def test_an_error_of_a_worker_ends_the_campaign_in_one_line(tmp_path: Path) -> None:
    for number in range(8):  # whether pools wait for ever for cancelled tasks depends on chance
        path = tmp_path / f"failing {number}"
        with pytest.raises(RunError, match="no frame of part 30"):
            measure(path, jobs=2, make=failing_parts)
        store = SampleStore(path, {"seed": 1})
        assert 0 < len(store.complete_among(part.key for part in failing_parts())) < 60


def failing_parts() -> list[MeasurementPart]:
    def fail(number: int, *_: object) -> Combinations:
        if number == 30:
            raise RunError("no frame of part 30")
        return {}

    return [MeasurementPart(Key("idle", (f"part {number}",)), partial(fail, number)) for number in range(60)]
