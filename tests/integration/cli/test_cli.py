"""The command line from the user's point of view: results, exit status, one-line error messages."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import preloaded
import pyarrow.parquet as pq
import pytest
from in_process import loko
from no_rendering import no_rendering
from scripted_runner import ScriptedRunner

from loko.document import LABS
from loko_testbed.measure.bench.inventory import BENCHES
from loko_testbed.reproduce import evaluate as evaluation
from loko_testbed.reproduce.replications import Replications
from loko_testbed.simulation.runner import LOST
from loko_testbed.tasks.files import lock_folder
from loko_testbed.tasks.provenance import versions
from loko_testbed.tasks.store import TASKS

FILES = ("json", "parquet", "svg", "png")
BESIDE = {"report.html", "runs.jsonl"}
"""Files that contain when and where the figures were made."""


@pytest.fixture
def no_pictures() -> Iterator[None]:
    with no_rendering():
        yield


@pytest.fixture
def scripted_and_drawn(monkeypatch: pytest.MonkeyPatch):
    """Replace the simulator in this process by made-up delays: up to 1 ms, or what the test chooses."""

    def install(delays_of=lambda flow, random: random.integers(600_000, 1_000_000, 50)) -> ScriptedRunner:
        runner = ScriptedRunner(delays_of)
        monkeypatch.setattr("loko_testbed.reproduce.replay.campaign.VirtualRunner", lambda *_, **__: runner)
        monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
        return runner

    return install


@pytest.fixture
def scripted(scripted_and_drawn, no_pictures: None):
    """Likewise, for tests that do not need pictures."""
    return scripted_and_drawn


def test_a_quick_run_of_everything_from_the_shell(tmp_path: Path) -> None:
    names = ["table2", "fig15", "fig17a", "fig17b", "fig18a", "fig18b"]
    command = [
        sys.executable,
        "-c",
        "from loko_testbed.cli.main import main; main()",
        "evaluate",
        *names,
        "--quick",
    ]
    done = subprocess.run(
        [*command, "--out", tmp_path, "--json"], capture_output=True, text=True, timeout=280, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    assert [figure["figure"] for figure in printed["figures"]] == names
    assert printed["violations"] == 0
    by_level = printed["ladder"]["loko"].values()
    for kind, count in printed["counts"].items():
        counts = [kinds[kind] for kinds in by_level if kind in kinds]
        assert {name: sum(each[name] for each in counts) for name in count} == count
    expected = {f"{name}.{kind}" for name in names for kind in FILES} - {"table2.parquet"} | BESIDE
    assert {path.name for path in tmp_path.iterdir()} == expected
    for name in names[1:]:
        check_contract(json.loads((tmp_path / f"{name}.json").read_text()), tmp_path / f"{name}.parquet")
    table = json.loads((tmp_path / "table2.json").read_text())
    assert table["table"]["rows"][1][0] == "fifth-rate"
    assert all(claim["holds"] for claim in table["claims"])


def check_contract(result: dict, records: Path) -> None:
    """Check the stable format of a result, and that it agrees with its records."""
    keys = {"figure", "paper", "mode", "seed", "x", "series", "guarantee_ms", "floor_ms", "claims"}
    assert keys | {"provenance"} <= set(result)
    assert set(result["x"]) == {"name", "unit"}
    assert {"commit", "profile", "host"} <= set(result["provenance"])
    assert {"stalls", "worst_stall_us"} <= set(result["provenance"]["host"])
    assert all({"claim", "paper", "here", "holds"} <= set(claim) for claim in result["claims"])
    assert all(claim["kind"] in ("predicted", "calibrated", "ours") for claim in result["claims"])
    assert all(claim["tolerance"] for claim in result["claims"])
    levels = ("arithmetic", "profile", "invariant", "ordinal", "quantitative")
    assert all(claim["level"] in levels for claim in result["claims"])
    assert {"system", "flows", "packets", "lost", "late", "explained", "verdict"} <= set(
        result["guarantees"][0]
    )
    rows = pq.read_table(records).to_pylist()
    assert set(rows[0]) == {"flow", "sequence", "sent_ns", "received_ns", "size", "run", "point"}
    for series in result["series"]:
        for point in series["points"]:
            mine = [row for row in rows if row["flow"] == series["flow"] and row["point"] == point["x"]]
            lost = [row for row in mine if row["received_ns"] is None]
            assert (point["packets"], point["lost"]) == (len(mine), len(lost))
            assert point["loss"] == pytest.approx(len(lost) / len(mine))
            assert point["delay_ms"]["min"] <= point["delay_ms"]["p50"] <= point["delay_ms"]["max"]


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, jobs in (("a", 1), ("b", 2)):
        options = ["--runs", 2, "--seconds", 4, "--seed", 7, "--jobs", jobs, "--out", tmp_path / name]
        assert loko("evaluate", "fig17a", "table2", *options).returncode == 0
    files = sorted({path.name for path in (tmp_path / "a").iterdir()} - BESIDE)
    assert len(files) == 7
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_another_seed_gives_other_packets(no_pictures: None, tmp_path: Path) -> None:
    for seed in (1, 2):
        options = ["--runs", 1, "--seconds", 5, "--seed", seed, "--out", tmp_path / str(seed)]
        assert loko("evaluate", "fig17a", "--points", "admitted", *options).returncode == 0
    first, second = (pq.read_table(tmp_path / seed / "fig17a.parquet") for seed in "12")
    assert first.column("sent_ns") != second.column("sent_ns")


def test_complete_points_are_not_run_again(scripted, tmp_path: Path) -> None:
    runner = scripted()
    arguments = ["evaluate", "fig17a", "--runs", 2, "--seconds", 1, "--jobs", 1, "--out", tmp_path]
    assert loko(*arguments).returncode == 0
    assert runner.runs == 22
    before = (tmp_path / "fig17a.json").read_bytes()
    assert loko(*arguments).returncode == 0
    assert runner.runs == 22
    assert (tmp_path / "fig17a.json").read_bytes() == before
    assert loko(*arguments, "--seed", 2).returncode == 0
    assert runner.runs == 44


def test_an_interrupted_replay_goes_on_where_it_was(scripted, tmp_path: Path) -> None:
    def interrupted(flow, random):
        if runner.runs == 8:
            raise KeyboardInterrupt
        return random.integers(600_000, 1_000_000, 50)

    runner = scripted(interrupted)
    arguments = ["evaluate", "fig17a", "--runs", 2, "--seconds", 1, "--jobs", 1, "--out", tmp_path]
    ended = loko(*arguments)
    assert (ended.returncode, ended.stderr.count("\n")) == (130, 1)
    assert len(list((tmp_path / TASKS / "fig17a").iterdir())) == 7
    again = scripted()
    assert loko(*arguments).returncode == 0
    assert again.runs == 15
    assert not (tmp_path / TASKS).exists()
    assert pq.read_table(tmp_path / "fig17a.parquet").num_rows == 11 * 2 * 2 * 50


def test_two_replays_do_not_share_a_folder(scripted, tmp_path: Path) -> None:
    scripted()
    with lock_folder(tmp_path):
        done = loko("evaluate", "fig17a", "--quick", "--out", tmp_path)
    assert done.returncode == 2
    assert "another replay writes there" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert loko("evaluate", "fig17a", "--quick", "--out", tmp_path).returncode == 0


def test_a_violated_guarantee_is_status_1(scripted, tmp_path: Path) -> None:
    scripted(lambda flow, random: [1_000_000] * 9 + [5_000_000])
    ended = loko("evaluate", "fig17a", "--points", "admitted", "--runs", 1, "--seconds", 1, "--out", tmp_path)
    assert ended.returncode == 1
    assert "Loko, fifth-rate: GUARANTEE VIOLATED by 2 packets" in ended.stdout
    (guarantee,) = json.loads((tmp_path / "fig17a.json").read_text())["guarantees"]
    assert (guarantee["system"], guarantee["verdict"], guarantee["late"]) == ("Loko, fifth-rate", "broken", 2)


def test_a_flow_that_sends_nothing_keeps_no_guarantee(scripted, tmp_path: Path) -> None:
    scripted(lambda flow, random: [])
    ended = loko("evaluate", "fig17a", "--points", "admitted", "--runs", 1, "--seconds", 1, "--out", tmp_path)
    assert ended.returncode == 0
    assert "Loko, fifth-rate: guarantee not tested, nothing was sent: lengthen the runs" in ended.stdout
    assert "no packet lost at m_r = 1 (paper: 0; here: not measured; nothing was sent at 1)" in ended.stdout
    result = json.loads((tmp_path / "fig17a.json").read_text())
    assert [claim["holds"] for claim in result["claims"] if claim["kind"] == "predicted"] == [None] * 7
    assert result["notes"][-1]["text"].startswith(
        "Nothing was sent by H1->H3 at 1; H3->H1 at 1. A host waits up"
    )


def test_other_claims_change_the_status_only_if_strict(scripted, tmp_path: Path) -> None:
    scripted(lambda flow, _: np.full(50, LOST if flow.bucket.rate_bps > 2_000_000 else 1_000_000))
    arguments = ["evaluate", "fig17a", "--runs", 1, "--seconds", 1, "--out", tmp_path]
    ended = loko(*arguments)
    assert ended.returncode == 0
    assert "does not hold: loss starts at m_r (paper: 5; here: 3)" in ended.stdout
    assert re.search(r"^loko +predictions +.* 0 of 1\b", ended.stdout, flags=re.MULTILINE), "by level"
    assert loko(*arguments, "--strict").returncode == 1


def test_a_run_shorter_than_the_papers_does_not_deny_what_is_rare(scripted, tmp_path: Path) -> None:
    scripted()
    arguments = ["evaluate", "fig17a", "--runs", 1, "--seconds", 1, "--strict", "--out", tmp_path]
    ended = loko(*arguments)
    assert ended.returncode == 0, "nothing that such a run can deny is denied"
    assert (
        "not testable here: loss starts at m_r (paper: 5; here: nowhere; this replay has 1 run"
        in ended.stdout
    )
    assert loko("evaluate", "fig17a", "--strict", "--jobs", 1, "--out", tmp_path / "whole").returncode == 1


def test_admitted_points_only(scripted, tmp_path: Path) -> None:
    runner = scripted()
    options = ["--points", "admitted", "--runs", 3, "--seconds", 1, "--out", tmp_path]
    assert loko("evaluate", "fig17a", "fig18a", *options).returncode == 0
    assert runner.runs == 6
    result = json.loads((tmp_path / "fig18a.json").read_text())
    assert [point["x"] for point in result["series"][0]["points"]] == [0.95]
    assert [guarantee["verdict"] for guarantee in result["guarantees"]] == ["kept"]
    other = json.loads((tmp_path / "fig17a.json").read_text())
    holds = {claim["claim"]: claim["holds"] for claim in other["claims"]}
    assert holds["no packet late at m_r = 1"] is True
    assert holds["no packet late at any m_r"] is None
    assert holds["packets of the largest box (m_r = 11), counted alike"] is None


def test_figures_are_compared_with_those_of_the_same_folder(
    scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "replicate", lambda *_: Replications(results=[], computed=0))
    scripted(lambda flow, _: np.full(50, LOST if flow.bucket.rate_bps > 2_000_000 else 1_000_000))
    options = ["--jobs", 1, "--out", tmp_path]
    claim = "less loss than with larger rates (fig17a)"
    assert _holds(tmp_path, "fig17b", options)[claim] is None
    assert loko("evaluate", "fig17a", *options).returncode == 0
    assert _holds(tmp_path, "fig17b", options)[claim] is True
    assert _holds(tmp_path, "fig17b", [*options, "--seed", 2])[claim] is True
    longer = [*options, "--runs", 31]
    assert _holds(tmp_path, "fig17b", longer)[claim] is None, "fig17a is of another scale"
    short = [*options, "--runs", 1]
    assert loko("evaluate", "fig17a", *short).returncode == 0
    assert _holds(tmp_path, "fig17b", short)[claim] is None, "it could not fail in so short a replay"


def _holds(folder: Path, figure: str, options: list) -> dict[str, bool | None]:
    assert loko("evaluate", figure, *options).returncode == 0
    return {
        claim["claim"]: claim["holds"]
        for claim in json.loads((folder / f"{figure}.json").read_text())["claims"]
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "fig99"], "figure 'fig99': unknown; did you mean fig9b or fig9a"),
        (
            ["evaluate", "fig4c"],
            "figure 'fig4c': unknown; did you mean tssdn/fig4c? 'loko figures' lists all ",
        ),
        (["evaluate", "no-such"], "figure 'no-such': unknown; 'loko figures' lists all "),
        (["evaluate", "--runs", "-1"], "'--runs'"),
        (["evaluate", "--runs", "many"], "'--runs'"),
        (["evaluate", "--seconds", "0"], "'--seconds'"),
        (["evaluate", "--seconds", "nan"], "--seconds"),
        (["evaluate", "--seed", "-4"], "'--seed'"),
        (["evaluate", "--jobs", "0"], "'--jobs'"),
        (["evaluate", "--mode", "dream"], "Invalid value for '--mode': 'dream' is not one of 'virtual'"),
        (["evaluate", "--mode", "hardware"], "lab two-switch is a real board: say with --cabling FILE"),
        (["evaluate", "fig17a", "--mode", "hardware"], "lab two-switch is a real board: say with --cabling"),
        (["evaluate", "fig20a", "--mode", "hardware"], "fig20a: cannot be replayed in mode hardware"),
        (["evaluate", "fig6a", "--mode", "hardware"], "fig6a: cannot be replayed in mode hardware"),
        (["evaluate", "--mode", "hardware", "--cabling", "/nowhere"], "/nowhere"),
        (
            ["evaluate", "--mode", "live", "--cabling", "x.yml"],
            "names real boards, which are for --mode hardw",
        ),
        (["evaluate", "fig17a", "--cabling", "x.yml"], "names real boards, which are for --mode hardware"),
        (["evaluate", "fig17a", "--backend", "ovs"], "--backend ovs: exists in live runs only"),
        (["evaluate", "fig17a", "--framework", "ryu"], "--framework: for --mode live and hardware only"),
        (["evaluate", "fig17a", "--mode", "live", "--framework", "nox"], "'nox' is neither os-ken nor ryu"),
        (["evaluate", "fig17a", "--mode", "live", "--framework", "ryu"], "give the interpreter that has Ryu"),
        (
            ["evaluate", "fig17a", "--mode", "live", "--framework-python", "/nowhere"],
            "--framework-python /nowhere: is not a program",
        ),
        (["bundle", "/nowhere"], "/nowhere: no such folder"),
        (["verify", "/nowhere.zip"], "/nowhere.zip: no such file"),
        (["evaluate", "fig17a", "--backend", "bmv2"], "'bmv2' is not one of 'firmware', 'ovs'"),
        (["evaluate", "--offered-load", "nan"], "--offered-load"),
        (["evaluate", "fig6a", "--offered-load", "0.9"], "--offered-load: loko/fig6a does not send by this"),
        (["evaluate", "--queue-frames", "9"], "and name those that do: fig3a fig3b fig3c"),
        (["evaluate", "fig15", "--queue-frames", "80"], "a burst of 200 frames finds room for 80 only"),
        (["evaluate", "fig17a", "--capacity-factor", "0.5"], "allows 0.94 to 1.06"),
        (["evaluate", "table2", "--capacity-factor", "1"], "loko/table2 does not depend on it; leave it out"),
        (
            ["evaluate", "table2", "fig17a", "--executor", "dask", "--scheduler", "tcp://127.0.0.1:1"],
            "loko/table2 is computed on this machine only; leave it out and name those that do: loko/fig17a",
        ),
        (
            ["evaluate", "fig17a", "--scheduler", "tcp://127.0.0.1:1"],
            "for --executor dask only; leave it out",
        ),
        (["evaluate", "fig17a", "--mode", "live", "--executor", "dask"], "for --mode virtual only"),
        (
            ["bench", "all", "--device", str(BENCHES / "openvswitch.yml"), "--jobs", "2"],
            "--jobs 2: for virtual time only",
        ),
        (["evaluate", "--wat"], "No such option: --wat"),
        (["schedule", "two-switch", "--robust"], "No such option: --robust"),
        (["schedule", "two-switch", "--straight"], "--straight; did you mean --time-indexed?"),
        (["plan", "two-switch", "--fillers", "10"], "--fillers; did you mean --padding?"),
        (["serve", "two-switch", "--delete-strangers"], "did you mean --delete-foreign-entries?"),
        (["evaluate", "tssdn/duel"], "figure 'tssdn/duel': is called tssdn/comparison"),
        (["replay", "two-switch", "--robust"], "No such option: --robust"),
        (["report", "/nowhere"], "/nowhere: no such folder"),
        (["dance"], "No such command 'dance'"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = loko(*arguments)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert re.fullmatch(r"error: [^\n]+\n", ended.stderr)
    assert message in ended.stderr


def test_an_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = loko("evaluate", "fig17a", "--out", tmp_path / "file" / "below")
    assert ended.returncode == 2
    assert re.fullmatch(r"error: --out .*file/below: cannot be written: Not a directory; .*\n", ended.stderr)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("fig17a.json", b"{"),
        ("fig17b.json", b'{"figure": "fig17b"}'),
        ("fig17a.parquet", b"nonsense"),
    ],
)
def test_a_damaged_earlier_result_is_named(scripted, tmp_path: Path, name: str, content: bytes) -> None:
    scripted()
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    ended = loko("evaluate", "fig17a", "--points", "admitted", "--runs", 1, "--seconds", 1, "--out", tmp_path)
    assert ended.returncode == 2
    assert re.fullmatch(r"error: [^\n]+ run again\n", ended.stderr)
    assert str(path) in ended.stderr


def test_an_empty_folder_has_no_report(tmp_path: Path) -> None:
    ended = loko("report", tmp_path)
    assert ended.returncode == 2
    assert "holds no results" in ended.stderr


def test_the_report_is_written_anew(scripted_and_drawn, tmp_path: Path) -> None:
    scripted_and_drawn()
    assert (
        loko(
            "evaluate", "fig17a", "--points", "admitted", "--runs", 1, "--seconds", 1, "--out", tmp_path
        ).returncode
        == 0
    )
    before = (tmp_path / "report.html").read_bytes()
    (tmp_path / "report.html").unlink()
    assert loko("report", tmp_path).returncode == 0
    assert (tmp_path / "report.html").read_bytes() == before


def test_the_list_of_figures() -> None:
    listed = json.loads(loko("figures", "--json").stdout)
    names = [figure["name"] for figure in listed]
    assert names[0] == "loko/table2"
    assert {"loko/fig3a", "loko/fig14a", "loko/fig15", "loko/fig19b"} <= set(names)
    for figure in listed:
        assert set(figure) == {"name", "title", "paper", "modes", "estimate_s"}
    rows = list(csv.DictReader(io.StringIO(loko("figures", "--csv").stdout)))
    assert [row["name"] for row in rows] == names
    for figure, row in zip(listed, rows, strict=True):
        said = {name: row[f"estimate_{name}_s"] for name in ("virtual", "live") if row[f"estimate_{name}_s"]}
        assert said == {
            name: str(s) for name, s in figure["estimate_s"].items() if name in ("virtual", "live")
        }
        assert set(figure["modes"]) == set(figure["estimate_s"])
    assert "loko/fig17a" in loko("figures").stdout


@pytest.mark.parametrize("command", ["evaluate", "figures", "report", "model", "plan", "doctor", "lab up"])
def test_every_command_has_help_with_an_example(command: str) -> None:
    ended = loko(*command.split(), "--help")
    assert ended.returncode == 0
    assert re.search(r"Example:.*loko", ended.stdout)


def test_the_version_names_the_commit_and_what_computes() -> None:
    ended = loko("--version")
    first, *others = ended.stdout.splitlines()
    assert ended.returncode == 0
    assert re.fullmatch(r"loko \d+\.\d+\.\d+ \((unknown|[0-9a-f]{12}(\+[0-9a-f]{8})?)\)", first)
    assert {"python", "switch_emulator", "numpy"} <= {line.split()[0] for line in others}


def test_telling_the_version_leaves_it_in_later_results() -> None:
    before = dict(versions())
    assert loko("--version").returncode == 0
    assert versions() == before


COLOURED = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-9]|4[0-9]|9[0-7])[;m]")


@pytest.mark.parametrize("command", ["", "plan", "lab", "lab up", "bench"])
def test_help_has_a_short_name(command: str) -> None:
    short, long = loko(*command.split(), "-h"), loko(*command.split(), "--help")
    assert short.returncode == 0
    assert short.stdout == long.stdout


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("plan", "loko plan"),
        ("plan two-switch flows.yml --bog", "loko plan"),
        ("lab bog", "loko lab"),
        ("lab up", "loko lab up"),
        ("bog", "loko"),
        ("lab", "loko lab"),
    ],
)
def test_a_wrong_call_names_the_help_that_tells_more(words: str, command: str) -> None:
    ended = loko(*words.split())
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.endswith(f"(see '{command} --help')\n")
    assert loko(*command.split()[1:], "--help").returncode == 0


ONE_BY_ONE = """
import json, sys
from loko_testbed.cli.main import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["loko", *words]
    try:
        main()
    except SystemExit as end:
        print("\\nended:", end.code, flush=True)
"""
"""Run several commands in one process, which reads its environment only when it starts."""


def test_colours_can_be_switched_off(tmp_path: Path) -> None:
    flows = tmp_path / "flows.yml"
    flows.write_text((LABS / "two-switch" / "flows.yml").read_text(encoding="utf-8"))
    calls = [["plan", "-h"], ["plan", "two-switch", str(flows)], ["model", "zodiac-fx"], ["plan"]]
    env = {**os.environ, "FORCE_COLOR": "1", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ONE_BY_ONE, json.dumps(calls)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=env,
    )
    assert done.stdout.count("\nended: ") == len(calls), done.stderr
    assert all(words in done.stdout for words in ("loko plan", "4 of 4 fit", "zodiac-fx: latency T"))
    assert not COLOURED.search(done.stdout + done.stderr)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch):
    """Provide text on standard input, as a shell's pipe does."""
    before = os.dup(0)

    def put(text: str) -> None:
        reading, writing = os.pipe()
        os.write(writing, text.encode())
        os.close(writing)
        os.dup2(reading, 0)
        os.close(reading)
        monkeypatch.setattr(sys, "stdin", os.fdopen(0, encoding="utf-8", closefd=False))

    yield put
    os.dup2(before, 0)
    os.close(before)


def test_flows_come_by_the_standard_input_by_either_name(typed) -> None:
    csv = "id,source,destination,udp_source,udp_destination,rate,burst,frame\n"
    row = "a,H1,H3,1,9,9 kbit/s,1 frame,306 bytes\n"
    for name in ("-", "/dev/stdin"):
        typed(csv + row)
        done = loko("plan", "two-switch", name)
        assert (done.returncode, done.stderr) == (0, "")
        assert "1 of 1 fit" in done.stdout
        typed("")
        done = loko("plan", "two-switch", name)
        assert done.returncode == 2
        assert "is empty; begin each flow with" in done.stderr
        assert done.stderr.count("\n") == 1
        typed(csv.replace("source,", "sourc,", 1) + row)
        assert "unknown column 'sourc'" in loko("plan", "two-switch", name).stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [("loko ev", "evaluate"), ("loko plan --all", "--allocation"), ("loko plan --scheme pa", "packets")],
)
def test_a_shell_completes_commands_options_and_choices(words, offered):
    asked = {"_LOKO_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = preloaded.loko(environment=os.environ | asked)
    assert (done.returncode, done.stdout.split()) == (0, [offered])
