"""`loko plan --headroom`: what is printed, and which options do not go with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loko_testbed.cli.main import app

FLOWS = """\
- {id: drive, source: H1, destination: H3, udp_source: 5000, udp_destination: 6000,
   rate: 300 kbit/s, burst: 2 frames, frame: 306 bytes, deadline: 8 ms}
- {id: valve, source: H4, destination: H2, udp_source: 5001, udp_destination: 6000,
   rate: 100 kbit/s, burst: 1 frames, frame: 306 bytes}
"""
MORE = "rate: 300 kbit/s, burst: 2 frames, frame: 306 bytes, deadline: 8 ms"


@pytest.fixture
def two_switches(tmp_path: Path) -> list[str]:
    """Write a list of flows; return the arguments of `loko plan`."""
    file = tmp_path / "flows.yml"
    file.write_text(FLOWS)
    return ["plan", "two-switch", str(file)]


def test_a_table_and_a_line_for_each_limit(two_switches: list[str]) -> None:
    done = CliRunner().invoke(app, [*two_switches, "--headroom", "drive"])
    assert done.exit_code == 0, done.output
    values = json.loads(CliRunner().invoke(app, [*two_switches, "--headroom", "drive", "--json"]).output)
    found = values["headroom"]
    assert "deadline 8.000 ms, by fifth-rate" in " ".join(done.output.split())
    for limit in found["limits"]:
        assert f"{limit['quantity']} at {limit['switch']} limits {limit['pairs']} of 12 pairs" in done.output
    assert found["asked"] == found["pairs"] == sum(row["pairs"] for row in found["rows"]) == 12
    assert [row["more"] for row in found["rows"]] == sorted(row["more"] for row in found["rows"])
    assert found["rows"][0]["limit"]["unit"]
    assert len(values["accepted"]) == 2


def test_a_flow_may_be_described_or_named(two_switches: list[str]) -> None:
    named, described, in_braces = (
        json.loads(CliRunner().invoke(app, [*two_switches, "--json", "--headroom", text]).output)["headroom"]
        for text in ("drive", MORE, f"{{{MORE}}}")
    )
    assert named == described == in_braces


def test_the_flows_that_come_leave_less_headroom(two_switches: list[str], tmp_path: Path) -> None:
    more = tmp_path / "more.yml"
    more.write_text(FLOWS.replace("drive", "pump").replace("valve", "fan").replace("500", "510"))
    today, then = (
        json.loads(CliRunner().invoke(app, [*two_switches, *added, "--json", "--headroom", "drive"]).output)
        for added in ([], ["--add", str(more)])
    )
    room = [{tuple(row["switches"]): row["more"] for row in one["headroom"]["rows"]} for one in (today, then)]
    assert room[0].keys() == room[1].keys()
    assert all(room[1][switches] < room[0][switches] for switches in room[0])


def test_longer_frames_lengthen_the_guarantees_of_today(two_switches: list[str]) -> None:
    text = "rate: 100 kbit/s, burst: 1 frame, frame: 1000 bytes"
    done = CliRunner().invoke(app, [*two_switches, "--headroom", text])
    assert "this one is for frames of 1000 bytes at every switch:" in done.output
    assert "guarantee of valve:" in done.output
    same = CliRunner().invoke(app, [*two_switches, "--headroom", "drive"])
    assert "at every switch" not in same.output


def test_time_may_not_suffice_for_all_pairs(two_switches: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(0, 10**15, 10**9))
    monkeypatch.setattr("loko_testbed.cli.plan.time.monotonic_ns", lambda: next(ticks))
    done = CliRunner().invoke(app, [*two_switches, "--headroom", "drive"])
    assert done.exit_code == 0, done.output
    assert "of 12 pairs of hosts, spread over the lab, were asked within the --time-limit" in done.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--headroom", "driver"], "no flow has this id; did you mean 'drive'?"),
        (["--headroom", "rate: 1 Mbit/s, burst: 1 frame"], "--headroom: frame is missing"),
        (["--headroom", "rate: 1, frame: 306 bytes"], "--headroom: rate: 1 has no unit"),
        (["--headroom", "rate: 1 Mbit/s, frame: 306 bytes"], "--headroom: burst is missing"),
        (["--headroom", "source: H1, frame: 306 bytes"], "--headroom: source: is for a flow of a list"),
        (["--headroom", "a, }"], "--headroom:1: not valid YAML"),
        (["--headroom", "drive", "--csv"], "--headroom, --csv: give one of them"),
        (["--headroom", "drive", "--largest"], "--headroom, --largest: give one of them"),
        (["--headroom", "drive", "--sheet", "a.pdf"], "--headroom, --sheet: give one of them"),
        (["--headroom", "drive", "--survive", "cables=1"], "--headroom, --survive: give one of them"),
        (["--headroom", "drive", "--scheme", "packets", "--allocation", "joint"], "--headroom: for"),
        (
            ["--headroom", "drive", "--forwarding", "vlan-stack", "--openflow", "1.3"],
            "--headroom: for an entry for each flow only",
        ),
    ],
)
def test_wrong_requests_are_refused_in_one_line(
    two_switches: list[str], options: list[str], message: str
) -> None:
    done = CliRunner().invoke(app, [*two_switches, *options])
    assert done.exit_code == 2
    assert message in done.output
