"""The configuration of a host's source for a schedule: files for `zodiac-fx slots`, and unusable folders."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from scheduling import clock

from loko.document import InputError
from loko.schedule.lab_schedule import LabSchedule, SchedulingOptions, schedule
from loko.schedule.problem import SchedulingScheme
from loko.schedule.sources import slots_file, write_sources
from loko.schedule.timed_flow import TimedFlow
from loko.solvers import Solver, solver_named
from loko.topology.frame import frame_of
from loko.topology.lab import load_lab
from loko_testbed.live.slot_source import refuse_slots
from loko_testbed.simulation.runner import RunError
from loko_testbed.simulation.traffic import Bucket, Greedy, Sender, TimeTriggered, flow_of

LAB = load_lab("two-switch")
MS = 1_000_000
A = TimedFlow("a", "H1", "H3", 1001, 5001, 306, 20 * MS, None)
B = TimedFlow("b", "H1", "H4", 1002, 5002, 306, 40 * MS, None)
C = TimedFlow("c", "H2", "H4", 1003, 5003, 306, 20 * MS, None)


def scheduled(*flows: TimedFlow) -> LabSchedule:
    options = SchedulingOptions(scheme=SchedulingScheme.PATH_SETS)
    return schedule(LAB, flows, options, solver_named(Solver.HIGHS), clock())


def test_each_host_is_told_its_frames_and_when_each_leaves(tmp_path: Path) -> None:
    result = scheduled(A, B, C)
    files = write_sources(result, tmp_path / "new" / "folder")
    assert [file.name for file in files] == ["H1.toml", "H2.toml"]
    first, second = (tomllib.loads(file.read_text()) for file in files)
    assert (first["path"], first["period_ns"]) == ("packet-ring", result.timing.base_period_ns)
    assert "periods" not in first, "until it is ended"
    by_id = {planned.timed.id: planned for planned in result.scheduled}
    for told, flow in zip([*first["flow"], *second["flow"]], (A, B, C), strict=True):
        assert told == {
            "source": f"{flow.source}-eth0",
            "offset_ns": by_id[flow.id].offset_ns,
            "period_ns": flow.period_ns,
            "frame": frame_of(LAB, flow).hex(),
        }


def test_who_sends_no_more_has_no_file_and_other_files_stay(tmp_path: Path) -> None:
    write_sources(scheduled(A, C), tmp_path)
    (tmp_path / "H9.toml").write_text("of somebody else")
    write_sources(scheduled(C), tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["H2.toml", "H9.toml"]


@pytest.mark.parametrize("content", [b"period_ns = 1", b"\xff\xfe"])
def test_a_file_of_somebody_else_is_refused_before_it_writes_anything(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "H2.toml").write_bytes(content)
    with pytest.raises(InputError) as caught:
        write_sources(scheduled(A, C), tmp_path)
    assert "choose another folder" in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["H2.toml"]
    assert (tmp_path / "H2.toml").read_bytes() == content


def test_a_folder_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"^--sources .*file/below: Not a directory; choose another folder$"):
        write_sources(scheduled(A), tmp_path / "file" / "below")


def test_strings_are_those_of_toml() -> None:
    name = 'a "b" \\ \u00e4\n'
    assert tomllib.loads(slots_file({"rows": name}, [])) == {"rows": name}


OWN = flow_of(0, "H1", "H3", rate_bps=1e5, burst_bytes=306, frame_bytes=306)
SLOT = TimeTriggered(offset_ns=5, period_ns=MS)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([Sender.of(1, OWN, Greedy(bucket=Bucket(rate_bps=1e5, burst_bytes=306)))], "also sends by a token"),
        ([Sender.of(1, OWN, TimeTriggered(offset_ns=5, period_ns=MS, clock_rate=1.0001))], "--mode virtual"),
        ([Sender.of(1, OWN, TimeTriggered(offset_ns=MS, period_ns=MS))], "after its period"),
    ],
)
def test_what_a_live_lab_cannot_send_in_slots_is_one_line(others: list[Sender], said: str) -> None:
    refuse_slots([Sender.of(0, OWN, SLOT)])
    with pytest.raises(RunError, match=said) as caught:
        refuse_slots([Sender.of(0, OWN, SLOT), *others])
    assert "\n" not in str(caught.value)
