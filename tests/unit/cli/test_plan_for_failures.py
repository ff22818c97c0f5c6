"""`loko plan --survive`: what is printed, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loko_testbed.cli.main import app

FLOWS = """\
- {id: drive, source: h1, destination: h2, udp_source: 5000, udp_destination: 6000,
   rate: 700 kbit/s, burst: 2 frames, frame: 306 bytes}
- {id: valve, source: h1, destination: h3, udp_source: 5001, udp_destination: 6000,
   rate: 100 kbit/s, burst: 1 frames, frame: 306 bytes}
"""


@pytest.fixture
def shape() -> str:
    return "ring"


@pytest.fixture
def lab(shape: str, tmp_path: Path) -> list[str]:
    """Write a lab of four simple switches and its flows; return the arguments of `loko plan`."""
    made = CliRunner().invoke(
        app,
        ["lab", "new", shape, "--switches", "4", "--rate", "95 Mbit/s", "--out", str(tmp_path / "lab")],
    )
    assert made.exit_code == 0, made.output
    (tmp_path / "flows.yml").write_text(FLOWS)
    return ["plan", str(tmp_path / "lab"), str(tmp_path / "flows.yml")]


def test_flows_of_a_ring_survive_a_cable(lab: list[str]) -> None:
    done = CliRunner().invoke(app, [*lab, "--survive", "cables=1"])
    assert done.exit_code == 0, done.output
    assert "2 of 2 survive, by backup paths" in done.output
    assert "may be lost; no other frame is late" in done.output
    assert "s1 s4 s3 s2" in done.output


def test_a_duplicated_flow_loses_nothing(lab: list[str]) -> None:
    done = CliRunner().invoke(app, [*lab, "--survive", "cables=1", "--duplicate", "drive", "--json"])
    assert done.exit_code == 0, done.output
    survive = json.loads(done.output)["survive"]
    drive, valve = survive["flows"]
    assert drive["duplicate"] is not None
    assert drive["backups"] == []
    assert valve["duplicate"] is None
    assert valve["backups"]
    assert {flow for recovery in survive["recoveries"] for flow in recovery["moved"]} == {"valve"}


def test_more_changes_per_second_shorten_the_outage(lab: list[str]) -> None:
    outages_ns = []
    for changes in ("1", "100"):
        done = CliRunner().invoke(app, [*lab, "--survive", "cables=1", "--changes-per-s", changes, "--json"])
        recoveries = json.loads(done.output)["survive"]["recoveries"]
        outages_ns.append(max(recovery["outage_ns"] for recovery in recoveries))
    assert outages_ns[0] > outages_ns[1] >= 1e9


@pytest.mark.parametrize("shape", ["line"])
def test_flows_of_a_line_are_cut_off(lab: list[str]) -> None:
    done = CliRunner().invoke(app, [*lab, "--survive", "cables=1"])
    assert done.exit_code == 1, done.output
    assert "cannot survive: drive, valve" in done.output
    assert "a cable from" in done.output
    assert "with it 2 of 2 survive" in done.output


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--survive", "cable"], "give cables=1, switches=1, or a file of groups"),
        (["--duplicate", "drive"], "say with --survive which failures the flow is to survive"),
        (["--survive", "cables=1", "--duplicate", "nobody"], "no flow has this id"),
        (["--survive", "cables=1", "--largest"], "give one of them"),
        (["--survive", "cables=1", "--csv"], "give one of them"),
        (["--survive", "cables=1", "--scheme", "loko", "--scheme", "silo"], "give --scheme once"),
    ],
)
def test_options_that_do_not_go_together(lab: list[str], options: list[str], told: str) -> None:
    done = CliRunner().invoke(app, [*lab, *options])
    assert done.exit_code == 2, done.output
    assert told in str(done.exception) + done.output
