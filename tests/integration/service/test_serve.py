"""`loko serve` from the outside: REST, limits, tokens, restarts, with os-ken and with Ryu."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
from in_process import loko
from prometheus_client.parser import text_string_to_metric_families
from served_lab import LOKO, TIMEOUT_S, ServedLab, flow, survives_kills, wait_for

from benchmarks.builds import BUILD
from loko.document import LABS
from loko.switch_model.device import profile_text
from loko.units import readable

RYU_PYTHON = BUILD / ".clients" / "python" / "bin" / "python"
KILLS = 2
ONE_REAL_BOARD = str(LABS / "two-switch" / "one-real-board.yml")
COMPARED = "connected; comparing its table"
NOTICED = "the OpenFlow application has ended with status -9; starting it again"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    options = ("--log-format", "json", "--allow-host", "loko.example")
    with ServedLab(tmp_path_factory.mktemp("serve"), *options) as lab:
        yield lab


@pytest.fixture(scope="module", params=["1.0", "1.3"])
def versioned(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedLab]:
    with ServedLab(tmp_path_factory.mktemp("version"), "--openflow", request.param) as lab:
        yield lab


@pytest.fixture(scope="module")
def emulating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    options = ("--emulate", "--traffic")
    with ServedLab(tmp_path_factory.mktemp("emulating"), *options, has_boards=False) as lab:
        yield lab


@pytest.fixture(autouse=True)
def _nothing_remains(request: pytest.FixtureRequest) -> Iterator[None]:
    """Begin the logs of shared services anew, and release what a test has left in them."""
    shared = {"served", "versioned", "emulating"} & set(request.fixturenames)
    labs: list[ServedLab] = [request.getfixturevalue(name) for name in shared]
    for lab in labs:
        lab.begin_log()
    yield
    for lab in labs:
        lab.release_all()


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
    (written,), unit = readable([value], unit)
    assert error["suggestion"] == f"a {name.split('_')[0]} of at {limit} {written} {unit}"
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
        ({"burst_bytes": 100}, "burst_bytes 100 is below frame_bytes 306"),
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
    for path, allowed in [("/v1/flows", "GET, HEAD, POST"), ("/v1/flows/f1", "DELETE, GET, HEAD")]:
        answer = client.put(path)
        assert code(answer) == (405, "http")
        assert answer.headers["allow"] == allowed
    assert set(client.put("/openapi.json").headers["allow"].split(", ")) == {"GET", "HEAD"}
    assert code(client.post("/v1/flows", content="{", headers={"content-type": "application/json"})) == (
        *(422, "invalid"),
    )
    for content_type in ("text/plain", "application/jsonfoo", "application/json-patch+json", ""):
        headers = {"content-type": content_type}
        assert code(client.post("/v1/flows", content="{}", headers=headers)) == (415, "no-json")
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    assert code(client.post("/v1/flows", content="{}", headers=headers)) == (422, "invalid")
    headers = {"origin": "http://evil.example", "content-type": "application/json"}
    assert code(client.post("/v1/flows", json=flow(1), headers=headers)) == (403, "foreign-origin")


@pytest.mark.parametrize("path", ["/", "/v1/flows", "/v1/events", "/healthz", "/docs", "/openapi.json"])
def test_only_known_hosts_are_served(served: ServedLab, path: str) -> None:
    """Another site may point its name here (DNS rebinding); its requests would count as same-origin."""
    host = f"evil.example:{served.rest}"
    headers = {"host": host, "origin": f"http://{host}", "referer": f"http://{host}/"}
    with served.client.stream("GET", path, headers=headers) as answer:
        answer.read()
    assert code(answer) == (421, "foreign-host")
    assert code(served.client.post("/v1/flows", json=flow(1), headers=headers)) == (421, "foreign-host")
    assert served.flows() == []


def test_hosts_can_be_allowed(served: ServedLab) -> None:
    assert served.client.get("/v1/flows", headers={"host": "loko.example:80"}).status_code == 200
    assert served.client.get("/v1/flows", headers={"host": "www.loko.example"}).status_code == 421


@pytest.mark.parametrize(
    "path", ["/", "/v1/flows", "/v1/switches", "/v1/events", "/healthz", "/docs", "/openapi.json"]
)
def test_headers_alone_are_those_of_the_whole(served: ServedLab, path: str) -> None:
    head = served.client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    with served.client.stream("GET", path) as whole:
        for name in ("content-type", "content-length", "etag", "content-security-policy"):
            assert head.headers.get(name) == whole.headers.get(name), name
    assert code(served.client.get("/v1/flows/f1")) == (404, "unknown-flow")
    assert served.client.head("/v1/flows/f1").status_code == 404


def test_five_tuple_in_use_is_a_conflict(served: ServedLab) -> None:
    assert served.post(1).status_code == 201
    answer = served.post(1, id="another")
    assert code(answer) == (409, "conflict")
    assert "flows 'f1' and 'another' have the same hosts and ports" in answer.json()["error"]["message"]


def test_it_gives_no_slots(served: ServedLab) -> None:
    """A service either admits flows or gives slots, and says so in one line."""
    refused = served.client.post("/v1/slots", json={"source": "H1"})
    assert refused.json()["error"]["message"] == (
        "this service admits flows and gives no slots: POST to /v1/flows, or serve with --schedule"
    )
    assert code(refused) == (409, "admits-flows")
    for path in ("/v1/schedule", "/v1/hosts/H1/sends"):
        assert code(served.client.get(path)) == (404, "admits-flows")


def test_large_numbers_are_not_spelled_out(served: ServedLab) -> None:
    message = served.post(1, rate_bps=1e30).json()["error"]["message"]
    assert "rate_bps: Input should be less than or equal to 1000000000000000" in message
    message = served.post(1, rate_bps=1e15, burst_bytes=12_345_678).json()["error"]["message"]
    assert "0 used + 1e+06 requested > " in message
    message = served.post(1, burst_bytes=64.25).json()["error"]["message"]
    assert "burst_bytes 64.25 is below" in message


def test_body_is_limited(served: ServedLab) -> None:
    headers = {"content-type": "application/json"}
    assert code(served.client.post("/v1/flows", content=b" " * 20_000, headers=headers)) == (413, "too-large")

    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1000

    with contextlib.suppress(httpx.WriteError):  # it may close the connection before everything is sent
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
    assert [host["name"] for host in topology["hosts"]] == ["H1", "H2", "H3", "H4"]
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
    for text in (
        page.text,
        *(served.client.get(address).text for address in ("/page/docs.js", "/openapi.json")),
    ):
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


def metrics_of(lab: ServedLab) -> dict[tuple[str, ...], float]:
    """Return the samples by name and label values, as Prometheus parses them."""
    answer = lab.client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_metrics_tell_flows_use_refusals_and_sessions(served: ServedLab) -> None:
    before = metrics_of(served)
    answer = served.post(1, rate_bps=100_000)
    assert served.post(2, rate_bps=1e9).status_code == 409
    assert served.post(2, source="H9").status_code == 422
    after = metrics_of(served)
    grown = {key: value - before.get(key, 0.0) for key, value in after.items()}
    assert after["loko_flows", "installed"] == 1
    assert after["loko_flow_guarantee_seconds", "f1"] == pytest.approx(answer.json()["guarantee_ns"] / 1e9)
    for switch in served.switches().values():
        assert after["loko_switch_connected", switch["name"]] == 1
        for share in switch["use"]:
            key = (share["quantity"], switch["name"], share["unit"])
            assert after["loko_switch_used", *key] == pytest.approx(share["used"])
            assert after["loko_switch_allocated", *key] == pytest.approx(share["allowed"])
    assert after["loko_sessions",] == 2
    assert grown["loko_refusals_total", "rate", "does-not-fit"] == 1
    assert grown["loko_refusals_total", "", "invalid"] == 1
    assert grown["loko_http_answers_total", "POST", "201"] == 1
    assert grown["loko_http_answers_total", "POST", "409"] == 1
    assert grown["loko_openflow_restarts_total",] == 0
    assert ("loko_stalls_total",) in after


def test_metrics_have_measured_delays_beside_guarantees(emulating: ServedLab) -> None:
    assert emulating.post(1).status_code == 201
    wait_for(lambda: emulating.delays().get("f1", {}).get("received"), "its packets")
    seen = metrics_of(emulating)
    assert seen["loko_flow_packets_total", "received", "f1"] > 0
    assert seen["loko_flow_packets_total", "late", "f1"] == 0
    most_s = seen["loko_flow_delay_max_seconds", "f1"]
    assert 0 < seen["loko_flow_delay_seconds", "f1", "0.5"] <= most_s
    assert most_s <= seen["loko_flow_guarantee_seconds", "f1"]


def test_log_in_json_names_the_request(served: ServedLab) -> None:
    named = served.client.get("/v1/flows/none", headers={"x-request-id": "mine-1"})
    answer = served.post(1)
    assert named.headers["x-request-id"] == "mine-1"
    assert answer.status_code == 201
    name = answer.headers["x-request-id"]  # the line is written while the answer is being sent
    wait_for(lambda: f'"{name}"' in served.log(), "the line of the request")
    lines = [json.loads(line) for line in served.log().splitlines()]
    by_request = {line["request"]: line for line in lines if "status" in line}
    assert (by_request["mine-1"]["path"], by_request["mine-1"]["status"]) == ("/v1/flows/none", 404)
    told = by_request[name]
    assert (told["method"], told["status"], told["flow"]) == ("POST", 201, "f1")
    [installed] = [line for line in lines if line["text"] == "flow f1: is installed"]
    assert (installed["kind"], installed["name"]) == ("flow", "f1")
    assert "request" not in installed  # the switch's answer belongs to no request


def test_changes_need_the_token_and_the_rate_is_limited(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-token-of-enough-length\n")
    options = ("--token-file", str(tmp_path / "token"), "--requests-per-s", "8")
    with ServedLab(tmp_path, *options) as lab:
        assert code(lab.post(1)) == (401, "no-token")
        assert code(lab.client.delete("/v1/flows/f1")) == (401, "no-token")
        assert lab.flows() == []
        lab.client.headers["authorization"] = "Bearer a-token-of-enough-lengtH"
        assert code(lab.post(1)) == (401, "no-token")
        lab.client.headers["authorization"] = "Bearer a-token-of-enough-length"
        assert lab.post(1).status_code == 201
        answer = lab.client.get("/v1/flows")
        while answer.status_code == httpx.codes.OK:
            answer = lab.client.get("/v1/flows")
        assert code(answer) == (429, "too-many-requests")
        assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--rest", "0.0.0.0:0"], "--rest 0.0.0.0:0: whoever reaches it could change flows; give a token"),
        (["--allow-host", "http://loko"], "--allow-host 'http://loko' is not a host; give a name"),
        (["--rest", "here"], "--rest 'here' is not an address and a port"),
        (["--framework", "pox"], "--framework 'pox' is neither os-ken nor ryu"),
        (["--framework", "ryu"], "--framework ryu: give the interpreter that has Ryu 4.34"),
        (["--token-file", "/nowhere"], "--token-file /nowhere: cannot be read"),
        (["--allocation", "none"], "allocation 'none' is unknown"),
        (["--schedule", "none.json"], "--schedule none.json: no such file"),
        (["--tls-listen", "127.0.0.1:0"], "--tls-key and --tls-ca: give all of them, or none"),
        (["--emulate", "--cabling", ONE_REAL_BOARD], "--emulate: s1 is a real board; leave --emulate or"),
        (["--schedule", "a.json", "--scheme", "packets"], "--scheme: is of admission control"),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, options: list[str], says: str) -> None:
    done = loko("serve", "two-switch", "--store", tmp_path / "s", *options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert says in done.stderr


def test_a_profile_that_the_emulator_refuses_ends_the_service_at_once(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(profile_text("zodiac-fx", units=1_000_001))
    ring = "{switches: 3, hosts_per_switch: 1, one_way: false, profile: wrong.toml}"
    (tmp_path / "lab.yml").write_text(f"name: mine\ntitle: Mine\nring: {ring}\n")
    done = loko("serve", tmp_path, "--emulate", "--store", tmp_path / "s")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "wrong.toml: profile, buffer.units: choose 1 to 1000000" in done.stderr


def test_token_of_the_environment_must_be_as_long_as_that_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("short")
    for options, given, says in (
        (["--token-file", str(tmp_path / "token")], {}, f"--token-file {tmp_path / 'token'}"),
        ([], {"LOKO_TOKEN": " short\n"}, "$LOKO_TOKEN"),
    ):
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        done = loko("serve", "two-switch", "--store", tmp_path / "s", *options)
        assert done.returncode == 2
        assert done.stderr.endswith(f"{says}: has 5 characters; give at least 16\n")


def test_busy_port_is_one_line(served: ServedLab, tmp_path: Path) -> None:
    command = [LOKO, "serve", "two-switch", "--store", str(tmp_path / "s")]
    command += ["--listen", "127.0.0.1:0", "--rest", f"127.0.0.1:{served.rest}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 2
    assert "Address already in use" in done.stderr


def gets_the_guarantee_of_its_plan(lab: ServedLab, folder: Path) -> None:
    """Check it. Control traffic has the same reservation, too: 20 changes a second, and comparisons."""
    flows = folder / "flows.json"
    flows.write_text(json.dumps([flow(1)]))
    words = ["plan", "two-switch", flows, "--changes-per-s", "20", *lab.options, "--json"]
    values = json.loads(loko(*words).stdout)
    (expected,) = values["accepted"]
    assert lab.client.get("/v1/margin").json()["slower_ppm"] is None
    assert lab.post(1).json()["guarantee_ns"] == expected["guarantee_ns"]
    # Flows that other tests have released may still count.
    wait_for(lambda: lab.client.get("/v1/margin").json()["slower_ppm"] is not None, "the margin")
    told = lab.client.get("/v1/margin").json()
    assert {name: told[name] for name in ("slower_ppm", "limited_by")} == values["margin"]
    is_robust = "--robust" in lab.options
    assert ("slow ends" in told["text"]) == values["robust"] == is_robust
    options = lab.client.get("/v1/service").json()["options"]
    assert (options["robust"], options["openflow"]) == ("yes" if is_robust else "no", lab.options[1])
    assert {switch["complete"] for switch in lab.switches().values()} == {True}


def test_a_flow_gets_the_guarantee_of_its_plan(versioned: ServedLab, tmp_path: Path) -> None:
    gets_the_guarantee_of_its_plan(versioned, tmp_path)


def test_a_flow_gets_the_guarantee_of_a_robust_plan(tmp_path: Path) -> None:
    with ServedLab(tmp_path, "--openflow", "1.0", "--robust") as lab:
        gets_the_guarantee_of_its_plan(lab, tmp_path)


def test_sizes_between_named_hosts_are_served_and_survive_a_restart(tmp_path: Path) -> None:
    """The guarantees beside them are those without the large frames, also when all comes from the store."""
    small, large = {"destination": "H2"}, {"source": "H3", "destination": "H4", "frame_bytes": 790}
    large["burst_bytes"] = 790
    with ServedLab(tmp_path, "--frame-bytes", "306", "--frame-bytes", "790@H3,H4") as lab:
        granted = [lab.post(1, **small), lab.post(2, **large)]
        assert [answer.status_code for answer in granted] == [httpx.codes.CREATED] * 2
        # H3 and H4 are at s2.
        elsewhere = lab.post(3, **{**large, "source": "H1", "destination": "H2"})
        assert code(elsewhere)[0] == httpx.codes.UNPROCESSABLE_ENTITY
        assert "frame_bytes 790 is not a size that s1 was planned for (306)" in elsewhere.text
        assert lab.client.get("/v1/service").json()["options"]["frame-bytes"] == "306,790@H3+H4"
        lab.kill()
        lab.options = ("--frame-bytes", "790@H4,H3", "--frame-bytes", "306")
        lab.start()
        lab.wait_healthy()
        assert [flow["guarantee_ns"] for flow in lab.flows()] == [
            answer.json()["guarantee_ns"] for answer in granted
        ]
        assert lab.post(3, **{**large, "source": "H1", "destination": "H2"}).text == elsewhere.text
        assert all(switch["complete"] for switch in lab.switches().values())
        assert lab.end() == 0
        lab.options = ("--frame-bytes", "306")
        lab.start()
        assert lab.process is not None
        assert lab.process.wait(timeout=TIMEOUT_S) == 2
        [error] = [line for line in lab.log().splitlines() if line.startswith("error: ")]
        assert "frame-bytes 306,790@H3+H4, not 306" in error
        assert "add --migrate" in error
        assert "Traceback" not in lab.log()


def test_kill_9_while_flows_come_and_go(versioned: ServedLab) -> None:
    """Acknowledged flows survive, deleted flows stay deleted, and every table is as promised afterwards."""
    for there in survives_kills(versioned, versioned.post, kills=KILLS):
        for switch in versioned.switches().values():
            assert switch["use"][2]["used"] == len(there)


def test_application_that_dies_is_started_again_and_no_request_is_lost(served: ServedLab) -> None:
    """Every request gets an answer in the usual format, and the service itself keeps running."""
    lab = served
    with ThreadPoolExecutor(4) as clients:
        assert lab.process is not None
        pid = lab.process.pid
        ending = threading.Event()
        answers: list[tuple[int, httpx.Response]] = []

        def ask(number: int) -> None:
            while not ending.is_set():
                answers.append((number, lab.post(number)))
                if answers[-1][1].status_code == 503:
                    ending.wait(0.05)
                if answers[-1][1].status_code == 201:
                    answers.append((number, lab.client.delete(f"/v1/flows/f{number}")))

        asking = [clients.submit(ask, number) for number in range(1, 5)]
        try:
            for kills in (1, 2):
                died = lab.application()
                before = len(answers)
                wait_for(lambda before=before: len(answers) > before + 12, "requests")
                died.kill()
                wait_for(lambda kills=kills: lab.log().count(NOTICED) == kills, "the service to notice")
                # Do not wait until it is healthy: while flows come and go, a switch is rarely in exactly the
                # desired state.
                compared = 2 * kills
                wait_for(lambda compared=compared: lab.log().count(COMPARED) == compared, "the switches")
        finally:
            ending.set()
        for request in asking:
            request.result()
        statuses = {answer.status_code for _, answer in answers}
        assert 503 in statuses
        assert statuses <= {200, 201, 202, 204, 404, 409, 503}
        for _, answer in answers:
            if answer.status_code == 503:
                assert code(answer) == (503, "switch-unavailable")
                assert answer.json()["error"]["disposition"] in {"nothing", "taken-back"}
        lab.wait_healthy()
        for flow in lab.flows():
            lab.client.delete(f"/v1/flows/{flow['id']}")
        assert lab.post(9).status_code == 201
        assert lab.process.pid == pid
        assert lab.process.poll() is None
        assert "Traceback" not in lab.log()


def test_requests_in_flight_hear_what_becomes_of_them_when_the_service_ends(served: ServedLab) -> None:
    lab = served
    with ThreadPoolExecutor(2) as clients:
        assert lab.boards is not None
        assert lab.post(1).status_code == 201
        lab.boards.send_signal(signal.SIGSTOP)  # so that no switch confirms anything
        asked = clients.submit(lab.post, 2)
        released = clients.submit(lab.client.delete, "/v1/flows/f1")
        states = {"f1": "removing", "f2": "accepted"}
        wait_for(
            lambda: {flow["id"]: flow["state"] for flow in lab.flows()} == states, "both to be in flight"
        )
        with lab.client.stream("GET", "/v1/events") as events:
            assert lab.end() == 0
            assert events.read()  # it was closed properly
        for answer, became in ((asked.result(), "taken-back"), (released.result(), "goes-on")):
            assert code(answer) == (503, "service-ending")
            assert answer.json()["error"]["disposition"] == became
        assert "Traceback" not in lab.log()
        lab.boards.send_signal(signal.SIGCONT)
        lab.start()
        lab.wait_healthy()
        wait_for(lambda: lab.flows() == [], "what was said to become of them")


def test_boards_that_end_are_started_again(emulating: ServedLab) -> None:
    assert emulating.process is not None
    assert emulating.post(1).status_code == 201
    wait_for(lambda: "f1" in emulating.delays(), "its packets")
    children = psutil.Process(emulating.process.pid).children()
    [boards] = [child for child in children if "loko_testbed.live.emulation" in child.cmdline()]
    boards.kill()
    wait_for(lambda: "the program beside the service has ended with status -9" in emulating.log(), "its end")
    wait_for(lambda: not emulating.is_healthy(), "the loss to be seen")
    emulating.wait_healthy()
    wait_for(lambda: "f1" in emulating.delays(), "packets of the same flow")
    assert [flow["state"] for flow in emulating.flows()] == ["installed"]
    assert "Traceback" not in emulating.log()


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
        assert [flow["id"] for flow in lab.flows()] == ["f1", "f3", "f4"]


def test_boards_that_end_are_missed_and_taken_back(versioned: ServedLab) -> None:
    """These are boards whose control plane takes its time."""
    lab = versioned
    lab.switch_off()
    lab.switch_on(free_control=False)
    wait_for(lambda: lab.log().count(COMPARED) == 2, "the boards", lab.log)
    lab.wait_healthy()
    assert lab.post(1).status_code == 201
    lab.switch_off()
    wait_for(
        lambda: [switch["state"] for switch in lab.switches().values()] == ["away"] * 2,
        "the loss to be seen",
    )
    assert not lab.is_healthy()
    assert code(lab.post(2)) == (503, "switch-unavailable")
    answer = lab.client.delete("/v1/flows/f1")
    assert (answer.status_code, answer.json()["waiting_for"]) == (202, ["s1", "s2"])
    lab.switch_on(free_control=False)
    lab.wait_healthy()
    wait_for(lambda: lab.flows() == [], "the flow to go")
    assert "is broken at s1" in lab.log()


TRIANGLE = """\
name: triangle
title: Triangle
switches:
  s1:
    datapath_id: "00:00:70:b3:d5:6c:00:01"
    profile: zodiac-fx
    config: {mac: "70:b3:d5:6c:00:01", ofchecks: false}
  s2:
    datapath_id: "00:00:70:b3:d5:6c:00:02"
    profile: zodiac-fx
    config: {mac: "70:b3:d5:6c:00:02", ofchecks: false}
  s3:
    datapath_id: "00:00:70:b3:d5:6c:00:03"
    profile: zodiac-fx
    config: {mac: "70:b3:d5:6c:00:03", ofchecks: false}
hosts:
  H1: {mac: "02:00:00:00:00:01", ip: 10.0.0.1/24}
  H3: {mac: "02:00:00:00:00:03", ip: 10.0.0.3/24}
links:
  - {a: H1, b: "s1:1"}
  - {a: H3, b: "s2:1"}
  - {a: "s2:2", b: "s3:3"}
  - {a: "s3:2", b: "s1:3"}
"""
CABLE = '  - {a: "s1:2", b: "s2:3"}\n'


def answers(lab: ServedLab) -> bool:
    try:
        return bool(lab.client.get("/v1/service").json())
    except httpx.TransportError:
        assert lab.process is not None
        assert lab.process.poll() is None, lab.log()
        return False


def test_a_cable_removed_from_the_labs_file_does_not_stop_the_service(tmp_path: Path) -> None:
    file = tmp_path / "lab.yml"
    file.write_text(TRIANGLE + CABLE)
    with ServedLab(tmp_path, lab=str(file)) as lab:
        assert [hop["switch"] for hop in lab.post(1).json()["path"]] == ["s1", "s2"]
        assert lab.post(2, deadline_ns=50_000_000).status_code == 201
        assert lab.end() == 0
        file.write_text(TRIANGLE)
        lab.options = ("--reroute", "1")
        lab.start()

        def flows() -> dict[str, tuple[str, list[str], list[str]]]:
            return {
                flow["id"]: (
                    flow["state"],
                    [found["cause"] for found in flow["broken"]],
                    [hop["switch"] for hop in flow["path"]],
                )
                for flow in lab.flows()
            }

        wait_for(lambda: answers(lab), "REST", lab.log)
        wait_for(lambda: flows()["f2"] == ("installed", [], ["s1", "s3", "s2"]), "another path", lab.log)
        assert flows()["f1"] == ("lost", ["cable-removed"], [])
        assert 'loko_flows_broken{cause="cable-removed"} 1.0' in lab.client.get("/metrics").text
        answer = lab.post(1)
        assert (answer.status_code, len(answer.json()["path"])) == (200, 3)
        lab.wait_healthy()
        assert "Traceback" not in lab.log()
