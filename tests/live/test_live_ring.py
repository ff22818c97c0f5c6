"""The ring in real time: admitted flows keep their guarantees, and a killed run leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from live_harness import Machine, descendants, left, named, needs_namespaces, wait_until

from loko.document import LABS
from loko_testbed.reproduce.figure_types.experiments import load_experiment
from loko_testbed.reproduce.figure_types.traffic.compute import FIGURE_TYPE
from loko_testbed.reproduce.figure_types.traffic.document import PathsFigure
from loko_testbed.reproduce.figure_types.traffic.path_admission import admit_paths
from loko_testbed.simulation.options import Options
from loko_testbed.tasks.progress import NoProgress

pytestmark = [pytest.mark.live, pytest.mark.namespaces, needs_namespaces]


def figure(name: str) -> PathsFigure:
    document = load_experiment(LABS / "ring" / "experiments" / f"{name}.yml")
    assert isinstance(document, PathsFigure)
    return document


_TRIES = 3
_MANY = 0.01


def _is_drowned(findings: Mapping[str, float]) -> bool:
    """Return whether host stalls explain so many losses that the rest says nothing about the boards."""
    lost, unexplained = findings["lost_packets"], findings["unexplained_packets"]
    return lost > _MANY * findings["sent_packets"] and unexplained < _MANY * lost


@pytest.mark.parametrize(("name", "switches"), [("fivelive", 5), ("ringlive", 31)])
def test_admitted_flows_keep_their_guarantee_or_the_host_explains_it(name, switches, tmp_path) -> None:
    for attempt in range(_TRIES):
        options = Options(mode="live", seed=1, out=tmp_path / str(attempt), runs=1, seconds=1.0)
        options.out.mkdir()
        (outcome,) = FIGURE_TYPE.compute([figure(name)], options, NoProgress())
        if not _is_drowned(outcome.findings):
            break
    else:
        pytest.skip(f"the host's stalls cost packets in all of {_TRIES} runs: {outcome.findings}")
    admitted = admit_paths(figure(name), seed=1)
    assert len(outcome.boards) == switches
    rows = pq.read_table(options.out / f"{name}.parquet")
    assert set(rows["flow"].to_pylist()) == set(range(len(admitted.flows)))
    assert outcome.findings["sent_packets"] > 100 * len(admitted.flows)
    assert outcome.findings["unexplained_packets"] == 0, outcome.findings
    for board in outcome.boards.values():
        assert board["forwarded"] <= board["received"]


RUN_FOR_EVER = """
import signal, sys
sys.path[:0] = {path!r}
from test_live_ring import admit_paths, figure
from loko_testbed.live.cores import CorePlan
from loko_testbed.live.runner import LiveRunner
admitted = admit_paths(figure("fivelive"), seed=1)
cores = CorePlan.relaxed_here()
with LiveRunner(admitted.lab, admitted.flows, allocation="packet-granular", cores=cores) as runner:
    print("up", flush=True)
    runner.run(admitted.senders, seconds=100, seed=1)
"""


@pytest.mark.waits
@pytest.mark.usefixtures("apart")
def test_nothing_is_left_of_separate_emulators_when_a_run_is_killed() -> None:
    before = Machine.now()
    script = RUN_FOR_EVER.format(path=[*sys.path, str(Path(__file__).parent)])
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            wait_until(lambda: "mgen" in {name for name, _ in named(process.pid)}, "mgen runs")
            assert sum(name == "zodiac-fx" for name, _ in named(process.pid)) == 5
            tree = descendants(process.pid)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=30)
    wait_until(lambda: not left(tree), f"all of {len(tree)} processes have ended")
    wait_until(lambda: Machine.now() == before, f"the machine is as before: {before}, {Machine.now()}")
