"""The service is two processes: sessions with switches do not depend on the one that serves REST.

Tests that boards never wait for a sign of life judge delays, and have the machine for themselves.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
from served_lab import TIMEOUT_S, ServedLab, flow, wait_for

ADDRESSES = ("127.0.0.1", "127.0.0.2")
"""Clients have their share of requests by address."""
CLIENTS = 2000
LOADED = ("--connections", "8192", "--requests-per-s", "1000000")
"""Options that let so many clients in."""
RESTARTED = "the REST process has ended with status -9; starting it again"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with ServedLab(tmp_path_factory.mktemp("processes")) as lab:
        assert lab.post(1).status_code == 201
        yield lab


@pytest.fixture
def lab(served: ServedLab) -> Iterator[ServedLab]:
    """Give a service with one flow and a new log. It runs again after the test."""
    served.begin_log()
    yield served
    assert served.process is not None
    if served.process.poll() is not None:
        served.start()
    served.wait_healthy()


@pytest.mark.live
def test_a_load_of_requests_never_keeps_sessions_waiting(tmp_path: Path) -> None:
    """Two thousand clients ask at once for decisions that take long, and no board asks for a sign of life."""
    with ServedLab(tmp_path, *LOADED, lab="ring") as lab, contextlib.ExitStack() as open_:
        values = flow(1, source="h1a", destination="h16b", rate_bps=1e9)
        body = json.dumps(values).encode()
        head = b"POST /v1/what-if/flow HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        request = head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        clients = [
            open_.enter_context(
                socket.create_connection(
                    ("127.0.0.1", lab.rest), TIMEOUT_S, (ADDRESSES[number % len(ADDRESSES)], 0)
                )
            )
            for number in range(CLIENTS)
        ]
        for client in clients:
            client.sendall(request)
        for client in clients:
            answer = http.client.HTTPResponse(client)
            answer.begin()
            assert json.loads(answer.read())["error"]["code"] == "does-not-fit"
        assert "sign of life" not in lab.log()


@pytest.mark.live
def test_switches_are_served_while_rest_hangs(lab: ServedLab) -> None:
    """Boards that lose their tables get them again; then another process serves REST."""
    rest = lab.rest_process()
    rest.suspend()
    lab.switch_off()
    wait_for(lambda: lab.log().count(": disconnected") == 2, "the loss to be seen", lab.log)
    lab.switch_on()
    wait_for(lambda: "flow f1: is kept again" in lab.log(), "the table to be restored", lab.log)
    wait_for(lambda: RESTARTED in lab.log(), "another process", lab.log)
    lab.wait_healthy()
    assert [(flow["id"], flow["state"]) for flow in lab.flows()] == [("f1", "installed")]
    assert "the REST process hangs; killing it" in lab.log()
    assert "sign of life" not in lab.log()
    assert lab.rest_process() != rest


def test_rest_that_dies_is_started_again_and_loses_nothing(lab: ServedLab) -> None:
    """A request goes on, though its client hears no more of it. Clients that watch connect again."""
    assert lab.process is not None
    assert lab.boards is not None
    pid = lab.process.pid
    events = httpx.stream("GET", f"{lab.address}/v1/events", timeout=TIMEOUT_S)
    with events as stream, ThreadPoolExecutor(1) as clients:
        news = stream.iter_bytes()
        next(news)  # so that it is the process to be killed that sends them
        lab.boards.send_signal(signal.SIGSTOP)  # so that no switch confirms anything
        asked = clients.submit(lab.post, 2)
        wait_for(lambda: [flow["id"] for flow in lab.flows()] == ["f1", "f2"], "the request to be in flight")
        lab.rest_process().kill()
        with pytest.raises(httpx.TransportError):
            asked.result()
        with pytest.raises(httpx.TransportError):
            for _ in news:
                pass
    lab.boards.send_signal(signal.SIGCONT)
    wait_for(lambda: RESTARTED in lab.log(), "its end to be seen", lab.log)
    lab.wait_healthy()
    wait_for(
        lambda: [flow["state"] for flow in lab.flows()] == ["installed"] * 2, "both flows to be installed"
    )
    assert lab.post(2).status_code == 200
    assert lab.client.delete("/v1/flows/f2").status_code == 204
    assert (lab.process.pid, lab.process.poll()) == (pid, None)
    assert "Traceback" not in lab.log()


@pytest.mark.parametrize("hangs", [False, True])
def test_rest_ends_with_the_flow_manager(lab: ServedLab, *, hangs: bool) -> None:
    """However that ends, nothing holds the address at which the next one is to listen."""
    rest = lab.rest_process()
    if hangs:
        rest.suspend()
    lab.kill()
    psutil.wait_procs([rest], timeout=10)
    assert not rest.is_running()
    lab.start()
    lab.wait_healthy()
    assert [flow["id"] for flow in lab.flows()] == ["f1"]


def test_the_service_ends_though_rest_hangs(lab: ServedLab) -> None:
    lab.rest_process().suspend()
    assert lab.end() == 0
    assert "the REST process does not end; killing it" in lab.log()


def test_rest_that_hangs_as_it_starts_ends_with_the_flow_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its modules take seconds to load, and it holds the address from the beginning."""
    (tmp_path / "uvicorn.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    command = [sys.executable, "-P", "-m", "loko.service.rest_server", "0", "0"]
    script = f"import subprocess; p = subprocess.Popen({command}); print(p.pid, flush=True); p.wait()"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        rest = psutil.Process(int(parent.stdout.readline()))
        try:
            wait_for(lambda: rest.status() == psutil.STATUS_STOPPED, "it to hang")
        finally:
            parent.kill()
    _, left = psutil.wait_procs([rest], timeout=10)
    for process in left:
        process.kill()
    assert not left
