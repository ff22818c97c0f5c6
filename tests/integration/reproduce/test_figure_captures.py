"""Captures of the runs of figures: `loko evaluate --pcap`, compared with the figure's records."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from no_rendering import no_rendering
from tshark import dissected, needs_tshark
from typer.testing import CliRunner

from loko_testbed.cli.main import app

SHORT = ("fig17a", "--quick", "--seconds", "0.3", "--sender", "simple", "--jobs", "1")
ARRIVED = re.compile(r"flow (\S+), packet (\d+), guarantee \S+ ms, arrived after (\S+) ms(, LATE)?")


def evaluated(folder: Path, *options: str) -> None:
    with no_rendering():
        answer = CliRunner().invoke(app, ["evaluate", *SHORT, "--out", str(folder / "out"), *options])
    assert answer.exit_code == 0, answer.output


def refusal(*options: str) -> str:
    answer = CliRunner().invoke(app, ["evaluate", *options])
    assert (answer.exit_code, answer.stderr.count("\n")) == (2, 1), answer.output
    return answer.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replay a figure twice, first with captures of two runs of each point, then with those of one."""
    folder = tmp_path_factory.mktemp("captures")
    evaluated(folder, "--pcap", str(folder / "two"), "--pcap-runs", "2")
    evaluated(folder, "--pcap", str(folder / "one"))
    return folder


def test_each_point_and_run_has_a_folder(folder: Path) -> None:
    points = {row["point"] for row in pq.read_table(folder / "out/fig17a.parquet").to_pylist()}
    assert len(points) > 2
    runs = {f"fig17a/point-{point:g}/run-{run}" for point in points for run in range(2)}
    made = {str(path.relative_to(folder / "two")) for path in (folder / "two").glob("*/*/*")}
    assert made == runs
    for run in runs:
        assert {path.name for path in (folder / "two" / run).iterdir()} == {
            f"{node}.pcapng" for node in ("s1", "s2", "H1", "H2", "H3", "H4")
        }


def test_results_that_are_kept_have_captures_too_and_the_same(folder: Path) -> None:
    again = sorted((folder / "one").rglob("*.pcapng"))
    assert again
    assert {path.parent.name for path in again} == {"run-0"}
    for path in again:
        assert path.read_bytes() == (folder / "two" / path.relative_to(folder / "one")).read_bytes()


@needs_tshark
@pytest.mark.parametrize("run", [0, 1])
def test_the_capture_has_the_packets_of_the_records(folder: Path, run: int) -> None:
    rows = [
        row
        for row in pq.read_table(folder / "out/fig17a.parquet").to_pylist()
        if (row["point"], row["run"]) == (11.0, run)
    ]
    flows = {row["flow"] for row in rows}
    assert any(row["received_ns"] is None for row in rows)
    expected = Counter(
        f"{(row['received_ns'] - row['sent_ns']) / 1e6:.6f}" for row in rows if row["received_ns"] is not None
    )
    arrived = [
        said.groups()
        for name in ("H1", "H2", "H3", "H4")
        for frame in dissected(folder / f"two/fig17a/point-11/run-{run}/{name}.pcapng")
        if (said := ARRIVED.fullmatch(frame.comment))
    ]
    observed = Counter(flow for flow, *_ in arrived)
    assert len(observed) >= len(flows)
    assert expected <= Counter(delay for _, _, delay, _ in arrived)


def test_they_take_no_more_room_than_forecast(folder: Path) -> None:
    taken = sum(path.stat().st_size for path in (folder / "one").rglob("*.pcapng"))
    limited = refusal(
        *SHORT, "--pcap", str(folder / "more"), "--pcap-limit", "1", "--out", str(folder / "out")
    )
    said = re.fullmatch(
        rf"error: --pcap {folder}/more: captures of 4 runs would take about (\d+) MB, and --pcap-limit is"
        r" 1 MB; raise it, or take fewer figures, or --quick, --points admitted or --seconds\n",
        limited,
    )
    assert said, limited
    assert taken / 1e6 < int(said[1]) < 3 * taken / 1e6
    assert not (folder / "more").exists()


def test_what_cannot_be_captured_is_refused_before_anything_runs(tmp_path: Path) -> None:
    options = ("--pcap", str(tmp_path / "captures"), "--out", str(tmp_path / "out"))
    assert refusal("fig17a", "fig20a", *options) == (
        "error: --pcap: loko/fig20a has no runs in a lab that can be captured; leave it out and name those"
        " that do: loko/fig17a\n"
    )
    assert refusal("fig17a", "--mode", "live", *options) == (
        "error: --pcap: for --mode virtual only; leave it out\n"
    )
    assert not list(tmp_path.iterdir())
