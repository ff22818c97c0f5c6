"""Bands of the predicted figures: between what the inferred senders, the capacities and the timers give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.experiments import experiments
from evaluation.kinds.deployment.document import SHARES, Deployment
from evaluation.kinds.senders.document import Predicted, SendersFigure
from evaluation.kinds.senders.predictions import Prediction
from evaluation.result import LOSS_PERCENT, MEDIAN_MS, Band, runs_of


def bands(figure: SendersFigure, inferred: Sequence[Prediction]) -> list[Band]:
    """Of each predicted figure what its picture shows: loss and medians of a sweep, shares of a deployment.

    `inferred`: all predictions but that of the default sender.
    """
    found: list[Band] = []
    for one in figure.predicted:
        mine = [prediction for prediction in inferred if one.figure in prediction.findings]
        if mine:
            found += _of_a_figure(one, f"{figure.paper}/{one.figure}", mine, figure.inferred_from.figure)
    return found


def _of_a_figure(one: Predicted, name: str, mine: Sequence[Prediction], source: str) -> list[Band]:
    covers = f"{covered(mine, source)}; {runs_of(one.runs, one.seconds)} each"
    losses = [{x: (loss, loss) for x, loss in each.loss_percent.get(one.figure, {}).items()} for each in mine]
    medians = [each.median_ms.get(one.figure, {}) for each in mine]
    found = [
        band
        for finding, values in ((LOSS_PERCENT, losses), (MEDIAN_MS, medians))
        if (band := _over_x(name, finding, values, covers)) is not None
    ]
    document = experiments()[name]
    if isinstance(document, Deployment):
        shares = [system.share(share) for system in document.systems for share in SHARES]
        for finding in shares:
            values = [each.findings[one.figure][finding] for each in mine]
            found.append(
                Band(figure=name, finding=finding, least=[min(values)], most=[max(values)], covers=covers)
            )
    return found


def _over_x(
    name: str, finding: str, values: Sequence[Mapping[float, tuple[float, float]]], covers: str
) -> Band | None:
    """Over the values of x at which every prediction has one; None if there is none."""
    common = [x for x in values[0] if all(x in one for one in values)]
    if not common:
        return None
    return Band(
        figure=name,
        finding=finding,
        x=common,
        least=[min(one[x][0] for one in values) for x in common],
        most=[max(one[x][1] for one in values) for x in common],
        covers=covers,
    )


def covered(inferred: Sequence[Prediction], source: str) -> str:
    """What these predictions vary, in words."""
    senders = {one.senders.model_copy(update={"shaper_latency_ns": 0}) for one in inferred}
    factors = [1.0 if one.capacity_factor is None else one.capacity_factor for one in inferred]
    latest_ns = max(one.senders.shaper_latency_ns for one in inferred)
    parts = [f"{len(senders)} {'sender' if len(senders) == 1 else 'senders'} inferred from {source}"]
    if min(factors) < max(factors):
        parts.append(f"{min(factors):g} to {max(factors):g} of the capacity")
    if latest_ns:
        parts.append(f"shapers up to {latest_ns / 1000:g} us late")
    return ", ".join(parts)
