"""`loko serve` on emulated switch chips: admission by ports through REST, traffic, kills."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from served_lab import ServedLab, survives_kills
from triangle import triangle

PORTS = ("--frame-bytes", "306", "--frame-bytes", "1518")


@pytest.fixture(scope="module")
def chips(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    options = (*PORTS, "--emulate", "--traffic")
    with ServedLab(tmp_path_factory.mktemp("chips"), *options, lab="chip-ring", has_boards=False) as lab:
        yield lab
        lab.release_all()


def test_granted_flows_send_and_no_packet_is_late(chips: ServedLab) -> None:
    pairs = [("H1", "H2"), ("H2", "H1"), ("H3", "H2"), ("H1", "H3")]
    for number, (source, destination) in enumerate(pairs, 1):
        sizes = {"burst_bytes": 15_180, "frame_bytes": 1518} if number % 2 else {"burst_bytes": 3060}
        answer = chips.post(number, source=source, destination=destination, rate_bps=4e6, **sizes)
        assert answer.status_code == httpx.codes.CREATED, answer.text
    chips.wait_received({"f1", "f2", "f3", "f4"}, 1_000)
    promised = {flow["id"]: flow["guarantee_ns"] for flow in chips.flows()}
    for name, seen in chips.delays().items():
        assert (seen["lost"], seen["late"]) == (0, 0)
        assert 0 < seen["max_ns"] <= promised[name]
    assert {name: switch["use"][-1]["used"] for name, switch in chips.switches().items()} == {
        "s1": 4,
        "s2": 4,
        "s3": 3,
    }
    chips.client.delete("/v1/flows/f1").raise_for_status()
    chips.wait_received({"f2", "f3", "f4"}, 1_500)
    assert all(switch["complete"] for switch in chips.switches().values())


@pytest.mark.parametrize("chips", [3, 2])
def test_flows_of_both_classes_survive_kills_and_send_in_time(chips: int, tmp_path: Path) -> None:
    """Also where a board forwards both classes in one queue."""
    triangle(tmp_path, chips=chips)
    options = ("--classes", "2", "--emulate", "--traffic")
    with ServedLab(tmp_path, *options, lab=str(tmp_path), has_boards=False) as lab:
        promised = {}
        for number in (1, 2, 3, 4):
            answer = lab.post(number, traffic_class=1 + number % 2, rate_bps=100_000)
            assert answer.status_code == httpx.codes.CREATED, answer.text
            promised[f"f{number}"] = answer.json()["guarantee_ns"]
        assert promised["f1"] > promised["f2"]
        lab.kill()
        lab.start()
        lab.wait_healthy()
        flows = {flow["id"]: flow for flow in lab.flows()}
        assert {name: flow["traffic_class"] for name, flow in flows.items()} == {
            "f1": 2,
            "f2": 1,
            "f3": 2,
            "f4": 1,
        }
        assert {name: flow["guarantee_ns"] for name, flow in flows.items()} == promised
        lab.wait_received(set(promised), 100)
        for name, seen in lab.delays().items():
            assert (seen["lost"], seen["late"]) == (0, 0)
            assert 0 < seen["max_ns"] <= promised[name]
        error = lab.post(5, traffic_class=3).json()["error"]
        assert error["code"] == "invalid"
        assert "traffic_class 3: flows here have class 1 to 2" in error["message"]


def test_what_does_not_fit_is_refused(chips: ServedLab) -> None:
    error = chips.post(9, rate_bps=2e9).json()["error"]
    assert (error["code"], error["quantity"]) == ("does-not-fit", "rate of H1's cable")
    assert chips.post(9, deadline_ns=100_000).json()["error"]["code"] == "does-not-fit"


def test_flows_survive_kills_and_the_chips_connect_again(tmp_path: Path) -> None:
    with ServedLab(tmp_path, *PORTS, lab="chip-ring") as lab:
        for flows in survives_kills(lab, lab.post, kills=2):
            assert flows <= {flow["id"] for flow in lab.flows()}
        lab.switch_off()
        lab.switch_on()
        lab.wait_healthy()
        assert all(switch["complete"] for switch in lab.switches().values())
