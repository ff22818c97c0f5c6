"""Section 3.2 on the bench: messages, the barrier method and its check, long replies, the firmware's jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from loko.control.messages import barrier_request
from loko.switch_model.device import load_profile
from loko_testbed.measure.bench import campaign
from loko_testbed.measure.bench.device import ControlFrame
from loko_testbed.measure.bench.part import MeasurementSize, NoFrameLength, SampleSet
from loko_testbed.measure.bench.procedures import cp_time, messages
from loko_testbed.measure.bench.procedures.messages import (
    ECHO_UNMODIFIED,
    ENTRIES,
    MeasuredMessage,
    flow_adds,
    flow_search,
    flow_statistics,
    hangs,
)
from loko_testbed.measure.bench.virtual import VirtualDevice
from loko_testbed.simulation.runner import RunError

PROFILE = load_profile("zodiac-fx")
CONTROL = PROFILE.cpu.control
BARRIER_NS = 92_000
LOOP_NS = PROFILE.cpu.loop_ps.value / 1000
BARRIER = messages.BarrierTime(BARRIER_NS, 94_600)


@pytest.fixture
def device() -> VirtualDevice:
    return VirtualDevice(seed=7)


def named(name: str) -> MeasuredMessage:
    return next(message for message in messages.messages() if message.name == name)


def test_a_barrier_takes_what_the_paper_says(device: VirtualDevice) -> None:
    times = messages.with_reply(device, named("BarrierRequest"), samples=100, seed=1).values
    assert np.median(times) == pytest.approx(BARRIER_NS, abs=1_000)
    assert np.std(np.sort(times)[:-2]) < 2_000
    barrier = messages.barrier(device, samples=100, seed=1)
    assert barrier.usual_ns == pytest.approx(BARRIER_NS, abs=1_000)
    assert barrier.longest_ns == pytest.approx(BARRIER_NS + LOOP_NS / 2, abs=1_000)


def test_barriers_that_are_interrupted_as_often_as_not_are_no_measure(
    device: VirtualDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def takes(*times_ns: int) -> None:
        taken = SampleSet(np.array(times_ns))
        monkeypatch.setattr(messages, "with_reply", lambda *_, **__: taken)

    takes(92_000, 93_000, 113_000, 94_000, 120_000)
    assert messages.barrier(device, samples=5, seed=1) == messages.BarrierTime(94_000, 94_000)
    takes(92_000, 93_000, 113_000, 120_000)
    with pytest.raises(RunError, match=r"2 of 4 barriers took over 20 us longer .* use a quieter machine"):
        messages.barrier(device, samples=4, seed=1)


def test_the_barrier_method_agrees_with_the_costs(device: VirtualDevice) -> None:
    subject = flow_search("delete", "all", 128)
    times = messages.without_reply(device, subject, barrier=BARRIER, samples=3, seed=1)
    assert times.left_out == 0
    assert np.median(times.values) == pytest.approx(2_300_000, rel=0.02)


def test_an_entry_that_was_added_is_gone_before_the_next_sample(device: VirtualDevice) -> None:
    last = [procedure for procedure in flow_adds() if procedure.name.startswith("Add/128/")]
    assert len(last) == 5
    for subject in last:
        # A leftover entry would fill the table, and the next sample would get an error.
        times = messages.without_reply(device, subject, barrier=BARRIER, samples=12, seed=1)
        assert np.ptp(times.values) < 1.1 * LOOP_NS


@pytest.mark.parametrize(("quirks", "added"), [("firmware", 0), ("spec", 1)])
def test_a_modify_that_hits_nothing_adds_by_the_specification_only(quirks: str, added: int) -> None:
    device = VirtualDevice(config={"quirks": quirks}, seed=7)
    assert messages.entries_added(device, flow_search("modify", "none", 17)) == added


def test_of_a_long_reply_the_first_frame_counts(device: VirtualDevice) -> None:
    """The measured cost is the profile's, although the reply needs several frames."""
    question = next(question for question in cp_time.questions() if question.name == "description")
    times = cp_time.ask(device, question, samples=60, seed=1).values
    charged_ps = (
        2 * PROFILE.integrated_switch.transit_ps.value
        + PROFILE.cpu.loop_ps.value / 2
        + CONTROL.interrupt_ps.value
        + CONTROL.segment_ps.value
        + CONTROL.description_ps.value
    )
    assert np.median(times) == pytest.approx(charged_ps / 1000, abs=LOOP_NS / 4)


def test_requests_for_flow_statistics_are_those_that_the_board_survives(device: VirtualDevice) -> None:
    names = {procedure.name for procedure in flow_statistics()}
    assert (
        len(names) == 45 - sum(hangs(entries, actions) for entries in ENTRIES for actions in range(5)) == 23
    )
    longest = next(procedure for procedure in flow_statistics() if procedure.name == "FlowStatsRequest/17/3")
    assert len(messages.with_reply(device, longest, samples=3, seed=1).values) == 3
    assert hangs(17, 4)
    deadly = next(iter(flow_adds()))
    table = [procedure for procedure in flow_adds() if procedure.name == "Add/17/4"]
    subject = MeasuredMessage(
        what=("deadly",), message=longest.message, replies=True, table=(*table[0].table, table[0].message)
    )
    assert deadly.name == "Add/1/0"
    with pytest.raises(RunError, match="no reply to 'deadly'"):
        messages.with_reply(device, subject, samples=1, seed=1)


class Late(VirtualDevice):
    """Sends the barrier too late, except every `in_time_every`th time."""

    def __init__(self, in_time_every: int) -> None:
        self._every = in_time_every
        self._count = 0
        super().__init__(seed=7)

    def control(self, gaps_ns: Sequence[int], segments: Sequence[bytes]) -> list[ControlFrame]:
        if len(segments) == 2 and segments[1] == barrier_request(7):
            self._count += 1
            if self._count % self._every:
                gaps_ns = [gaps_ns[0], 2_000_000]
        return super().control(gaps_ns, segments)


def test_a_sample_whose_barrier_came_too_late_is_taken_again() -> None:
    subject = flow_search("modify", "none", 17)
    times = messages.without_reply(Late(2), subject, barrier=BARRIER, samples=6, seed=1)
    assert (len(times.values), times.left_out) == (6, 6)
    assert times.values.max() < 250_000
    with pytest.raises(RunError, match=r"18 of 18 barriers .* came too late \(equation 3\)"):
        messages.without_reply(Late(100), subject, barrier=BARRIER, samples=6, seed=1)


def test_echo_requests_wait_for_the_jobs_of_the_unmodified_firmware(device: VirtualDevice) -> None:
    series = messages.echo_over_time(device.with_housekeeping(), duration_ns=4_000_000_000)
    spikes = series.at_ns[series.times_ns > 20_000_000]
    begins = spikes[np.concatenate(([True], np.diff(spikes) > 100_000_000))]
    assert np.diff(begins) == pytest.approx(1_503_000_000, rel=0.002)
    assert series.times_ns.max() == pytest.approx(25_000_000, rel=0.05)
    assert series.missing == 0
    calm = messages.echo_over_time(device, duration_ns=4_000_000_000)
    assert calm.times_ns.max() < 300_000


def test_parts_have_names_of_their_own() -> None:
    names = [str(part.key) for part in campaign.parts((cp_time.PROCEDURE, messages.PROCEDURE), samples=3)]
    assert len(names) == len(set(names))


def test_a_series_keeps_its_instants(device: VirtualDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    short = messages.echo_over_time(device, duration_ns=100_000_000)
    monkeypatch.setattr(messages, "echo_over_time", lambda _: short)
    parts = messages.PROCEDURE.parts(MeasurementSize(samples=3))
    (part,) = (part for part in parts if part.key == ECHO_UNMODIFIED)
    series = dict(part.measured(device, 1))
    assert len(series[NoFrameLength.VALUES][0]) == len(series[NoFrameLength.CONTEXT][0]) == 79
    assert (np.diff(series[NoFrameLength.CONTEXT][0]) > 0).all()
