"""Capture runs of points in virtual time: each is carried out for this, whether or not its records are kept.

In virtual time a run is the same each time, and the same whether or not it is captured. So captures need no
place in the store of runs, and a figure that is complete can be captured as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loko.document import InputError
from loko.topology.network import shortest_path
from loko_testbed.reproduce.folder import short_name
from loko_testbed.reproduce.replay.campaign import virtual_runner
from loko_testbed.reproduce.replay.point import Point
from loko_testbed.simulation.captures.capture_folder import empty_folder
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.traffic import Greedy, RandomBursts, Releases, Sender, TimeTriggered
from loko_testbed.tasks.executor import Workers
from loko_testbed.tasks.progress import Progress

_BLOCK_BYTES: Final = 150
"""Of a packet in a file, beside the frame: its block, and a comment."""
_MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedPointRun:
    """A run of a point that is carried out to be captured."""

    point: Point
    number: int
    """As in records: the first is 0."""
    capacity_factor: float | None
    folder: Path


def runs_to_capture(points: Sequence[Point], options: Options) -> list[CapturedPointRun]:
    """Return the runs of these points that leave captures, none unless `options` say so.

    They are in folders ``FIGURE/POINT/RUN`` of a folder that is made now. Raises `InputError` if that has
    files, or if the captures would exceed the limit.
    """
    choice = options.captures
    if choice is None:
        return []
    chosen = [
        CapturedPointRun(
            point=point,
            number=number,
            capacity_factor=options.capacity_factor,
            folder=choice.folder / short_name(point.figure) / f"point-{point.x:.10g}" / f"run-{number}",
        )
        for point in points
        for number in range(min(choice.runs, len(point.seeds)))
    ]
    expected = sum(forecast_bytes(run.point) for run in chosen)
    if expected > choice.limit_bytes:
        raise InputError(
            f"--pcap {choice.folder}: captures of {len(chosen)} runs would take about"
            f" {expected / _MEGABYTE:,.0f} MB, and --pcap-limit is {choice.limit_bytes / _MEGABYTE:,.0f} MB;"
            " raise it, or take fewer figures, or --quick, --points admitted or --seconds"
        )
    empty_folder(choice.folder)
    return chosen


def capture_runs(chosen: Sequence[CapturedPointRun], options: Options, progress: Progress) -> None:
    """Carry out these runs on this machine and write their captures. Raises `InputError` or `RunError`."""
    if not chosen:
        return
    progress.begin(len(chosen), 0, "captures")
    with closing(Workers(jobs=options.jobs).each_done(capture_run, chosen)) as done:
        for place, _ in done:
            progress.advance(f"{chosen[place].point.label}: captured")


def capture_run(run: CapturedPointRun) -> None:
    """Carry out a run and write its captures. Raises `InputError` or `RunError`."""
    from loko_testbed.simulation.captures.flow_comments import KnownFlows  # noqa: PLC0415
    from loko_testbed.simulation.captures.run_captures import write_run  # noqa: PLC0415 - imports dpkt

    point = run.point
    flows = KnownFlows.sent(
        point.lab, point.senders, (route.flow for route in point.routed), point.guarantees_ns
    )
    with virtual_runner(point, run.capacity_factor) as runner:
        runner.run(
            point.senders,
            seconds=point.seconds,
            seed=point.seeds[run.number],
            echoes_per_s=point.echoes_per_s,
            capture=lambda powered: write_run(run.folder, point.lab, flows, powered.captured()),
        )


def forecast_bytes(point: Point) -> float:
    """Return about how many bytes the captures of a run of a point take, rather too many."""
    ends = _cable_ends(point)
    return sum(
        _frames(sender, point.seconds) * ends[sender.flow] * (sender.frame_bytes + _BLOCK_BYTES)
        for sender in point.senders
    )


def _cable_ends(point: Point) -> dict[int, int]:
    """Return at how many ports a frame is seen on its way, by the number of its flow."""
    switches = {
        (route.flow.source, route.flow.destination, route.flow.udp_source): len(route.path)
        for route in point.routed
    }
    return {
        sender.flow: 2
        * (
            1
            + (
                switches.get((sender.source, sender.destination, sender.udp_source))
                or len(shortest_path(point.lab, sender.source, sender.destination))
            )
        )
        for sender in point.senders
    }


def _frames(sender: Sender, seconds: float) -> float:
    """Return about how many frames a sender sends in so many seconds."""
    sends = sender.sends
    if isinstance(sends, Releases):
        return sends.instants_ns.size
    if isinstance(sends, TimeTriggered):
        return seconds * 1e9 / sends.period_ns
    rates: Iterable[float] = ()
    burst_bytes = 0.0
    if isinstance(sends, RandomBursts | Greedy) and sends.bucket is not None:
        rates, burst_bytes = (sends.bucket.rate_bps,), sends.bucket.burst_bytes
    if isinstance(sends, RandomBursts):
        rates = (*rates, sends.offered_rate_bps)
    return (min(rates, default=0.0) * seconds / 8 + burst_bytes) / sender.frame_bytes
