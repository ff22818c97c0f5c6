"""Cables of a served lab are pulled and plugged in again, and a board is rebooted, in a separate lab."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from live_harness import needs_namespaces
from private_machine import private_machine
from served_lab import ServedLab, wait_for
from test_live_serve import _lab, loko, served  # noqa: F401 (pytest finds the fixture by its name)
from triangle import DIRECT, triangle

pytestmark = [pytest.mark.namespaces, needs_namespaces]


@pytest.mark.waits
@pytest.mark.usefixtures("_lab")
def test_a_live_host_goes_on_sending_when_its_cable_is_back(tmp_path: Path) -> None:
    with served(tmp_path, "--traffic") as lab:
        assert lab.post(1, rate_bps=100_000).status_code == 201
        wait_for(lambda: lab.delays().get("f1", {}).get("received", 0) > 20, "delays", lab.log)
        loko("lab", "exec", "two-switch", "H1", "ip", "link", "set", "H1-eth0", "down")
        time.sleep(0.5)
        loko("lab", "exec", "two-switch", "H1", "ip", "link", "set", "H1-eth0", "up")
        before = lab.delays()["f1"]["received"]
        wait_for(lambda: lab.delays()["f1"]["received"] > before + 50, "more of them", lab.log)
        assert "Traceback" not in lab.log()


@pytest.mark.waits
@pytest.mark.usefixtures("_lab")
def test_the_lab_pulls_a_cable_and_reboots_a_board(tmp_path: Path) -> None:
    with served(tmp_path, "--compare-s", "1") as lab:
        assert lab.post(1).status_code == 201

        def causes() -> list[str]:
            (flow,) = lab.flows()
            return [found["cause"] for found in flow["broken"]]

        loko("lab", "pull", "two-switch", "s1:3-s2:3")
        wait_for(lambda: causes() == ["link-down"], "a broken promise", lab.log)
        loko("lab", "plug", "two-switch", "s1:3-s2:3")
        wait_for(lambda: causes() == [], "the promise to be kept", lab.log)
        loko("lab", "reboot", "two-switch", "s2")
        wait_for(lambda: "switch-away" in causes(), "the reboot", lab.log)
        lab.wait_healthy()
    with pytest.raises(AssertionError, match="lab 'two-switch' has no switch 's9'; its switches: s1, s2"):
        loko("lab", "reboot", "two-switch", "s9")


def test_frames_that_are_sent_twice_survive_each_pulled_cable(tmp_path: Path) -> None:
    """None is lost, so boards must not be kept from their frames: the test has the cores for itself."""
    path = str(triangle(tmp_path).path)
    options = ("--live", "--traffic", "--survive", "cables=1", "--compare-s", "1")
    with private_machine():
        loko("lab", "up", path, "--no-controller", "--relaxed")
        try:
            with ServedLab(tmp_path, *options, lab=path, has_boards=False) as lab:
                answer = lab.post(1, destination="H2", rate_bps=100_000, protection="duplicate")
                assert answer.status_code == 201, answer.text
                lab.wait_received({"f1"}, 20)
                for cable in (DIRECT, "s3:2-s1:3"):
                    loko("lab", "pull", "triangle", cable)
                    wait_for(
                        lambda: lab.client.get("/v1/protection").json()["on_one_path"], "the report", lab.log
                    )
                    lab.wait_received({"f1"}, lab.delays()["f1"]["received"] + 50)
                    loko("lab", "plug", "triangle", cable)
                    lab.wait_healthy()
                    wait_for(
                        lambda: not lab.client.get("/v1/protection").json()["on_one_path"], "repair", lab.log
                    )
                assert lab.delays()["f1"]["lost"] == 0
                assert lab.client.delete("/v1/flows/f1").status_code == 204
                assert "Traceback" not in lab.log()
        finally:
            loko("lab", "down", "triangle")
