"""The command `loko bench`, from the user's point of view."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from in_process import loko
from typer.testing import CliRunner

from loko.switch_model.device import profile_text
from loko_testbed.cli.bench.procedures import bench_app
from loko_testbed.measure.bench.device_choice import DeviceChoice


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    return loko("bench", *arguments)


def test_the_buffer_of_the_board(tmp_path: Path) -> None:
    done = bench("buffer", "--out", tmp_path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["rows"]
    assert {row["frame_bytes"]: row["p50"] for row in rows}[64] == 25
    again = bench("buffer", "--out", tmp_path, "--json")
    assert again.stdout == done.stdout


def test_a_board_is_measured_in_openflow_13(tmp_path: Path) -> None:
    arguments = ["dp-time", "--openflow", "1.3", "--samples", "3", "--out", str(tmp_path), "--json"]
    done = CliRunner().invoke(bench_app, arguments)
    assert done.exit_code == 0
    p50 = {row["what"]: row["p50"] for row in json.loads(done.stdout)["rows"]}
    # In the profile, an entry that fails on the EtherType costs 2465 ns and an entry without fields 1305 ns.
    apart_ns = p50["100 entries with eth_type fail"] - p50["an entry without fields"]
    assert apart_ns == pytest.approx(100 * 2465, abs=5000)
    held = CliRunner().invoke(bench_app, ["table", "--openflow", "1.3", "--out", str(tmp_path), "--json"])
    assert json.loads(held.stdout)["rows"][0]["p50"] == 298


CAMPAIGN = """
import sys
from pathlib import Path
from loko_testbed.measure.bench.cost_model.closure import parts, recover
from loko_testbed.measure.bench.cost_model.profile_document import Origin
from loko_testbed.measure.bench.procedures import cp_time
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.measure.bench.virtual import VirtualDevice

folder = Path(sys.argv[1])
todo = [part for part in parts(samples=5, every=400) if part.key.procedure != cp_time.PROCEDURE.name]
store = SampleStore(folder, {})
origin = Origin(device="zodiac-fx", date=store.begun, commit="abc", samples=5, seed=3)
told = lambda part: print(part.key, flush=True)
_, profile = recover(VirtualDevice(seed=3), store, todo, form="zodiac-fx", origin=origin, on_part=told)
(folder / "profile.toml").write_text(profile.text)
"""


def test_a_campaign_that_was_killed_writes_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1575849600")
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        folder.mkdir()
    for kills in (5, 17):
        command = [sys.executable, "-c", CAMPAIGN, str(folders[1])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(kills):
                assert process.stdout.readline()
            process.kill()
    for folder in folders:
        subprocess.run([sys.executable, "-c", CAMPAIGN, str(folder)], check=True, capture_output=True)
    texts = [(folder / "profile.toml").read_bytes() for folder in folders]
    assert texts[0] == texts[1]
    assert b'date = "2019-12-09"' in texts[0]


def test_a_measured_switch_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CliRunner().invoke(bench_app, ["table", "--out", str(tmp_path)]).exit_code == 0

    def opened(*_: object) -> None:
        raise AssertionError("nothing is left to be measured")

    monkeypatch.setattr(DeviceChoice, "open", opened)
    again = CliRunner().invoke(bench_app, ["table", "--out", str(tmp_path), "--json"])
    assert again.exit_code == 0
    assert json.loads(again.stdout)["rows"][0]["p50"] == 128


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("buffer", "--device", "nothing"), "profile 'nothing'"),
        (("buffer", "--device", "labs/bench/nothing.yml"), "nothing.yml"),
        (("buffer", "--samples", "1"), "--samples"),
        (("buffer", "--openflow", "1.3"), "leave it out, or choose dp-time, cp-time, table or all"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    done = bench(*arguments, "--out", tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_switch_on_linux_forwards_what_the_paper_measured(tmp_path: Path) -> None:
    """Section 2.3: 645 Mbit/s with frames of 1470 bytes. The profile was fitted to this number."""
    done = bench("throughput", "--device", "banana-pi-r1", "--out", tmp_path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rates = {row["frame_bytes"]: row["p50"] for row in json.loads(done.stdout)["rows"]}
    assert rates[1470] == pytest.approx(645e6, rel=0.01)
    assert rates[64] < rates[306] < rates[1516]


def test_a_switch_on_linux_is_measured_as_far_as_it_makes_sense(tmp_path: Path) -> None:
    done = bench("dp-time", "--device", "banana-pi-r1", "--out", tmp_path, "--samples", "20", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["rows"]
    # Flow lookup uses a hash table, so the number of entries does not matter.
    usual = {
        row["what"]: row["p50"]
        for row in rows
        if row["frame_bytes"] == 64 and row["what"].endswith("five-tuple/output/increasing/last")
    }
    assert set(usual) >= {"1/five-tuple/output/increasing/last", "128/five-tuple/output/increasing/last"}
    assert max(usual.values()) == pytest.approx(min(usual.values()), rel=0.05)


@pytest.mark.parametrize(
    ("profile", "number", "wrong", "says"),
    [
        ("zodiac-fx", "units", 1_000_001, "buffer.units: choose 1 to 1000000"),
        ("zodiac-fx", "link_rate_bps", 100_000, "ports.link_rate_bps: choose at least 1000000"),
        ("banana-pi-r1", "link_rate_bps", 0, "link_rate_bps"),
    ],
)
def test_a_profile_that_the_emulator_refuses_is_one_line_and_status_2(
    tmp_path: Path, profile: str, number: str, wrong: int, says: str
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(profile_text(profile, **{number: wrong}))
    done = bench("throughput", "--device", path, "--out", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert says in line
    assert str(path) in line


@pytest.mark.parametrize("procedure", ["cp-time", "buffer", "all"])
def test_what_makes_no_sense_of_a_switch_on_linux_is_refused(tmp_path: Path, procedure: str) -> None:
    done = bench(procedure, "--device", "banana-pi-r1", "--out", tmp_path)
    assert done.returncode == 2
    assert "so only dp-time and throughput make sense" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_how_long_it_takes_is_told_without_measuring(tmp_path: Path) -> None:
    done = bench("all", "--device", "labs/bench/zodiac-fx-live.yml", "--out", tmp_path, "--estimate")
    assert (done.returncode, done.stderr) == (0, "")
    full, reduced = done.stdout.splitlines()
    assert full.startswith("--design full: ")
    assert full.rpartition("about ")[2].split()[1] == "h"
    assert reduced.rpartition("about ")[2].split()[1] == "min"
