"""Plans for switches that are no boards use what their profiles have: the whole table, and the buffer."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loko.control.entries import EVALUATION_ENTRIES, default_entries, switch_entries
from loko.notebook_api import plan
from loko.switch_model.scenario import UNKNOWN
from loko.topology.lab import Lab, load_lab
from loko_testbed.cli.main import app

RING = 5
FLOWS = 120
DEVICE = """\
format = 1
kind = "generic-switch"
name = "plain"
title = "A plain switch"
ports.count = {{ value = 8, source = "datasheet" }}
ports.link_rate_bps = {{ value = 1_000_000_000, source = "datasheet" }}
table.entries = {{ value = 4096, source = "datasheet" }}
forwarding.latency_ns = {{ value = 5_000, source = "datasheet" }}
server.rate_bps = {{ value = 500_000_000, source = "datasheet" }}
server.buffer_bytes = {{ value = {buffer_bytes}, source = "datasheet" }}
"""
CHIP = """
[priorities]
queues = { value = 2, source = "datasheet" }
limit_frames = { value = 1000, source = "datasheet" }
check_ns = { value = 0, source = "assumption" }
"""


def ring(folder: Path, buffer_bytes: int = 192_000, *, is_chip: bool = False) -> Path:
    device = DEVICE.format(buffer_bytes=buffer_bytes)
    if is_chip:
        device = "".join(line for line in device.splitlines(True) if not line.startswith("server")) + CHIP
    (folder / "plain.toml").write_text(device)
    numbers = range(1, RING + 1)
    lines = ["name: plain-ring", "title: A ring", "switches:"]
    lines += [f'  s{n}: {{datapath_id: "00:00:00:00:00:00:00:0{n}", profile: plain.toml}}' for n in numbers]
    lines += ["hosts:"]
    lines += [f'  H{n}: {{mac: "02:00:00:00:00:0{n}", ip: 10.0.0.{n}/24}}' for n in numbers]
    lines += ["links:", *(f'  - {{a: H{n}, b: "s{n}:1"}}' for n in numbers)]
    lines += [f'  - {{a: "s{n}:2", b: "s{n % RING + 1}:3"}}' for n in numbers]
    file = folder / "lab.yml"
    file.write_text("\n".join(lines) + "\n")
    return file


def requests(folder: Path, *, have_deadlines: bool = True, seed: int = 1) -> Path:
    rng = random.Random(seed)
    flows = []
    for number in range(FLOWS):
        source, destination = rng.sample(range(1, RING + 1), 2)
        flow = {
            "id": f"f{number}",
            "source": f"H{source}",
            "destination": f"H{destination}",
            "udp_source": 5000 + number,
            "udp_destination": 6000,
            "rate": f"{rng.choice([50, 100, 500])} kbit/s",
            "burst": "1 frame",
            "frame": f"{rng.choice([128, 306])} bytes",
        }
        flows.append(flow | ({"deadline": f"{rng.choice([1, 2, 5, 10])} ms"} if have_deadlines else {}))
    file = folder / "flows.json"
    file.write_text(json.dumps(flows))
    return file


def told(*words: object) -> str:
    result = CliRunner().invoke(app, ["plan", *map(str, words)])
    assert result.exit_code in {0, 1}, result.output
    return result.output


def fit(lab: Path, flows: Path, *words: object) -> int:
    return len(json.loads(told(lab, flows, "--json", *words))["accepted"])


@pytest.mark.parametrize("is_chip", [False, True])
def test_tables_are_planned_for_all_that_they_have(tmp_path: Path, is_chip: bool) -> None:
    lab, flows = ring(tmp_path, is_chip=is_chip), requests(tmp_path, have_deadlines=False)
    all_of_them = fit(lab, flows)
    assert all_of_them == fit(lab, flows, "--entries", 4096) > fit(lab, flows, "--entries", 17)
    assert len(plan(load_lab(lab), flows).accepted) == all_of_them


def test_boards_are_planned_for_the_entries_of_the_evaluation() -> None:
    assert default_entries(load_lab("two-switch")) == EVALUATION_ENTRIES
    assert default_entries(load_lab("chip-ring")) is UNKNOWN
    flows = "labs/two-switch/flows.yml"
    assert told("two-switch", flows) == told("two-switch", flows, "--entries", 17)


@pytest.mark.parametrize("is_chip", [False, True])
@pytest.mark.parametrize("have_deadlines", [False, True])
def test_a_refusal_for_want_of_entries_names_the_option(
    tmp_path: Path, is_chip: bool, have_deadlines: bool
) -> None:
    lab, flows = ring(tmp_path, is_chip=is_chip), requests(tmp_path, have_deadlines=have_deadlines)
    words = (lab, flows, "--entries", 17, *(() if is_chip else ("--target-ms", 1)))
    refused = json.loads(told(*words, "--json"))["refused"]
    short = [refusal for refusal in refused if refusal["quantity"] == "entries"]
    assert short
    for refusal in short:
        assert "plan for more with --entries" in refusal["hint"]
    assert "has 4,096 entries, of which 17 are planned for: plan for more with --entries" in told(*words)
    advised = json.loads(told(*words[:2], "--entries", 4096, *words[4:], "--json"))
    assert len(advised["refused"]) < len(refused)


def test_a_detour_that_is_too_slow_names_the_option_if_entries_forbid_the_short_path(tmp_path: Path) -> None:
    lab = ring(tmp_path)
    flow = {"udp_destination": 9, "rate": "50 kbit/s", "burst": "1 frame", "frame": "128 bytes"}
    ends = (("H2", "H1"), ("H2", "H3"), ("H1", "H3"))
    flows = tmp_path / "flows.json"
    flows.write_text(
        json.dumps(
            [
                {**flow, "id": f"f{n}", "udp_source": n, "source": a, "destination": b, "deadline": "3 ms"}
                for n, (a, b) in enumerate(ends, 1)
            ]
        )
    )
    # s2 has entries for two. The third flow would have to go round the other way, in 4 ms.
    output = told(lab, flows, "--entries", 2, "--target-ms", 1)
    assert "2 of 3 fit" in output
    assert re.search(r"refused: f3: delay at .*s2 has 4,096 entries.*plan for more with --entries", output)


def test_a_full_table_names_no_option(tmp_path: Path) -> None:
    lab, flows = ring(tmp_path, is_chip=True), requests(tmp_path, have_deadlines=False)
    device = (tmp_path / "plain.toml").read_text().replace("4096", "17")
    (tmp_path / "plain.toml").write_text(device)
    output = told(lab, flows)
    assert "entries at" in output
    assert "--entries" not in output


def test_a_board_whose_entries_run_out_names_the_option(tmp_path: Path) -> None:
    flow = {"source": "H1", "destination": "H3", "udp_destination": 9, "rate": "1 kbit/s"}
    flow |= {"burst": "1 frame", "frame": "64 bytes"}
    flows = tmp_path / "flows.json"
    flows.write_text(json.dumps([{**flow, "id": f"f{n}", "udp_source": n} for n in range(1, 4)]))
    for scheme in ("loko", "packets"):
        output = told("two-switch", flows, "--entries", 2, "--scheme", scheme)
        assert "s1 has 128 entries, of which 2 are planned for: plan for more with --entries" in output


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_larger_buffer_gives_no_worse_plan(tmp_path: Path, seed: int) -> None:
    flows = requests(tmp_path, seed=seed)
    fits = [fit(ring(tmp_path, size), flows) for size in (16_000, 32_000, 64_000, 128_000, 192_000, 512_000)]
    assert fits == sorted(fits)
    assert fits[-1] > fit(ring(tmp_path, 512_000), flows, "--target-ms", 1000), "the paper's own target"


def test_the_target_that_a_plan_follows_can_be_typed_in(tmp_path: Path) -> None:
    lab, flows = ring(tmp_path), requests(tmp_path)
    values = json.loads(told(lab, flows, "--json"))
    (option,) = re.findall(r"follows the deadlines: (--target-ms \S+)", told(lab, flows))
    assert json.loads(told(lab, flows, "--json", *option.split())) == values
    assert {switch["delay_ns"] <= values["target_ns"] for switch in values["switches"].values()} == {True}
    planned = plan(load_lab(lab), flows)
    assert [admitted.flow.id for admitted in planned.accepted] == [one["flow"] for one in values["accepted"]]


def test_a_target_that_no_frame_keeps_is_one_line(tmp_path: Path) -> None:
    words = ["plan", str(ring(tmp_path)), str(requests(tmp_path)), "--target-ms", "0.005"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert re.fullmatch(
        r"error: target 0.005 ms: a frame may take \S+ ms at s1; choose more\n", result.stderr
    )


def test_tables_of_other_devices_have_no_dummies_and_boards_take_more_than_a_network_of_them(
    tmp_path: Path,
) -> None:
    lab: Lab = load_lab(ring(tmp_path))
    accepted = plan(lab, requests(tmp_path)).accepted
    tables = switch_entries(lab, accepted, entries=UNKNOWN)
    assert sum(map(len, tables.values())) == sum(len(admitted.path) for admitted in accepted)
    filled = switch_entries(lab, accepted, entries=1000)
    assert {len(set(table)) for table in filled.values()} == {1000}
