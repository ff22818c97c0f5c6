"""Flow files as people and programs save them (`tests/cases/flows`): each has its right answer."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from loko.document import InputError
from loko.topology.lab import load_lab
from loko.topology.requests import STDIN, Request, load_requests

CASES = Path(__file__).resolve().parents[2] / "cases/flows"
SENSORS = [
    ("sensor-001", 300_000.0, 612.0, None),
    ("sensor-002", 122_400.0, 306.0, 20e6),
    ("sensor-003", 100_000.0, 612.0, 7.5e6),
]
DRIVE = [("drive", 700_000.0, 612.0, 5e6)]
"""Id, rate in bit/s, burst in bytes and deadline in ns of each flow."""
IN_ORDER = "id;source;destination;udp_source;udp_destination;period;rate;burst;frame;deadline"


@pytest.fixture(params=["file", "standard input", "file without a suffix"])
def way(request: pytest.FixtureRequest) -> str:
    """Return the way in which a file reaches the command."""
    return str(request.param)


def requests_of(
    data: bytes, way: str, folder: Path, monkeypatch: pytest.MonkeyPatch, columns: str | None = None
) -> tuple[Request, ...]:
    path: Path | str = folder / ("flows.csv" if way == "file" else "flows")
    if way == "standard input":
        path = STDIN
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    else:
        Path(path).write_bytes(data)
    return load_requests(path, load_lab("two-switch"), columns=columns)


def refusal(
    data: bytes, way: str, folder: Path, monkeypatch: pytest.MonkeyPatch, columns: str | None = None
) -> list[str]:
    with pytest.raises(InputError) as error:
        requests_of(data, way, folder, monkeypatch, columns)
    return [line.removeprefix("standard input").removeprefix(f"{folder}/") for line in error.value.lines]


def contents(requests: tuple[Request, ...]) -> list[tuple[str, float, float, float | None]]:
    return [
        (flow.id, round(flow.rate_bps, 3), flow.burst_bytes, deadline_ns)
        for flow, deadline_ns, *_ in requests
    ]


@pytest.mark.parametrize(
    ("name", "flows"),
    [
        ("excel-utf8-bom", SENSORS),
        ("nbsp", DRIVE),
        ("semicolon", DRIVE),
        ("semicolon-comma", DRIVE),
        ("tab", DRIVE),
        ("units-as-people-write", [("a", 3e5, 612.0, 1e7), ("b", 3e5, 306.0, 1e7), ("c", 3e5, 612.0, 1e7)]),
        ("units-iperf", DRIVE),
        ("units-tc", DRIVE),
        ("utf16", DRIVE),
    ],
)
def test_files_are_read_as_they_are(
    name: str,
    flows: list[tuple[str, float, float, float | None]],
    way: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = (CASES / f"{name}.csv").read_bytes()
    assert contents(requests_of(data, way, tmp_path, monkeypatch)) == flows


@pytest.mark.parametrize("columns", ["guess", IN_ORDER])
def test_headings_of_others_are_guessed_or_named(
    columns: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (CASES / "own-headings.csv").read_bytes()
    [advice] = refusal(data, way, tmp_path, monkeypatch)
    assert advice.endswith(
        ":1: unknown columns; if this is meant, add '--columns guess', or make this the first line:"
        f" {IN_ORDER}"
    )
    assert contents(requests_of(data, way, tmp_path, monkeypatch, columns)) == SENSORS[:2]


def test_headings_may_be_quoted_and_the_first_line_may_state_the_separator(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    headings, *rows = (CASES / "semicolon.csv").read_text().splitlines()
    quoted = ";".join(f'"{heading}"' for heading in headings.split(";"))
    stated = "\n".join(["sep=;", quoted, *rows])
    assert contents(requests_of(stated.encode(), way, tmp_path, monkeypatch)) == DRIVE
    wrong = stated.replace("700 kbit/s", "700 apples")
    [line] = refusal(wrong.encode(), way, tmp_path, monkeypatch)
    assert ":3: flow 'drive': rate: '700 apples' is not a rate" in line
    [line, *_] = refusal(stated.replace('"rate"', '"rat"').encode(), way, tmp_path, monkeypatch)
    assert ":2: unknown column 'rat'; did you mean 'rate'?" in line


def test_an_ambiguous_number_is_asked_about(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (CASES / "thousands.csv").read_bytes()
    [line] = refusal(data, way, tmp_path, monkeypatch)
    assert line.endswith(":2: flow 'drive': rate: '1,400' may be 1400 or 1.400; write one of them")
    for meant, rate_bps in ((b"1400", 1.4e6), (b"1.400", 1400.0)):
        [read] = requests_of(data.replace(b"1,400", meant), way, tmp_path, monkeypatch)
        assert read.flow.rate_bps == rate_bps


def test_an_encoding_of_windows_is_named_with_the_command_that_converts(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (CASES / "excel-cp1252.csv").read_bytes()
    [line] = refusal(data, way, tmp_path, monkeypatch)
    assert "is not in UTF-8, perhaps in Windows-1252; save it in UTF-8, or convert it: " in line
    command = shlex.split(line.split("convert it: ")[1])
    converted = subprocess.run(command, input=data, cwd=tmp_path, check=True, capture_output=True).stdout
    [line] = refusal(converted, way, tmp_path, monkeypatch)
    assert "id: 'Füllstand-001': give 1 to 64 letters" in line  # as in the service
    named = converted.decode().replace("ü", "ue").encode()
    read = requests_of(named, way, tmp_path, monkeypatch)
    assert [request.flow.id for request in read] == ["Fuellstand-001", "sensor-002", "sensor-003"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "errors-e1",
            [
                *(
                    "1 flow 'zero': rate",
                    "2 flow 'a': destination",
                    "3 flow 'a': this id",
                    "3 flow 'a': burst",
                ),
                *("4 flow 'b': has the hosts", "4 flow 'b': frame", "5 flow 'c': udp_source"),
                *("5 flow 'c': udp_destination", "5 flow 'c': rate", "5 flow 'c': frame"),
                *("6 flow 'd': has the hosts", "6 flow 'd': rate", "6 flow 'd': burst"),
                *("7 flow 'e': has the hosts", "7 flow 'e': deadline"),
            ],
        ),
        ("errors-e5", ["1 flow 'a': destination", "2 flow 'a': this id", "3 flow 'b': has the hosts"]),
        ("errors-e7", ["1 flow 'a': destination", "2 flow 'b': destination"]),
    ],
)
def test_every_error_of_a_file_is_told_once(
    name: str, told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = refusal((CASES / f"{name}.yml").read_bytes(), "standard input", tmp_path, monkeypatch)
    assert len(lines) == len(told), lines
    for line, text in zip(lines, told, strict=True):
        number, _, begin = text.partition(" ")
        assert line.startswith(f":{number}: {begin}"), line


def test_every_kept_file_is_tried() -> None:
    """A file that is added to the cases needs its right answer here."""
    tried = Path(__file__).read_text()
    assert [file.name for file in CASES.iterdir() if f'"{file.stem}' not in tried] == []
