"""A baseline is served only if that is said, and every answer with a guarantee or bound is marked then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from browser import Page, browser
from in_process import loko
from prometheus_client.parser import text_string_to_metric_families
from served_lab import ServedLab, flow

from loko.admission.schemes import conditions_of, variant_named

SILO = conditions_of(variant_named("silo")).baseline


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with ServedLab(tmp_path_factory.mktemp("baseline"), "--scheme", "silo", "--baseline") as lab:
        assert lab.post(1).status_code == 201
        yield lab


def refused(*words: str) -> str:
    """Run the service with an address that it refuses last, and return what it says."""
    result = loko("serve", "two-switch", *words, "--rest", "127.0.0.1:x")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.parametrize("scheme", ["silo", "qjump"])
def test_a_baseline_is_refused_unless_it_is_wanted(scheme: str) -> None:
    said = refused("--scheme", scheme)
    assert f"--scheme {scheme}: is a baseline, {SILO}; add --baseline" in said
    assert "--rest '127.0.0.1:x'" in refused("--scheme", scheme, "--baseline")


def test_what_guarantees_is_no_baseline() -> None:
    assert "--baseline: scheme loko is none" in refused("--baseline")


def unmarked(values: Any, *, is_marked: bool = False) -> list[Any]:
    """Return the objects with a guarantee or bound of which neither they nor what holds them is marked."""
    if isinstance(values, list):
        return [found for value in values for found in unmarked(value, is_marked=is_marked)]
    if not isinstance(values, dict):
        return []
    marked = is_marked or values.get("baseline") == SILO
    own = [] if marked or not {"guarantee_ns", "delay_ns", "healthy"} & values.keys() else [values]
    return own + [found for value in values.values() for found in unmarked(value, is_marked=marked)]


def test_every_answer_is_marked(served: ServedLab) -> None:
    again = served.client.post("/v1/flows", json=flow(1))
    assert again.status_code == 200
    answers = [again, served.client.post("/v1/what-if/flow", json=flow(2))]
    answers += [
        served.client.get(path)
        for path in ("/v1/flows", "/v1/flows/f1", "/v1/switches", "/v1/healthz", "/v1/delays", "/v1/service")
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert SILO in answer.text or not answer.json().get("flows", True), answer.url
        assert unmarked(answer.json()) == [], answer.url
    service = served.client.get("/v1/service").json()
    assert service["baseline"] == SILO
    assert "line-rate" in {condition["id"] for condition in service["conditions"]}


def test_events_and_metrics_are_marked(served: ServedLab) -> None:
    with served.client.stream("GET", "/v1/events") as stream:
        lines = stream.iter_lines()
        heard = [json.loads(line.removeprefix("data: ")) for line in lines_until(lines, "flows")]
    assert heard
    assert unmarked(heard) == []
    families = text_string_to_metric_families(served.client.get("/metrics").text)
    promised = {"loko_flow_guarantee_seconds", "loko_switch_delay_seconds"}
    samples = [sample for family in families if family.name in promised for sample in family.samples]
    assert {sample.name for sample in samples} == promised
    assert [sample for sample in samples if sample.labels.get("baseline") != SILO] == []


def test_the_page_says_so(served: ServedLab) -> None:
    with browser() as chrome:
        page = Page(chrome, served.address)
        page.wait(lambda: page.text("#baseline") != "", "the banner")
        assert page.text("#baseline") == f"Scheme silo is a baseline, {SILO}. Nothing is guaranteed here."


def lines_until(lines: Iterator[str], last: str) -> Iterator[str]:
    """Yield the data of a stream's events up to the first of the last kind."""
    kind = ""
    for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield line
            if kind == last:
                return
