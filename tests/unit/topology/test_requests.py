"""Flows as people write them: units, formats, and all errors reported at once."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loko.document import InputError
from loko.switch_model.flow import Flow
from loko.topology.lab import load_lab
from loko.topology.requests import Request, load_documents, load_flows, load_requests
from loko.units import DataSize, frame_bytes, rate_bps, size, time_ns
from loko_testbed.cli.main import app

ENDS = {"source": "H1", "destination": "H3", "udp_source": 5000, "udp_destination": 6000}
MEANT = Request(Flow("a", "H1", "H3", 5000, 6000, 700_000.0, 612.0, 306), 5e6)
WRITTEN = {"rate": "0.7 Mbit/s", "burst": "2 frames", "frame": "306 bytes", "deadline": "5 ms"}
IN_BASE_UNITS = {"rate_bps": 7e5, "burst_bytes": 612.0, "frame_bytes": 306, "deadline_ns": 5e6}


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "values",
    [
        WRITTEN,
        IN_BASE_UNITS,
        {**WRITTEN, "rate": "700kbit/s", "burst": "612 B", "frame": "306B", "deadline": "5000 us"},
        {**WRITTEN, "rate": "7e5 bps", "burst": "0.612 kB", "deadline": "0.005 s"},
        {**IN_BASE_UNITS, "deadline_ns": None, "deadline_ms": 5.0},
    ],
)
def test_each_way_of_writing_means_the_same(tmp_path: Path, values: dict[str, object]) -> None:
    text = json.dumps([{"id": "a", **ENDS, **values}])
    assert load_requests(written(tmp_path, "flows.yml", text)) == (MEANT,)


def test_a_period_says_rate_and_burst(tmp_path: Path) -> None:
    (request,) = load_requests(
        written(tmp_path, "flows.yml", json.dumps([{"id": "a", **ENDS, "frame": "306 B", "period": "20 ms"}]))
    )
    assert (request.flow.rate_bps, request.flow.burst_bytes) == (306 * 8 / 0.02, 306.0)
    assert request.period_ns == 20_000_000
    both = [{"id": "a", **ENDS, **WRITTEN, "period_us": 5.0}]
    with pytest.raises(InputError, match="rate and period_us both say how often it sends; leave one out"):
        load_requests(written(tmp_path, "flows.yml", json.dumps(both)))


@pytest.mark.parametrize("left_out", ["rate", "burst"])
def test_what_is_asked_for_must_say_how_much_it_sends(tmp_path: Path, left_out: str) -> None:
    values = {name: value for name, value in WRITTEN.items() if name != left_out}
    path = written(tmp_path, "flows.yml", json.dumps([{"id": "a", **ENDS, **values}]))
    with pytest.raises(InputError, match=f"flows.yml:1: flow 'a': {left_out} is missing; give a {left_out}"):
        load_requests(path)
    assert load_documents(path)[0].id == "a"


def test_a_schedule_takes_what_a_plan_takes(tmp_path: Path) -> None:
    path = written(tmp_path, "flows.yml", json.dumps([{"id": "a", **ENDS, **WRITTEN, "rate": "98 kbit/s"}]))
    answer = CliRunner().invoke(app, ["schedule", "two-switch", str(path), "--slots", "4", "--json"])
    assert answer.exit_code == 0
    kept = written(tmp_path, "schedule.json", answer.output)
    assert CliRunner().invoke(app, ["check-schedule", "two-switch", str(path), str(kept)]).exit_code == 0


def test_csv_is_the_same_and_a_cell_may_be_empty(tmp_path: Path) -> None:
    header = "id,source,destination,udp_source,udp_destination,rate,burst_bytes,frame_bytes,deadline"
    rows = "a,H1,H3,5000,6000,0.7 Mbit/s,612,306,5 ms\n\nb, H1, H3, 5001, 6001, 1 kbit/s, 306, 306,\n"
    first, second = load_requests(written(tmp_path, "flows.csv", f"{header}\n{rows}"))
    assert first == MEANT
    assert (second.flow.rate_bps, second.deadline_ns) == (1000.0, None)


@pytest.mark.parametrize(
    ("read", "wrong", "says"),
    [
        (rate_bps, "2.3", "'2.3' is not a rate such as 2.3 Mbit/s"),
        (rate_bps, 2.3, "2.3 has no unit; give a rate such as 2.3 Mbit/s"),
        (rate_bps, "2.3 Mbaud", r"units: bit/s, kbit/s, Mbit/s"),
        (rate_bps, "10 MB/s", "may be bits or bytes; write 10 Mbit/s or 80 Mbit/s"),
        (rate_bps, "10 MBps", "may be bits or bytes; write 10 Mbit/s or 80 Mbit/s"),
        (rate_bps, "1,400 kbit/s", "'1,400' may be 1400 or 1.400; write one of them"),
        (rate_bps, "1,2,3 kbit/s", "'1,2,3' is no number"),
        (rate_bps, "1 40 kbit/s", "'1 40' is no number"),
        (size, "612 b", "may be bits or bytes"),
        (size, "2 KB", "may be 2000 or 2048 bytes"),
        (size, "612", "is not a size such as 2 frames or 612 bytes"),
        (rate_bps, "0 bit/s", "must be more than nothing"),
        (time_ns, "5 min", "is not a time such as 5 ms"),
        (frame_bytes, "306.5 bytes", "no whole number of bytes"),
        (size, "-2 frames", "is not a size such as 2 frames or 612 bytes"),
    ],
)
def test_a_number_without_its_unit_is_refused_with_an_example(read, wrong, says) -> None:
    with pytest.raises(ValueError, match=says):
        read(wrong)


@pytest.mark.parametrize(
    ("read", "spellings", "meant"),
    [
        (rate_bps, ["0.3 MBit/s", "0.3 Mb/s", "300k", "300K", "300 kbps", "300Kbit", "0,3 mbit/s"], 3e5),
        (
            rate_bps,
            ["1 400 kbit/s", "1\u00a0400 kbit/s", "1'400 kbit/s", "1,400.0 kbit/s", "1.400,0 Kbit/s"],
            1.4e6,
        ),
        (rate_bps, ["1,234,567 bit/s", "1.234.567, bits/sec", "1234567bit/s"], 1234567.0),
        (time_ns, ["10ms", "10 MS", "0.01 s", "0,01 S", "10 msec", "10000 µs", "10000us"], 1e7),
        (size, ["612 Byte", "612B", "612 BYTES", "0.612 kB"], DataSize(bytes=612.0)),
        (size, ["2 Frames", "2 packets", "2FRAMES"], DataSize(frames=2.0)),
        (frame_bytes, ["306 Byte", "306", 306, "306 B"], 306),
    ],
)
def test_usual_spellings_are_read(read, spellings, meant) -> None:
    assert [read(written) for written in spellings] == [meant] * len(spellings)


COLUMNS = "id,source,destination,udp_source,udp_destination,rate,burst,frame,deadline"
DRIVE = "drive,H1,H3,5000,6000,0.7 Mbit/s,2 frames,306 bytes,5 ms"


def spreadsheet(separator: str, *, comma: bool = False) -> str:
    row = DRIVE.replace(",", separator)
    return f"{COLUMNS.replace(',', separator)}\r\n{row.replace('0.7', '0,7') if comma else row}\r\n"


@pytest.mark.parametrize(
    "data",
    [
        spreadsheet(",").encode(),
        spreadsheet(";").encode(),
        spreadsheet(";", comma=True).encode("utf-8-sig"),
        spreadsheet("\t").encode(),
        spreadsheet("\t", comma=True).encode("utf-16"),
        spreadsheet(";").replace("0.7 Mbit", "0,7\u00a0Mbit").encode(),
    ],
)
def test_spreadsheets_are_read_as_they_are_saved(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "flows.csv"
    path.write_bytes(data)
    (read,) = load_requests(path, load_lab("two-switch"))
    assert (read.flow.id, read.flow.rate_bps, read.deadline_ns) == ("drive", 7e5, 5e6)
    answer = CliRunner().invoke(app, ["plan", "two-switch", "-", "--json"], input=data)
    assert json.loads(answer.output)["accepted"][0]["flow"] == "drive"


def test_numbers_in_base_units_may_have_a_decimal_comma(tmp_path: Path) -> None:
    text = "id;source;destination;udp_source;udp_destination;rate_bps;burst_bytes;frame_bytes;deadline_ms\n"
    path = written(tmp_path, "flows.csv", f"{text}a;H1;H3;1;2;300000,5;612;306;7,5\n")
    (read,) = load_requests(path)
    assert (read.flow.rate_bps, read.deadline_ns) == (300000.5, 7.5e6)


def test_another_encoding_is_named_with_the_command_that_converts(tmp_path: Path) -> None:
    path = tmp_path / "my flows.csv"
    path.write_bytes(spreadsheet(";").replace("drive", "Füllstand").encode("cp1252"))
    with pytest.raises(InputError) as error:
        load_requests(path)
    told, command = str(error.value).split("convert it: ")
    assert told.endswith("is not in UTF-8, perhaps in Windows-1252; save it in UTF-8, or ")
    converted = subprocess.run(shlex.split(command), check=True, capture_output=True).stdout
    assert "Füllstand" in converted.decode()
    path.write_bytes(b"\x00\xff\x00")
    with pytest.raises(InputError, match="is not a text file"):
        load_requests(path)


@pytest.mark.parametrize("flow_id", ["", "a b", "-x", "ä", "a" * 65, "a/b"])
def test_ids_follow_the_rules_of_the_service(tmp_path: Path, flow_id: str) -> None:
    path = written(tmp_path, "flows.json", json.dumps([{"id": flow_id, **ENDS, **WRITTEN}]))
    with pytest.raises(InputError, match=r"id: '.*': give 1 to 64 letters, digits"):
        load_requests(path)


def test_everything_that_is_wrong_is_told_at_once_by_id_and_line(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "flows.yml",
        f"- {json.dumps({'id': 'a', **ENDS, **WRITTEN})}\n"
        f"- {json.dumps({'id': 'b', **ENDS, **WRITTEN, 'rate': '3 apples', 'udp_source': 70000})}\n"
        f"- {json.dumps({'id': 'a', **ENDS, **WRITTEN, 'udp_source': 1})}\n"
        f"- {json.dumps({'id': 'c', **ENDS, **WRITTEN})}\n"
        f"- {json.dumps({'id': 'd', **ENDS, **WRITTEN, 'rate_bps': 5.0, 'udp_source': 2})}\n"
        f"- {json.dumps({'id': 'e', **ENDS, 'rate': '1 bit/s', 'burst': '1 frame', 'udp_source': 3})}\n",
    )
    with pytest.raises(InputError) as error:
        load_requests(path)
    lines = [line.removeprefix(f"{path}:") for line in error.value.lines]
    assert [line.split(": ")[:2] for line in lines] == [
        ["2", "flow 'b'"],
        ["2", "flow 'b'"],
        ["3", "flow 'a'"],
        ["4", "flow 'c'"],
        ["5", "flow 'd'"],
        ["6", "flow 'e'"],
    ]
    assert "udp_source: must be at most 65535" in lines[0]
    assert "rate: '3 apples' is not a rate" in lines[1]
    assert lines[2].endswith("this id is used twice; rename one")
    assert lines[3].endswith("has the hosts and ports of 'a'; change a port")
    assert lines[4].endswith("rate and rate_bps say the same; leave one out")
    assert lines[5].endswith("frame is missing; give the size of every frame, with FCS, such as 306 bytes")
    assert str(error.value).endswith(" (and 5 more)")


def row(flow_id: str, destination: str, ports: tuple[int, int], **values: str | float) -> str:
    ends = {"source": "H1", "destination": destination, "udp_source": ports[0], "udp_destination": ports[1]}
    usual = {"rate": "1 kbit/s", "burst": "1 frames", "frame": "306 bytes"}
    return f"- {json.dumps({'id': flow_id, **ends, **usual, **values})}\n"


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        (
            [
                row("zero", "H3", (1, 2), rate="0 Mbit/s"),
                row("a", "H1", (1, 3)),
                row("a", "H3", (1, 4), burst="0 frames"),
                row("b", "H3", (1, 4), frame="0 bytes"),
                row("c", "H3", (0, 70000), rate="-1 kbit/s", frame="1519 bytes"),
                row("d", "H3", (1, 4), rate=math.inf, burst="1e400 bytes"),
                row("e", "H3", (1, 4), deadline="0 ms"),
            ],
            [
                *("1 rate", "2 source", "3 twice", "3 burst", "4 ports of 'a'", "4 frame", "5 udp_source"),
                *("5 udp_destination", "5 rate", "5 frame", "6 ports of 'a'", "6 rate", "6 burst"),
                *("7 ports of 'a'", "7 deadline"),
            ],
        ),
        (
            [row("a", "H1", (1, 3)), row("a", "H3", (1, 4)), row("b", "H3", (1, 4))],
            ["1 source", "2 twice", "3 ports of 'a'"],
        ),
        ([row("a", "H1", (1, 3)), row("b", "H9", (1, 4))], ["1 source", "2 H9"]),
    ],
)
def test_no_error_hides_another(tmp_path: Path, rows: list[str], wrong: list[str]) -> None:
    """A flow to itself, a repetition, and each wrong value are told, once each, in the order of lines."""
    path = written(tmp_path, "flows.yml", "".join(rows))
    with pytest.raises(InputError) as error:
        load_requests(path, load_lab("two-switch"))
    lines = [line.removeprefix(f"{path}:") for line in error.value.lines]
    assert len(lines) == len(wrong), lines
    for line, (number, said) in zip(lines, (each.split(" ", 1) for each in wrong), strict=True):
        assert line.startswith(f"{number}: ")
        assert said in line


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"burst_bytes": 1e300}, "burst_bytes: must be at most 1000000000000000"),
        ({"rate_bps": 1e300}, "rate_bps: must be at most 1000000000000000"),
        ({"deadline_ns": 1e300}, "deadline_ns: must be at most 1000000000000000"),
        ({"deadline_ms": 1e300}, "deadline_ms: must be at most 1000000000"),
        ({"rate": "1e99 Gbit/s"}, "rate: '1e99 Gbit/s' is beyond any network"),
    ],
)
def test_what_is_beyond_any_network_is_refused(tmp_path: Path, values, says: str) -> None:
    base = {"rate_bps": 1e3, "burst_bytes": 306.0, "frame_bytes": 306}
    if "rate" in values:
        del base["rate_bps"]
    path = written(tmp_path, "flows.json", json.dumps([{"id": "a", **ENDS, **base, **values}]))
    with pytest.raises(InputError, match=says):
        load_requests(path)


def test_hosts_that_a_lab_has_not_are_told_with_all_else(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "flows.csv",
        "id,source,destination,udp_source,udp_destination,rate,burst,frame\n"
        "a,H9,nowhere,1,2,1 kbit/s,1 frame,306 bytes\n"
        "b,H1\n"
        "c,H1,h3,1,2,much,1 frame,306 bytes\n"
        "d,H1,H33,1,2,1 kbit/s,1 frame,306 bytes\n",
    )
    with pytest.raises(InputError) as error:
        load_requests(path, load_lab("two-switch"))
    assert [line.removeprefix(f"{path}:") for line in error.value.lines] == [
        "2: flow 'a': source: lab 'two-switch' has no host 'H9'; it has H1, H2, H3, H4",
        "2: flow 'a': destination: lab 'two-switch' has no host 'nowhere'; it has H1, H2, H3, H4",
        "3: 2 cells; the first line names 8 columns",
        "4: flow 'c': destination: lab 'two-switch' has no host 'h3'; did you mean 'H3'?",
        "4: flow 'c': rate: 'much' is not a rate such as 2.3 Mbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s)",
        "5: flow 'd': destination: lab 'two-switch' has no host 'H33'; did you mean 'H3'?",
    ]


def test_all_columns_that_nobody_knows_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, "flows.csv", "id,from,colour\na,H1,red\n")
    with pytest.raises(InputError) as error:
        load_requests(path)
    first, second = error.value.lines
    assert first == f"{path}:1: unknown column 'from'; did you mean 'source'?"
    assert second.startswith(f"{path}:1: unknown column 'colour' (allowed: id, source, ")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("flows.csv", "id,sauce\na,b\n", "flows.csv:1: unknown column 'sauce'"),
        ("flows.csv", "", "flows.csv: is empty; name the columns"),
        ("flows.csv", "id,source\na\n", "flows.csv:2: 1 cells; the first line names 2 columns"),
        ("flows.yml", "", "flows.yml: is empty; begin each flow"),
        ("flows.yml", "a: b", "is no list of flows"),
        ("flows.yml", "a: [", "not valid YAML"),
    ],
)
def test_a_file_that_is_no_list_of_flows_is_one_line(tmp_path: Path, name, text, says) -> None:
    with pytest.raises(InputError) as error:
        load_requests(written(tmp_path, name, text))
    assert says in str(error.value)
    assert len(error.value.lines) == 1


def test_a_lab_that_cannot_keep_a_deadline_refuses_it(tmp_path: Path) -> None:
    path = written(tmp_path, "flows.yml", json.dumps([{"id": "a", **ENDS, **WRITTEN}]))
    with pytest.raises(InputError, match="flow 'a' has a deadline, which is only asked for by 'loko plan'"):
        load_flows(path)


def planned(text: str, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["plan", "two-switch", "-", *options], input=text)
    return result.exit_code, result.output


def test_a_deadline_is_kept_or_the_flow_is_refused_and_the_advice_is_granted() -> None:
    request = {"id": "a", **ENDS, **WRITTEN}
    status, output = planned(json.dumps([request]), "--json")
    (answer,) = json.loads(output)["accepted"]
    assert (status, answer["deadline_ns"]) == (0, 5e6)
    assert answer["slack_ns"] == pytest.approx(5e6 - answer["guarantee_ns"])
    status, output = planned(json.dumps([{**request, "deadline": "1 ms"}]), "--json")
    (answer,) = json.loads(output)["refused"]
    assert (status, answer["quantity"]) == (1, "delay")
    least_ns = answer["would_fit"]["deadline_ns"]
    assert planned(json.dumps([{**request, "deadline": f"{least_ns} ns"}]))[0] == 0
    assert planned(json.dumps([{**request, "deadline": f"{least_ns - 1} ns"}]))[0] == 1


def test_many_refusals_are_told_by_what_runs_out() -> None:
    flows = [{"id": f"f{place}", **ENDS, **WRITTEN, "udp_source": 5000 + place} for place in range(300)]
    status, output = planned(json.dumps(flows))
    refused = [line for line in output.splitlines() if line.startswith("refused: ")]
    assert status == 1
    assert len(refused) <= 3
    assert sum(int(line.split()[1]) for line in refused) + output.count("│ f") == 300
    assert "of 300 fit" in output
    assert "with --scheme packets: " in output


def test_csv_has_a_line_for_each_flow() -> None:
    flows = [{"id": f"f{place}", **ENDS, **WRITTEN, "udp_source": 5000 + place} for place in range(12)]
    _, output = planned(json.dumps(flows), "--csv")
    lines = output.splitlines()
    assert lines[0].startswith("flow,accepted,path,traffic_class,guarantee_ns,deadline_ns,slack_ns,switch")
    assert sorted(line.split(",")[0] for line in lines[1:]) == sorted(f"f{place}" for place in range(12))
    assert {line.split(",")[1] for line in lines[1:]} == {"yes", "no"}
    assert planned(json.dumps(flows), "--csv", "--json")[0] == 2
