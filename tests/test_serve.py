"""`loko serve` from outside: REST, limits, tokens, restarts, on os-ken and on Ryu."""

from __future__ import annotations

import contextlib
import json
import random
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from served_lab import LOKO, PATIENCE_S, ServedLab, flow, wait_for

from benchmarks.one_board import BUILD

RYU_PYTHON = BUILD / ".clients" / "python" / "bin" / "python"
KILLS = 5


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with ServedLab(tmp_path_factory.mktemp("serve")) as lab:
        yield lab


@pytest.fixture(autouse=True)
def _nothing_remains(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "served" in request.fixturenames:
        lab = request.getfixturevalue("served")
        for one in lab.flows():
            lab.client.delete(f"/v1/flows/{one['id']}")


def code(response: httpx.Response) -> tuple[int, str]:
    error = response.json()["error"]
    assert isinstance(error["message"], str)
    return response.status_code, error["code"]


def test_flow_comes_and_goes(served: ServedLab) -> None:
    answer = served.post(1)
    assert answer.status_code == 201, answer.text
    values = answer.json()
    assert [hop["switch"] for hop in values["path"]] == ["s1", "s2"]
    assert values["guarantee_ns"] == sum(hop["delay_ns"] for hop in values["path"])
    assert served.post(1).status_code == 200
    assert served.flows() == [values]
    assert served.client.get("/v1/flows/f1").json() == values
    assert served.switches()["s1"]["use"][2]["used"] == 1
    assert served.client.delete("/v1/flows/f1").status_code == 204
    assert served.flows() == []
    assert code(served.client.delete("/v1/flows/f1")) == (404, "unknown-flow")


def test_flow_without_id_gets_one(served: ServedLab) -> None:
    wanted = flow(1)
    del wanted["id"]
    assert re.fullmatch(r"flow-[0-9a-f]{12}", served.client.post("/v1/flows", json=wanted).json()["id"])


def test_what_does_not_fit_is_refused_with_the_limiting_switch(served: ServedLab) -> None:
    answer = served.post(1, rate_bps=1e9)
    assert code(answer) == (409, "does-not-fit")
    error = answer.json()["error"]
    assert (error["switch"], error["quantity"], error["unit"]) == ("s1", "rate", "bit/s")
    assert code(served.post(1, deadline_ns=1000)) == (409, "does-not-fit")


@pytest.mark.parametrize("asked", [{"rate_bps": 1e9}, {"burst_bytes": 1e6}, {"deadline_ns": 1000.5}])
def test_what_a_refusal_advises_is_granted(served: ServedLab, asked: dict[str, float]) -> None:
    error = served.post(1, **asked).json()["error"]
    (name, value), *others = error["would_fit"].items()
    assert ([name], others) == (list(asked), [])
    limit, unit = {"rate_bps": ("most", "bit/s"), "burst_bytes": ("most", "bytes")}.get(name, ("least", "ns"))
    assert error["remedy"] == f"a {name.split('_')[0]} of at {limit} {value} {unit}"
    assert served.post(1, **{name: value}).status_code == 201


def test_path_may_be_given(served: ServedLab) -> None:
    assert served.post(1, path=["s1", "s2"]).status_code == 201
    assert code(served.post(2, path=["s2"])) == (422, "invalid")
    assert code(served.post(2, path=["s1", "s7"])) == (422, "invalid")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"udp_source": 0}, "udp_source"),
        ({"udp_source": "1"}, "udp_source"),
        ({"rate_bps": -1}, "rate_bps"),
        ({"rate_bps": "much"}, "rate_bps"),
        ({"source": "H9"}, "has no host 'H9'"),
        ({"destination": "H1"}, "crosses no switch"),
        ({"burst_bytes": 10}, "burst_bytes 10 is below frame_bytes 306"),
        ({"frame_bytes": 100}, "frame_bytes 100 is not a size"),
        ({"colour": "red"}, "unknown key 'colour'"),
        ({"id": "../etc"}, "id"),
        ({"source": "x" * 100}, "source"),
        ({"path": []}, "path"),
    ],
)
def test_wrong_input_is_explained(served: ServedLab, values: dict[str, object], says: str) -> None:
    answer = served.post(1, **values)
    assert code(answer) == (422, "invalid")
    assert says in answer.json()["error"]["message"]


def test_all_errors_have_one_shape(served: ServedLab) -> None:
    client = served.client
    assert code(client.get("/nothing")) == (404, "http")
    assert code(client.put("/v1/flows")) == (405, "http")
    assert code(client.post("/v1/flows", content="{", headers={"content-type": "application/json"})) == (
        *(422, "invalid"),
    )
    assert code(client.post("/v1/flows", content="{}", headers={"content-type": "text/plain"})) == (
        415,
        "no-json",
    )
    headers = {"origin": "http://evil.example", "content-type": "application/json"}
    assert code(client.post("/v1/flows", json=flow(1), headers=headers)) == (403, "foreign-origin")


def test_body_is_limited(served: ServedLab) -> None:
    headers = {"content-type": "application/json"}
    assert code(served.client.post("/v1/flows", content=b" " * 20_000, headers=headers)) == (413, "too-large")

    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1000

    with contextlib.suppress(httpx.WriteError):  # it may hang up before all is sent
        assert code(served.client.post("/v1/flows", content=chunks(), headers=headers)) == (413, "too-large")


def test_views(served: ServedLab) -> None:
    paths = served.client.get("/openapi.json").json()["paths"]
    assert {
        "/v1/flows",
        "/v1/flows/{flow_id}",
        "/v1/switches",
        "/v1/topology",
        "/v1/events",
        "/healthz",
    } <= set(paths)
    topology = served.client.get("/v1/topology").json()
    assert [one["name"] for one in topology["hosts"]] == ["H1", "H2", "H3", "H4"]
    assert len(topology["links"]) == 5
    assert served.client.get("/v1/healthz").json()["healthy"]


def test_docs_name_no_other_host(served: ServedLab) -> None:
    page = served.client.get("/docs")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    named = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert {"/page/swagger-ui-bundle.js", "/page/swagger-ui.css", "/openapi.json"} <= set(named)
    for address in named:
        assert re.match("/[^/]", address), address
        assert served.client.get(address).status_code == 200
    for text in (page.text, *(served.client.get(one).text for one in ("/page/docs.js", "/openapi.json"))):
        assert "//" not in re.sub("^//.*", "", text)


def test_events_tell_what_happens(served: ServedLab) -> None:
    with served.client.stream("GET", "/v1/events") as stream:
        lines = stream.iter_lines()
        seen = [next(lines) for _ in range(5)]
        assert seen[0] == "event: switches"
        served.post(1)
        text = ""
        while '"f1"' not in text:
            text = next(lines)
        assert json.loads(text.removeprefix("data: "))["name"] == "f1"


def test_rate_is_limited(tmp_path: Path) -> None:
    with ServedLab(tmp_path, "--requests-per-s", "1") as lab:
        answer = lab.client.get("/v1/flows")
        while answer.status_code == httpx.codes.OK:
            answer = lab.client.get("/v1/flows")
        assert code(answer) == (429, "too-many-requests")
        assert answer.headers["retry-after"] == "1"


def test_token_is_asked_of_what_changes_something(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-token-of-enough-length\n")
    with ServedLab(tmp_path, "--token-file", str(tmp_path / "token")) as lab:
        assert code(lab.post(1)) == (401, "no-token")
        assert code(lab.client.delete("/v1/flows/f1")) == (401, "no-token")
        assert lab.flows() == []
        lab.client.headers["authorization"] = "Bearer a-token-of-enough-lengtH"
        assert code(lab.post(1)) == (401, "no-token")
        lab.client.headers["authorization"] = "Bearer a-token-of-enough-length"
        assert lab.post(1).status_code == 201


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--rest", "0.0.0.0:0"], "--rest 0.0.0.0:0: whoever reaches it could change flows; give a token"),
        (["--rest", "here"], "--rest 'here' is not an address and a port"),
        (["--framework", "pox"], "--framework 'pox' is neither os-ken nor ryu"),
        (["--framework", "ryu"], "--framework ryu: give the interpreter that has Ryu 4.34"),
        (["--token-file", "/nowhere"], "--token-file /nowhere: cannot be read"),
        (["--allocation", "none"], "allocation 'none' is unknown"),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, options: list[str], says: str) -> None:
    done = subprocess.run(
        [LOKO, "serve", "two-switch", "--store", str(tmp_path / "s"), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert says in done.stderr


def test_busy_port_is_one_line(tmp_path: Path) -> None:
    with ServedLab(tmp_path) as lab:
        command = [LOKO, "serve", "two-switch", "--store", str(tmp_path / "s")]
        command += ["--openflow", "127.0.0.1:0", "--rest", f"127.0.0.1:{lab.rest}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert done.returncode == 2
        assert "Address already in use" in done.stderr
        assert lab.end() == 0


def test_kill_9_while_flows_come_and_go(tmp_path: Path) -> None:
    """Acknowledged flows survive; what was deleted stays so; every table is as promised after it."""
    choice = random.Random(1)
    with ServedLab(tmp_path) as lab:
        granted: set[str] = set()
        unsure: set[str] = set()
        count = 0
        for _ in range(KILLS):
            killer = threading.Timer(choice.uniform(0.02, 0.4), lab.kill)
            killer.start()
            try:
                while True:
                    if len(granted) > 3:
                        name = choice.choice(sorted(granted))
                        granted.discard(name)
                        unsure.add(name)
                        if lab.client.delete(f"/v1/flows/{name}").status_code == 204:
                            unsure.discard(name)
                        continue
                    count += 1
                    unsure.add(f"f{count}")
                    answer = lab.post(count)
                    unsure.discard(f"f{count}")
                    if answer.status_code == 201:
                        granted.add(f"f{count}")
            except httpx.TransportError:
                killer.join()
            lab.start()
            lab.wait_healthy()
            wait_for(lambda: all(one["state"] == "installed" for one in lab.flows()), "removals to end")
            there = {one["id"] for one in lab.flows()}
            assert granted <= there <= granted | unsure
            for switch in lab.switches().values():
                assert switch["complete"]
                assert switch["use"][2]["used"] == len(there)
            granted, unsure = there, set()


def test_ryu_serves_as_well(tmp_path: Path) -> None:
    if not RYU_PYTHON.exists():
        pytest.skip("Ryu 4.34 is not installed: run 'make clients'")
    with ServedLab(tmp_path, "--framework", "ryu", "--framework-python", str(RYU_PYTHON)) as lab:
        for number in range(1, 5):
            assert lab.post(number).status_code == 201
        assert lab.client.delete("/v1/flows/f2").status_code == 204
        lab.kill()
        lab.start()
        lab.wait_healthy()
        assert [one["id"] for one in lab.flows()] == ["f1", "f3", "f4"]


def test_boards_that_end_are_missed_and_taken_back(tmp_path: Path) -> None:
    with ServedLab(tmp_path, free_control=False) as lab:
        assert lab.post(1).status_code == 201
        lab.switch_off()
        wait_for(
            lambda: [one["state"] for one in lab.switches().values()] == ["away"] * 2, "the loss to be seen"
        )
        assert not lab.is_healthy()
        assert code(lab.post(2)) == (503, "switch-unavailable")
        answer = lab.client.delete("/v1/flows/f1")
        assert (answer.status_code, answer.json()["waiting_for"]) == (202, ["s1", "s2"])
        lab.switch_on()
        lab.wait_healthy()
        wait_for(lambda: lab.flows() == [], "the flow to go")
        assert "is interrupted at s1" in lab.log()
