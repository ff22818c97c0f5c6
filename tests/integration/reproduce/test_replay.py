"""The replay of points gives the same bytes wherever it is computed, and computes nothing twice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from subprocess import DEVNULL, PIPE

import numpy as np
import pyarrow as pa
import pytest
from dask_cluster import TIMEOUT_S, Cluster, Relay, cluster
from no_rendering import no_rendering
from scripted_runner import ScriptedRunner
from typer.testing import CliRunner

from loko.document import InputError
from loko.switch_model.scenario import Scenario
from loko.topology.lab import load_lab
from loko_testbed.cli.bench import BENCH
from loko_testbed.measure.bench import campaign, processes
from loko_testbed.measure.bench.device_choice import choose
from loko_testbed.measure.bench.procedures import dp_time
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.reproduce.evaluate import evaluate
from loko_testbed.reproduce.figure_types import figure_type_named
from loko_testbed.reproduce.figure_types.experiments import experiments, select
from loko_testbed.reproduce.outcome import OneByOne, Outcome
from loko_testbed.reproduce.replay.tasks import compute_tasks
from loko_testbed.reproduce.result import AxisLabel, read_results
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.senders import SenderChoice
from loko_testbed.tasks.executor import MOST_IN_VAIN, Executor, Workers, each_done, shared_processes
from loko_testbed.tasks.progress import NoProgress
from loko_testbed.tasks.store import TASKS

SIMPLE = SenderChoice(sender="simple")
"""The sender that sends something even in a very short run."""

FIGURES = ("fig17a", "fig15", "fivelive", "openflow13", "fig20a")
"""One figure of each of these kinds: a sweep, a deployment, paths, versions, admission without points."""


def replayed(out: Path, *names: str, runs: int = 2, **options) -> dict[str, bytes]:
    """Replay figures; return the results and records by file name."""
    out.mkdir()
    chosen = {
        "mode": "virtual",
        "seed": 5,
        "out": out,
        "runs": runs,
        "seconds": 0.05,
        "quick": True,
        "senders": SIMPLE,
        **options,
    }
    with no_rendering():
        evaluate(select(names, experiments()), Options(**chosen), NoProgress())
    return {path.name: path.read_bytes() for path in out.iterdir() if path.suffix in {".json", ".parquet"}}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The result of a single process on this machine."""
    return replayed(tmp_path_factory.mktemp("one") / "results", *FIGURES)


@pytest.fixture(scope="module")
def computers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def test_the_same_bytes_on_two_processes(tmp_path: Path, here: dict[str, bytes]) -> None:
    assert len(here) == 2 * len(FIGURES)
    assert replayed(tmp_path / "two", *FIGURES, jobs=2) == here


def test_the_same_bytes_on_a_cluster(tmp_path: Path, here: dict[str, bytes], computers: Cluster) -> None:
    assert re.match(r"tcp://127\.0\.0\.1:\d+", computers.address)
    there = replayed(tmp_path / "there", *FIGURES, executor=Executor.DASK, scheduler=computers.address)
    assert there == here
    assert not (tmp_path / "there" / TASKS).exists()


def test_what_a_killed_worker_had_is_computed_by_another(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster") as computers:
        out = tmp_path / "there"
        killed = threading.Event()

        def kill() -> None:
            until = time.monotonic() + TIMEOUT_S
            while len(list(out.glob(f"{TASKS}/fig3c/*"))) < 3 and time.monotonic() < until:
                time.sleep(0.005)
            computers.workers[0].send_signal(signal.SIGKILL)
            killed.set()

        killer = threading.Thread(target=kill)
        killer.start()
        result = replayed(out, "fig3c", runs=60, executor=Executor.DASK, scheduler=computers.address)
        killer.join()
        assert killed.is_set()
        assert computers.workers[0].wait(TIMEOUT_S) == -signal.SIGKILL
        assert result == replayed(tmp_path / "here", "fig3c", runs=60)


_CLIENT = """
import sys, time
from loko_testbed.tasks.executor import Executor, each_done
from loko.document import InputError
function, tasks = {"abs": (abs, range(-40, 0)), "sleep": (time.sleep, [9])}[sys.argv[1]]
try:
    for place, result in each_done(function, tasks, executor=Executor.DASK, scheduler=sys.argv[2]):
        print(place, result, flush=True)
except InputError as error:
    print(error, flush=True)
"""
"""A client of a cluster, in a separate process because Dask does not close sockets whose connection is
cut."""


@pytest.fixture
def relay(computers: Cluster) -> Iterator[Relay]:
    between = Relay(computers.address)
    yield between
    between.close()


@contextmanager
def client_of(relay: Relay, tasks: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _CLIENT, tasks, relay.address]
    with subprocess.Popen(command, stdout=PIPE, stderr=DEVNULL, text=True) as client:
        yield client


def test_what_a_cluster_had_that_was_lost_is_computed_again(relay: Relay) -> None:
    done = []
    with client_of(relay, "abs") as client:
        assert client.stdout is not None
        for line in client.stdout:
            done.append(tuple(map(int, line.split())))
            if len(done) in (3, 20):
                relay.cut()
    assert sorted(done) == [(place, 40 - place) for place in range(40)], "each once"


def test_a_cluster_that_is_always_lost_is_one_line(relay: Relay) -> None:
    with client_of(relay, "sleep") as client:
        while client.poll() is None:
            relay.cut()
            time.sleep(1)
        told, _ = client.communicate()
    assert told.startswith(f"--scheduler {relay.address}: ")
    assert told.count("\n") == 1


def kill_once(mark: Path) -> int:
    """Kill this process with SIGKILL, unless the mark shows that one has been killed before."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def kill_always(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_had_is_computed_by_another(tmp_path: Path) -> None:
    done = dict(each_done(kill_once, [tmp_path / "mark"] * 6, jobs=2))
    assert sorted(done) == list(range(6))
    assert os.getpid() not in done.values()


def process_of(_: int) -> int:
    return os.getpid()


def test_calls_share_processes() -> None:
    with shared_processes(2):
        first = set(dict(each_done(process_of, range(8), jobs=2)).values())
        second = set(dict(each_done(process_of, range(8), jobs=2)).values())
        more = set(dict(each_done(process_of, range(8), jobs=3)).values())
    assert len(first | second) <= 2
    assert not more & (first | second), "a call for more processes has its own"
    assert not set(dict(each_done(process_of, range(8), jobs=2)).values()) & (first | second)


def test_a_killed_process_is_replaced_in_a_shared_pool(tmp_path: Path) -> None:
    with shared_processes(2):
        before = set(dict(each_done(process_of, range(8), jobs=2)).values())
        done = dict(each_done(kill_once, [tmp_path / "mark"] * 6, jobs=2))
        after = set(dict(each_done(process_of, range(8), jobs=2)).values())
    assert sorted(done) == list(range(6))
    assert not before & after


def count_up(folder: Path, number: int) -> int:
    (folder / str(number)).touch()
    time.sleep(0.01)
    return number


def test_a_call_that_ends_early_leaves_nothing_to_a_shared_pool(tmp_path: Path) -> None:
    with shared_processes(2):
        with closing(each_done(partial(count_up, tmp_path), count(), jobs=2)) as done:
            next(done)
        begun = len(list(tmp_path.iterdir()))
        assert dict(each_done(square, range(4), jobs=2)) == {0: 0, 1: 1, 2: 4, 3: 9}
        assert len(list(tmp_path.iterdir())) == begun


def square(number: int) -> int:
    return number * number


@pytest.mark.parametrize("jobs", [1, 2])
def test_tasks_may_be_without_end(jobs: int) -> None:
    drawn = []

    def endless() -> Iterator[int]:
        for number in count():
            drawn.append(number)
            yield number

    with closing(each_done(square, endless(), jobs=jobs)) as done:
        results = dict(islice(done, 20))
    assert all(result == place**2 for place, result in results.items())
    assert len(drawn) < 40  # only a few tasks are drawn ahead


def test_more_tasks_than_a_cluster_is_given_at_once(
    computers: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loko_testbed.tasks.executor._AHEAD_ON_A_CLUSTER", 3)
    done = dict(each_done(abs, range(-10, 0), executor=Executor.DASK, scheduler=computers.address))
    assert done == {place: 10 - place for place in range(10)}


def test_the_bench_measures_the_same_on_a_cluster(tmp_path: Path, computers: Cluster) -> None:
    some = Scenario(entries=1, packet_sizes_bytes=(64,))
    make = partial(campaign.parts, (dp_time.PROCEDURE,), samples=3, scenario=some)
    measured = []
    for name, where in (
        ("here", Workers()),
        ("there", Workers(executor=Executor.DASK, scheduler=computers.address)),
    ):
        store = SampleStore(tmp_path / name, {"seed": 1})
        processes.run(choose("zodiac-fx"), make, store, seed=1, workers=where, on_part=bool)
        rows = store.rows({part.key for part in make()})
        measured.append(sorted((str(key), size, times.tolist()) for key, size, times, _ in rows))
    assert measured[0] == measured[1]
    assert measured[0]


def test_slices_measure_the_same_on_a_cluster(tmp_path: Path, computers: Cluster) -> None:
    words = ["slice", "--device", "policer-of-one-packet", "--json"]
    here = ["--out", str(tmp_path / "here"), "--jobs", "1"]
    there = ["--out", str(tmp_path / "there"), "--executor", "dask", "--scheduler", computers.address]
    told = [CliRunner().invoke(BENCH, [*words, *where]) for where in (here, there)]
    assert told[0].stdout == told[1].stdout
    assert [done.exit_code for done in told] == [0, 0]


def test_processes_that_are_always_killed_are_one_line() -> None:
    with pytest.raises(InputError, match=rf"--jobs 2: processes were killed {MOST_IN_VAIN} times") as error:
        list(each_done(kill_always, [1, 2], jobs=2))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "runs"), [("fig15", 6), ("fivelive", 2), ("openflow13", 4)])
def test_an_interrupted_figure_goes_on_where_it_was(
    name: str, runs: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No complete run is repeated."""

    def scripted(delays_of) -> ScriptedRunner:
        runner = ScriptedRunner(delays_of)
        monkeypatch.setattr("loko_testbed.reproduce.replay.campaign.VirtualRunner", lambda *_, **__: runner)
        return runner

    def delays(_flow, random: np.random.Generator) -> np.ndarray:
        return random.integers(600_000, 700_000, 20)

    def interrupted(flow, random: np.random.Generator) -> np.ndarray:
        if first.runs == runs:
            raise KeyboardInterrupt
        return delays(flow, random)

    figure = experiments()[f"loko/{name}"]
    options = Options(mode="virtual", seed=1, out=tmp_path, runs=2, seconds=0.1)
    first = scripted(interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(figure_type_named(figure.kind).compute([figure], options, NoProgress()))
    again = scripted(delays)
    list(figure_type_named(figure.kind).compute([figure], options, NoProgress()))
    assert again.runs == 1
    assert not (tmp_path / TASKS).exists()


@pytest.mark.parametrize("there", [[], ["loko/fig14a"]])
def test_a_killed_replay_leaves_results_pictures_and_report_of_the_figures_before(
    there: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def killed(_figure: object) -> None:
        raise KeyboardInterrupt

    options = Options(mode="virtual", seed=1, out=tmp_path, jobs=1)
    figures = experiments()
    for name in there:
        evaluate([figures[name]], options, NoProgress())
    monkeypatch.setattr("loko_testbed.reproduce.figure_types.model.service_curve.compute", killed)
    with pytest.raises(KeyboardInterrupt):
        evaluate([figures["loko/table2"], figures["loko/sec4"]], options, NoProgress())
    written = sorted(["loko/table2", *there])
    assert sorted(result.name for result in read_results(tmp_path)) == written
    assert (tmp_path / "table2.svg").exists()
    page = (tmp_path / "report.html").read_text()
    sections = re.findall(r'<section id="((?:fig|table|sec)\w+)">', page)
    assert sorted(f"loko/{section}" for section in sections) == written


def test_an_interrupted_figure_of_tasks_goes_on_at_the_next_task(tmp_path: Path) -> None:
    """Complete figures keep no tasks."""
    computed: list[int] = []

    def task(number: int) -> int:
        if len(computed) == 2:
            raise KeyboardInterrupt
        computed.append(number)
        return number

    def compute(_figure: object, options: Options, _progress: object) -> tuple[Outcome, pa.Table]:
        numbers = compute_tasks(task, range(4), options, NoProgress())
        outcome = Outcome(chart=None, findings={}, x=AxisLabel(name="", unit=""), runs=sum(numbers))
        return outcome, pa.table({"number": numbers})

    options = Options(mode="virtual", seed=1, out=tmp_path)
    figure_type, figures = OneByOne(compute), [experiments()["loko/attack"]]
    with pytest.raises(KeyboardInterrupt):
        figure_type(figures, options, NoProgress())
    computed.clear()
    with pytest.raises(KeyboardInterrupt):  # another seed has other results
        figure_type(figures, replace(options, seed=2), NoProgress())
    assert computed == [0, 1]
    computed.clear()
    (result,) = figure_type(figures, options, NoProgress())
    assert (computed, result.provenance.runs) == ([2, 3], 6)
    assert not (tmp_path / TASKS).exists()


def test_a_result_that_was_read_back_is_written_with_the_same_bytes(tmp_path: Path) -> None:
    options = {"mode": "virtual", "seed": 1, "out": tmp_path, "runs": 1, "seconds": 0.05, "quick": True}
    options["senders"] = SIMPLE
    written = []
    for _ in range(2):
        with no_rendering():
            evaluate(select(["fig15", "fig17a"], experiments()), Options(**options), NoProgress())
        written.append([(tmp_path / f"{name}.json").read_bytes() for name in ("fig15", "fig17a")])
    assert written[0] == written[1]


def test_labs_go_to_other_processes_as_they_are() -> None:
    lab = load_lab("ring")
    ((_, back),) = each_done(same, [lab], jobs=2)
    assert back == lab
    with pytest.raises(TypeError):
        back.switches["s1"] = None


def same(lab: object) -> object:
    return lab
