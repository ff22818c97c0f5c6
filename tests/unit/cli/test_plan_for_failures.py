"""`loko plan --survive`: what is printed, and the exit status."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import networkx as nx
import pytest
from harness.plants import plant_of
from small_plant import FLOWS, write_plant
from typer.testing import CliRunner

from loko.admission import Admission
from loko.admission.planning import plan, scenario_of
from loko.admission.protection import MoveTiming, Protection
from loko.admission.schemes import admission_of, variant_of
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.topology.requests import Request
from loko.units import NS_PER_S
from loko_testbed.cli.main import app
from loko_testbed.cli.protected_plan import ProtectedAnswer, protection_request


@pytest.fixture
def shape() -> str:
    return "ring"


@pytest.fixture
def lab(shape: str, tmp_path: Path) -> list[str]:
    """Write a lab of four simple switches and its flows; return the arguments of `loko plan`."""
    return ["plan", *write_plant(tmp_path, shape=shape)]


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
    assert drive["duplicate"]["remembered_frames"] >= 2
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


def test_boards_have_time_for_the_changes_of_a_move(tmp_path: Path) -> None:
    folder = str(tmp_path / "boards")
    assert CliRunner().invoke(app, ["lab", "new", "ring", "--switches", "4", "--out", folder]).exit_code == 0
    (tmp_path / "flows.yml").write_text(FLOWS.replace("700", "100"))
    unprotected = ["plan", folder, str(tmp_path / "flows.yml"), "--json"]
    survive = [*unprotected, "--survive", "cables=1"]
    still, moved, served = (
        json.loads(CliRunner().invoke(app, arguments).output)
        for arguments in (unprotected, survive, [*survive, "--changes-per-s", "20"])
    )
    assert "change=40" in moved["reserved"]
    assert {condition["id"] for condition in moved["conditions"]} >= {"control-as-reserved", "flows-conform"}
    delays_ns = [told["switches"]["s1"]["delay_ns"] for told in (still, moved, served)]
    assert delays_ns[0] < delays_ns[1] < delays_ns[2]


@pytest.mark.parametrize("shape", ["line"])
def test_paths_by_parallel_cables_are_told_apart_by_ports(lab: list[str]) -> None:
    file = Path(lab[1]) / "lab.yml"
    file.write_text(file.read_text() + "- {a: 's1:4', b: 's2:4'}\n")
    flows = Path(lab[2])
    flows.write_text(FLOWS[: FLOWS.index("- {id: valve")])
    done = CliRunner().invoke(app, [*lab, "--survive", "cables=1"])
    assert "s1:2 s2:1" in done.output
    assert "s1:4 s2:1" in done.output


def test_the_largest_set_that_survives_is_found(lab: list[str]) -> None:
    big, *small = ({"id": f"f{number}"} for number in range(13))
    flows = [
        {**big, "rate": "5 Mbit/s", "burst": "20 frames"},
        *({**flow, "rate": "500 kbit/s", "burst": "4 frames"} for flow in small),
    ]
    ends = {"source": "h1", "destination": "h2", "udp_destination": 6000, "frame": "306 bytes"}
    listed = [{**flow, **ends, "udp_source": 5000 + number} for number, flow in enumerate(flows)]
    Path(lab[2]).write_text(json.dumps(listed))
    in_order = CliRunner().invoke(app, [*lab, "--survive", "cables=1", "--json"])
    done = CliRunner().invoke(app, [*lab, "--survive", "cables=1", "--largest", "--json"])
    assert done.exit_code == 1, done.output
    fewer, found = json.loads(in_order.stdout), json.loads(done.stdout)
    for place, protection in enumerate(("backup", "duplicate"), start=1):
        proof = found["largest"][protection]
        assert proof["is_proven"]
        assert proof["in_order"] == fewer["comparison"][place]["accepted"]
        assert proof["in_order"] < proof["bound"] == found["comparison"][place]["accepted"]
    text = CliRunner().invoke(app, [*lab, "--survive", "cables=1", "--largest"])
    assert "backup paths: 8 of 13 fit, and no larger set fits; 2 in the order asked for" in text.output


@pytest.mark.parametrize("shape", ["line"])
def test_flows_of_a_line_are_cut_off(lab: list[str]) -> None:
    done = CliRunner().invoke(app, [*lab, "--survive", "cables=1"])
    assert done.exit_code == 1, done.output
    assert "cannot survive: drive, valve" in done.output
    assert "a cable from" in done.output
    assert "with it 2 of 2 survive" in done.output


def test_the_cable_that_would_help_may_fail_too(tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.path_graph(4), [1])
    flow = Flow("f", "h1-1", "h4-1", 1000, 2000, 1e6, 612.0, 306)
    scenario = scenario_of([flow], entries=100, lab=lab)

    def admissions_of(lab: Lab, *_: object) -> Callable[[], Admission]:
        return lambda: admission_of(lab, variant_of(lab, "loko", None), scenario)

    timing = MoveTiming(detection_ns=NS_PER_S, changes_per_s=20)
    answer = ProtectedAnswer.find(
        lab,
        [Request(flow)],
        admissions_of,
        protection_request(lab, ["cables=1"], Protection.BACKUP, None, timing),
        before=[Request(flow)],
        unprotected=plan(lab, [flow], admissions_of(lab)()),
    )
    assert answer.helpful is not None
    assert answer.with_cable is not None
    helpful = answer.helpful.link
    (backup,) = answer.with_cable.flows["f"].backups.items()
    assert backup[0] == f"cable {helpful.a}-{helpful.b}", "the flow takes the new cable while that is there"
    assert [hop.switch for hop in backup[1].path] == ["s1", "s2", "s3", "s4"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--survive", "cable"], "give cables=1, switches=1, or a file of groups"),
        (["--duplicate", "drive"], "--duplicate: say with --survive which failures"),
        (["--survive", "cables=1", "--duplicate", "nobody"], "no flow has this id"),
        (["--survive", "cables=1", "--sheet", "sheet.pdf"], "give one of them"),
        (["--protection", "duplicate"], "--protection: say with --survive which failures"),
        (["--detect-ms", "10"], "--detect-ms: say with --survive which failures"),
        (["--port-detect-ms", "10"], "--port-detect-ms: say with --survive which failures"),
        (["--survive", "cables=1", "--scheme", "loko", "--scheme", "silo"], "give --scheme once"),
        (["--survive", "cables=1", "--scheme", "silo"], "a baseline, which guarantees nothing"),
        (["--survive", "cables=1", "--changes-per-s", "0"], "no flow moves then"),
        (["--survive", "cables=1", "--detect-ms", "inf"], "--detect-ms"),
    ],
)
def test_options_that_do_not_go_together(lab: list[str], options: list[str], told: str) -> None:
    done = CliRunner().invoke(app, [*lab, *options])
    assert done.exit_code == 2, done.output
    assert told in str(done.exception) + done.output


def test_a_what_if_says_how_the_others_change(lab: list[str], tmp_path: Path) -> None:
    flows = tmp_path / "flows.yml"
    flows.write_text(FLOWS.replace("700 kbit/s", "7 Mbit/s").replace("100 kbit/s", "7 Mbit/s"))
    without = [*lab, "--survive", "cables=1", "--without", "drive"]
    done = CliRunner().invoke(app, [*without, "--json"])
    assert json.loads(done.stdout)["what_if"]["accepted_now"] == ["valve"]
    assert "accepted now: valve" in CliRunner().invoke(app, without).output
    more = tmp_path / "more.yml"
    more.write_text(FLOWS.splitlines()[0].replace("drive", "pump").replace("5000", "5002"))
    more.write_text(more.read_text() + "\n   rate: 100 kbit/s, burst: 1 frames, frame: 306 bytes}\n")
    added = CliRunner().invoke(
        app, [*lab, "--survive", "cables=1", "--add", str(more), "--duplicate", "pump"]
    )
    assert "nothing changes for the flows that stay" in added.output


def test_csv_has_the_guarantee_in_all_states_and_further_paths(lab: list[str]) -> None:
    survive = [*lab, "--survive", "cables=1"]
    rows = list(csv.DictReader(StringIO(CliRunner().invoke(app, [*survive, "--csv"]).stdout)))
    flows = json.loads(CliRunner().invoke(app, [*survive, "--json"]).stdout)["survive"]["flows"]
    assert [row["flow"] for row in rows] == [flow["flow"] for flow in flows] == ["drive", "valve"]
    for row, flow in zip(rows, flows, strict=True):
        assert float(row["guarantee_ns"]) == flow["guarantee_ns"]
        assert row["further_paths"]
        assert row["further_paths"] != row["path"]
