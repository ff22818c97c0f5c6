"""Admission figures: reproducible, the same on processes and on a cluster, wrong documents refused."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.evaluate import evaluate
from evaluation.executor import Executor, each_done
from evaluation.experiments import experiments, load_experiment, select
from evaluation.kinds.admission.trial import carry_out, trial_of
from evaluation.options import Options
from evaluation.progress import ProgressBar
from loko.document import LABS, InputError

FIG20A = experiments()["loko/fig20a"]


def replay(name: str, out: Path, **options) -> bytes:
    with ProgressBar() as progress:
        (result,) = evaluate(
            select([name], experiments()),
            Options(mode="virtual", seed=1, out=out, quick=True, **options),
            progress,
        )
    assert result.claims
    return (out / f"{result.figure}.parquet").read_bytes()


def test_same_bytes_however_many_processes(tmp_path) -> None:
    for jobs in (1, 2):
        (tmp_path / str(jobs)).mkdir()
    one = replay("fig20a", tmp_path / "1", jobs=1, runs=2)
    assert replay("fig20a", tmp_path / "2", jobs=2, runs=2) == one


@pytest.fixture
def cluster() -> Iterator[str]:
    pytest.importorskip("distributed")
    program = (
        "import sys\n"
        "from distributed import LocalCluster\n"
        "cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol='tcp://',"
        " host='127.0.0.1', dashboard_address=None)\n"
        "print(cluster.scheduler_address, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def test_same_bytes_on_a_dask_cluster(tmp_path, cluster) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    here = replay("fig20a", tmp_path / "here", jobs=1, runs=2)
    there = replay("fig20a", tmp_path / "there", executor=Executor.DASK, scheduler=cluster, runs=2)
    assert re.match(r"tcp://127\.0\.0\.1:\d+", cluster)
    assert there == here


def test_a_cluster_needs_an_address() -> None:
    with pytest.raises(InputError, match="needs --scheduler ADDRESS"):
        list(each_done(str, [1], executor=Executor.DASK))


def test_runs_depend_on_their_number_alone() -> None:
    together = carry_out(trial_of(FIG20A, scheme="full-rate", hops=1, runs=range(0, 4), seed=7))
    apart = carry_out(trial_of(FIG20A, scheme="full-rate", hops=1, runs=range(2, 4), seed=7))
    assert together[2:] == apart
    assert together[0] != together[1]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("rate_kbps: [750, 1000]", "rate_kbps: [1000, 750]", "give the lower rate"),
        ("schemes: [full-rate]", "buffer_factor: 0\nschemes: [full-rate]", "buffer_factor"),
        ("schemes: [full-rate]", "schemes: [twice]", "scheme 'twice' is unknown"),
        ("runs: 1000", "runs: 0", "runs"),
    ],
)
def test_wrong_documents_are_one_line(tmp_path, old, new, says) -> None:
    path = tmp_path / "fig20a.yml"
    text = (LABS / "ring" / "experiments" / "fig20a.yml").read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=says) as error:
        load_experiment(path)
    assert "\n" not in str(error.value)
