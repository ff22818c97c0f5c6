"""`loko serve --survive` with emulated boards: cables pulled, boards rebooted, the service killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from served_lab import ServedLab, wait_for
from triangle import DIRECT, triangle

SURVIVE = ("--survive", "cables=1", "--compare-s", "1")


@pytest.fixture
def emulated(tmp_path: Path) -> Iterator[ServedLab]:
    options = (*SURVIVE, "--emulate", "--traffic")
    lab = str(triangle(tmp_path).path)
    with ServedLab(tmp_path, *options, lab=lab, has_boards=False) as served:
        yield served


def to_h2(number: int = 1) -> dict[str, object]:
    return {"destination": "H2", "udp_source": number, "rate_bps": 100_000}


def reserved(served: ServedLab, name: str = "f1") -> dict[str, Any]:
    return dict(served.client.get(f"/v1/flows/{name}").json()["reserved"])


def wait_on_backup(served: ServedLab, *, is_on_backup: bool = True) -> None:
    def is_there() -> bool:
        flow = served.client.get("/v1/flows/f1").json()
        return flow["reserved"]["on_backup"] is is_on_backup and not flow["broken"]

    wait_for(is_there, "the flow on its other path", served.log)


def uncovered(served: ServedLab) -> str:
    return str(served.client.get("/v1/protection").json()["uncovered"])


def cause(served: ServedLab, fault: str) -> httpx.Response:
    return served.client.post(f"/v1/emulation/{fault}")


def test_a_pulled_cable_moves_a_flow_and_no_frame_is_late(emulated: ServedLab) -> None:
    answer = emulated.post(1, **to_h2())
    assert answer.status_code == 201, answer.text
    granted = answer.json()
    assert granted["reserved"] == {
        "protection": "backup",
        "on_backup": False,
        "working": ["s1", "s2"],
        "backups": [{"failure": f"cable {DIRECT}", "path": ["s1", "s3", "s2"]}],
        "second_copies": None,
        "on_one_path": [],
    }
    assert granted["promised_ns"] > granted["guarantee_ns"]
    emulated.wait_received({"f1"}, 20)
    assert emulated.client.get("/v1/protection").json()["covered"]
    assert cause(emulated, f"cables/{DIRECT}/pull").status_code == 204
    assert emulated.client.get("/v1/emulation").json()["pulled"] == [DIRECT]
    wait_on_backup(emulated)
    protection = emulated.client.get("/v1/protection").json()
    assert (protection["covered"], protection["on_backup"]) == (False, ["f1"])
    assert protection["uncovered"][0].startswith(f"cable {DIRECT} has no link")
    emulated.wait_received({"f1"}, emulated.delays()["f1"]["received"] + 20)
    assert "loko_flows_on_backup 1.0" in emulated.client.get("/metrics").text
    assert cause(emulated, f"cables/{DIRECT}/plug").status_code == 204
    wait_on_backup(emulated, is_on_backup=False)
    lost = emulated.delays()["f1"]["lost"]
    emulated.wait_received({"f1"}, emulated.delays()["f1"]["received"] + 20)
    delays = emulated.delays()["f1"]
    assert (delays["late"], delays["lost"]) == (0, lost)
    emulated.wait_healthy()
    assert "Traceback" not in emulated.log()


def test_a_rebooted_switch_gets_its_table_again(emulated: ServedLab) -> None:
    assert emulated.post(1, **to_h2()).status_code == 201
    assert cause(emulated, "switches/s2/reboot").status_code == 204
    wait_for(lambda: not emulated.switches()["s2"]["complete"], "the reboot", emulated.log)
    emulated.wait_healthy()
    assert [flow["state"] for flow in emulated.flows()] == ["installed"]


@pytest.mark.parametrize("chips", [2, 3])
def test_flows_move_between_chips_and_over_a_board(tmp_path: Path, chips: int) -> None:
    """A chip tells of its links by itself, so nothing waits for the next comparison."""
    lab = str(triangle(tmp_path, chips=chips).path)
    options = ("--survive", "cables=1", "--emulate", "--traffic")
    with ServedLab(tmp_path, *options, lab=lab, has_boards=False) as served:
        unexpected = [switch["unexpected_ports"] for switch in served.switches().values()]
        assert not any(unexpected[:chips])
        assert served.post(1, **to_h2()).status_code == 201
        served.wait_received({"f1"}, 20)
        assert cause(served, f"cables/{DIRECT}/pull").status_code == 204
        wait_on_backup(served)
        served.wait_received({"f1"}, served.delays()["f1"]["received"] + 20)
        assert cause(served, f"cables/{DIRECT}/plug").status_code == 204
        wait_on_backup(served, is_on_backup=False)
        assert served.delays()["f1"]["late"] == 0
        boards = [] if chips == 3 else ["s3"]
        assert served.client.get("/v1/emulation").json() == {"pulled": [], "restartable": boards}
        answer = cause(served, "switches/s1/reboot")
        assert answer.status_code == 404
        assert answer.json()["error"]["message"] == "s1: ideal-1g cannot restart here; only a Zodiac FX can"


def test_what_is_not_there_has_no_faults(emulated: ServedLab) -> None:
    for fault in ("cables/s1:2-s3:3/pull", "switches/s9/reboot"):
        answer = cause(emulated, fault)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown-place")
    assert cause(emulated, "cables/s2:3-s1:2/pull").status_code == 204, "a cable has two names"
    assert emulated.client.get("/v1/emulation").json()["pulled"] == [DIRECT]
    paths = emulated.client.get("/openapi.json").json()["paths"]
    assert "/v1/emulation/cables/{cable}/pull" in paths


def test_a_flow_on_its_backup_path_survives_a_kill_and_returns_by_call(tmp_path: Path) -> None:
    lab = str(triangle(tmp_path).path)
    with ServedLab(tmp_path, *SURVIVE, "--return", "by-call", lab=lab) as served:
        assert served.client.post("/v1/emulation/switches/s1/reboot").status_code == 404
        assert served.post(1, **to_h2()).status_code == 201

        def fault(kind: str) -> None:
            assert served.boards is not None
            assert served.boards.stdin is not None
            line = json.dumps({"fault": {"kind": kind, "place": DIRECT}})
            served.boards.stdin.write(f"{line}\n".encode())
            served.boards.stdin.flush()

        fault("pull")
        wait_on_backup(served)
        before = reserved(served)
        served.kill()
        served.start()
        served.wait_healthy()
        assert reserved(served) == before
        assert served.post(2, **to_h2(2)).status_code == 201
        assert reserved(served, "f2")["working"] == ["s1", "s3", "s2"]
        fault("plug")
        wait_for(lambda: "cable" not in uncovered(served), "the repair", served.log)
        assert reserved(served)["on_backup"]
        assert served.client.post("/v1/protection/return").json() == {"returning": ["f1"]}
        wait_on_backup(served, is_on_backup=False)
        wait_for(lambda: served.client.get("/v1/protection").json()["covered"], "the return", served.log)
        assert reserved(served) == {**before, "on_backup": False}


def test_a_duplicated_flow_loses_nothing_while_any_cable_is_pulled(tmp_path: Path) -> None:
    options = (*SURVIVE, "--emulate", "--traffic", "--protection", "duplicate")
    lab = str(triangle(tmp_path).path)
    with ServedLab(tmp_path, *options, lab=lab, has_boards=False) as served:
        answer = served.post(1, **to_h2())
        assert answer.status_code == 201, answer.text
        granted = answer.json()
        assert granted["promised_ns"] == granted["guarantee_ns"]
        second = granted["reserved"]["second_copies"]
        assert (second["path"], second["udp_source"]) == (["s1", "s3", "s2"], 65535)
        assert served.post(2, **to_h2(2), protection="backup").json()["reserved"]["second_copies"] is None
        assert served.client.delete("/v1/flows/f2").status_code == 204
        served.wait_received({"f1"}, 20)
        for cable in (DIRECT, "s3:2-s1:3"):
            assert cause(served, f"cables/{cable}/pull").status_code == 204
            wait_for(
                lambda: served.client.get("/v1/protection").json()["on_one_path"] == ["f1"],
                "the report of the cable",
                served.log,
            )
            (fault,) = served.client.get("/v1/flows/f1").json()["reserved"]["on_one_path"]
            assert fault["text"].startswith(f"cable {cable} has no link")
            assert "loko_flows_on_one_path 1.0" in served.client.get("/metrics").text
            served.wait_received({"f1"}, served.delays()["f1"]["received"] + 20)
            assert cause(served, f"cables/{cable}/plug").status_code == 204
            wait_for(
                lambda: not served.client.get("/v1/protection").json()["on_one_path"],
                "the repair",
                served.log,
            )
        served.wait_received({"f1"}, served.delays()["f1"]["received"] + 20)
        delays = served.delays()["f1"]
        assert (delays["late"], delays["lost"]) == (0, 0)
        assert "Traceback" not in served.log()


def test_both_paths_of_a_duplicated_flow_survive_a_kill(tmp_path: Path) -> None:
    lab = str(triangle(tmp_path).path)
    with ServedLab(tmp_path, *SURVIVE, lab=lab) as served:
        assert served.post(1, **to_h2(), protection="duplicate").status_code == 201
        before = reserved(served)
        served.kill()
        served.start()
        served.wait_healthy()
        assert reserved(served) == before
        assert served.post(1, **to_h2(), protection="duplicate").status_code == 200
        assert served.client.delete("/v1/flows/f1").status_code == 204
        served.wait_healthy()


def test_a_protection_needs_failures(tmp_path: Path) -> None:
    with ServedLab(tmp_path, lab=str(triangle(tmp_path).path)) as served:
        refused = served.post(1, **to_h2(), protection="duplicate")
        assert refused.status_code == 422
        assert "no flow survives failures here" in refused.json()["error"]["message"]
