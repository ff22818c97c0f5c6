"""Replay a sweep: delay and loss by one multiplier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loko.switch_model.device import deterministic
from loko.topology.lab import cabled
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure_types.traffic.document import SMALLEST_BOX, Sweep
from loko_testbed.reproduce.figure_types.traffic.replay import TrafficOutcome, TrafficReplay
from loko_testbed.reproduce.figure_types.traffic.setting import SweepSetting, prepare, traffic
from loko_testbed.reproduce.guarantees import guarantee
from loko_testbed.reproduce.replay.duration import live_s, virtual_s
from loko_testbed.reproduce.replay.point import Point
from loko_testbed.reproduce.result import (
    GUARANTEE_MS,
    LEAST_DELAY_MS,
    AxisLabel,
    GuaranteeResult,
    NoteResult,
    PointResult,
    Series,
)
from loko_testbed.simulation.traffic import RandomBursts


class SweepReplay(TrafficReplay[Sweep]):
    """A sweep with its setting, which has real boards in its lab if there are any."""

    setting: SweepSetting

    def _points(self) -> list[Point]:
        sweep, values = self.figure, self.figure.x.values
        if self.options.quick and sweep.quick.values is not None:
            values = sweep.quick.values
        if self.options.points == "admitted":
            values = [x for x in values if x in sweep.guaranteed]
        setting = prepare(sweep)
        self.setting = replace(setting, lab=cabled(setting.lab, self.options.cabling))
        return [self._point(x) for x in values]

    def _point(self, x: float) -> Point:
        senders = traffic(self.setting, x, self.senders)
        return Point(
            figure=self.figure.name,
            x=x,
            label=f"{self.figure.name} at {x:g}",
            lab=self.setting.lab,
            routed=self.setting.admitted(),
            scheme=self.figure.allocation,
            entries=self.figure.entries,
            senders=senders,
            seconds=self.seconds,
            seeds=self.seeds(repr(x)),
            guarantees_ns={sender.flow: self.setting.guarantee_ns for sender in senders if sender.observed},
            echoes_per_s=self.figure.echoes_per_s(x),
        )

    def outcome(self) -> TrafficOutcome:
        """See `TrafficReplay.outcome`."""
        sweep, setting = self.figure, self.setting
        labels = {flow.label: number for number, flow in enumerate(sweep.flows)}
        series = [
            Series(label=label, flow=labels[label], points=self._boxes(labels[label]))
            for label in sweep.observed
        ]
        replayed = self.replayed_on(setting.lab)
        factor = self.options.capacity_factor
        if factor is None:
            factor = deterministic(setting.allocation.service.profile).cpu.capacity_factor.value
        replayed["assumptions"] = {"capacity_factor": factor, **replayed["assumptions"]}
        return TrafficOutcome(
            chart=None,
            x=AxisLabel(name=sweep.x.name, unit=sweep.x.unit),
            series=series,
            findings=_findings(setting, [each.accepted for each in self.accumulators]),
            guarantees=_guarantees(sweep, series),
            notes=self._notes(series),
            **replayed,
        )

    def _boxes(self, flow: int) -> list[PointResult]:
        return [
            accumulator.boxes[flow].point(point.x, guaranteed=point.x in self.figure.guaranteed)
            for point, accumulator in zip(self.points, self.accumulators, strict=True)
        ]

    def _notes(self, series: Sequence[Series]) -> list[NoteResult]:
        """Return notes on how short the replay was, and on the flows that sent nothing in it."""
        sweep = self.figure
        where = fact(sweep.paper, "ev.runs").where
        paper = f" a box, the paper {sweep.runs} of {sweep.seconds:g} s: it may miss what is rare."
        notes = self.note_if_shorter(where, paper)
        silent = {line.label: [box.x for box in line.points if not box.packets] for line in series}
        told = [f"{label} at {', '.join(map('{:g}'.format, at))}" for label, at in silent.items() if at]
        if told:
            text = (
                f"Nothing was sent by {'; '.join(told)}. A host waits up to {self._longest_gap_s:.2g} s for a"
                " burst on average: lengthen the runs with --seconds, or choose --sender simple."
            )
            notes.append(NoteResult(where=where, text=text))
        return notes

    @property
    def _longest_gap_s(self) -> float:
        """The longest mean time between the bursts of an observed flow."""
        each = [sender.sends for point in self.points for sender in point.senders if sender.observed]
        return max(sends.mean_gap_ns for sends in each if isinstance(sends, RandomBursts)) / 1e9

    @staticmethod
    def estimate_s(figure: Sweep) -> dict[str, float]:
        """See `TrafficReplay.estimate_s`."""
        live = live_s(len(figure.x.values) * figure.runs, figure.seconds)
        return {"virtual": virtual_s(packets(figure)), "live": live, "hardware": live}


def _findings(setting: SweepSetting, accepted: Sequence[int | None]) -> dict[str, float]:
    """Return findings beside the points. A box has all observed flows at one x, as in the paper.

    `accepted` has for each x the packets that found room before the shapers. The paper's numbers of packets
    agree best with these (docs/senders.md).
    """
    findings = {GUARANTEE_MS: setting.guarantee_ns / 1e6, LEAST_DELAY_MS: setting.floor_ns / 1e6}
    boxes = [count for count in accepted if count is not None]
    if len(boxes) == len(setting.sweep.planned) == len(accepted):
        findings[SMALLEST_BOX], findings["largest_box_packets"] = (
            float(min(boxes)),
            float(max(boxes)),
        )
    return findings


def _guarantees(sweep: Sweep, series: Sequence[Series]) -> list[GuaranteeResult]:
    """Judge Loko's guarantee where it holds; list the other points separately as not promised.

    The other points are not all beyond admission: the paper loses packets of full-rate at m_r = 1 (I21).
    """
    within, beyond = (
        {line.label: [point for point in line.points if point.guaranteed is promised] for line in series}
        for promised in (True, False)
    )
    guarantees = [guarantee(f"Loko, {sweep.allocation}", within, ours=True)]
    if any(beyond.values()):
        system = f"Loko, {sweep.allocation}, outside its guarantee"
        guarantees.append(guarantee(system, beyond, ours=True, promised=False))
    return guarantees


def packets(sweep: Sweep) -> int:
    """Estimate the packets of all flows at the paper's scale, as limited by the shapers."""
    setting = prepare(sweep)
    bits_per_s = sum(
        flow.bucket.rate_bps * min(1.0, sweep.senders.offered_load)
        for x in sweep.x.values
        for flow in traffic(setting, x)
    )
    return int(bits_per_s * sweep.runs * sweep.seconds / (8 * sweep.frame_bytes))
