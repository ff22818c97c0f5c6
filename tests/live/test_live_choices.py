"""Options of a live replay: another OpenFlow framework, rings, another kind of switch."""

from __future__ import annotations

import json
import os

import psutil
import pytest
from live_harness import admitted, needs_namespaces
from typer.testing import CliRunner

from benchmarks.builds import BUILD
from loko_testbed.cli import main as cli
from loko_testbed.live.runner import LiveRunner
from loko_testbed.simulation.runner import LOST

pytestmark = [pytest.mark.live, pytest.mark.namespaces, needs_namespaces]

RYU_PYTHON = BUILD / ".clients" / "python" / "bin" / "python"
SETTING, TRAFFIC = admitted()


def evaluate(words, out, *more):
    words = ["evaluate", *words.split(), *more, "--mode", "live", "--out", str(out)]
    result = CliRunner().invoke(cli.app, words)
    assert isinstance(result.exception, SystemExit | None), repr(result.exception)
    return result


@pytest.fixture
def ryu():
    if not RYU_PYTHON.exists():
        pytest.skip("Ryu 4.34 is not installed: run 'make clients'")
    return str(RYU_PYTHON)


@pytest.mark.waits
@pytest.mark.usefixtures("apart")
def test_a_figure_is_replayed_with_ryu_and_the_stand_in_and_says_so(ryu, tmp_path):
    words = "fig17a --points admitted --runs 1 --seconds 1 --sender simple --backend ovs --framework ryu"
    result = evaluate(words, tmp_path, "--framework-python", ryu)
    assert result.exit_code in (0, 1), result.output  # 1 is possible: a busy machine delays frames
    data = json.loads((tmp_path / "fig17a.json").read_text())
    assert (data["provenance"]["backend"], data["provenance"]["framework"]) == ("ovs", "ryu")
    [[point]] = [series["points"] for series in data["series"][:1]]
    assert point["lost"] < point["packets"]
    report = (tmp_path / "report.html").read_text()
    assert "<td>live, ovs, ryu</td>" in report
    assert "--mode live --backend ovs --framework ryu" in report


@pytest.mark.waits
def test_the_controller_is_really_ryu_s(ryu, relaxed):
    ours = {"framework": "ryu", "framework_python": ryu, "cores": relaxed}
    with LiveRunner(SETTING.lab, SETTING.admitted(), **ours) as runner:
        commands = [child.cmdline() for child in psutil.Process(os.getpid()).children(recursive=True)]
        assert [words[0] for words in commands if "loko.control.shim" in words] == [ryu]
        assert runner.status().connected == 2
        records = runner.run(TRAFFIC, seconds=0.5, seed=1)
    assert (records.received_ns != LOST).any()


@pytest.mark.waits
@pytest.mark.usefixtures("apart")
def test_a_ring_on_open_vswitch_tells_the_coarse_emulators_error_and_no_broken_guarantee(tmp_path):
    result = evaluate("fivelive --runs 1 --seconds 1 --backend ovs", tmp_path)
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "fivelive.json").read_text())
    assert len(data["boards"]) == 5
    unexplained = data["findings"]["unexplained_packets"]
    report = (tmp_path / "report.html").read_text()
    assert "break a guarantee" not in report
    assert ("the coarse emulator's error" in report) == (unexplained > 0)
    assert "no guarantee tested: Open vSwitch forwards" in result.output
