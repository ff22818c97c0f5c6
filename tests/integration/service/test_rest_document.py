"""The OpenAPI document of `loko serve` is complete, and Schemathesis confirms that the service conforms."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from served_lab import ServedLab, flow, made, wait_for

from benchmarks.builds import BUILD
from loko.service import shapes

TOKEN = "a-token-of-enough-length"
OF_SLOTS = (
    "/v1/slots",
    "/v1/what-if/slot",
    "/v1/schedule",
    "/v1/hosts/{host}/sends",
    "/v1/hosts/{host}/source",
    "/v1/flows/{flow_id}",
)
SETTINGS = """\
[checks.positive_data_acceptance]
# 409: it does not fit. 422: no document can say which paths of switches lead from one host to another.
expected-statuses = ["2xx", "409", "422", "404"]
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    folder = tmp_path_factory.mktemp("document")
    (folder / "token").write_text(TOKEN)
    options = ["--token-file", str(folder / "token"), "--requests-per-s", "100000"]
    with ServedLab(folder, *options, "--emulate", "--traffic", has_boards=False) as lab:
        lab.client.headers["authorization"] = f"Bearer {TOKEN}"
        yield lab


@pytest.fixture(scope="module")
def slots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    folder = tmp_path_factory.mktemp("slots")
    options = ["--requests-per-s", "100000", "--schedule", str(made(folder))]
    with ServedLab(folder, *options) as lab:
        yield lab


def operations(served: ServedLab) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in served.client.get("/openapi.json").json()["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def schemathesis() -> str:
    schemathesis = (
        shutil.which("schemathesis") or BUILD / ".clients" / "schemathesis" / "bin" / "schemathesis"
    )
    if not Path(schemathesis).exists():
        pytest.skip("Schemathesis is not installed: run 'make clients'")
    return str(schemathesis)


def test_every_answer_has_a_schema(served: ServedLab) -> None:
    seen = 0
    for method, path, operation in operations(served):
        for status, answer in operation["responses"].items():
            where = f"{method} {path} {status}"
            assert answer["description"], where
            if status == "204":
                assert "content" not in answer, where
                continue
            for content in answer["content"].values():
                assert content["schema"], where
                if int(status) >= 400:
                    assert "ErrorBody" in str(content["schema"]), where
            seen += 1
    assert seen > 100


def test_every_error_of_the_service_is_listed(served: ServedLab) -> None:
    always = {"400", "408", "413", "421", "429", "431", "500", "503"}
    for method, path, operation in operations(served):
        changes = {"401", "403"} if method in {"post", "delete"} else set()
        assert always | changes <= set(operation["responses"]), path
        assert ("security" in operation) == bool(changes), path


def test_links_lead_from_answers_to_requests(served: ServedLab) -> None:
    """Each names an operation, all parameters of its path, and a place in the answer that has the value."""
    paths = served.client.get("/openapi.json").json()["paths"]
    by_id = {one["operationId"]: (path, one) for path, methods in paths.items() for one in methods.values()}
    served.post(1)
    answers = {
        ("post", "/v1/flows"): served.post(1),
        ("get", "/v1/flows"): served.client.get("/v1/flows"),
        ("get", "/v1/flows/{flow_id}"): served.client.get("/v1/flows/f1"),
        ("get", "/v1/topology"): served.client.get("/v1/topology"),
    }
    followed = set()
    for method, path, operation in operations(served):
        for status, answer in operation["responses"].items():
            for name, link in answer.get("links", {}).items():
                target, linked = by_id[link["operationId"]]
                parameters = {one["name"] for one in linked.get("parameters", [])}
                assert parameters == set(link.get("parameters", {})), (path, name)
                assert parameters or link["requestBody"] == "$request.body", (path, name)
                got = answers.get((method, path))
                if got is None or status != str(got.status_code):
                    continue
                for parameter, expression in link["parameters"].items():
                    value: Any = got.json()
                    for part in expression.removeprefix("$response.body#/").split("/"):
                        value = value[int(part) if isinstance(value, list) else part]
                    followed.add((name, target.replace(f"{{{parameter}}}", value)))
    assert followed == {
        ("ShowFlow", "/v1/flows/f1"),
        ("ShowDelays", "/v1/flows/f1/delays"),
        ("ReleaseFlow", "/v1/flows/f1"),
        ("ShowSends", "/v1/hosts/H1/sends"),
        ("ShowSource", "/v1/hosts/H1/source"),
    }
    assert served.client.delete("/v1/flows/f1").status_code == 204


def test_answers_have_their_shapes(served: ServedLab) -> None:
    """Each shape forbids fields that it does not name."""
    assert served.post(1).status_code == 201
    wait_for(lambda: "f1" in served.delays(), "its delays")
    named: dict[str, type[BaseModel]] = {
        "/v1/service": shapes.ServiceView,
        "/v1/flows": shapes.FlowListView,
        "/v1/flows/f1": shapes.FlowView,
        "/v1/switches": shapes.SwitchListView,
        "/v1/topology": shapes.TopologyView,
        "/v1/delays": shapes.DelayListView,
        "/v1/flows/f1/delays": shapes.DelayHistoryView,
        "/v1/notes": shapes.EventListView,
        "/healthz": shapes.HealthView,
        "/v1/flows/none": shapes.ErrorBody,
        "/v1/schedule": shapes.ErrorBody,
        "/v1/margin": shapes.MarginView,
    }
    for path, shape in named.items():
        shape.model_validate_json(served.client.get(path).content)
    would = served.client.post("/v1/what-if/flow", json=flow(3))
    shapes.DryRunView.model_validate_json(would.content)
    for values in ({"rate_bps": 1e9}, {"deadline_ns": 1}, {"source": "H9"}):
        shapes.ErrorBody.model_validate_json(served.post(2, **values).content)
    assert served.client.delete("/v1/flows/f1").status_code == 204


def test_answers_of_slots_have_their_shapes(slots: ServedLab) -> None:
    named: dict[str, type[BaseModel]] = {
        "/v1/service": shapes.ServiceView,
        "/v1/flows": shapes.FlowListView,
        "/v1/flows/f1": shapes.FlowView,
        "/v1/switches": shapes.SwitchListView,
        "/v1/schedule": shapes.ScheduleView,
        "/v1/hosts/H1/sends": shapes.HostScheduleView,
        "/v1/hosts/none/sends": shapes.ErrorBody,
        "/v1/margin": shapes.ErrorBody,
    }
    for path, shape in named.items():
        shape.model_validate_json(slots.client.get(path).content)


def test_schemathesis_finds_nothing(served: ServedLab, tmp_path: Path) -> None:
    # Streams do not end. A switch that was made to reboot answers late, and the service says so with a 503.
    without = ["--exclude-path", "/v1/events", "--exclude-path-regex", "^/v1/emulation/"]
    said = schemathesis_finds(served, tmp_path, *without)
    assert "Tested: 23" in said
    assert "Traceback" not in served.log()


def test_schemathesis_finds_nothing_of_slots(slots: ServedLab, tmp_path: Path) -> None:
    words = [word for path in OF_SLOTS for word in ("--include-path", path)]
    assert f"Tested: {len(OF_SLOTS) + 1}" in schemathesis_finds(slots, tmp_path, *words)
    assert "Traceback" not in slots.log()


def schemathesis_finds(served: ServedLab, tmp_path: Path, *words_more: str) -> str:
    """Run Schemathesis and return its output; fail if it finds anything."""
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    words = [schemathesis(), "run", f"{served.address}/openapi.json", "--seed", "1", "--no-color"]
    words += ["--header", f"Authorization: Bearer {TOKEN}", "--max-examples", "15", "--workers", "1"]
    words += words_more
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": "", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    return done.stdout
