"""Bands of the predicted figures over the simple and the inferred senders, capacities and timers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.senders.document import Predicted, SendersFigure
from loko_testbed.reproduce.figure_types.senders.predictions import Prediction
from loko_testbed.reproduce.figure_types.traffic.document import SHARES, Deployment
from loko_testbed.reproduce.result import LOSS_PERCENT, MEDIAN_MS, Band, runs_of
from loko_testbed.simulation.senders import SIMPLE


def bands(figure: SendersFigure, predictions: Sequence[Prediction]) -> list[Band]:
    """Return the bands of each predicted figure: loss and medians of sweeps, shares of deployments."""
    bands: list[Band] = []
    for foretold in figure.predicted:
        mine = [prediction for prediction in predictions if foretold.figure in prediction.findings]
        if mine:
            bands += _of_a_figure(
                foretold, f"{figure.paper}/{foretold.figure}", mine, figure.inferred_from.figure
            )
    return bands


def _of_a_figure(predicted: Predicted, name: str, mine: Sequence[Prediction], source: str) -> list[Band]:
    def covers(some: Sequence[Prediction]) -> str:
        return f"{describe_variation(some, source)}; {runs_of(predicted.runs, predicted.seconds)} each"

    over_x = [each.over_x[predicted.figure] for each in mine if predicted.figure in each.over_x]
    reaches = [
        _over_x(name, finding, [each[finding] for each in over_x], covers(mine))
        for finding in (LOSS_PERCENT, MEDIAN_MS)
        if over_x
    ]
    document = experiments()[name]
    for system in document.systems if isinstance(document, Deployment) else ():
        sending = [each for each in mine if each.findings[predicted.figure][system.sent] > 0]
        for finding in map(system.share, SHARES) if sending else ():
            values = [each.findings[predicted.figure][finding] for each in sending]
            ends = {"least": [min(values)], "most": [max(values)]}
            reaches.append(Band(figure=name, finding=finding, covers=covers(sending), **ends))
    return [band for band in reaches if band is not None]


def _over_x(
    name: str, finding: str, values: Sequence[Mapping[float, tuple[float, float]]], covers: str
) -> Band | None:
    """Return a band over those x at which every prediction has a value; None if there are none."""
    common = [x for x in values[0] if all(x in points for points in values)]
    if not common:
        return None
    return Band(
        figure=name,
        finding=finding,
        x=common,
        least=[min(points[x][0] for points in values) for x in common],
        most=[max(points[x][1] for points in values) for x in common],
        covers=covers,
    )


def describe_variation(predictions: Sequence[Prediction], source: str) -> str:
    """Describe in words what these predictions vary."""
    senders = {each.senders.model_copy(update={"shaper_latency_ns": 0}) for each in predictions}
    inferred = len(senders - {SIMPLE})
    factors = [1.0 if each.capacity_factor is None else each.capacity_factor for each in predictions]
    latest_ns = max(each.senders.shaper_latency_ns for each in predictions)
    parts = []
    if inferred:
        parts.append(f"{inferred} {'sender' if inferred == 1 else 'senders'} inferred from {source}")
    if SIMPLE in senders:
        parts.append("the simple sender")
    if min(factors) < max(factors):
        parts.append(f"{min(factors):g} to {max(factors):g} of the capacity")
    if latest_ns:
        parts.append(f"shapers up to {latest_ns / 1000:g} us late")
    return ", ".join(parts)
