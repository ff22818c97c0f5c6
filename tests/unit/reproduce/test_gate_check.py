"""The checker of gates in tsnkit's files accepts a correct schedule and refutes every mutation of it.

The schedule is made by hand: stream 0 goes from node 3 over 0 and 1 to 4, and stream 1 from 5 to 4 after it.
"""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from loko.document import InputError
from loko_testbed.cli.main import app
from loko_testbed.reproduce.schedule_check.gates import gate_refutations, load_gates

HOP = 8_000
"""1000 bytes at 1 bit/ns."""
PROCESSING = 1_000
FILES = {
    "task.csv": """stream,src,dst,size,period,deadline,jitter
0,3,[4],1000,100000,26000,0
1,5,[4],1000,200000,18000,0
""",
    "topo.csv": """link,q_num,rate,t_proc,t_prop
"(3, 0)",8,1,1000,0
"(0, 1)",8,1,1000,0
"(1, 4)",8,1,1000,0
"(5, 1)",8,1,1000,0
"(4, 1)",8,1,1000,0
""",
    "GCL.csv": """link,queue,start,end,cycle
"(3, 0)",0,0,8000,100000
"(0, 1)",0,9000,17000,100000
"(1, 4)",0,18000,26000,100000
"(1, 4)",1,26000,34000,200000
"(5, 1)",1,17000,25000,200000
""",
    "OFFSET.csv": """stream,frame,offset
0,0,0
1,0,17000
""",
    "ROUTE.csv": """stream,link
0,"(3, 0)"
0,"(0, 1)"
0,"(1, 4)"
1,"(5, 1)"
1,"(1, 4)"
""",
    "QUEUE.csv": """stream,frame,link,queue
0,0,"(3, 0)",0
0,0,"(0, 1)",0
0,0,"(1, 4)",0
1,0,"(5, 1)",1
1,0,"(1, 4)",1
""",
}
FILES["GCL.csv"] = FILES["GCL.csv"].replace(
    '"(1, 4)",0,18000,26000,100000\n',
    '"(1, 4)",0,18000,26000,200000\n"(1, 4)",0,118000,126000,200000\n',
)


def written(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder / "task.csv", folder / "topo.csv", folder


def refuted(folder, **changes) -> list[str]:
    files = dict(FILES)
    for change, (old, new) in changes.items():
        name = f"{change}.csv"
        assert old in files[name]
        files[name] = files[name].replace(old, new)
    return gate_refutations(load_gates(*written(folder, files)))


def test_what_is_right_is_not_refuted(tmp_path) -> None:
    assert refuted(tmp_path) == []


def test_the_delay_is_the_sum_of_its_terms(tmp_path) -> None:
    """The path has three links and two switches. A deadline that is 1 ns shorter is missed."""
    needed = 3 * HOP + 2 * PROCESSING
    assert f",{needed},0" in FILES["task.csv"]
    told = refuted(tmp_path, task=(f",{needed},0", f",{needed - 1},0"))
    assert told == [
        f"stream 0: 4 of 4 frames reached 4 after its deadline of {needed - 1} ns, after up to {needed} ns"
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"GCL": ('"(0, 1)",0,9000,17000', '"(0, 1)",0,9000,16999')}, "4 of 4 frames did not reach 4"),
        ({"GCL": ('"(0, 1)",0,9000,17000', '"(0, 1)",0,10000,18000')}, "after its deadline"),
        ({"GCL": ("1,26000,34000", "1,25000,34000")}, "two are open at 25000 ns"),
        ({"GCL": ("1,26000,34000", "1,34000,34000")}, "is no window of its cycle"),
        ({"GCL": ("1,26000,34000", "9,26000,34000")}, "there is no queue 9"),
        ({"GCL": ('"(5, 1)",1,17000,25000,200000', '"(5, 1)",1,17000,25000,150000')}, "does not fit"),
        ({"GCL": ('"(5, 1)"', '"(7, 1)"')}, "gates of (7, 1): there is no such link"),
        ({"GCL": ("0,118000,126000", "0,119000,127000")}, "differ by 1000 ns, allowed are 0"),
        ({"OFFSET": ("1,0,17000", "1,0,200000")}, "offset of frame 0 is not within its period"),
        ({"OFFSET": ("1,0,17000", "1,0,18000")}, "stream 1: 2 of 2 frames reached 4 after"),
        ({"OFFSET": ("1,0,17000\n", "")}, "stream 1: has no offset"),
        ({"ROUTE": ('0,"(0, 1)"\n', "")}, "does not lead from 3 to 4"),
        ({"ROUTE": ('0,"(0, 1)"', '0,"(0, 2)"')}, "does not lead from 3 to 4"),
        ({"ROUTE": ('0,"(1, 4)"', '0,"(1, 4)"\n0,"(4, 1)"')}, "its route has a loop"),
        ({"QUEUE": ('1,0,"(1, 4)",1\n', "")}, "frame 0 has no queue at (1, 4)"),
        ({"QUEUE": ('1,0,"(1, 4)",1', '1,0,"(1, 4)",0')}, "after its deadline"),
    ],
)
def test_every_mutation_is_refuted(tmp_path, change, told) -> None:
    refutations = refuted(tmp_path, **change)
    assert any(told in line for line in refutations), refutations


def test_frames_that_share_a_queue_wait_for_each_other(tmp_path) -> None:
    """If both streams enter one queue at one instant, the second is late although the gates are open."""
    gates = "link,queue,start,end,cycle\n" + "".join(
        f'"{link}",0,0,200000,200000\n' for link in ("(3, 0)", "(0, 1)", "(1, 4)", "(5, 1)")
    )
    changes = {
        "GCL": (FILES["GCL.csv"], gates),
        "QUEUE": (FILES["QUEUE.csv"], FILES["QUEUE.csv"].replace(",1\n", ",0\n")),
        "OFFSET": ("1,0,17000", "1,0,9000"),
    }
    told = refuted(tmp_path, **changes)
    assert any("stream" in line and "after its deadline" in line for line in told)
    changes["OFFSET"] = ("1,0,17000", "1,0,17000")
    assert refuted(tmp_path, **changes) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("task.csv", "period", "often", "task.csv: has no column 'period'"),
        ("task.csv", "1000,100000", "1000,soon", "task.csv:2: not as in tsnkit's files"),
        ("task.csv", "1000,100000", "1000,0", "task.csv:2: not as in tsnkit's files: a period and a size"),
        ("topo.csv", '"(3, 0)"', "3-0", "topo.csv:2: not as in tsnkit's files: '3-0' is no link"),
        ("task.csv", FILES["task.csv"], FILES["task.csv"].splitlines()[0] + "\n", "no streams"),
    ],
)
def test_wrong_files_are_told_in_one_line(tmp_path, name, old, new, told) -> None:
    with pytest.raises(InputError) as error:
        load_gates(*written(tmp_path, {**FILES, name: FILES[name].replace(old, new, 1)}))
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_told(tmp_path) -> None:
    paths = written(tmp_path, FILES)
    (tmp_path / "GCL.csv").unlink()
    with pytest.raises(InputError, match=r"0 files are named \*GCL.csv"):
        load_gates(*paths)


def test_the_command_says_what_it_found(tmp_path) -> None:
    paths = [str(path) for path in written(tmp_path, FILES)]
    told = CliRunner().invoke(app, ["check-gates", *paths])
    assert (told.exit_code, told.stdout) == (0, "not refuted: 2 streams\n")
    (tmp_path / "OFFSET.csv").write_text(FILES["OFFSET.csv"].replace("17000", "18000"))
    told = CliRunner().invoke(app, ["check-gates", *paths])
    assert told.exit_code == 1
    assert told.stdout.startswith("refuted: stream 1:")
