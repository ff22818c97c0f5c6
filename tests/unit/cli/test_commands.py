"""`model` and `plan` as a user calls them."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loko.document import PROFILES
from loko_testbed.cli.main import app

SECTION_6 = ("--packet-size", "306", "--entries", "17", "--match", "five-tuple", "--action", "output")


def call(*arguments: str):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def flows_file(folder: Path, rate_bps: float) -> Path:
    flow = {"source": "H1", "destination": "H3", "udp_destination": 5, "burst_bytes": 306, "frame_bytes": 306}
    flows = [{**flow, "id": f"f{port}", "udp_source": port, "rate_bps": rate_bps} for port in (1, 2)]
    (folder / "flows.yml").write_text(json.dumps(flows))
    return folder / "flows.yml"


def test_model_prints_table_2() -> None:
    result = call("model", "zodiac-fx", *SECTION_6)
    assert result.exit_code == 0
    for number in ("463.61", "11.849", "2067.4", "1.860", "2.369", "2371.9", "2.065"):
        assert number in result.output
    assert "100 ppm" in result.output  # the tolerance of the allocations


def test_model_as_json_lists_terms_that_add_up() -> None:
    values = json.loads(call("model", "zodiac-fx", *SECTION_6, "--json").output)
    assert sum(term["value_ns"] for term in values["terms"]) == pytest.approx(values["latency_ns"])
    assert values["scenario"]["priorities"] == "unknown"
    assert values["allocations"]["fifth-rate"]["feasible"] is True


def test_model_as_csv_has_a_line_for_each_scheme() -> None:
    told = json.loads(call("model", "zodiac-fx", *SECTION_6, "--json").output)
    rows = list(csv.DictReader(io.StringIO(call("model", "zodiac-fx", *SECTION_6, "--csv").output)))
    assert [row["scheme"] for row in rows] == list(told["allocations"])
    for row in rows:
        assert float(row["latency_ns"]) == told["latency_ns"]
        for name in ("max_rate_bps", "max_burst_bytes", "delay_ns"):
            assert float(row[name]) == told["allocations"][row["scheme"]][name]
    assert call("model", "zodiac-fx", "--csv", "--json").exit_code == 2


def test_model_of_openflow_1_3_has_terms_of_its_own() -> None:
    in_1_0, in_1_3 = (
        json.loads(call("model", "zodiac-fx", *SECTION_6, "--openflow", version, "--json").output)
        for version in ("1.0", "1.3")
    )
    assert in_1_0 == json.loads(call("model", "zodiac-fx", *SECTION_6, "--json").output)
    assert in_1_3["scenario"]["openflow"] == "1.3"
    assert sum(term["value_ns"] for term in in_1_3["terms"]) == pytest.approx(in_1_3["latency_ns"])
    names = {term["name"] for term in in_1_3["terms"]}
    assert {"entry that matches", "other entries examined"} <= names
    assert in_1_3["rate_bps"] != in_1_0["rate_bps"]


def test_model_of_openflow_1_3_needs_its_costs(tmp_path: Path) -> None:
    text = (PROFILES / "zodiac-fx.toml").read_text()
    head, _, tail = text.partition("[cpu.openflow13]")
    old = tmp_path / "old.toml"
    old.write_text(head + "[tolerance]" + tail.partition("[tolerance]")[2])
    assert call("model", old, *SECTION_6).exit_code == 0
    result = call("model", old, *SECTION_6, "--openflow", "1.3")
    assert result.exit_code == 2
    assert "has no costs of OpenFlow 1.3 (cpu.openflow13)" in result.stderr
    assert result.stderr.count("\n") == 1


def test_model_without_a_feasible_allocation_says_why() -> None:
    result = call("model", "zodiac-fx")
    assert result.exit_code == 0
    values = json.loads(call("model", "zodiac-fx", "--json").output)
    assert "less than one frame" in values["allocations"]["full-rate"]["reason"]


def test_plan_accepts(tmp_path: Path) -> None:
    result = call("plan", "two-switch", flows_file(tmp_path, 1e6))
    assert result.exit_code == 0
    assert "H1 s1 s2 H3" in result.output
    assert "4.367" in result.output
    assert "reserved of each switch: heartbeat=0.5, the board's timers\n" in result.output


def test_plan_for_a_silent_controller_reserves_for_what_the_board_does_then(tmp_path: Path) -> None:
    flows = flows_file(tmp_path, 1e6)
    result = call("plan", "two-switch", flows, "--control", "none")
    assert "4.152" in result.output  # rounded up
    assert "reserved of each switch: the board's timers and keepalive\n" in result.output
    mixed = call("plan", "two-switch", flows, "--control", "none", "--control", "echo=1")
    assert mixed.exit_code == 2
    assert "none alone" in mixed.output


def test_what_plan_says_that_it_reserves_can_be_typed_in(tmp_path: Path) -> None:
    flows = flows_file(tmp_path, 1e6)
    told = json.loads(call("plan", "two-switch", flows, "--json").stdout)
    control = told["reserved"].split(",")[0]
    assert json.loads(call("plan", "two-switch", flows, "--json", "--control", control).stdout) == told


def test_plan_as_the_paper_reserves_for_the_board_all_the_same(tmp_path: Path) -> None:
    result = call("plan", "two-switch", flows_file(tmp_path, 1e6), "--echoes-per-s", "0")
    assert "4.152" in result.output  # rounded up
    both = call("plan", "two-switch", flows_file(tmp_path, 1e6), "--echoes-per-s", "0", "--control", "echo=1")
    assert both.exit_code == 2
    assert "leave --control out" in both.output


def test_plan_with_a_refusal_ends_with_status_1(tmp_path: Path) -> None:
    result = call("plan", "two-switch", flows_file(tmp_path, 2e6))
    assert result.exit_code == 1
    assert "refused: f2: rate at s1: 2 used + 2 requested" in result.output


def test_plan_as_json(tmp_path: Path) -> None:
    values = json.loads(call("plan", "two-switch", flows_file(tmp_path, 2e6), "--json").stdout)
    assert [flow["flow"] for flow in values["accepted"]] == ["f1"]
    assert values["refused"][0]["switch"] == "s1"


MIXED = """id,source,destination,udp_source,udp_destination,rate,burst,frame,deadline
large,H1,H3,1,9,900 kbit/s,4 frames,306 bytes,
first,H2,H4,2,9,10 kbit/s,1 frame,306 bytes,9 ms
second,H2,H4,3,9,10 kbit/s,1 frame,306 bytes,
third,H2,H4,4,9,10 kbit/s,1 frame,306 bytes,
fourth,H2,H4,5,9,10 kbit/s,1 frame,306 bytes,
fifth,H2,H4,6,9,10 kbit/s,1 frame,306 bytes,
"""


def mixed_file(folder: Path) -> Path:
    (folder / "mixed.csv").write_text(MIXED)
    return folder / "mixed.csv"


def test_the_largest_set_leaves_out_what_takes_most(tmp_path: Path) -> None:
    flows = mixed_file(tmp_path)
    assert "large" in [
        flow["flow"] for flow in json.loads(call("plan", "two-switch", flows, "--json").stdout)["accepted"]
    ]
    result = call("plan", "two-switch", flows, "--largest")
    assert result.exit_code == 1
    assert "5 of 6 fit, and no larger set fits" in result.output
    told = json.loads(call("plan", "two-switch", flows, "--largest", "--json").stdout)
    assert [refusal["flow"] for refusal in told["refused"]] == ["large"]
    assert told["largest"]["is_proven"]
    assert told["largest"]["bound"] == 5 > told["largest"]["in_order"]


def test_schemes_side_by_side_say_what_each_says_alone(tmp_path: Path) -> None:
    flows = mixed_file(tmp_path)
    schemes = ("loko", "packets", "qjump")
    words = [word for scheme in schemes for word in ("--scheme", scheme)]
    table = call("plan", "two-switch", flows, *words).output
    told = json.loads(call("plan", "two-switch", flows, *words, "--json").stdout)["plans"]
    for scheme, answer in zip(schemes, told, strict=True):
        alone = call("plan", "two-switch", flows, "--scheme", scheme, "--json").stdout
        assert json.loads(alone) == answer
        assert f"{len(answer['accepted'])} of 6" in table
    assert "refused" in table
    assert max(len(line) for line in table.splitlines() if line[:1] in "┏┃┡│├└") <= 80
    assert [line for line in table.splitlines() if "do not hold" in line] == [
        "qjump: for comparison only: on switches with one CPU for all ports its guarantees do not hold"
    ]
    rows = call("plan", "two-switch", flows, *words, "--csv").stdout.splitlines()
    assert rows[0].startswith("scheme,flow,accepted")
    assert len(rows) == 1 + 3 * 6


def test_what_if_a_flow_went_and_another_came(tmp_path: Path) -> None:
    flows = mixed_file(tmp_path)
    gone = call("plan", "two-switch", flows, "--without", "large")
    assert gone.exit_code == 0
    assert "5 of 5 fit" in gone.output
    now = json.loads(call("plan", "two-switch", flows, "--without", "large", "--json").stdout)["what_if"]
    before = json.loads(call("plan", "two-switch", flows, "--json").stdout)["refused"]
    assert now["accepted_now"] == [refusal["flow"] for refusal in before] != []
    assert now["guarantees_ns"] == {}
    more = tmp_path / "more.csv"
    header, row, *_ = MIXED.splitlines()
    more.write_text(
        f"{header}\n{row.replace('large,', 'longer,').replace('1,9', '7,9').replace('306', '1000')}\n"
    )
    told = json.loads(call("plan", "two-switch", flows, "--add", more, "--json").stdout)
    assert told["what_if"]["guarantees_ns"].keys() | set(told["what_if"]["refused_now"]), (
        "longer frames take longer, whoever sends them"
    )
    assert "longer" in {answer["flow"] for answer in [*told["accepted"], *told["refused"]]}


def test_nothing_to_tell_of_a_what_if_is_said(tmp_path: Path) -> None:
    result = call("plan", "two-switch", flows_file(tmp_path, 1e3), "--without", "f2")
    assert "nothing changes for the flows that stay" in result.output


def test_a_what_if_of_several_schemes_is_one_table(tmp_path: Path) -> None:
    """The guarantee before the change stands in brackets, as in the plan without it."""
    flows = flows_file(tmp_path, 1e3)
    large = {"id": "large", "source": "H1", "destination": "H3", "udp_source": 7, "udp_destination": 7}
    sizes = {"rate": "1 kbit/s", "burst": "1 frames", "frame": "1000 bytes"}
    (tmp_path / "more.yml").write_text(json.dumps([{**large, **sizes}]))
    schemes = ("--scheme", "loko", "--scheme", "packets")
    before = call("plan", "two-switch", flows, *schemes).stdout
    now = call("plan", "two-switch", flows, *schemes, "--add", tmp_path / "more.yml").stdout
    guarantees = next(re.findall(r"\d+\.\d{3}", line) for line in before.splitlines() if "│ f1" in line)
    [row] = [line for line in now.splitlines() if "│ f1" in line]
    assert re.findall(r"\((\d+\.\d{3})\)", row) == guarantees
    assert len(set(re.findall(r"\d+\.\d{3}", row))) == 4, "longer frames take longer"
    assert "(" not in next(line for line in now.splitlines() if "│ large" in line)
    assert "in brackets: without the change" in now
    assert "ms before" not in now
    assert "in brackets" not in before
    same = call("plan", "two-switch", flows, *schemes, "--without", "f2").stdout
    assert same.count("nothing changes for the flows that stay") == 1


def test_a_what_if_names_what_is_wrong(tmp_path: Path) -> None:
    flows = mixed_file(tmp_path)
    for words, says in (
        (("--without", "frist"), "--without frist: no flow has this id; did you mean 'first'?"),
        (("--add", flows), "--add: flow id 'large' is used twice; rename one"),
        (("--largest", "--scheme", "packets", "--allocation", "joint"), "--largest: for --allocation joint"),
    ):
        result = call("plan", "two-switch", flows, *words)
        assert result.exit_code == 2
        assert says in result.stderr
        assert result.stderr.count("\n") == 1


def test_quiet_leaves_the_answer_to_the_status(tmp_path: Path) -> None:
    for rate_bps, status in ((1e6, 0), (2e6, 1)):
        result = call("plan", "two-switch", flows_file(tmp_path, rate_bps), "--quiet")
        assert (result.exit_code, result.output) == (status, "")
    both = call("plan", "two-switch", flows_file(tmp_path, 1e6), "--quiet", "--json")
    assert both.exit_code == 2
    assert "--json, --csv, --quiet: give one of them" in both.stderr


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("flows.yml", "", "is empty; begin each flow with"),
        ("flows.yml", "# later\n", "is empty; begin each flow with"),
        ("flows.csv", "", "is empty; name the columns in the first line"),
        ("flows.csv", "id,source\n", "has no flows; list at least one"),
        ("flows.json", "[]", "has no flows; list at least one"),
        ("flows", "id source\n", "is no list of flows"),
    ],
)
def test_a_file_without_flows_is_told_in_words(tmp_path: Path, name: str, text: str, says: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    result = call("plan", "two-switch", file)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {file}: ")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_empty_document_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "lab.yml").write_text("# nothing yet\n")
    result = call("plan", tmp_path / "lab.yml", flows_file(tmp_path, 1e6))
    assert result.exit_code == 2
    assert "lab.yml: is empty, or has only comments" in result.stderr


def test_reasons_of_an_allocation_are_whole_lines() -> None:
    result = call("model", "zodiac-fx")
    assert re.search(
        r"^full-rate: nothing can be admitted: .*less than one frame of \d+$", result.output, re.M
    )


@pytest.mark.parametrize("schemes", [("loko",), ("loko", "packets", "silo", "qjump")])
def test_tables_fit_80_columns_and_cut_nothing(tmp_path: Path, schemes) -> None:
    name = "a-flow-with-a-rather-long-name-of-its-own"
    flow = f"{{id: {name}, source: h1a, destination: h12a, udp_source: 5, udp_destination: 6,"
    (tmp_path / "flows.yml").write_text(
        f"- {flow} rate: 7 kbit/s, burst: 1 frame, frame: 64 bytes, deadline: 90 ms}}"
    )
    words = [word for scheme in schemes for word in ("--scheme", scheme)]
    table = [
        line
        for line in call("plan", "ring", tmp_path / "flows.yml", *words).output.splitlines()
        if line[:1] in "┏┃┡│├└"
    ]
    assert max(map(len, table)) <= 80
    assert not any("…" in line for line in table)
    first = [line.split("│")[1].strip() for line in table if line.startswith("│")]
    assert "".join(first).startswith(name)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("model", "zodiac"), "profile 'zodiac': no such name"),
        (("model", "zodiac-fx", "--packet-size", "20"), "packet size 20 is outside 64 to 1518"),
        (("model", "zodiac-fx", "--entries", "500"), "500 entries; zodiac-fx holds 128"),
        (("model", "slice", "two", "--openflow", "1.3"), "slice"),
        (("plan", "two-switch", "/nowhere"), "flows '/nowhere': no such file"),
        (("plan", "two", "/nowhere"), "no such"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(arguments, says) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_target_that_no_chosen_scheme_keeps_is_refused_not_ignored(tmp_path: Path) -> None:
    flow = "{id: a, source: H1, destination: H3, udp_source: 5, udp_destination: 6, rate: 7 kbit/s,"
    (tmp_path / "flows.yml").write_text(f"- {flow} burst: 1 frame, frame: 64 bytes}}")
    words = ("plan", "two-switch", tmp_path / "flows.yml", "--target-ms", "1")
    alone = call(*words)
    assert alone.exit_code == 2
    assert alone.stderr.count("\n") == 1
    assert "--target-ms: is for --scheme packets or ports" in alone.stderr
    advised = call(*words, "--scheme", "packets", "--scheme", "loko")
    assert advised.exit_code == 0, advised.output


def test_many_refusals_are_grouped_and_the_most_frequent_told(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yml"
    lab.write_text("name: round\ntitle: a ring\nring: {switches: 12, hosts_per_switch: 1, one_way: false}\n")
    flows = tmp_path / "flows.csv"
    names = [f"h{number}" for number in (*range(1, 13), 1)]
    pairs = [*pairwise(names), (names[4], names[5])]
    flows.write_text(
        "id,source,destination,udp_source,udp_destination,rate,burst,frame\n"
        + "".join(
            f"f{place},{source},{destination},{place + 1},2,9 Mbit/s,1 frame,306 bytes\n"
            for place, (source, destination) in enumerate(pairs)
        )
    )
    lines = call("plan", lab, flows).output.splitlines()
    assert lines[0].startswith("refused: 2 flows, by rate at s5, 0 % used; the first is f4: rate at s5: ")
    assert all(line.startswith("refused: 1 flow, by rate at s") for line in lines[1:10])
    assert lines[10:12] == ["refused: 2 flows at 2 other places; --csv lists them all", "0 of 13 fit"]


@pytest.mark.parametrize("scheme", ["loko", "packets"])
def test_plan_and_sheet_say_how_much_slower_switches_may_be(tmp_path: Path, scheme: str) -> None:
    words = ("two-switch", flows_file(tmp_path, 3e5), "--scheme", scheme)
    usual, robust = (json.loads(call("plan", *words, *more, "--json").output) for more in ((), ("--robust",)))
    slower, beyond = usual["margin"]["slower_ppm"], usual["margin"]["limited_by"]
    assert (usual["robust"], robust["robust"]) == (False, True)
    assert slower > 10_000
    assert beyond == {"switch": beyond["switch"], "promise": "lateness"}
    said = (
        f"every switch may take up to {slower // 100 / 100:.2f} % longer than its profile says; beyond that,"
        f" frames may be late, first at {beyond['switch']}"
    )
    sheet = tmp_path / "sheet.html"
    assert f"slower switches: {said}" in " ".join(call("plan", *words, "--sheet", sheet).output.split())
    assert said in sheet.read_text(encoding="utf-8")
    for own, wide in zip(usual["accepted"], robust["accepted"], strict=True):
        assert wide["guarantee_ns"] > own["guarantee_ns"]
    told = call("plan", *words, "--robust").output
    assert "than the slow ends of its profile's ranges say" in " ".join(told.split())
    assert "for every device within the ranges of the profiles" in told


@pytest.mark.parametrize("baseline", ["silo", "qjump"])
def test_a_robust_plan_by_a_baseline_claims_nothing(tmp_path: Path, baseline: str) -> None:
    told = call("plan", "two-switch", flows_file(tmp_path, 3e5), "--scheme", baseline, "--robust").output
    assert "of 2 fit" in told
    assert "for every device" not in told


def test_a_plan_without_flows_or_by_a_baseline_tells_no_margin(tmp_path: Path) -> None:
    nothing_fits = flows_file(tmp_path, 1e9)
    assert json.loads(call("plan", "two-switch", nothing_fits, "--json").output)["margin"] is None
    assert "slower switches" not in call("plan", "two-switch", nothing_fits).output
    flows = flows_file(tmp_path, 3e5)
    assert (
        json.loads(call("plan", "two-switch", flows, "--scheme", "silo", "--json").output)["margin"] is None
    )


def test_the_margin_of_the_largest_set_is_that_of_the_same_plan(tmp_path: Path) -> None:
    words = ("plan", "two-switch", flows_file(tmp_path, 3e5), "--json")
    assert json.loads(call(*words, "--largest").output)["margin"] == json.loads(call(*words).output)["margin"]
