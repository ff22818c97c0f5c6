"""The service on a disk that is full: a file system of its own, in a mount namespace that ends with it."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from live_harness import needs_namespaces
from served_lab import LOKO, TIMEOUT_S, ServedLab, wait_for

from loko.user_error import NOT_NOW, WRONG_INPUT

pytestmark = [pytest.mark.namespaces, pytest.mark.waits, needs_namespaces]
ROOM_BYTES = 1 << 20


def within(folder: Path, then: str = "true") -> tuple[str, ...]:
    """Return what runs a command with a small file system in place of a folder, after preparing that."""
    script = f'mount -t tmpfs -o size={ROOM_BYTES} none "$0" && cd "$0" && {then}; exec "$@"'
    return ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(folder))


FILL = "dd if=/dev/zero of=filling bs=4096 2>/dev/null"


def fill(path: Path) -> None:
    """Write a file until there is no room left."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_a_full_disk_stops_changes_and_nothing_else(tmp_path: Path) -> None:
    with ServedLab(tmp_path, within=within(tmp_path)) as lab:
        assert lab.post(1).status_code == 201
        assert lab.process is not None
        filling = Path(f"/proc/{lab.process.pid}/root{tmp_path}/filling")
        fill(filling)
        statuses = []
        for number in range(2, 400):  # the log of writes has some room left in it
            answer = lab.post(number)
            statuses.append(answer.status_code)
            if answer.status_code == 503:
                break
            assert lab.client.delete(f"/v1/flows/f{number}").status_code in {204, 503}
        assert statuses[-1] == 503
        error = answer.json()["error"]
        assert (error["code"], error["disposition"]) == ("storage-unavailable", "nothing")
        assert "disk is full" in error["message"]
        assert lab.client.delete("/v1/flows/f1").json()["error"]["code"] == "storage-unavailable"
        health = lab.client.get("/healthz")
        assert (health.status_code, "disk is full" in health.json()["storage"]) == (200, True)
        assert "loko_store_available 0.0" in lab.client.get("/metrics").text
        assert {flow["id"]: flow["broken"] for flow in lab.flows()}["f1"] == []
        filling.unlink()
        wait_for(lambda: lab.client.get("/healthz").json()["storage"] is None, "the disk to be used", lab.log)
        assert lab.post(500).status_code == 201
        assert lab.client.delete("/v1/flows/f1").status_code == 204
        assert "Traceback" not in lab.log()
        assert lab.end() == 0


@pytest.mark.parametrize(
    ("then", "status", "text"),
    [
        (FILL, NOT_NOW, "disk is full"),
        ('mount -o remount,ro "$0"', NOT_NOW, "Read-only file system"),
        ("mkdir flows.sqlite", WRONG_INPUT, "Is a directory"),
    ],
)
def test_a_start_without_a_disk_says_so_with_its_status(
    tmp_path: Path, then: str, status: int, text: str
) -> None:
    command = [LOKO, "serve", "two-switch", "--store", str(tmp_path / "flows.sqlite")]
    command += ["--rest", "127.0.0.1:0", "--listen", "127.0.0.1:0"]
    done = subprocess.run(
        [*within(tmp_path, then), *command], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == status, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith(f"error: store {tmp_path}/flows.sqlite: ")
    assert text in line
