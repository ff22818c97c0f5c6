"""`loko serve --live`: flows in the tables of boards on real interfaces, over a real OpenFlow connection."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from live_harness import Machine, needs_root, wait_until
from served_lab import LOKO, ServedLab, wait_for

pytestmark = [pytest.mark.namespaces, needs_root, pytest.mark.xdist_group("live")]


def loko(*words: str) -> None:
    done = subprocess.run([LOKO, *words], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_live_lab_is_served_and_restored_after_a_kill(tmp_path: Path) -> None:
    before = Machine.now()
    (tmp_path / "no-flows.yml").write_text("[]\n")
    loko("lab", "up", "two-switch", "--flows", str(tmp_path / "no-flows.yml"))
    try:
        with ServedLab(tmp_path, "--live", has_boards=False) as lab:
            assert lab.post(1).status_code == 201
            assert lab.post(2).status_code == 201
            assert lab.client.delete("/v1/flows/f1").status_code == 204
            lab.kill()
            lab.start()
            lab.wait_healthy()
            assert [one["id"] for one in lab.flows()] == ["f2"]
            assert lab.switches()["s2"]["complete"]
            assert lab.end() == 0
    finally:
        loko("lab", "down", "two-switch")
    wait_until(lambda: Machine.now() == before, "nothing to be left")


def test_live_flows_are_measured_at_the_hosts(tmp_path: Path) -> None:
    before = Machine.now()
    (tmp_path / "no-flows.yml").write_text("[]\n")
    loko("lab", "up", "two-switch", "--flows", str(tmp_path / "no-flows.yml"))
    try:
        with ServedLab(tmp_path, "--live", "--traffic", has_boards=False) as lab:
            assert lab.client.get("/v1/service").json()["measures"] == "the hosts' interfaces"
            assert lab.delays() == {}
            assert lab.post(1, rate_bps=100_000, burst_bytes=612).status_code == 201
            assert lab.post(2, source="H2", rate_bps=100_000).status_code == 201
            wait_for(
                lambda: min([one["received"] for one in lab.delays().values()], default=0) > 50, "delays"
            )
            measured = lab.delays()
            assert set(measured) == {"f1", "f2"}
            for one in measured.values():
                assert one["min_ns"] > 240_000, "no frame is faster than two boards and their cables"
            assert lab.client.delete("/v1/flows/f1").status_code == 204
            wait_for(lambda: set(lab.delays()) == {"f2"}, "the flow to be forgotten")
            assert lab.end() == 0
            assert "measurement" not in lab.log()
    finally:
        loko("lab", "down", "two-switch")
    wait_until(lambda: Machine.now() == before, "nothing to be left")


def test_lab_that_is_not_up_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [LOKO, "serve", "two-switch", "--live", "--store", str(tmp_path / "s")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: --live: lab two-switch is not up; start it without a controller")
