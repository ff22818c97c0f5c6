"""`loko plan --configuration`: files for every switch, or words alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import Result
from harness.managed_switches import OWN_BUFFERS, managed_switch, ring_of_managed
from typer.testing import CliRunner

from loko_testbed.cli.main import app

FLOWS = """\
- {id: control, source: h0, destination: h1, udp_source: 5000, udp_destination: 5001, rate: 2 Mbit/s,
   burst: 2 frames, frame: 306 bytes}
"""


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    ring_of_managed(tmp_path, managed_switch(OWN_BUFFERS, vlans=8))
    (tmp_path / "flows.yml").write_text(FLOWS)
    return tmp_path


def run(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["plan", str(folder), str(folder / "flows.yml"), *options])


def test_a_folder_gets_words_and_commands(ring: Path) -> None:
    out = ring / "settings"
    result = run(ring, "--configuration", str(out), "--by-dscp")
    assert result.exit_code == 0, result.output
    assert "1 of 1 fit" in result.output
    names = {"settings.txt"} | {f"s{n}.{end}" for n in range(4) for end in ("linux.sh", "fastpath.txt")}
    assert {file.name for file in out.iterdir()} == names
    assert "vlan participation include 2" in (out / "s0.fastpath.txt").read_text()
    assert "classofservice trust ip-dscp" in (out / "s0.fastpath.txt").read_text()
    assert "ip_tos 0xe0/0xfc" in (out / "s0.linux.sh").read_text()


@pytest.mark.parametrize("survive", [[], ["--survive", "cables=1", "--protection", "duplicate"]])
def test_what_programs_read_stays_alone_on_the_standard_output(ring: Path, survive: list[str]) -> None:
    options = [*survive, "--configuration", str(ring / "settings")]
    as_json = run(ring, *options, "--json")
    assert json.loads(as_json.stdout)["accepted"]
    assert as_json.stderr.startswith("written to ")
    assert run(ring, *options, "--csv").stdout.startswith("flow,")
    assert run(ring, *options, "--quiet").output == ""


def test_words_alone_replace_the_plan(ring: Path) -> None:
    result = run(ring, "--configuration", "-")
    assert result.exit_code == 0
    assert result.stdout.startswith("lab managed-ring: settings")
    assert "h0: flow control: VLAN 2, PCP 7" in result.stdout
    assert "accepted by" not in result.stdout


def test_second_copies_have_vlans_of_their_own(ring: Path) -> None:
    words = run(ring, "--configuration", "-", "--survive", "cables=1", "--protection", "duplicate").stdout
    vlans = re.findall(r"h0: flow control(?: \(second copies\))?: VLAN (\d+), PCP 7", words)
    assert len(set(vlans)) == 2
    assert "accepted" not in words


def test_the_plan_says_that_switches_are_configured(ring: Path) -> None:
    output = run(ring).output
    assert "switches-as-configured" in output
    assert "tables-as-planned" not in output


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--by-dscp"], "--by-dscp: goes with --configuration"),
        (["--configuration", "-", "--json"], "--configuration -"),
        (["--configuration", "/dev/null/x"], "--configuration /dev/null/x: cannot be written"),
    ],
)
def test_what_does_not_go_together_is_one_line(ring: Path, options: list[str], error: str) -> None:
    result = run(ring, *options)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert error in line


@pytest.mark.parametrize(
    ("options", "fit"),
    [
        ([], 9),
        (["--classes", "2"], 9),
        (["--classes", "1"], 3),
        (["--classes", "1", "--target-ms", "0.15"], 7),
    ],
)
def test_the_example_of_the_documentation(options: list[str], fit: int) -> None:
    flows = Path("labs/managed-ring/flows.yml")
    result = CliRunner().invoke(app, ["plan", "managed-ring", str(flows), "--json", *options])
    values = json.loads(result.stdout)
    assert len(values["accepted"]) == fit
    video = {flow.get("traffic_class") for flow in values["accepted"] if flow["flow"].startswith("video")}
    assert video == ({None} if "1" in options else {2})


def test_a_plan_in_one_class_points_to_others(ring: Path) -> None:
    flows = FLOWS.replace("burst: 2 frames", "burst: 2 frames, deadline: 0.1 ms")
    for queues, is_told in ((4, True), (2, False)):
        ring_of_managed(ring, managed_switch(OWN_BUFFERS, queues=queues))
        (ring / "flows.yml").write_text(flows)
        assert ("--classes 2 more may fit" in run(ring).output) == is_told


def test_the_service_refuses_such_switches(ring: Path) -> None:
    result = CliRunner().invoke(app, ["serve", str(ring)])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "s0: acme-8g has no OpenFlow" in line
