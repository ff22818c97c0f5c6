"""Predict other figures with a sender: replay and judge them as usual, but with that sender."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loko.switch_model.device import Profile, load_device
from loko.topology.lab import load_lab
from loko_testbed.reproduce.claims import evaluate_claims
from loko_testbed.reproduce.figure import Figure, LabFigure
from loko_testbed.reproduce.figure_types import figure_type_named
from loko_testbed.reproduce.figure_types.experiments import experiments_named
from loko_testbed.reproduce.figure_types.senders.document import Predicted
from loko_testbed.reproduce.figure_types.traffic.checks import PointsByX
from loko_testbed.reproduce.figure_types.traffic.document import Sweep
from loko_testbed.reproduce.result import LOSS_PERCENT, MEDIAN_MS, ClaimResult, FigureResult, TrafficResult
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.senders import SenderChoice, SenderSettings
from loko_testbed.tasks.progress import NoProgress

FOLDER = ".predictions"
"""Subfolder for the replays of predicted figures, which are kept as usual for their types."""


OverX = Mapping[str, Mapping[float, tuple[float, float]]]
"""By `LOSS_PERCENT` or `MEDIAN_MS`, at each x with a value: least and greatest value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The predictions of one sender, by figure."""

    senders: SenderSettings
    capacity_factor: float | None
    findings: Mapping[str, Mapping[str, float]]
    loss_percent: Mapping[str, Mapping[float, float]]
    """For each sweep the loss at each x."""
    over_x: Mapping[str, OverX]
    """For each sweep the quantities of which its picture can show a band."""
    x_label: Mapping[str, str]
    claims: Mapping[str, Sequence[ClaimResult]]


def predict(
    figures: Sequence[Predicted],
    paper: str,
    senders: SenderSettings,
    options: Options,
    capacity_factor: float | None = None,
) -> Prediction:
    """Replay the figures with this sender and judge them. Raises `InputError` or `RunError`.

    A capacity factor applies to the Zodiac FX; with one, figures of other switches are left out.
    """
    known = experiments_named([f"{paper}/{figure.figure}" for figure in figures])
    name = hashlib.sha256(f"{senders.model_dump_json()} {capacity_factor}".encode()).hexdigest()[:12]
    out = options.out / FOLDER / name
    out.mkdir(parents=True, exist_ok=True)
    results: dict[str, FigureResult] = {}
    chosen: dict[str, Options] = {}
    for predicted in figures:
        figure = known[f"{paper}/{predicted.figure}"]
        if capacity_factor is not None and not _has_capacity(figure):
            continue
        chosen[predicted.figure] = replace(
            options,
            out=out,
            quick=False,
            runs=predicted.runs,
            seconds=predicted.seconds,
            senders=SenderChoice(**senders.model_dump()),
            capacity_factor=capacity_factor,
        )
        (results[predicted.figure],) = figure_type_named(figure.kind).compute(
            [figure], chosen[predicted.figure], NoProgress()
        )
    sweeps = {
        name: result
        for name, result in results.items()
        if isinstance(known[result.name], Sweep) and isinstance(result, TrafficResult)
    }
    return Prediction(
        senders=senders,
        capacity_factor=capacity_factor,
        findings={
            name: {**result.findings, **(onsets_of(sweeps[name]) if name in sweeps else {})}
            for name, result in results.items()
        },
        loss_percent={name: losses_of(result) for name, result in sweeps.items()},
        over_x={name: over_x_of(result) for name, result in sweeps.items()},
        x_label={name: " ".join((result.x.name, result.x.unit)).strip() for name, result in results.items()},
        claims={
            name: evaluate_claims(known[result.name], result, results.values(), chosen[name])
            for name, result in results.items()
        },
    )


def _has_capacity(figure: Figure) -> bool:
    """Return whether all switches of the figure are of the kind with a capacity factor."""
    if not isinstance(figure, LabFigure):
        return False
    switches = load_lab(figure.lab).switches.values()
    return all(isinstance(load_device(switch.profile.name), Profile) for switch in switches)


def losses_of(result: TrafficResult) -> dict[float, float]:
    """Return the loss of all flows of a sweep together, in per cent, at each x where packets were sent."""
    measured = PointsByX(result.series)
    return {x: 100 * measured.loss(x) for x in measured.by_x}


def over_x_of(result: TrafficResult) -> OverX:
    """Return the loss at each x where packets were sent, and the medians where packets arrived."""
    losses = {x: (loss, loss) for x, loss in losses_of(result).items()}
    medians = {}
    for x, points in PointsByX(result.series).by_x.items():
        known = [point.delay_ms.p50 for point in points if point.delay_ms.p50 is not None]
        if known:
            medians[x] = (min(known), max(known))
    return {LOSS_PERCENT: losses, MEDIAN_MS: medians}


def onsets_of(result: TrafficResult) -> dict[str, float]:
    """Return findings on a sweep: the loss at each x, and the smallest x with lost or late packets."""
    measured = PointsByX(result.series)
    losses = {f"loss_at_{x:g}_percent": loss for x, loss in losses_of(result).items()}
    onsets = {"loss_starts": measured.lost_from, "late_starts": measured.late_from}
    return losses | {name: x for name, x in onsets.items() if x is not None}
