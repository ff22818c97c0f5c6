"""The campaign of the study: its parts, what is kept of them, and the verdict over all.

Each part is an independent task, whose result is kept (`loko_testbed.tasks.store`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
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
from loko_testbed.measure.predictability.buffers import QueueCapacity
from loko_testbed.measure.predictability.flow_management import Fill, PacedFill
from loko_testbed.measure.predictability.marks import DimensionVerdict, Thresholds, thresholds
from loko_testbed.measure.predictability.numbered_entries import MATCHES
from loko_testbed.measure.predictability.other_settings import other_profile
from loko_testbed.measure.predictability.priority_queueing import Excesses
from loko_testbed.measure.predictability.processing_time import ScenarioTimes
from loko_testbed.measure.predictability.subject import Pace, SwitchUnderTest, switch_under_test
from loko_testbed.measure.predictability.table_iii import (
    OTHER_PORT,
    VALUES,
    TimingDimension,
    TimingScenario,
    variations,
)
from loko_testbed.measure.predictability.throughput import LosslessRate
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignTask:
    """One task of a campaign."""

    name: str
    device: str
    size: CampaignSize
    seed: int
    scenario: TimingScenario | None = None
    """For PT: the scenario."""
    frame_bytes: int = 0
    """For TP: the frame length."""
    congested: tuple[int, int] | None = None
    """For BM: congested ports, and congested queues of each."""
    also: str = ""
    """For BM: the profile of the same switch with another setting, in place of the device's."""
    fills: str = ""
    """For FM: how the table is filled."""


def parts(
    device: str,
    size: CampaignSize,
    seed: int,
    *,
    subject: SwitchUnderTest | None = None,
    also: str | None = None,
) -> list[CampaignTask]:
    """Return all parts for a profile, or a live `subject`. Raises `InputError` if it cannot be measured.

    `also`: the profile of the same switch with another setting, whose buffers are judged too. Default: what
    is known of the device.
    """
    is_live = subject is not None
    subject = subject or switch_under_test(device)
    if subject.ports < OTHER_PORT:
        raise InputError(
            f"device '{device}': priority queueing needs {OTHER_PORT} ports, it has {subject.ports}"
        )
    throughput.snake_lab(subject)
    common: dict[str, Any] = {"device": device, "size": size, "seed": seed}
    listed = [CampaignTask(name=HOST_PART, **common)] if is_live else []
    listed += [
        CampaignTask(name=_pt_name(dimension, value), scenario=scenario, **common)
        for dimension in processing_time.dimensions(subject)
        for value, scenario in variations(dimension)
    ]
    listed.append(CampaignTask(name=PQ_PART, **common))
    listed += [
        CampaignTask(name=f"TP-{length}", frame_bytes=length, **common) for length in throughput.FRAME_BYTES
    ]
    congested = buffers.cases(subject, most_ports=size.congested_ports, most_queues=size.congested_queues)
    listed += [CampaignTask(name=_bm_name(case), congested=case, **common) for case in congested]
    also = also or (None if is_live else other_profile(device))
    if also is not None:
        congested = buffers.cases(
            switch_under_test(also), most_ports=size.congested_ports, most_queues=size.congested_queues
        )
        listed += [
            CampaignTask(name=_bm_name(case, also=True), congested=case, also=also, **common)
            for case in congested
        ]
    matches = MATCHES if size.table_sizes else ()
    runs = [way for way, wait_s in _RUNS.items() if not (is_live and wait_s)]
    ways = (*_RATES, "paced", *runs, "alternating", *(f"{_SIZES}{match}" for match in matches))
    listed += [CampaignTask(name=f"FM-{way}", fills=way, **common) for way in ways]
    return listed


def measure(part: CampaignTask, *, live: SwitchUnderTest | None = None) -> dict[str, Any]:
    """Measure a part, of a device's profile or of a live switch. Raises `RunError`.

    Returns the result as JSON values.
    """
    if part.name == HOST_PART and live and live.live:
        return {"longest_pause_us": live.live.longest_pause_ns() / 1e3, "remark": live.live.remark}
    if part.scenario is not None:
        subject, packets = live or _slow(part.device), part.size.packets
        sent = processing_time.send_frames(subject, part.scenario, packets=packets, seed=part.seed)
        times_ns = None if sent is None else sent.processing_ns(subject, part.scenario.frame_bytes)
        disturbed = int((~sent.kept).sum()) if sent else 0
        return asdict(processing_time.summary(times_ns, packets, disturbed=disturbed))
    if part.frame_bytes:
        subject = live or switch_under_test(part.device)
        packets = part.size.snake_packets
        return asdict(throughput.find(subject, part.frame_bytes, packets=packets, seed=part.seed))
    if part.congested is not None:
        subject = live or switch_under_test(part.also or part.device)
        capacity = buffers.measure(subject, *part.congested, seed=part.seed)
        return {} if capacity is None else asdict(capacity)
    if part.fills:
        return _filled(part, live)
    subject = live or _slow(part.device)
    delays = priority_queueing.measure(subject, bursts=part.size.bursts, seed=part.seed)
    return asdict(priority_queueing.summary(subject, delays))


_RATES: Final = {f"{per_s}-per-s": per_s for per_s in flow_management.RATES_PER_S}
_RUNS: Final = {f"runs-{wait_s}-s-apart": wait_s for wait_s in _WAITS_S}
_SIZES: Final = "sizes-"
"""Prefix of the parts that fill the table with every action."""


def _filled(part: CampaignTask, live: SwitchUnderTest | None) -> dict[str, Any]:
    """Measure a part of FM."""
    subject, size = live or switch_under_test(part.device), part.size
    common: dict[str, Any] = {"at_most": size.most_entries, "seed": part.seed}
    if part.fills in _RATES:
        return asdict(flow_management.fill_at_rate(subject, _RATES[part.fills], **common)[0])
    if part.fills in _RUNS:
        runs = flow_management.age(subject, wait_s=_RUNS[part.fills], runs=size.aging_runs, **common)
        return {"runs": [asdict(fill) for fill in runs]}
    if part.fills == "alternating":
        return dict(flow_management.alternate(subject, runs=size.alternating_runs, **common))
    if part.fills == "paced":
        return asdict(flow_management.fill_paced(subject, **common))
    return dict(flow_management.sizes(subject, part.fills.removeprefix(_SIZES), **common))


def _managed(results: Mapping[str, Mapping[str, Any]]) -> flow_management.FlowResults:
    """Collect the results of all parts of FM."""
    paced = results["FM-paced"]
    return flow_management.FlowResults(
        rates={per_s: Fill(**results[f"FM-{way}"]) for way, per_s in _RATES.items()},
        paced=PacedFill(**{**paced, "fill": Fill(**paced["fill"])}),
        aging={
            wait_s: [Fill(**fill) for fill in results[f"FM-{way}"]["runs"]]
            for way, wait_s in _RUNS.items()
            if f"FM-{way}" in results
        },
        alternating=results["FM-alternating"],
        sizes={
            match: results[f"FM-{_SIZES}{match}"] for match in MATCHES if f"FM-{_SIZES}{match}" in results
        },
    )


def verdicts(
    results: Mapping[str, Mapping[str, Any]], limits: Thresholds, *, live: SwitchUnderTest | None = None
) -> dict[str, DimensionVerdict]:
    """Return the verdict of each dimension, from the results of all parts.

    Of a live switch, what the machine under it decides is not judged.
    """
    if live is None:
        return _verdicts(results, limits, Pace().software_mbps)
    unseen_us = results[HOST_PART]["longest_pause_us"]
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
    results: Mapping[str, Mapping[str, Any]], limits: Thresholds, software_mbps: float
) -> dict[str, DimensionVerdict]:
    times: dict[tuple[TimingDimension, str], ScenarioTimes] = {
        (dimension, value): ScenarioTimes(**results[_pt_name(dimension, value)])
        for dimension in VALUES
        for value, _ in variations(dimension)
        if _pt_name(dimension, value) in results
    }
    rates = [LosslessRate(**results[f"TP-{length}"]) for length in throughput.FRAME_BYTES]
    held, held_otherwise = (
        {
            case: QueueCapacity(**results[name]) if results[name] else None
            for case in buffers.ALL_CASES
            if (name := _bm_name(case, also=also)) in results
        }
        for also in (False, True)
    )
    judged = {
        "PT": processing_time.judge(
            times,
            limits,
            on_cpu=_pt_name("rate_mbps", "5") not in results,
            software_mbps=software_mbps,
        ),
        "PQ": priority_queueing.judge(Excesses(**results[PQ_PART]), limits),
        "TP": throughput.judge(rates, limits),
        "FM": flow_management.judge(_managed(results), limits),
        "BM": buffers.judge_with(held, held_otherwise, limits),
    }
    return {name: judged[name] for name in DIMENSIONS}


def run_campaign(
    todo: list[CampaignTask],
    folder: Path,
    *,
    workers: Workers,
    progress: Progress,
    live: SwitchUnderTest | None = None,
) -> dict[str, dict[str, Any]]:
    """Measure the parts that the folder lacks, and return the results of all.

    A `live` switch is measured in this process alone, part by part. Raises `InputError`, `RunError`.
    """
    part = todo[0]
    switch = profile_text(part.device) if live is None else f"live {part.device} {live.pace}"
    stored = StoredTasks(
        folder=folder,
        campaign="parts",
        function=partial(measure, live=live),
        inputs=lambda task: [task.name, profile_text(task.also) if task.also else None],
        common={"switch": switch, "size": part.size, "seed": part.seed},
        workers=workers,
        on_kept=lambda task: progress.advance(task.name),
    )
    return {task.name: result for task, result in zip(todo, stored.all(todo, progress), strict=True)}


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


def _slow(device: str) -> SwitchUnderTest:
    return switch_under_test(device, most_rate_bps=processing_time.MOST_RATE_BPS)


def _pt_name(dimension: TimingDimension, value: str) -> str:
    return f"PT-{dimension}-{value}"


def _bm_name(case: tuple[int, int], *, also: bool = False) -> str:
    return f"BM{'-also' if also else ''}-{case[0]}-ports-{case[1]}-queues"
