"""`loko replay`: the admitted flows of a lab in virtual time, against their guarantees."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loko.notebook_api import plan
from loko.switch_model.flow import Flow, dump_flows
from loko.topology.lab import load_lab
from loko_testbed.cli.main import app
from loko_testbed.cli.replay import replay_twice

FLOWS = [
    Flow("a", "H1", "H2", 1, 2, 2e6, 3060.0, 306),
    Flow("b", "H2", "H3", 1, 2, 2e6, 3060.0, 306),
    Flow("c", "H3", "H2", 1, 2, 2e6, 3060.0, 306),
]


def test_a_lab_of_chips_is_replayed_by_its_own_scheme(tmp_path: Path) -> None:
    file = tmp_path / "flows.json"
    file.write_text(json.dumps(dump_flows(FLOWS)))
    answer = CliRunner().invoke(app, ["replay", "chip-ring", str(file), "--seconds", "0.3", "--json"])
    assert answer.exit_code == 0, answer.output
    for run in json.loads(answer.output)["runs"]:
        for flow in run["flows"]:
            assert flow["sent"] >= 10
            assert (flow["lost"], flow["wrong"]) == (0, 0)
            assert 0 < flow["worst"] <= 1


def test_guarantees_follow_the_target_as_in_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "flows.json"
    file.write_text(json.dumps(dump_flows(FLOWS)))
    words = ["chip-ring", str(file), "--target-ms", "0.06"]
    answer = CliRunner().invoke(app, ["replay", *words, "--seconds", "0.1"])
    assert answer.exit_code == 0, answer.output
    in_plan = CliRunner().invoke(app, ["plan", *words]).output
    for flow in "abc":
        [replayed] = re.findall(rf"│ {flow} .* (\d\.\d+) │", answer.output)
        [planned] = re.findall(rf"│ {flow} .* (\d\.\d+) │", in_plan)
        assert replayed == planned
        assert 0.06 < float(replayed) < 0.3
    refused = CliRunner().invoke(app, ["replay", "two-switch", str(file), "--target-ms", "1"])
    assert refused.exit_code == 2
    assert "error: --target-ms: is for --scheme packets or ports" in refused.output


def test_a_broken_guarantee_of_a_chip_is_noticed() -> None:
    """Frames of 1,518 bytes fill every cable, so a frame waits for one at a time and at a port."""
    lab = load_lab("chip-ring")
    planned = plan(lab, FLOWS)
    waiting_ns = 1518 * 8  # at 1 Gbit/s
    too_short = [
        admitted._replace(delays_ns=tuple(waiting_ns / len(admitted.path) for _ in admitted.path))
        for admitted in planned.accepted
    ]
    results = replay_twice(lab, replace(planned, accepted=tuple(too_short)), seconds=0.3, seed=1)
    assert {late.flow for result in results for late in result.broken} == {"a", "b", "c"}


@pytest.mark.parametrize(("lab", "scheme"), [("two-switch", None), ("two-switch", "packets")])
def test_a_lab_of_boards_is_replayed(tmp_path: Path, lab: str, scheme: str | None) -> None:
    file = tmp_path / "flows.json"
    file.write_text(json.dumps(dump_flows([Flow("a", "H1", "H3", 1, 2, 1e5, 306.0, 306)])))
    words = ["replay", lab, str(file), "--seconds", "0.3", *(["--scheme", scheme] if scheme else [])]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    assert "every guarantee was kept" in answer.output


def test_a_lab_of_boards_and_simple_devices_is_replayed_by_lokos_own_scheme(tmp_path: Path) -> None:
    words = ["lab", "new", "line", "--switches", "2", "--rate", "95 Mbit/s", "--latency", "40 us"]
    answer = CliRunner().invoke(app, [*words, "--buffer", "64 frames", "--out", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    simple = (tmp_path / "lab.yml").read_text()
    mixed = simple.replace("profile: device.toml", "profile: zodiac-fx, config: {ofchecks: false}", 1)
    (tmp_path / "lab.yml").write_text(mixed)
    planned = plan(tmp_path, [Flow("a", "h1", "h2", 1, 2, 1e5, 306.0, 306)])
    assert [hop.switch for hop in planned.accepted[0].path] == ["s1", "s2"]
    [burst, meeting] = replay_twice(planned.lab, planned, seconds=0.5, seed=1)
    assert burst.packets > 10
    assert meeting.packets > 0
    assert not burst.broken
    assert not meeting.broken
