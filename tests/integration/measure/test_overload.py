"""Overload through the Python module: fig. 12a, section 3.5, and what is varied of it."""

from __future__ import annotations

import pytest

from loko.document import InputError
from loko.switch_model.device import load_profile, profile_text
from loko_testbed.reproduce.studies.sensitivity import (
    PROFILE,
    SensitivitySize,
    assumptions,
    curve,
    longest_burst,
    tasks,
)


def test_the_output_equals_the_input_and_then_falls_linearly() -> None:
    overload = curve(PROFILE, 33)
    for sent, received in zip(overload.input_mbps, overload.output_mbps, strict=True):
        assert (received == sent) == (sent <= overload.maximum_mbps)
    assert overload.slope < -0.05
    assert overload.determination > 0.98


@pytest.mark.parametrize(("frame_bytes", "packets"), [(64, 25), (306, 9), (1516, 3)])
def test_the_longest_burst_is_the_paper_s_buffer(frame_bytes: int, packets: int) -> None:
    assert longest_burst(PROFILE, frame_bytes) == packets


def test_every_assumption_about_overload_is_varied() -> None:
    flow_control = load_profile(PROFILE).flow_control
    names = {name for name, number in flow_control if number.range}
    assert names | {"buffer_bytes"} == set(assumptions())
    assert {"pause_quanta", "resume_units", "held_frames", "discard_permille"} <= names
    varied = [task for task in tasks(SensitivitySize(parameters=None), 1) if task.parameter]
    assert {task.parameter for task in varied} == set(assumptions())
    for task in varied:
        assert task.value != assumptions()[task.parameter].value, "the profile's value is measured once"


def test_a_profile_s_number_is_replaced_by_its_key() -> None:
    assert "held_frames = { value = 7, source" in profile_text(PROFILE, held_frames=7)
    with pytest.raises(InputError, match="has 0 numbers named speed"):
        profile_text(PROFILE, speed=1)
    with pytest.raises(InputError, match="numbers named per_byte_ps"):
        profile_text(PROFILE, per_byte_ps=1)
