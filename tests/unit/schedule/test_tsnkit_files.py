"""tsnkit's streams and networks get gates that the independent checker does not refute."""

from __future__ import annotations

import csv
import io
import json

import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from scheduling import clock
from typer.testing import CliRunner

from loko.document import InputError
from loko.schedule.gates.tsnkit import TsnkitSchedule, load_problem, result_files, schedule_streams
from loko.solvers import Solver, solver_named
from loko_testbed.cli.main import app
from loko_testbed.reproduce.schedule_check.gates import gate_refutations, load_gates

HIGHS = solver_named(Solver.HIGHS)
TASK = "stream,src,dst,size,period,deadline,jitter\n"
TOPOLOGY = "link,q_num,rate,t_proc,t_prop\n"
SWITCHES = 3
"""Nodes 0 to 2 are a line of switches, 3 to 8 hosts, two at each."""
CABLES = [(0, 1), (1, 2), *((host, (host - SWITCHES) // 2) for host in range(3, 9))]


def network(*, rate="1", processing=2000, propagation=50, queues=8) -> str:
    links = [ends for a, b in CABLES for ends in ((a, b), (b, a))]
    return TOPOLOGY + "".join(
        f'"({tail}, {head})",{queues},{rate},{processing},{propagation}\n' for tail, head in links
    )


def written(folder, streams, topology=None):
    (folder / "task.csv").write_text(TASK + "".join(f"{stream}\n" for stream in streams))
    (folder / "topo.csv").write_text(topology or network())
    return folder / "task.csv", folder / "topo.csv"


def scheduled(task, topology) -> TsnkitSchedule:
    return schedule_streams(load_problem(task, topology), HIGHS, clock())


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_slots_and_windows_are_as_computed_by_hand(tmp_path) -> None:
    """1000 bytes take 8 us on each of four links, three switches process for 2 us, each link adds 50 ns."""
    schedule = scheduled(*written(tmp_path, ["4,3,[7],1000,200000,100000,0", "5,3,[8],500,400000,100000,0"]))
    delay_ns = 4 * 8_050 + 3 * 2_000
    assert schedule.timing.slot_ns == delay_ns
    assert schedule.timing.base_period_ns == 200_000
    assert schedule.slots == 200_000 // delay_ns
    files = result_files(schedule)
    assert rows(files["loko-OFFSET.csv"]) == [
        {"stream": "4", "frame": "0", "offset": "0"},
        {"stream": "5", "frame": "0", "offset": str(delay_ns)},
    ]
    gates = rows(files["loko-GCL.csv"])
    assert [row for row in gates if row["link"] == "(0, 1)"] == [
        {"link": "(0, 1)", "queue": "7", "start": start, "end": end, "cycle": "200000"}
        for start, end in (("0", "38200"), ("38200", str(38_200 + 4 * 4_050 + 6_000)))
    ]
    routes = rows(files["loko-ROUTE.csv"])
    assert [row["link"] for row in routes if row["stream"] == "4"] == ["(3, 0)", "(0, 1)", "(1, 2)", "(2, 7)"]


@examples(40)
@given(data=st.data())
def test_the_checker_refutes_no_schedule(tmp_path_factory, data) -> None:
    hosts = st.integers(3, 8)
    count = data.draw(st.integers(1, 12))
    streams = []
    for number in range(count):
        source, destination = data.draw(
            st.tuples(hosts, hosts).filter(lambda ends: ends[0] != ends[1]), label="ends"
        )
        size = data.draw(st.integers(64, 1518))
        period = 1_000_000 * data.draw(st.sampled_from((1, 2, 3, 6)))
        streams.append(f"{number},{source},[{destination}],{size},{period},{period},0")
    topology = network(
        rate=data.draw(st.sampled_from(("1", "0.1", "0.3"))),
        processing=data.draw(st.integers(0, 5_000)),
        propagation=data.draw(st.integers(0, 500)),
        queues=data.draw(st.integers(1, 8)),
    )
    folder = tmp_path_factory.mktemp("tsnkit")
    task, links = written(folder, streams, topology)
    schedule = scheduled(task, links)
    placed = set(schedule.solution.assignments)
    for name, text in result_files(schedule).items():
        (folder / name).write_text(text)
    kept = [stream for stream in streams if stream.split(",")[0] in placed]
    assert len(kept) + len(schedule.unscheduled) == count
    assert gate_refutations(load_gates(*written(folder, kept, topology), folder)) == []


def run(folder, streams, *options):
    task, topology = written(folder, streams)
    return CliRunner().invoke(
        app, ["schedule-gates", str(task), str(topology), str(folder / "gates"), *options]
    )


def test_the_command_writes_files_that_check_gates_accepts(tmp_path) -> None:
    done = run(tmp_path, ["0,3,[7],1000,200000,100000,0", "1,4,[7],500,200000,100000,0"], "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["unscheduled"] == []
    files = [str(tmp_path / name) for name in ("task.csv", "topo.csv", "gates")]
    assert CliRunner().invoke(app, ["check-gates", *files]).stdout == "not refuted: 2 streams\n"


def test_the_command_writes_nothing_if_a_stream_has_no_slot(tmp_path) -> None:
    """A base period of 40 us holds one slot of 38.2 us, and both streams end at one host."""
    done = run(tmp_path, ["0,3,[7],1000,40000,100000,0", "1,4,[7],1000,40000,100000,0"])
    assert done.exit_code == 1
    assert "1 streams of 2, and no schedule has more" in done.stdout
    assert not (tmp_path / "gates").exists()


@pytest.mark.parametrize(
    ("stream", "told"),
    [
        ("0,3,[7],1000,200000,38199,0", "stream 0: a frame takes 38200 ns to 7, its deadline is 38199 ns"),
        ("0,3,[7],1000,38199,200000,0", "38199 ns, which holds no slot of 38200 ns"),
        ("0,3,[7],0,200000,200000,0", "task.csv:2: not as in tsnkit's files"),
        ('0,3,"[7, 8]",100,200000,200000,0', "a stream has several destinations"),
        ("0,3,[9],100,200000,200000,0", "no path leads from 3 to 9"),
    ],
)
def test_wrong_input_is_one_line(tmp_path, stream, told) -> None:
    done = run(tmp_path, [stream])
    assert done.exit_code == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_number_that_is_used_twice_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="number is used twice"):
        scheduled(*written(tmp_path, ["0,3,[7],100,200000,200000,0"] * 2))
