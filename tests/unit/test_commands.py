"""`model` and `plan` as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from loko import commands

APP = typer.Typer()
APP.command("model")(commands.model)
APP.command("plan")(commands.plan)
SECTION_6 = ("--packet-size", "306", "--entries", "17", "--match", "five-tuple", "--action", "output")


def call(*arguments: str):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


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
    assert "100 ppm" in result.output  # what the allocations allow for


def test_model_as_json_lists_terms_that_add_up() -> None:
    values = json.loads(call("model", "zodiac-fx", *SECTION_6, "--json").output)
    assert sum(term["value_ns"] for term in values["terms"]) == pytest.approx(values["latency_ns"])
    assert values["scenario"]["priorities"] == "unknown"
    assert values["allocations"]["fifth-rate"]["feasible"] is True


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
    assert "4.151" in result.output
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
    assert "4.151" in result.output
    both = call("plan", "two-switch", flows_file(tmp_path, 1e6), "--echoes-per-s", "0", "--control", "echo=1")
    assert both.exit_code == 2
    assert "leave --control out" in both.output


def test_plan_with_a_refusal_ends_with_status_1(tmp_path: Path) -> None:
    result = call("plan", "two-switch", flows_file(tmp_path, 2e6))
    assert result.exit_code == 1
    assert "refused: f2: rate at s1: 2000000 used + 2000000 requested" in result.output


def test_plan_as_json(tmp_path: Path) -> None:
    values = json.loads(call("plan", "two-switch", flows_file(tmp_path, 2e6), "--json").stdout)
    assert [flow["flow"] for flow in values["accepted"]] == ["f1"]
    assert values["refused"][0]["switch"] == "s1"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("model", "zodiac"), "profile 'zodiac': no such name"),
        (("model", "zodiac-fx", "--packet-size", "20"), "packet size 20 is outside 64 to 1518"),
        (("model", "zodiac-fx", "--entries", "500"), "500 entries; zodiac-fx holds 128"),
        (("plan", "two-switch", "/nowhere"), "flows '/nowhere': no such file"),
        (("plan", "two", "/nowhere"), "no such"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(arguments, says) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
