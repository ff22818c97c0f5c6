"""How the delays of a system's packets are distributed, gathered run by run."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.chart import ChartAxis, Histogram, HistogramPanel, Reference
from evaluation.runner import LOST, RunRecords

_BINS_PER_DECADE: Final = 40
_DECADES: Final = (3, 9)
"""From 1 us to 1 s, in powers of ten of ns."""
_GRID_NS: Final = np.logspace(
    *_DECADES, num=(_DECADES[1] - _DECADES[0]) * _BINS_PER_DECADE + 1
)


class Distribution:
    """Counts of packets in time, late and lost, and of delays in bins of equal ratio."""

    def __init__(self, guarantee_ns: float) -> None:
        self.guarantee_ns = guarantee_ns
        self.packets = 0
        self.lost = 0
        self.late = 0
        self.least_ns = 0
        self.most_ns = 0
        self._counts = np.zeros(_GRID_NS.size - 1, dtype=np.int64)

    def add(self, records: RunRecords) -> None:
        """Take in the packets of one run."""
        arrived = records.received_ns != LOST
        delays: NDArray[np.int64] = records.received_ns[arrived] - records.sent_ns[arrived]
        self.packets += len(records)
        self.lost += len(records) - delays.size
        self.late += int(np.count_nonzero(delays > self.guarantee_ns))
        if delays.size:
            low, high = int(delays.min()), int(delays.max())
            self.least_ns = min(low, self.least_ns or low)
            self.most_ns = max(high, self.most_ns)
        self._counts += np.histogram(np.clip(delays, _GRID_NS[0], _GRID_NS[-1]), bins=_GRID_NS)[0]

    def percent(self, count: int) -> float:
        """A count as per cent of all packets."""
        return 100 * count / self.packets if self.packets else 0.0

    def findings(self, key: str) -> dict[str, float]:
        """Named numbers, beginning with the system's key."""
        in_time = self.packets - self.lost - self.late
        return {
            f"{key}_guarantee_us": self.guarantee_ns / 1e3,
            f"{key}_sent_packets": float(self.packets),
            f"{key}_lost_percent": self.percent(self.lost),
            f"{key}_late_percent": self.percent(self.late),
            f"{key}_in_time_percent": self.percent(in_time),
            f"{key}_least_delay_us": self.least_ns / 1e3,
            f"{key}_greatest_delay_us": self.most_ns / 1e3,
        }

    def panel(self, title: str) -> HistogramPanel:
        """Shares of the packets over their delay. The column at the left end is what never arrived."""
        used = np.flatnonzero(self._counts)
        guarantee_bin = int(np.searchsorted(_GRID_NS, self.guarantee_ns))
        first = min([guarantee_bin, *(int(place) for place in used[:1])])
        last = max([guarantee_bin, *(int(place) for place in used[-1:])])
        # Room for the lost ones: a column of three bins, two bins away from the least delay.
        low, high = max(first - 8, 0), min(last + 3, _GRID_NS.size - 1)
        edges = _GRID_NS[low : high + 1] / 1e6
        arrived = [self.percent(int(count)) for count in self._counts[low:high]]
        lost = [self.percent(self.lost) if place < 3 else 0.0 for place in range(len(arrived))]
        return HistogramPanel(
            title=title,
            x=ChartAxis(label="delay [ms]; the column at the left end: lost", log=True),
            y=ChartAxis(label="packets [%]", low=0, high=100 if self.lost else None),
            edges=[float(edge) for edge in edges],
            histograms=[
                Histogram(label=f"arrived ({self.percent(self.packets - self.lost):.1f} %)", counts=arrived),
                Histogram(label=f"lost ({self.percent(self.lost):.1f} %)", counts=lost),
            ],
            references=[
                Reference(
                    label=f"guarantee {self.guarantee_ns / 1e6:.4g} ms",
                    value=self.guarantee_ns / 1e6,
                    axis="x",
                )
            ],
        )
