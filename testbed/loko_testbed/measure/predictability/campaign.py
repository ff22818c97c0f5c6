"""The campaign of the study: its parts, what is kept of them, and the verdict over all.

Each part is a task of its own, whose result is kept (`loko_testbed.tasks.store`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from loko.document import InputError
from loko.switch_model.device import profile_text
from loko_testbed.measure.predictability import (
    buffers,
    flow_management,
    host,
    priority_queueing,
    processing_time,
    throughput,
)
from loko_testbed.measure.predictability.marks import DimensionVerdict, Thresholds, thresholds
from loko_testbed.measure.predictability.measurements import Measurement, measure
from loko_testbed.measure.predictability.numbered_entries import MATCHES
from loko_testbed.measure.predictability.other_settings import other_profile
from loko_testbed.measure.predictability.processing_time import ScenarioTimes
from loko_testbed.measure.predictability.subject import Pace, SwitchUnderTest, switch_under_test
from loko_testbed.measure.predictability.table_iii import (
    OTHER_PORT,
    VALUES,
    TimingDimension,
    variations,
)
from loko_testbed.tasks.executor import Workers
from loko_testbed.tasks.progress import Progress
from loko_testbed.tasks.store import StoredTasks

DIMENSIONS: Final = ("PT", "PQ", "TP", "FM", "BM")
"""The dimensions, in the order of table I."""
PQ_PART: Final = "PQ"
HOST_PART: Final = "host"
"""With live switches: what the machine itself does."""
_WAITS_S: Final = (0, flow_management.SETTLED_S)
"""Waits before the frames of each run of FM (figure 9a)."""
_PACED: Final = "FM-paced"
_ALTERNATING: Final = "FM-alternating"


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSize:
    """How much a campaign sends."""

    packets: int = 100_000
    """Frames of each scenario of PT (section II-A.2)."""
    bursts: int = 2_000
    """Bursts of each part of PQ."""
    snake_packets: int = 5_000
    """Frames of each source of the snake test (TP). In the study a source sends for 5 s."""
    congested_ports: int = buffers.MOST_PORTS
    """Largest number of congested ports in BM."""
    congested_queues: int = buffers.QUEUES[-1]
    """Largest number of congested queues at each of these ports."""
    most_entries: int = 5_000
    """Entries after which FM fills a table no further. The largest of the study's seven holds 4094."""
    aging_runs: int = 5
    """Runs of FM, with and without a wait (figure 9a)."""
    alternating_runs: int = 20
    """Runs of FM with two actions in turn; the study has 140."""
    table_sizes: bool = True
    """Whether FM tries every match with every action."""


QUICK: Final = CampaignSize(
    packets=1_000,
    bursts=2_000,
    snake_packets=1_000,
    congested_ports=2,
    congested_queues=4,
    aging_runs=2,
    alternating_runs=10,
    table_sizes=False,
)


def parts(
    device: str,
    size: CampaignSize,
    seed: int,
    *,
    subject: SwitchUnderTest | None = None,
    also: str | None = None,
) -> dict[str, Measurement[Any]]:
    """Return all parts by name, for a profile or a live `subject`. Raises `InputError` if it does not suit.

    `also`: the profile of the same switch with another setting, whose buffers are judged too. Default: what
    is known of the device. In virtual time several parts may be one measurement.
    """
    is_live = subject is not None
    subject = subject or switch_under_test(device)
    if subject.ports < OTHER_PORT:
        raise InputError(
            f"device '{device}': priority queueing needs {OTHER_PORT} ports, it has {subject.ports}"
        )
    throughput.snake_lab(subject)
    listed: dict[str, Measurement[Any]] = {HOST_PART: Measurement.of(device, host.pauses)} if is_live else {}
    for dimension in processing_time.dimensions(subject):
        for value, scenario in variations(dimension):
            timed = Measurement.of(
                device, processing_time.measure_summary, scenario, packets=size.packets, seed=seed
            )
            name = _pt_name(dimension, value)
            listed[name] = replace(timed, repetition=dimension) if is_live else timed
    listed[PQ_PART] = Measurement.of(
        device, priority_queueing.measure_excesses, bursts=size.bursts, seed=seed
    )
    for length in throughput.FRAME_BYTES:
        listed[f"TP-{length}"] = Measurement.of(
            device, throughput.find, length, packets=size.snake_packets, seed=seed
        )
    also = also or (None if is_live else other_profile(device))
    congested = {False: (device, subject)} | ({True: (also, switch_under_test(also))} if also else {})
    for is_also, (profile, switch) in congested.items():
        for case in buffers.cases(switch, most_ports=size.congested_ports, most_queues=size.congested_queues):
            name = _bm_name(case, also=is_also)
            listed[name] = Measurement.of(profile, buffers.measure, *case, seed=seed)
    filling: dict[str, Any] = {"at_most": size.most_entries, "seed": seed}
    for per_s in flow_management.RATES_PER_S:
        listed[_rate_name(per_s)] = Measurement.of(device, flow_management.fill_at_rate, per_s, **filling)
    listed[_PACED] = Measurement.of(device, flow_management.fill_paced, **filling)
    for wait_s in (0,) if is_live else _WAITS_S:
        listed[_runs_name(wait_s)] = Measurement.of(
            device, flow_management.age, wait_s=wait_s, runs=size.aging_runs, **filling
        )
    listed[_ALTERNATING] = Measurement.of(
        device, flow_management.alternate, runs=size.alternating_runs, **filling
    )
    for match in MATCHES if size.table_sizes else ():
        listed[_sizes_name(match)] = Measurement.of(device, flow_management.sizes, match, **filling)
    return listed


def _managed(results: Mapping[str, Any]) -> flow_management.FlowResults:
    """Collect the results of all parts of FM."""
    return flow_management.FlowResults(
        rates={per_s: results[_rate_name(per_s)][0] for per_s in flow_management.RATES_PER_S},
        paced=results[_PACED],
        aging={wait_s: results[name] for wait_s in _WAITS_S if (name := _runs_name(wait_s)) in results},
        alternating=results[_ALTERNATING],
        sizes={match: results[name] for match in MATCHES if (name := _sizes_name(match)) in results},
    )


def verdicts(
    results: Mapping[str, Any], limits: Thresholds, *, live: SwitchUnderTest | None = None
) -> dict[str, DimensionVerdict]:
    """Return the verdict of each dimension, from the results of all parts.

    Of a live switch, what the machine under it decides is not judged.
    """
    if live is None:
        return _verdicts(results, limits, Pace().software_mbps)
    unseen_us = results[HOST_PART].longest_us
    tolerant = host.raise_thresholds(
        limits,
        unseen_us=unseen_us,
        median_us=host.shortest_median_us(results),
        repeats_us=host.repeats_us(results),
    )
    judged = host.reliable_verdicts(
        _verdicts(results, limits, live.pace.software_mbps),
        _verdicts(results, tolerant, live.pace.software_mbps),
        unseen_us=unseen_us,
        disturbed_percent=host.disturbed_percent(results),
    )
    lines = f"its lines, made by tc, have {live.link_rate_bps / 1e6:g} Mbit/s"
    judged["TP"] = replace(judged["TP"], reasons=(*judged["TP"].reasons, lines))
    return judged


def _verdicts(
    results: Mapping[str, Any], limits: Thresholds, software_mbps: float
) -> dict[str, DimensionVerdict]:
    times: dict[tuple[TimingDimension, str], ScenarioTimes] = {
        (dimension, value): results[name]
        for dimension in VALUES
        for value, _ in variations(dimension)
        if (name := _pt_name(dimension, value)) in results
    }
    held, held_otherwise = (
        {case: results[name] for case in buffers.ALL_CASES if (name := _bm_name(case, also=also)) in results}
        for also in (False, True)
    )
    judged = {
        "PT": processing_time.judge(
            times,
            limits,
            on_cpu=_pt_name("rate_mbps", "5") not in results,
            software_mbps=software_mbps,
        ),
        "PQ": priority_queueing.judge(results[PQ_PART], limits),
        "TP": throughput.judge([results[f"TP-{length}"] for length in throughput.FRAME_BYTES], limits),
        "FM": flow_management.judge(_managed(results), limits),
        "BM": buffers.judge_with(held, held_otherwise, limits),
    }
    return {name: judged[name] for name in DIMENSIONS}


def run_campaign(
    todo: Mapping[str, Measurement[Any]],
    folder: Path,
    *,
    workers: Workers,
    progress: Progress,
    live: SwitchUnderTest | None = None,
) -> dict[str, Any]:
    """Measure the parts that the folder lacks, and return the results of all by the names of the parts.

    A `live` switch is measured in this process alone, part by part. Raises `InputError`, `RunError`.
    """
    names: dict[Measurement[Any], str] = {}
    for name, task in todo.items():
        names.setdefault(task, name)

    def inputs(task: Measurement[Any]) -> Measurement[Any]:
        switch = profile_text(task.device) if live is None else f"live {task.device} {live.pace}"
        return replace(task, device=switch)

    stored = StoredTasks(
        folder=folder,
        campaign="parts",
        function=partial(measure, live=live),
        inputs=inputs,
        workers=workers,
        on_kept=lambda task: progress.advance(names[task]),
    )
    results = dict(zip(names, stored.all(list(names), progress), strict=True))
    return {name: results[task] for name, task in todo.items()}


def document(device: str, judged: Mapping[str, DimensionVerdict]) -> dict[str, Any]:
    """Return `verdict.json`: the row of table I, with the numbers behind each mark."""
    return {
        "device": device,
        "dimensions": {
            name: {"mark": verdict.mark.value, "reasons": list(verdict.reasons), "numbers": verdict.numbers}
            for name, verdict in judged.items()
        },
        "thresholds": thresholds().model_dump(mode="json"),
    }


def _pt_name(dimension: TimingDimension, value: str) -> str:
    return f"PT-{dimension}-{value}"


def _bm_name(case: tuple[int, int], *, also: bool = False) -> str:
    return f"BM{'-also' if also else ''}-{case[0]}-ports-{case[1]}-queues"


def _rate_name(per_s: float) -> str:
    return f"FM-{per_s}-per-s"


def _runs_name(wait_s: float) -> str:
    return f"FM-runs-{wait_s}-s-apart"


def _sizes_name(match: str) -> str:
    return f"FM-sizes-{match}"
