"""The circle closes: a campaign that knows nothing of a switch finds its profile.

The campaign is a part of the whole one, so that it takes seconds: some tables of Table 1, all other procedures.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from evaluation.bench import campaign
from evaluation.bench.buffer import SLOWEST
from evaluation.bench.campaign import Part, table_name
from evaluation.bench.closure import (
    MODEL_TOLERANCE,
    VIRTUAL_TOLERANCE,
    Closure,
    closure,
    model_errors,
    perturbed,
)
from evaluation.bench.findings import Findings, find, read_samples
from evaluation.bench.profile_document import (
    MeasuredProfile,
    Origin,
    Values,
    form_of,
    measured_profile,
    profile_text,
)
from evaluation.bench.store import SampleStore
from evaluation.bench.virtual import VirtualDevice
from loko.device import load_profile

SEED = 5
FORM = "zodiac-fx"
SEEDS = (None, 1, 2, 3)
"""Of switches that nobody has seen; none: the Zodiac FX itself."""
NEVER = {
    "integrated_switch.transit_ps": "is-time",
    "cpu.control.interrupt_ps": "only its sum",
    "cpu.action.output.fixed_ps": "contained in",
    "cpu.action.output.per_byte_ps": "contained in",
}


class Circle(NamedTuple):
    """A switch, and what was found of it."""

    true: Values
    true_path: str
    findings: Findings
    profile: MeasuredProfile
    path: Path


def parts() -> list[Part]:
    """All that is beyond Table 1, and every ninth of its tables."""
    todo = campaign.parts(campaign.PROCEDURES, samples=100)
    tables = [part for part in todo if part.procedure == "dp-time"]
    few = {part.key for part in tables[:30] + tables[30::9]} | {f"dp-time/{table_name(SLOWEST)}"}
    return [part for part in todo if part.procedure not in {"dp-time", "throughput"} or part.key in few]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("closure")


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"perturbed-{seed}" if seed else FORM)
def circle(request: pytest.FixtureRequest, folder: Path) -> Circle:
    """Measure a switch as a black box: its profile is read by the emulator only."""
    true, path = form_of(FORM), FORM
    if request.param is not None:
        true = perturbed(true, request.param)
        path = str(folder / f"unseen-{request.param}.toml")
        Path(path).write_text(profile_text(true))
    device = VirtualDevice(path, seed=SEED)
    with SampleStore(folder / f"{request.param}.sqlite", {}) as store:
        campaign.run(device, parts(), store, seed=SEED, on_part=lambda _: None)
        samples = read_samples(store)
    findings = find(samples, device.wire, form_of(FORM))
    origin = Origin(device=path, date="2026-11-21", commit="abc", samples=100, seed=SEED)
    profile = measured_profile(form_of(FORM), findings, name="found", title="Found", origin=origin)
    found = folder / f"found-{request.param}.toml"
    found.write_text(profile.text)
    return Circle(true, path, findings, profile, found)


def test_every_number_is_found_within_1_percent(circle: Circle) -> None:
    found = closure(form_of(str(circle.path)), circle.true)
    assert found.outside(VIRTUAL_TOLERANCE) == []
    assert circle.findings.costs.unidentified == ()
    assert len(found.rows) >= 75


def test_what_is_not_found_is_named_with_the_reason(circle: Circle) -> None:
    found = closure(form_of(str(circle.path)), circle.true)
    assert dict(found.kept) == dict(circle.profile.kept)
    for name, why in NEVER.items():
        assert why in circle.profile.kept[name]
    text = circle.path.read_text()
    for name, why in circle.profile.kept.items():
        assert name in text
        assert why in text


def test_every_measured_number_says_where_it_comes_from(circle: Circle) -> None:
    profile = load_profile(circle.path)
    assert profile.measurement is not None
    assert profile.measurement.device == circle.true_path
    base = profile.cpu.base_ps
    assert base.source == "measured"
    assert base.standard_error is not None
    assert base.standard_error > 0
    assert base.samples is not None
    assert base.samples > 10_000
    assert "dp-time" in base.procedure
    assert profile.integrated_switch.transit_ps.source == "paper"


def test_the_model_gives_table_2_within_2_percent(circle: Circle) -> None:
    errors = model_errors(load_profile(circle.path), load_profile(circle.true_path))
    assert len(errors) == 8
    assert {key: error for key, error in errors.items() if abs(error) > MODEL_TOLERANCE} == {}
