"""How the delays of a system's packets are distributed, gathered run by run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evaluation.chart import ChartAxis, Histogram, HistogramPanel, Panel, Reference
from evaluation.runner import LOST, RunRecords

_BINS_PER_DECADE: Final = 40
_DECADES: Final = (3, 9)
"""From 1 us to 1 s, in powers of ten of ns."""
_LOST_BINS: Final = 3
"""Width of the column of lost packets."""
_ROOM_BINS: Final = 8
"""Room for that column, and between it and the least delay."""
_GRID_NS: Final = np.logspace(*_DECADES, num=(_DECADES[1] - _DECADES[0]) * _BINS_PER_DECADE + 1)


class Distribution:
    """Counts of packets in time, late and lost, and of delays in bins of equal ratio."""

    def __init__(self, guarantee_ns: float, flows: Collection[int]) -> None:
        """Nothing yet. Of the packets of other flows than these, only the lost ones are counted."""
        self.guarantee_ns = guarantee_ns
        self._flows = np.array(sorted(flows), dtype=np.int32)
        self.packets_of_all = 0
        self.lost_of_all = 0
        self.packets = 0
        self.lost = 0
        self.late = 0
        self.least_ns = 0
        self.most_ns = 0
        self._counts = np.zeros(_GRID_NS.size - 1, dtype=np.int64)

    def add(self, records: RunRecords) -> None:
        """Take in the packets of one run."""
        mine = np.isin(records.flow, self._flows)
        sent, received = records.sent_ns[mine], records.received_ns[mine]
        arrived = received != LOST
        delays: NDArray[np.int64] = received[arrived] - sent[arrived]
        self.packets_of_all += len(records)
        self.lost_of_all += int(np.count_nonzero(records.received_ns == LOST))
        self.packets += sent.size
        self.lost += sent.size - delays.size
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
            f"{key}_lost_of_all_flows_percent": 100 * self.lost_of_all / max(self.packets_of_all, 1),
            f"{key}_late_percent": self.percent(self.late),
            f"{key}_in_time_percent": self.percent(in_time),
            f"{key}_least_delay_us": self.least_ns / 1e3,
            f"{key}_greatest_delay_us": self.most_ns / 1e3,
        }

    @property
    def reach(self) -> tuple[int, int]:
        """First and last bin that its delays or its guarantee need."""
        used = np.flatnonzero(self._counts)
        guarantee = int(np.searchsorted(_GRID_NS, self.guarantee_ns))
        ends = [guarantee, *(int(place) for place in used)]
        return min(ends), max(ends)

    def panel(self, title: str, reach: tuple[int, int]) -> HistogramPanel:
        """Shares of the packets over their delay. The column at the left end is what never arrived."""
        low, high = max(reach[0] - _ROOM_BINS, 0), min(reach[1] + _LOST_BINS, _GRID_NS.size - 1)
        arrived = [self.percent(int(count)) for count in self._counts[low:high]]
        lost = [self.percent(self.lost) if place < _LOST_BINS else 0.0 for place in range(len(arrived))]
        return HistogramPanel(
            title=title,
            x=ChartAxis(label="delay [ms]; the column at the left end: lost", log=True),
            y=ChartAxis(label="packets [%]", low=0, high=100 if self.lost else None),
            edges=[float(edge) for edge in _GRID_NS[low : high + 1] / 1e6],
            histograms=[
                Histogram(label=f"arrived ({self.percent(self.packets - self.lost):.2f} %)", counts=arrived),
                Histogram(label=f"lost ({self.percent(self.lost):.2f} %)", counts=lost),
            ],
            references=[
                Reference(
                    label=f"guarantee {self.guarantee_ns / 1e6:.4g} ms",
                    value=self.guarantee_ns / 1e6,
                    axis="x",
                )
            ],
        )


def panels(found: Mapping[str, Distribution]) -> list[Panel]:
    """The distributions by title, over the same delays."""
    reaches = [one.reach for one in found.values()]
    reach = (min(low for low, _ in reaches), max(high for _, high in reaches))
    return [one.panel(title if len(found) > 1 else "", reach) for title, one in found.items()]
