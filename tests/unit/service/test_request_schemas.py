"""The schemas of requests and the service agree on every value of every field."""

from __future__ import annotations

import json
import math
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel, ValidationError

from loko.service.shapes import FlowRequest, SlotRequest

ENDS = {"id": "f1", "source": "H1", "destination": "H3", "udp_source": 1, "udp_destination": 2}
FLOW: dict[str, object] = {
    **ENDS,
    **{"rate_bps": 1e5, "burst_bytes": 1e4, "frame_bytes": 64, "path": ["s1"], "deadline_ns": 1e9},
    "protection": "duplicate",
    "traffic_class": 1,
}
SLOT: dict[str, object] = {**ENDS, "frame_bytes": 64, "period_ns": 10**6}
MODELS: list[tuple[type[BaseModel], dict[str, object]]] = [(FlowRequest, FLOW), (SlotRequest, SLOT)]

NUMBERS = [-1, 0, 0.5, 1, 1.0, 63, 63.9, 64, 64.0, 64.5, 1518, 1518.0, 1519, 65535, 65536, 10**12, 10**12 + 1]
NUMBERS += [-1e300, -0.0, 1e-300, 1e15, 1e15 + 1, 10**15, 10**15 + 1, 2**63, 2**64, 1e300]
TEXTS = [
    "",
    " ",
    "a",
    "a b",
    "-x",
    "_x",
    "x_",
    "é",
    "a\nb",
    "a\x00",
    "a" * 64,
    "a" * 65,
    "64",
    "1e3",
    "null",
    "./..",
    "backup",
    "duplicate",
]
NAMES = [
    [],
    [""],
    ["s1", ""],
    ["s1", "s1"],
    ["a" * 64],
    ["a" * 65],
    [None],
    [1],
    [[]],
    ["s1"] * 256,
    ["s1"] * 257,
]
VALUES: list[Any] = [*NUMBERS, *TEXTS, *NAMES, None, True, False, {}, {"s1": 1}]


def is_taken(model: type[BaseModel], body: dict[str, object]) -> bool:
    try:
        model.model_validate_json(json.dumps(body))
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(("model", "good"), MODELS)
def test_a_schema_takes_what_the_service_takes_and_no_more(
    model: type[BaseModel], good: dict[str, object]
) -> None:
    schema = jsonschema.Draft202012Validator(model.model_json_schema())
    assert set(good) == set(model.model_fields), "every field is tried"
    # A burst holds every one of these frames: no schema can compare two fields.
    assert not [
        (name, value)
        for name in good
        for value in VALUES
        if schema.is_valid({**good, name: value}) != is_taken(model, {**good, name: value})
    ]
    for name in good:
        rest = {key: value for key, value in good.items() if key != name}
        assert schema.is_valid(rest) == is_taken(model, rest), name
    for body in ({**good, "more": 1}, {}):
        assert not schema.is_valid(body)
        assert not is_taken(model, body)


@pytest.mark.parametrize("path", [[], [""], ["s1", ""]])
def test_a_path_without_a_name_is_refused(path: list[str]) -> None:
    assert is_taken(FlowRequest, FLOW)
    assert not is_taken(FlowRequest, {**FLOW, "path": path})


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_json_is_refused(value: float) -> None:
    """Python's `json` writes and reads these, and other programs do not."""
    assert not is_taken(FlowRequest, {**FLOW, "rate_bps": value})
