"""`loko plan` with traffic classes: from the list of flows, or chosen."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from harness.managed_switches import OWN_BUFFERS, managed_switch, ring_of_managed
from typer.testing import CliRunner

from loko.admission import Admitted
from loko.service.admitter import SchemeAdmitter
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import load_lab
from loko.topology.requests import load_requests
from loko_testbed.cli.main import app
from loko_testbed.cli.serve import _AdmissionOptions, _by_admission

FLOWS = """\
id,source,destination,udp_source,udp_destination,rate,burst,frame,deadline,traffic_class
control,h0,h1,5000,5001,2 Mbit/s,2 frames,306,1 ms,
video,h0,h2,5000,5002,20 Mbit/s,8 frames,1400,20 ms,2
"""


BESIDE_BOARDS = """\
id,source,destination,udp_source,udp_destination,rate,burst,frame,deadline,traffic_class
control,h1,h3,5000,5001,100 kbit/s,1 frame,306,8 ms,
video,h2,h3,5000,5002,2 Mbit/s,4 frames,306,40 ms,2
"""


@pytest.fixture
def board_and_chips(tmp_path: Path) -> Path:
    """Return a ring of a board and three chips, with flows of two classes; one begins at the board."""
    chips = [word for name in ("s2", "s3", "s4") for word in ("--profile", f"{name}=ideal-1g")]
    words = ["lab", "new", "ring", *chips, "--out", str(tmp_path / "mixed")]
    assert CliRunner().invoke(app, words).exit_code == 0
    (tmp_path / "mixed" / "flows.csv").write_text(BESIDE_BOARDS)
    return tmp_path / "mixed"


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    ring_of_managed(tmp_path, managed_switch(OWN_BUFFERS, queues=4))
    (tmp_path / "flows.csv").write_text(FLOWS)
    return tmp_path


def planned(folder: Path, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["plan", str(folder), str(folder / "flows.csv"), "--json", *options])
    assert result.exit_code == 0, result.output
    values: dict[str, Any] = json.loads(result.stdout)
    return values


def test_the_class_of_each_flow_is_shown(ring: Path) -> None:
    classes = [flow.get("traffic_class") for flow in planned(ring)["accepted"]]
    assert classes == [None, 2]
    result = CliRunner().invoke(app, ["plan", str(ring), str(ring / "flows.csv")])
    assert " class " in result.stdout
    assert result.exit_code == 0
    result = CliRunner().invoke(app, ["plan", str(ring), str(ring / "flows.csv"), "--csv"])
    assert [row["traffic_class"] for row in csv.DictReader(result.stdout.splitlines())] == ["1", "2"]


def test_refused_flows_have_the_class_they_asked_for(ring: Path) -> None:
    path = ring / "flows.csv"
    path.write_text(FLOWS.replace("20 ms,2", "1 ns,2"))
    result = CliRunner().invoke(app, ["plan", str(ring), str(path), "--csv"])
    assert result.exit_code == 1, result.output
    rows = {row["flow"]: row for row in csv.DictReader(result.stdout.splitlines())}
    assert (rows["video"]["accepted"], rows["video"]["traffic_class"]) == ("no", "2")


@pytest.mark.parametrize(("deadline", "with_target"), [("40 ms", ["1", "2"]), ("", ["1"])])
def test_the_service_promises_as_planned_with_the_options_that_the_plan_prints(
    deadline: str, with_target: list[str], board_and_chips: Path
) -> None:
    (board_and_chips / "flows.csv").write_text(BESIDE_BOARDS.replace("40 ms", deadline))
    words = [str(board_and_chips), str(board_and_chips / "flows.csv"), "--changes-per-s", "20"]
    result = CliRunner().invoke(app, ["plan", *words])
    targets = re.findall(r"--class-target-ms (\S+)", result.output)
    assert [target.partition("=")[0] for target in targets] == with_target
    classes = re.findall(r"--classes (\d)", result.output)
    assert len(classes) == 2 - len(with_target)
    lab = load_lab(board_and_chips)
    given = {
        "class_target_ms": targets,
        "classes": int(classes[0]) if classes else None,
        "changes_per_s": 20.0,
    }
    options = _AdmissionOptions(**dict.fromkeys(_AdmissionOptions._fields) | given)
    admitter = _by_admission(lab, options, OpenFlow.V1_0).admitter
    assert isinstance(admitter, SchemeAdmitter)
    served = [admitter.decision(request.flow)() for request in load_requests(words[1], lab)]
    assert len(served) == 2
    promised = [flow["guarantee_ns"] for flow in planned(board_and_chips, *words[2:])["accepted"]]
    assert [answer.guarantee_ns for answer in served if isinstance(answer, Admitted)] == pytest.approx(
        promised
    )


def test_the_guarantee_sheet_names_class_and_vlan(ring: Path) -> None:
    ring_of_managed(ring, managed_switch(OWN_BUFFERS, queues=4, vlans=8))
    planned(ring, "--sheet", str(ring / "sheet.html"))
    sheet = (ring / "sheet.html").read_text()
    assert "h0 → s0 → s1 → h1 (VLAN 2)" in sheet
    assert "h0 → s0 → s1 → s2 → h2 (class 2, VLAN 3)" in sheet


def test_flows_of_every_class_survive_a_cable(ring: Path) -> None:
    survive = planned(ring, "--survive", "cables=1")["survive"]
    assert survive["cut_off"] == {}
    control, video = survive["flows"]
    # The targets of both classes leave time for the longer way around the ring.
    assert control["guarantee_ns"] <= 1e6 < video["guarantee_ns"] <= 20e6
    assert all(flow["backups"] for flow in (control, video))
    duplicated = ["--survive", "cables=1", "--protection", "duplicate"]
    result = CliRunner().invoke(app, ["plan", str(ring), str(ring / "flows.csv"), *duplicated])
    assert result.exit_code == 0, result.output
    assert " class " in result.stdout
    assert "2 of 2 survive, by 1+1" in result.output


def test_the_targets_of_classes_that_survive_are_printed(ring: Path) -> None:
    survive = ["--survive", "cables=1"]
    result = CliRunner().invoke(app, ["plan", str(ring), str(ring / "flows.csv"), *survive])
    assert result.exit_code == 0, result.output
    targets = dict(re.findall(r"--class-target-ms (\d)=(\S+)", result.output))
    found = planned(ring, *survive)["class_targets_ns"]
    assert {each: float(target) * 1e6 for each, target in targets.items()} == pytest.approx(found)
    # They leave time for the longer ways, so they are no longer than for the shortest paths alone.
    alone = planned(ring)["class_targets_ns"]
    assert found.keys() == alone.keys() == {"1", "2"}
    assert found["1"] < alone["1"]
    assert found["2"] <= alone["2"]


def test_classes_are_chosen_so_that_most_flows_survive(tmp_path: Path) -> None:
    """Control is in time only if it does not wait in a queue as full as that of video may be."""
    ring_of_managed(tmp_path, managed_switch(OWN_BUFFERS, queues=4), hosts_each=2)
    (tmp_path / "flows.csv").write_text(
        FLOWS.splitlines()[0]
        + """
control,h0,h2,5000,5001,2 Mbit/s,2 frames,306,0.4 ms,
video1,h1,h4,5002,5002,20 Mbit/s,4 frames,1400,20 ms,
video2,h1,h4,5003,5003,20 Mbit/s,4 frames,1400,20 ms,
"""
    )
    options = ["plan", str(tmp_path), str(tmp_path / "flows.csv"), "--survive", "cables=1", "--json"]
    one = json.loads(CliRunner().invoke(app, options).stdout)
    two = json.loads(CliRunner().invoke(app, [*options, "--classes", "2"]).stdout)
    assert len(one["accepted"]) < len(two["accepted"]) == 3
    assert [flow.get("traffic_class") for flow in two["accepted"]] == [None, 2, 2]


def test_a_cut_is_replayed_by_class(ring: Path) -> None:
    words = ["replay", str(ring), str(ring / "flows.csv"), "--survive", "cables=1", "--cut", "s0:1-s1:2@0.05"]
    result = CliRunner().invoke(app, [*words, "--detect-ms", "10", "--seconds", "0.1"])
    assert result.exit_code == 0, result.output
    assert " class " in result.output
    for traffic_class in (1, 2):
        assert re.search(rf"class {traffic_class}: [1-9]\d* frames sent, .* lost, 0 late", result.output)


def test_classes_that_are_planned_are_replayed(ring: Path) -> None:
    """Control beside a burst of video that it may only precede."""
    tight = FLOWS.replace("1 ms", "0.3 ms").replace(",2\n", ",\n")
    (ring / "flows.csv").write_text(tight)
    words = ["replay", str(ring), str(ring / "flows.csv"), "--seconds", "0.1", "--json"]
    one, two = (CliRunner().invoke(app, [*words, *options]) for options in ([], ["--classes", "2"]))
    flows = [[flow["flow"] for flow in json.loads(each.stdout)["runs"][0]["flows"]] for each in (one, two)]
    assert flows == [["video"], ["control", "video"]]
    assert (one.exit_code, two.exit_code) == (0, 0)


def test_flows_that_fit_in_one_class_are_shown_in_one(ring: Path) -> None:
    assert not any("traffic_class" in flow for flow in planned(ring, "--classes", "2")["accepted"])


def test_headroom_is_of_the_class_of_its_flow(ring: Path) -> None:
    """Class 2 has the longer deadline, so more of the same burst fits there."""
    more = []
    for traffic_class in (1, 2):
        template = f"{{rate: 1 Mbit/s, burst: 8 frames, frame: 1400, traffic_class: {traffic_class}}}"
        found = planned(ring, "--headroom", template)["headroom"]
        assert found["flow"].get("traffic_class", 1) == traffic_class
        more.append(min(pair["more"] for pair in found["rows"]))
    assert 0 < more[0] < more[1]


def test_whole_paths_promise_the_deadlines_of_every_class(ring: Path) -> None:
    """They are tighter than full queues allow, so they are the promises."""
    (ring / "flows.csv").write_text(FLOWS.replace("1 ms", "0.2 ms").replace("20 ms", "1 ms"))
    control, video = planned(ring, "--allocation", "whole-paths")["accepted"]
    assert (control["guarantee_ns"], video["guarantee_ns"]) == (200_000, 1_000_000)
    assert (control.get("traffic_class"), video.get("traffic_class")) == (None, 2)


def test_boards_and_chips_are_planned_in_classes(board_and_chips: Path) -> None:
    control, video = planned(board_and_chips)["accepted"]
    assert (control.get("traffic_class"), video.get("traffic_class")) == (None, 2)
    assert control["guarantee_ns"] <= 8e6 < video["guarantee_ns"] <= 40e6
    # The target of the board is given, those of the chips follow the deadlines.
    given = planned(board_and_chips, "--target-ms", "1")["accepted"][0]
    assert given["hops"][0]["delay_ns"] < 1.1e6 < given["hops"][1]["delay_ns"]
    survive = planned(board_and_chips, "--survive", "cables=1")["survive"]
    assert [flow["guarantee_ns"] <= limit for flow, limit in zip(survive["flows"], (8e6, 40e6), strict=True)]
    assert planned(board_and_chips, "--headroom", "video")["headroom"]["rows"]


def test_a_cut_between_boards_and_chips_is_replayed_by_class(board_and_chips: Path) -> None:
    words = ["replay", str(board_and_chips), str(board_and_chips / "flows.csv"), "--survive", "cables=1"]
    words += ["--cut", "s2:3-s3:2@0.05", "--detect-ms", "1", "--seconds", "0.1"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    for traffic_class in (1, 2):
        assert re.search(rf"class {traffic_class}: [1-9]\d* frames sent, .* lost, 0 late", result.output)


def test_the_switch_that_has_no_classes_is_named(ring: Path) -> None:
    lab = (ring / "lab.yml").read_text().replace("profile: ./switch.toml", "profile: hp-2920", 1)
    (ring / "lab.yml").write_text(lab)
    result = CliRunner().invoke(app, ["plan", str(ring), str(ring / "flows.csv")])
    assert result.exit_code == 2
    assert "leave it out, or replace s0 (hp-2920), which has no classes" in result.stderr


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--scheme", "silo"], "flow 'video': traffic_class 2: --scheme silo knows one class only"),
        (["--survive", "cables=1", "--scheme", "silo"], "--survive: silo is a baseline"),
        (["--scheme", "silo", "--classes", "2"], "--classes 2: --scheme silo knows one class only"),
    ],
)
def test_what_knows_one_class_says_so(ring: Path, options: list[str], error: str) -> None:
    result = CliRunner().invoke(app, ["plan", str(ring), str(ring / "flows.csv"), *options])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert error in line
