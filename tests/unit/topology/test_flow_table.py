"""Flows in tables: other headings, units in headings, workbooks."""

from __future__ import annotations

import datetime
import io
import json
from pathlib import Path

import openpyxl
import pytest
from typer.testing import CliRunner

from loko.document import InputError
from loko.topology.requests import load_requests
from loko_testbed.cli.main import app

HEADINGS = [
    *("Flow name", "From", "To", "UDP source port", "UDP dest. port"),
    *("Cycle [ms]", "Bandwidth (Mbit/s)", "Burst", "Frame size", "Max. delay (ms)"),
]
ROWS = [["drive", "H1", "H3", 5000, 6000, None, 0.7, "2 frames", 306, 5]]
NAMES = "id,source,destination,udp_source,udp_destination,period [ms],rate [Mbit/s],burst,frame,deadline [ms]"


def csv(folder: Path, headings: list[str], rows: list[list[object]] = ROWS) -> Path:
    lines = [
        headings,
        *([str("" if cell is None else cell).replace(".", ",") for cell in row] for row in rows),
    ]
    path = folder / "flows.csv"
    path.write_text("".join(f"{';'.join(line)}\n" for line in lines))
    return path


def workbook(rows: list[list[object]]) -> bytes:
    made = openpyxl.Workbook()
    sheet = made.active
    assert sheet is not None
    for row in rows:
        sheet.append(row)
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()


def plan(*words: str, data: bytes | None = None) -> list[str]:
    """Return the ids of the flows that a plan accepts."""
    answer = CliRunner().invoke(app, ["plan", "two-switch", *words, "--json"], input=data)
    assert answer.exit_code == 0, answer.output
    return [flow["flow"] for flow in json.loads(answer.output)["accepted"]]


def refusal(path: Path, columns: str | None = None) -> list[str]:
    with pytest.raises(InputError) as error:
        load_requests(path, columns=columns)
    return [line.removeprefix(f"{path}").removeprefix(":") for line in error.value.lines]


def test_either_advice_for_other_headings_is_taken(tmp_path: Path) -> None:
    path = csv(tmp_path, HEADINGS)
    [advice] = refusal(path)
    assert advice == (
        "1: unknown columns; if this is meant, add '--columns guess', or make this the first line: "
        + NAMES.replace(",", ";")
    )
    (guessed,) = load_requests(path, columns="guess")
    assert (guessed.flow.rate_bps, guessed.deadline_ns, guessed.period_ns) == (7e5, 5e6, None)
    assert plan(str(path), "--columns", "guess") == ["drive"]
    (as_advised,) = load_requests(csv(tmp_path, advice.split(": ")[-1].split(";")))
    assert as_advised == guessed


@pytest.mark.parametrize("command", ["replay", "schedule", "check-schedule"])
def test_every_command_that_reads_flows_takes_the_columns(tmp_path: Path, command: str) -> None:
    rows: list[list[object]] = [["drive", "H1", "H3", 5000, 6000, None, 0.098, "1 frame", 306, None]]
    words = [str(csv(tmp_path, HEADINGS, rows)), "--columns", "guess"]
    run = CliRunner()
    if command == "replay":
        words += ["--seconds", "0.1"]
    else:
        made = run.invoke(app, ["schedule", "two-switch", *words, "--slots", "4", "--json"])
        (tmp_path / "schedule.json").write_text(made.output)
        words += ["--slots", "4"] if command == "schedule" else [str(tmp_path / "schedule.json")]
    answer = run.invoke(app, [command, "two-switch", *words])
    assert answer.exit_code == 0, answer.output


def test_columns_are_named_in_order_and_one_may_be_left_out(tmp_path: Path) -> None:
    path = csv(tmp_path, [*HEADINGS, "who asked"], [[*ROWS[0], "Ann"]])
    [unknown, *_] = refusal(path)
    assert unknown == "1: unknown column 'flow name'; did you mean 'id'?"
    (read,) = load_requests(path, columns=f"{NAMES},-")
    assert (read.flow.id, read.flow.rate_bps, read.deadline_ns) == ("drive", 7e5, 5e6)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("id,sauce", "--columns: unknown column 'sauce' (allowed: id, source, "),
        ("id,source", "--columns: names 2 columns; "),
        (
            NAMES.replace("source,destination", "source,source"),
            "--columns: names 'source' twice; name it once",
        ),
    ],
)
def test_wrong_columns_are_one_line(tmp_path: Path, columns: str, says: str) -> None:
    [line] = refusal(csv(tmp_path, HEADINGS), columns)
    assert line.startswith(says)


def test_columns_of_a_list_that_has_none_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "flows.yml"
    path.write_text("[]")
    assert refusal(path, "guess") == [
        f"--columns: is for CSV and workbooks, which {path} is not; leave it out"
    ]


def test_a_unit_in_a_heading_is_that_of_bare_numbers_only(tmp_path: Path) -> None:
    names = [name.replace("deadline [ms]", "deadline (us)") for name in NAMES.split(",")]
    rows: list[list[object]] = [[*ROWS[0][:6], "300 kbit/s", "2 frames", 306, 5000]]
    (read,) = load_requests(csv(tmp_path, names, rows))
    assert (read.flow.rate_bps, read.deadline_ns) == (3e5, 5e6)


@pytest.mark.parametrize("name", ["flows.xlsx", "flows", "-"])
def test_a_workbook_is_read_as_a_file_or_from_the_standard_input(tmp_path: Path, name: str) -> None:
    data = workbook([HEADINGS, ROWS[0], [], ["b", "H2", "H4", 5001, 6001, 20, None, None, 306, None]])
    if name == "-":
        assert plan("-", "--columns", "guess", data=data) == ["drive", "b"]
        return
    (tmp_path / name).write_bytes(data)
    first, second = load_requests(tmp_path / name, columns="guess")
    assert (first.flow.rate_bps, first.deadline_ns) == (7e5, 5e6)
    assert (second.flow.udp_source, second.period_ns) == (5001, 20_000_000)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"PK\x03\x04 and nothing else", ": is no readable workbook ("),
        (workbook([]), ": the first sheet has no headings; name the columns in its first row"),
        (
            workbook([["id", "source"], ["a", datetime.time(0, 20)]]),
            ": a cell is a date or a time of day (00:20:00)",
        ),
        (workbook([["id", "source"], ["a", "H1", "H3"]]), "1: unknown column ''"),
        (
            workbook([HEADINGS, ROWS[0]]),
            "1: unknown columns; if this is meant, add '--columns guess', or make",
        ),
        (
            workbook([NAMES.split(","), ["a b", *ROWS[0][1:]]]),
            "2: flow 'a b': id: 'a b': give 1 to 64 letters",
        ),
    ],
)
def test_a_wrong_workbook_is_one_line(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "flows.xlsx"
    path.write_bytes(data)
    [line] = refusal(path)
    assert line.removeprefix(" ").startswith(says.removeprefix(": ")), line
