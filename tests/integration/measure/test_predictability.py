"""The predictability study: what is measured from the outside, and the resulting marks."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import escape
from predictable_switches import mutated
from recorded_progress import RecordedProgress
from typer.testing import CliRunner

from loko.document import InputError
from loko_testbed.cli.bench.procedures import bench_app
from loko_testbed.measure.predictability import buffers, priority_queueing, processing_time, throughput
from loko_testbed.measure.predictability import campaign as predictability_campaign
from loko_testbed.measure.predictability.campaign import (
    CampaignSize,
    parts,
    run_campaign,
    verdicts,
)
from loko_testbed.measure.predictability.marks import Mark, thresholds
from loko_testbed.measure.predictability.measurements import Measurement, measure
from loko_testbed.measure.predictability.processing_time import ScenarioTimes
from loko_testbed.measure.predictability.subject import (
    FrameStream,
    Pace,
    StreamTimes,
    SwitchUnderTest,
    evenly,
    switch_under_test,
    transmit,
)
from loko_testbed.measure.predictability.table_iii import VALUES, TimingScenario, flow_mods, frame, variations
from loko_testbed.simulation.runner import LOST
from loko_testbed.tasks.executor import Workers

SMALL = CampaignSize(
    packets=200,
    bursts=300,
    snake_packets=300,
    congested_ports=2,
    congested_queues=2,
    most_entries=3_100,
    aging_runs=2,
    alternating_runs=8,
    table_sizes=False,
)
TINY = replace(SMALL, most_entries=150, alternating_runs=4)
"""A table that is larger than this is not filled."""
SEVEN = {
    "hp-e3800": "+---?",
    "hp-2920": "+---?",
    "dell-s3048-on": "+~+--",
    "dell-s4048-on": "+~+--",
    "pica8-p3290": "+~+--",
    "pica8-p3297": "+~+--",
    "nec-pf5240": "+~+-~",
}
"""PT, PQ, TP, FM and BM as in table I, where the paper however marks BM of the two switches without queues by
-."""


def marks(device: str, size: CampaignSize = SMALL) -> str:
    todo = parts(device, size, 1)
    measured = {task: measure(task) for task in dict.fromkeys(todo.values())}
    results = {name: measured[task] for name, task in todo.items()}
    return "".join(verdict.mark.value for verdict in verdicts(results, thresholds()).values())


@pytest.mark.parametrize("device", SEVEN)
def test_the_verdict_agrees_with_table_i(device: str) -> None:
    assert marks(device) == SEVEN[device]


def test_the_ideal_switch_is_fit_in_all_that_is_judged(tmp_path: Path) -> None:
    assert marks("ideal-1g") == "+++++"
    assert marks(mutated(tmp_path), TINY) == "+++++"


SLOW_LOOKUP = """
[lookup]
frames_per_s = {{ value = {}, source = "assumption" }}
waiting_frames = {{ value = 8, source = "assumption" }}
"""
REFUSED = """
[[table.rules]]
actions = ["enqueue"]
path = "refused"
source = "assumption"
"""
SHARED = """
[buffer]
pool_bytes = {{ value = {}, source = "assumption" }}
factor_percent = {{ value = {}, source = "assumption" }}
"""
SETTLING = """
[agent.settling]
least_ns = {{ value = {}, source = "assumption" }}
most_ns = {{ value = {}, source = "assumption" }}
lost_percent = {{ value = {}, source = "assumption" }}
listed_percent = {{ value = {}, source = "assumption" }}
"""
WRITER = """
[agent.writer]
keeps_deleted = {}
write_ns = {{ value = {}, source = "assumption" }}
waiting_entries = {{ value = {}, source = "assumption" }}
"""
THROTTLE = """
[agent.throttle]
first_ns = {{ value = 0, source = "assumption" }}
each_ns = {{ value = {}, source = "assumption" }}
"""
LOSING = """
[[table.rules]]
actions = ["set-dl-dst"]
loses_one_in = {{ value = {}, source = "assumption" }}
entries = {{ value = 140, source = "assumption" }}
source = "assumption"
"""
TAG_PUSH = """
[pipeline.tag_push]
one_in = {{ value = 10, source = "assumption" }}
extra_ns = {{ value = {}, source = "assumption" }}
"""


@pytest.mark.parametrize(
    ("values", "append", "expected"),
    [
        ({"spread_ns": 3_000}, "", "~++++"),
        ({"spread_ns": 15_000}, "", "~++++"),
        ({"spread_ns": 30_000}, "", "-++++"),
        ({}, TAG_PUSH.format(4_000), "~++++"),
        ({}, TAG_PUSH.format(40_000), "-++++"),
        ({"check_ns": 1_500}, "", "+~+++"),
        ({"check_ns": 27_000}, "", "+~+++"),
        ({}, REFUSED, "+-++?"),
        ({}, SLOW_LOOKUP.format(11_000_000), "++-++"),  # 8 ports at line rate bring 11.9 million
        ({}, SLOW_LOOKUP.format(3_000_000), "++-++"),
        ({}, SETTLING.format(200_000_000, 900_000_000, 40, 50), "+++-+"),
        ({}, SETTLING.format(20_000_000, 20_000_000, 10, 100), "+++-+"),  # only at 85 a second
        ({}, SETTLING.format(200_000_000, 900_000_000, 40, 0), "+++~+"),
        ({}, SETTLING.format(20_000_000, 20_000_000, 5, 0), "+++~+"),
        ({}, WRITER.format("true", 14_000_000, 20), "+++-+"),
        ({}, WRITER.format("false", 50_000_000, 20), "+++-+"),
        ({}, THROTTLE.format(8_000_000), "+++-+"),
        ({}, LOSING.format(70), "+++-+"),
        ({}, SHARED.format(20_000_000, 5), "++++-"),
        ({}, SHARED.format(1_000_000, 400), "++++-"),
    ],
)
def test_one_changed_property_turns_one_dimension(
    tmp_path: Path, values: dict[str, int], append: str, expected: str
) -> None:
    assert marks(mutated(tmp_path, append=append, **values), TINY) == expected


@pytest.mark.parametrize(
    ("values", "append"),
    [
        ({"spread_ns": 1_500}, ""),
        ({"check_ns": 200}, ""),
        ({}, SETTLING.format(1_000_000, 9_000_000, 100, 100)),  # entries are at least 10 ms apart
        ({}, WRITER.format("true", 9_000_000, 20)),
        ({}, THROTTLE.format(5_000_000)),
        ({}, LOSING.format(200)),
        ({}, SHARED.format(100_000_000, 1)),
        ({}, SHARED.format(100_000_000, 400)),
    ],
)
def test_what_is_too_weak_to_matter_turns_nothing(
    tmp_path: Path, values: dict[str, int], append: str
) -> None:
    assert marks(mutated(tmp_path, append=append, **values), TINY) == "+++++"


@pytest.mark.parametrize("place", ["first", "last"])
def test_exactly_one_entry_of_every_scenario_is_used(place: str) -> None:
    subject = switch_under_test("ideal-1g")
    for dimension in ("match", "action", "priorities"):
        for _, scenario in variations(dimension):
            tables = flow_mods(scenario)
            assert len(tables) == 100
            times_ns = processing_time.measure(subject, scenario, packets=3, seed=1)
            assert times_ns is not None
            assert len(times_ns) == 3
    scenario = TimingScenario(entries=5, matching_rule=place)
    used = 0 if place == "first" else 4
    left = [message for number, message in enumerate(flow_mods(scenario)) if number != used]
    stream = FrameStream(enters=1, leaves=2, frame=frame(306), instants_ns=evenly(3, 1e5))
    assert transmit(subject, left, [stream], seed=1)[0].lost == 3


def test_processing_time_is_from_the_last_bit_in_to_the_first_bit_out() -> None:
    times_ns = processing_time.measure(switch_under_test("ideal-1g"), TimingScenario(), packets=500, seed=1)
    assert times_ns is not None
    assert 3_000 <= times_ns.min() < 3_010 < 3_090 < times_ns.max() <= 3_100


def test_the_same_seed_gives_the_same_times() -> None:
    subject = switch_under_test("pica8-p3290")
    first, again, other = (
        processing_time.measure(subject, TimingScenario(), packets=50, seed=seed) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)  # type: ignore[arg-type]
    assert not np.array_equal(first, other)  # type: ignore[arg-type]


def test_what_the_table_changes_is_told_from_what_the_length_changes() -> None:
    times = {
        (dimension, value): ScenarioTimes(sent=9, lost=0, median_us=4, least_us=3.9, most_us=4.1)
        for dimension in VALUES
        for value, _ in variations(dimension)
    }
    limits = thresholds()
    slower = ScenarioTimes(sent=9, lost=0, median_us=9, least_us=8.9, most_us=9.1)
    assert processing_time.judge(times, limits).mark is Mark.FIT
    assert processing_time.judge({**times, ("frame_bytes", "64"): slower}, limits).mark is Mark.FIT
    assert processing_time.judge({**times, ("match", "all"): slower}, limits).mark is Mark.PARTLY
    lossy = ScenarioTimes(sent=9, lost=1, median_us=4, least_us=3.9, most_us=4.1)
    assert processing_time.judge({**times, ("match", "all"): lossy}, limits).mark is Mark.UNFIT
    software = ScenarioTimes(sent=9, lost=0, median_us=2_000, least_us=1_000, most_us=90_000)
    verdict = processing_time.judge({**times, ("match", "dl-dst"): software}, limits)
    assert (verdict.mark, verdict.reasons[-1]) == (Mark.FIT, "not in hardware: match dl-dst")
    assert processing_time.judge({**times, ("match", "five-tuple"): software}, limits).mark is Mark.UNFIT


def test_epsilon_is_what_exceeds_equation_2(tmp_path: Path) -> None:
    for check_ns in (0, 4_000, 9_000):
        subject = switch_under_test(mutated(tmp_path, check_ns=check_ns))
        delays = priority_queueing.measure(subject, bursts=1_000, seed=3)
        assert max(priority_queueing.excesses_us(subject, delays)) == pytest.approx(check_ns / 1e3, abs=0.7)


def test_without_priorities_what_interferes_decides(tmp_path: Path) -> None:
    subject = switch_under_test(mutated(tmp_path, queues=1, limit_frames=50))
    delays = priority_queueing.measure(subject, bursts=100, seed=1)
    verdict = priority_queueing.judge(priority_queueing.summary(subject, delays), thresholds())
    assert verdict.mark is Mark.UNFIT


@pytest.mark.parametrize("ports", [2, 4, 24, 48])
def test_a_shoelace_visits_every_port_in_both_directions(tmp_path: Path, ports: int) -> None:
    subject = switch_under_test(mutated(tmp_path, ports=ports))
    lab = throughput.snake_lab(subject)
    cables = throughput.cables(lab)
    assert {*cables, *cables.values()} == set(range(2, ports))
    entries = throughput.entries(lab)
    assert len(entries) == ports
    passage = throughput.measure(subject, 64, 1000, packets=20, seed=1)
    assert (passage.sent, passage.lost) == (40, 0)
    for left_out in range(ports):
        rest = [entry for place, entry in enumerate(entries) if place != left_out]
        streams = [
            FrameStream(enters=a, leaves=b, frame=frame(64), instants_ns=evenly(1, 1))
            for a, b in ((1, ports), (ports, 1))
        ]
        passed = transmit(subject, rest, streams, seed=1, cables=cables)
        assert sum(of_stream.lost for of_stream in passed) == 1


def test_an_odd_number_of_ports_cannot_be_laced(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="7 ports cannot be a shoelace"):
        parts(mutated(tmp_path, ports=7), SMALL, 1)
    with pytest.raises(InputError, match="priority queueing needs 3 ports, it has 2"):
        parts(mutated(tmp_path, ports=2), SMALL, 1)


def test_the_highest_rate_is_that_of_the_look_up(tmp_path: Path) -> None:
    device = mutated(tmp_path, append=SLOW_LOOKUP.format(4_000_000))
    highest = throughput.find(switch_under_test(device), 64, packets=3_000, seed=1)
    assert highest.frames_per_s == pytest.approx(4e6, rel=0.01)
    assert not highest.is_line_rate
    assert highest.lost > 0


def test_half_of_the_paths_of_the_formula_that_is_printed() -> None:
    """Each frame crosses the switch n/2 times: 48 ports at line rate give the 72 million of table IV."""
    highest = throughput.find(switch_under_test("dell-s3048-on"), 64, packets=50, seed=1)
    assert highest.frames_per_s == pytest.approx(48e9 / (84 * 8))


def test_what_a_queue_holds_is_inferred_from_the_delay_before_a_loss() -> None:
    subject = switch_under_test("ideal-1g")
    slot_ns = subject.slot_ns(buffers.FRAME_BYTES)
    first = StreamTimes(np.array([0, 200, 400]), np.array([5_000, LOST, 400 + 5_000 + round(7 * slot_ns)]))
    other = StreamTimes(np.array([100, 300, 500]), np.array([100 + 5_000 + round(3 * slot_ns), LOST, LOST]))
    assert buffers.capacities(subject, [first, other], after_ns=0).tolist() == [4, 4, 8]
    assert buffers.capacities(subject, [first, other], after_ns=450).tolist() == [8]
    assert buffers.capacities(subject, [StreamTimes(first.sent_ns, np.full(3, LOST))], after_ns=0).size == 0


def test_a_wait_while_the_line_rested_tells_nothing_of_a_queue() -> None:
    """The last frame to arrive waits for seven frames; then for ten more slots, in which the line is idle."""
    subject = switch_under_test("ideal-1g")
    slot_ns = subject.slot_ns(buffers.FRAME_BYTES)
    sent_ns = np.arange(9) * 10
    received_ns = 5_000 + np.rint(np.arange(9) * slot_ns).astype(np.int64)
    received_ns[8] = LOST
    stalled = np.ones(9, np.bool_)
    busy = StreamTimes(sent_ns, received_ns, stalled)
    assert buffers.capacities(subject, [busy], after_ns=0).tolist() == [8], "whatever else the machine did"
    rested_ns = np.where(np.arange(9) == 7, received_ns + round(10 * slot_ns), received_ns)
    rested = StreamTimes(sent_ns, rested_ns, ~stalled)
    assert buffers.capacities(subject, [rested], after_ns=0).size == 0
    virtual = StreamTimes(sent_ns, rested_ns)
    assert buffers.capacities(subject, [virtual], after_ns=0).tolist() == [18], "there nothing rests"


def test_a_line_that_the_machine_held_up_is_not_judged() -> None:
    unknown = buffers.QueueCapacity(frames=-1, least_frames=-1, most_frames=-1, held_up=True)
    known = buffers.QueueCapacity(frames=64, least_frames=64, most_frames=65)
    verdict = buffers.judge({(1, 1): known, (2, 1): unknown}, thresholds())
    assert verdict.mark is Mark.NOT_JUDGED
    assert "this machine held up the line" in verdict.reasons[0]


@pytest.mark.parametrize(("case", "frames"), [((1, 1), 420), ((6, 4), 50)])
def test_a_shared_memory_holds_as_much_as_the_paper_found(case: tuple[int, int], frames: int) -> None:
    """The test recovers the numbers of section III-B.2b, which the profile was fitted to."""
    buffer = buffers.measure(switch_under_test("dell-s3048-on"), *case, seed=1)
    assert buffer is not None
    assert buffer.frames == pytest.approx(frames, abs=1)
    assert buffer.most_frames - buffer.least_frames <= 2


def test_a_buffer_that_never_overflows_is_not_judged() -> None:
    subject = replace(switch_under_test("ideal-1g"), pace=Pace(longest_slots=Pace().shortest_slots))
    buffer = buffers.measure(subject, 6, 8, seed=1)
    assert buffers.judge({(6, 8): buffer}, thresholds()).mark is Mark.NOT_JUDGED


def test_an_interrupted_campaign_measures_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[Measurement[Any]] = []
    progress = RecordedProgress()

    def counted(task: Measurement[Any], *, live: None) -> list[str]:
        measured.append(task)
        return [repr(task)]

    monkeypatch.setattr(predictability_campaign, "measure", counted)

    def run(todo: dict[str, Measurement[Any]], first: int | None = None) -> dict[str, Any]:
        chosen = dict(islice(todo.items(), first))
        return run_campaign(chosen, tmp_path, workers=Workers(), progress=progress)

    todo = parts("ideal-1g", SMALL, 1)
    tasks = list(dict.fromkeys(todo.values()))
    assert len(tasks) == len(todo) - len(VALUES) + 1, "the default scenario is measured once"
    run(todo, 3)
    assert run(todo) == {name: [repr(task)] for name, task in todo.items()}
    assert measured == tasks
    assert progress.begun == [(3, 0, "parts"), (len(tasks) - 3, 3, "parts")]
    assert progress.done == [next(name for name, of in todo.items() if of == task) for task in tasks]
    for another in (parts("ideal-1g", SMALL, 2), parts("dell-s3048-on", SMALL, 1)):
        measured.clear()
        run(another, 1)
        assert measured == list(another.values())[:1]


class KilledAtTheThird(RecordedProgress):
    """Kills the process once three parts are kept."""

    def advance(self, doing: str, steps: float = 1) -> None:
        super().advance(doing, steps)
        if len(self.done) == 3:
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_campaign_continues_at_the_next_part(tmp_path: Path) -> None:
    run = partial(run_campaign, dict(islice(parts("ideal-1g", SMALL, 1).items(), 5)), workers=Workers())
    arguments = {"folder": tmp_path / "killed", "progress": KilledAtTheThird()}
    killed = get_context("forkserver").Process(target=run, kwargs=arguments)
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    progress = RecordedProgress()
    continued = run(folder=tmp_path / "killed", progress=progress)
    assert progress.begun == [(2, 3, "parts")]
    assert continued == run(folder=tmp_path / "whole", progress=progress)


def test_the_command_writes_a_verdict(tmp_path: Path) -> None:
    device = mutated(tmp_path, ports=4)
    done = CliRunner().invoke(
        bench_app, ["predictability", "--device", device, "--quick", "--out", str(tmp_path), "--json"]
    )
    assert done.exit_code == 0, done.output
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    assert {name: dimension["mark"] for name, dimension in verdict["dimensions"].items()} == {
        "PT": "+",
        "PQ": "+",
        "TP": "+",
        "FM": "+",
        "BM": "?",  # it has 4 ports, and this needs 8
    }
    assert verdict["dimensions"]["PT"]["numbers"]["bound_us"] == pytest.approx(3.1, abs=0.01)
    page = (tmp_path / "report.html").read_text()
    for name, dimension in verdict["dimensions"].items():
        assert f'<section id="{name}">' in page
        assert all(str(escape(reason)) in page for reason in dimension["reasons"])
        assert all(f"<td>{number.replace('_', ' ')}</td>" in page for number in dimension["numbers"])
    assert page.count("<svg") == 5  # two for PT, one each for PQ, TP and FM; BM is not judged
    assert f"loko bench predictability --device {device} --seed 1 --quick" in page


def test_the_zodiac_fx_is_where_the_loko_paper_puts_it() -> None:
    # Each case on its CPU is predictable. It has neither line rate nor priorities, and 4 ports are too few to
    # judge buffers.
    assert marks("zodiac-fx") == "~---?"


def test_a_board_is_sent_what_its_cpu_can_handle() -> None:
    subject = switch_under_test("zodiac-fx")
    times = processing_time.summary(
        processing_time.measure(subject, TimingScenario(), packets=200, seed=1), 200
    )
    assert times.lost == 0
    assert times.median_us > thresholds().software_us.value
    assert "rate_mbps" not in processing_time.dimensions(subject)


def test_other_devices_are_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="only profiles of the Zodiac FX"):
        switch_under_test("banana-pi-r1")


def test_a_slower_link_is_measured_where_the_card_has_no_faster_one() -> None:
    subject: SwitchUnderTest = switch_under_test("dell-s4048-on").at_card_rate()
    assert subject.link_rate_bps == 1_000_000_000
    assert switch_under_test("dell-s4048-on").link_rate_bps == 10_000_000_000
