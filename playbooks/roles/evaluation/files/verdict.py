"""verdict.py FOLDER …: one line for each figure that has a guarantee; status 3 if a packet breaks one.

Counted are packets where the paper's guarantee holds that were lost or late while the host had no stall.
"""

import sys
from pathlib import Path

from evaluation.result import FigureResult, read_results

BROKEN = 3


def verdict(result: FigureResult) -> str:
    """What became of the packets that have a guarantee."""
    points = [point for series in result.series for point in series.points if point.guaranteed]
    packets, lost, late, explained = (
        sum(getattr(point, name) for point in points) for name in ("packets", "lost", "late", "explained")
    )
    return (
        f"{'VIOLATED' if result.violations else 'kept':9} {result.mode:8} {result.figure:7} "
        f"{packets} packets: {lost} lost, {late} late, {explained} of these explained by stalls of the host"
    )


def main() -> int:
    """Judge every result in the folders."""
    results = [result for folder in sys.argv[1:] for result in read_results(Path(folder))]
    for result in results:
        if any(point.guaranteed for series in result.series for point in series.points):
            print(verdict(result))
    return BROKEN if any(result.violations for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
