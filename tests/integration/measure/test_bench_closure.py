"""A campaign that measures a switch as a black box recovers the parameters of its profile.

To take only seconds, the campaign is reduced: some of the tables of Table 1, and everything else.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from session_file import session_file

from loko.switch_model.device import load_profile
from loko_testbed.measure.bench.cost_model.closure import (
    MODEL_TOLERANCE,
    VIRTUAL_TOLERANCE,
    closure,
    model_errors,
    parts,
    perturb,
    recover,
)
from loko_testbed.measure.bench.cost_model.fitted import Fitted
from loko_testbed.measure.bench.cost_model.profile_document import MeasuredProfile, Origin, text_of
from loko_testbed.measure.bench.device_choice import Values, form_of
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.measure.bench.virtual import VirtualDevice
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.traffic.document import Sweep
from loko_testbed.reproduce.figure_types.traffic.setting import SweepSetting, prepare, traffic
from loko_testbed.simulation.runner import LOST
from loko_testbed.simulation.senders import SIMPLE
from loko_testbed.simulation.virtual import VirtualRunner

SEED = 5
FORM = "zodiac-fx"
SAMPLES = 100
EVERY = 23
SEEDS = (None, 1, 2)
"""Seeds of randomly perturbed switches; None: the unchanged Zodiac FX."""
NEVER = {
    "integrated_switch.buffer_bytes": "no second sender",
    "flow_control.pause_quanta": "before it runs out",
    "cpu.control.interrupt_ps": "only its sum",
    "cpu.action.output.fixed_ps": "contained in",
    "cpu.action.output.per_byte_ps": "contained in",
}


class Circle(NamedTuple):
    """A switch, and what the campaign found."""

    true: Values
    true_path: str
    fitted: Fitted
    profile: MeasuredProfile
    path: Path


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"perturbed-{seed}" if seed else FORM)
def circle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Circle:
    seed = request.param
    made = session_file(
        tmp_path_factory,
        f"circle-{seed}",
        lambda folder: (folder / "circle").write_bytes(pickle.dumps(measured(folder, seed))),
    )
    circle = pickle.loads((made / "circle").read_bytes())
    assert isinstance(circle, Circle)
    return circle


def measured(folder: Path, seed: int | None) -> Circle:
    """Measure a switch as a black box: only the emulator reads its profile."""
    true, path = form_of(FORM), FORM
    if seed is not None:
        true = perturb(true, seed)
        path = str(folder / "unseen.toml")
        Path(path).write_text(text_of(true))
    device = VirtualDevice(path, seed=SEED)
    origin = Origin(device=path, date="2026-11-21", commit="abc", samples=SAMPLES, seed=SEED)
    store = SampleStore(folder, {})
    fitted, profile = recover(device, store, parts(samples=SAMPLES, every=EVERY), form=FORM, origin=origin)
    fitted_path = folder / "found.toml"
    fitted_path.write_text(profile.text)
    return Circle(true, path, fitted, profile, fitted_path)


def test_every_number_is_found_within_1_percent(circle: Circle) -> None:
    closed = closure(form_of(str(circle.path)), circle.true)
    assert closed.outside(VIRTUAL_TOLERANCE) == []
    assert circle.fitted.costs.unidentified == ()
    assert len(closed.rows) == 146


def test_what_is_not_found_is_named_with_the_reason(circle: Circle) -> None:
    closed = closure(form_of(str(circle.path)), circle.true)
    assert dict(closed.kept) == dict(circle.profile.kept)
    for name, why in NEVER.items():
        assert why in circle.profile.kept[name]
    text = circle.path.read_text()
    for name, why in circle.profile.kept.items():
        assert name in text
        assert why in text


def test_every_measured_number_says_where_it_comes_from(circle: Circle) -> None:
    profile = load_profile(circle.path)
    assert profile.measurement is not None
    assert profile.measurement["device"] == circle.true_path
    base = profile.cpu.base_ps
    assert base.source == "measured"
    assert base.standard_error is not None
    assert base.standard_error > 0
    assert base.samples is not None
    assert base.samples > 10_000
    assert "dp-time" in base.procedure
    assert profile.cpu.control.interrupt_ps.source == "count"


def test_the_model_gives_table_2_within_2_percent(circle: Circle) -> None:
    errors = model_errors(load_profile(circle.path), load_profile(circle.true_path))
    assert len(errors) == 8
    assert {key: error for key, error in errors.items() if abs(error) > MODEL_TOLERANCE} == {}


def test_a_replay_with_the_found_profile_shows_the_same(circle: Circle) -> None:
    """Fig. 17a in short: admitted traffic, and eleven times as much."""
    sweep = experiments()["loko/fig17a"]
    assert isinstance(sweep, Sweep)
    chosen = prepare(sweep)
    for multiplier in (1.0, 11.0):
        true, fitted = (
            _replayed(chosen, multiplier, profile) for profile in (circle.true_path, str(circle.path))
        )
        assert fitted.median_ns == pytest.approx(true.median_ns, rel=0.02)
        # In overload the senders' phases decide which frames are lost, so runs vary by 1 %.
        assert fitted.loss == pytest.approx(true.loss, abs=0.03)


class Replayed(NamedTuple):
    median_ns: float
    loss: float


def _replayed(chosen: SweepSetting, multiplier: float, profile: str) -> Replayed:
    delays, packets = [], 0
    runner = VirtualRunner(
        chosen.lab,
        chosen.admitted(),
        entries=chosen.sweep.entries,
        profile_of=dict.fromkeys(chosen.lab.switches, profile),
    )
    with runner:
        for seed in range(4):
            records = runner.run(traffic(chosen, multiplier, SIMPLE), seconds=1.0, seed=seed)
            there = records.received_ns != LOST
            delays.append((records.received_ns - records.sent_ns)[there])
            packets += len(there)
    every = np.concatenate(delays)
    return Replayed(float(np.median(every)), 1 - len(every) / packets)
