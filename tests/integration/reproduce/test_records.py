"""Records on disk, and boxes computed from records."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_runner import records

from loko.document import InputError
from loko_testbed.reproduce.analysis import DelayStats, count_stalled, delays_ms
from loko_testbed.reproduce.result import merge_counters
from loko_testbed.simulation.records import SCHEMA, RecordWriter, packed, read_runs, summary, unpacked
from loko_testbed.simulation.runner import LOST, HostReport, RunError, Stall


def test_a_file_gives_back_what_was_written_run_by_run(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    with RecordWriter(path) as writer:
        writer.add(records([500, LOST, 700]), run=0, point=0.95)
        writer.add(records([400]), run=1, point=0.95)
        writer.describe({"kept": [1, 2]})
    table = pq.read_table(path)
    assert table.schema.remove_metadata() == SCHEMA
    assert table.column("received_ns").to_pylist() == [500, None, 2_000_700, 400]
    assert table.column("run").to_pylist() == [0, 0, 0, 1]
    assert table.column("point").to_pylist() == [0.95] * 4
    assert [len(run) for run in read_runs(path)] == [3, 1]
    assert summary(path) == {"kept": [1, 2]}


def test_writing_records_loads_no_pandas() -> None:
    """Loading it would cost each replay worker over a second, and `pa.array` loads it if it is installed."""
    program = (
        "import sys, tempfile, pathlib\n"
        "from scripted_runner import records\n"
        "from loko_testbed.simulation.records import RecordWriter\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    path = pathlib.Path(folder, 'r.parquet')\n"
        "    with RecordWriter(path) as writer: writer.add(records([500, 700]), run=0, point=0.5)\n"
        "    assert path.stat().st_size\n"
        "print('pandas' in sys.modules)\n"
    )
    place = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.check_output([sys.executable, "-c", program], env=place, text=True) == "False\n"


@pytest.mark.parametrize("received_ns", [[], [100], [LOST], [100, LOST, 300] * 7])
def test_a_packed_run_is_read_as_it_was(received_ns: list[int]) -> None:
    there = records(received_ns)
    read = unpacked(packed(there))
    for name in ("flow", "sequence", "sent_ns", "received_ns", "size"):
        was, now = getattr(there, name), getattr(read, name)
        assert (now.dtype, now.tolist()) == (was.dtype, was.tolist()), name


def test_a_packed_run_leaves_the_same_file_as_one_that_was_not(tmp_path: Path) -> None:
    first, second = (tmp_path / f"{name}.parquet" for name in "ab")
    there = records([100, LOST, 300])
    for path, run in ((first, there), (second, unpacked(packed(there)))):
        with RecordWriter(path) as writer:
            writer.add(run, run=2, point=0.5)
    assert first.read_bytes() == second.read_bytes()


def test_records_of_several_row_groups_are_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    runs = [records([100, LOST]), records([LOST, 200])]
    with RecordWriter(path) as writer:
        for number, run in enumerate(runs):
            writer.add(run, run=number, point=1.0)
    expected = [at_ns for run in runs for at_ns in run.received_ns.tolist()]
    assert unpacked(path.read_bytes()).received_ns.tolist() == expected


def test_an_empty_run_is_written(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    with RecordWriter(path) as writer:
        writer.add(records([]), run=0, point=1.0)
    assert pq.read_table(path).num_rows == 0


@pytest.mark.parametrize("content", [b"", b"PAR1 rubbish PAR1", b"\0" * 100])
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"r\.parquet: damaged records") as error:
        summary(path)
    assert "\n" not in str(error.value)


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=200))
def test_quantiles_are_those_of_numpy(samples: list[int]) -> None:
    quantiles = delays_ms(np.array(samples, dtype=np.uint32)).model_dump()
    expected = np.percentile(np.array(samples, dtype=np.int64), [0, 1, 25, 50, 75, 99, 100]) / 1e6
    np.testing.assert_allclose(list(quantiles.values()), expected, rtol=1e-12, atol=1e-9)


def test_no_packet_has_no_quantiles() -> None:
    assert set(delays_ms(np.empty(0, np.uint32)).model_dump().values()) == {None}


def test_a_box_counts_over_runs_and_takes_its_flow_only() -> None:
    box = DelayStats(flow=1, guarantee_ns=1000)
    box.add(records([1000, 1001, LOST], flow=1))
    box.add(records([10], flow=1))
    box.add(records([LOST], flow=0))
    point = box.point(2.0, guaranteed=True)
    assert (point.packets, point.lost, point.loss, point.late, point.explained) == (4, 1, 0.25, 1, 0)
    assert point.violations == 2
    assert box.point(2.0, guaranteed=False).violations == 0


def test_a_delay_of_seconds_is_counted_and_one_that_no_clock_gives_is_refused() -> None:
    box = DelayStats(flow=0, guarantee_ns=1000)
    box.add(records([500, 900]))
    box.add(records([4_922_883_008]))
    point = box.point(1.0, guaranteed=True)
    assert (point.packets, point.late, point.delay_ms.max) == (3, 1, 4922.883008)
    assert point.delay_ms.min == 0.0005
    for impossible in (-1_000_000_000, 2**62):
        with pytest.raises(RunError, match="was the clock set"):
            box.add(records([impossible]))


def test_a_stall_explains_what_was_under_way_and_nothing_else() -> None:
    # The frames are sent at 0, 1, 2 and 3 ms; the stall lies within [1.2, 1.4] ms.
    host = HostReport(stalls=(Stall(start_ns=1_200_000, duration_ns=200_000),))
    box = DelayStats(flow=0, guarantee_ns=500_000)
    box.add(records([600_000, 600_000, LOST, LOST], host=host))
    point = box.point(1.0, guaranteed=True)
    assert (point.late, point.lost, point.explained, point.violations) == (2, 2, 1, 3)


def test_a_long_stall_before_a_short_one_is_not_forgotten() -> None:
    stalls = [Stall(start_ns=0, duration_ns=1000), Stall(start_ns=100, duration_ns=10)]
    begin, end = np.array([500, 2000]), np.array([600, 2100])
    assert count_stalled(begin, end, stalls) == 1


def test_an_impossible_delay_is_refused() -> None:
    with pytest.raises(RunError, match="delays of -5 to -5 ns"):
        DelayStats(flow=0, guarantee_ns=1).add(records([-5]))


def test_counters_add_up_but_peaks_do_not() -> None:
    parts = [{"s1": {"received": 3, "ring_units_peak": 9}}, {"s1": {"received": 4, "ring_units_peak": 7}}]
    assert merge_counters(parts) == {"s1": {"received": 7, "ring_units_peak": 9}}
