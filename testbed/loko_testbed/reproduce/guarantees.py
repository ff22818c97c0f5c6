"""Verdicts on the guarantees of named systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loko_testbed.reproduce.result import GuaranteeResult, PointResult, Verdict


def guarantee(
    system: str, points: Mapping[str, Sequence[PointResult]], *, ours: bool, promised: bool = True
) -> GuaranteeResult:
    """Judge a system's guarantee to its flows; `points` has the points of each flow by its label.

    If not `promised`, the guarantee does not cover what was sent, such as more than was admitted.
    """
    every = [point for each in points.values() for point in each]
    return guarantee_of_packets(
        system,
        list(points),
        packets=sum(point.packets for point in every),
        lost=sum(point.lost for point in every),
        late=sum(point.late for point in every),
        explained=sum(point.explained for point in every),
        ours=ours,
        promised=promised,
    )


def guarantee_of_packets(
    system: str,
    flows: list[str],
    *,
    packets: int,
    lost: int,
    late: int,
    explained: int = 0,
    ours: bool,
    promised: bool = True,
) -> GuaranteeResult:
    """Judge a system's guarantee by numbers of packets; see `guarantee`."""
    return GuaranteeResult(
        system=system,
        flows=flows,
        packets=packets,
        lost=lost,
        late=late,
        explained=explained,
        verdict=_verdict(packets, lost + late - explained) if promised else "not promised",
        ours=ours,
    )


def _verdict(packets: int, broken_by: int) -> Verdict:
    if not packets:
        return "not tested"
    return "broken" if broken_by > 0 else "kept"
