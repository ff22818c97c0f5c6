"""The distribution of delays of a system's packets, accumulated run by run."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko_testbed.reproduce.chart import (
    ChartAxis,
    FindingPlace,
    HistogramPanel,
    HistogramSeries,
    Overflow,
    Panel,
    Reference,
    ShareAnnotation,
)
from loko_testbed.reproduce.figure_types.traffic.document import (
    SHARES,
    DeployedSystem,
    sent_finding,
    share_finding,
)
from loko_testbed.simulation.runner import LOST, RunRecords

_BINS_PER_DECADE: Final = 40
_DECADES: Final = (3, 9)
"""Range of the bins in powers of ten of ns: 1 us to 1 s."""
_ROOM_BINS: Final = 2
"""Empty bins at both ends of the axis."""
_PERCENT_ENDS: Final = (5, 10, 20, 50, 100)
"""Possible upper ends of an axis in per cent."""
_FLAT: Final = 0.05
"""Bins below this share of a linear axis would not be seen."""
_LEAST_TOLD_PERCENT: Final = 0.01
"""Resolution of shares as text."""
_GRID_NS: Final = np.logspace(*_DECADES, num=(_DECADES[1] - _DECADES[0]) * _BINS_PER_DECADE + 1)


class Distribution:
    """Counts packets in time, late and lost, and their delays in logarithmic bins."""

    def __init__(self, guarantee_ns: float, flows: Collection[int]) -> None:
        """Begin empty. Packets of flows other than these count only towards the loss of all flows."""
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
        """Add the packets of one run."""
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
        """Return a count in per cent of all packets of the shown flows."""
        return 100 * count / self.packets if self.packets else 0.0

    def _format_share(self, count: int) -> str:
        """Return a share as text, rounded so that it reads "none" or "all" only if that is exact."""
        if count in {0, self.packets}:
            return "all" if count else "none"
        share = self.percent(count)
        if share < _LEAST_TOLD_PERCENT:
            return f"below {_LEAST_TOLD_PERCENT} %"
        return f"{min(share, 100 - _LEAST_TOLD_PERCENT):.2f} %"

    @property
    def _shares(self) -> dict[str, int]:
        """Number of packets in each of the `SHARES`."""
        counts = (self.lost, self.late, self.packets - self.lost - self.late)
        return dict(zip(SHARES, counts, strict=True))

    def findings(self, key: str) -> dict[str, float]:
        """Return the findings; their names begin with the system's key."""
        return {
            **{share_finding(key, name): self.percent(count) for name, count in self._shares.items()},
            f"{key}_guarantee_us": self.guarantee_ns / 1e3,
            sent_finding(key): float(self.packets),
            f"{key}_lost_of_all_flows_percent": 100 * self.lost_of_all / max(self.packets_of_all, 1),
            f"{key}_least_delay_us": self.least_ns / 1e3,
            f"{key}_greatest_delay_us": self.most_ns / 1e3,
        }

    @property
    def reach(self) -> tuple[int, int]:
        """First and last bin with a delay or the guarantee."""
        used = np.flatnonzero(self._counts)
        guarantee = int(np.searchsorted(_GRID_NS, self.guarantee_ns))
        ends = [guarantee, *(int(place) for place in used)]
        return min(ends), max(ends)

    @property
    def highest_percent(self) -> float:
        """The largest share of a bin or of the lost packets."""
        return max(self.highest_bin_percent, self.percent(self.lost))

    @property
    def highest_bin_percent(self) -> float:
        """The largest share of a bin; 0 if no packet arrived."""
        return self.percent(int(self._counts.max()))

    def panel(
        self, key: str, title: str, reach: tuple[int, int], high_percent: float, linear_to: float | None
    ) -> HistogramPanel:
        """Return a histogram of the delays; lost packets, which have none, are drawn apart.

        For `linear_to` see `ChartAxis`.
        """
        low, high = max(reach[0] - _ROOM_BINS, 0), min(reach[1] + 1 + _ROOM_BINS, _GRID_NS.size - 1)
        edges = [float(edge) for edge in _GRID_NS[low : high + 1] / 1e6]
        arrived = [self.percent(int(count)) for count in self._counts[low:high]]
        return HistogramPanel(
            title=title,
            x=ChartAxis(label="delay [ms]", log=True, low=edges[0], high=edges[-1]),
            y=ChartAxis(label="packets [%]", low=0, high=high_percent, linear_to=linear_to),
            findings=[FindingPlace(finding=f"{key}_guarantee_us", of="x", scale=1e-3, words="guaranteed")],
            edges=edges,
            histograms=[
                HistogramSeries(
                    label=f"arrived ({self._format_share(self.packets - self.lost)})", counts=arrived
                )
            ],
            overflow=Overflow(
                label="lost", count=self.percent(self.lost), text=self._format_share(self.lost)
            ),
            shares=[
                ShareAnnotation(name=name, finding=share_finding(key, name), text=self._format_share(count))
                for name, count in self._shares.items()
            ],
            references=[
                Reference(
                    label=f"guarantee {self.guarantee_ns / 1e6:.4g} ms",
                    value=self.guarantee_ns / 1e6,
                    axis="x",
                )
            ],
        )


def panels(distributions: Mapping[DeployedSystem, Distribution]) -> list[Panel]:
    """Return a panel for each system's distribution, all with the same axes."""
    reaches = [distribution.reach for distribution in distributions.values()]
    reach = (min(low for low, _ in reaches), max(high for _, high in reaches))
    highest = max(distribution.highest_percent for distribution in distributions.values())
    high_percent = next((end for end in _PERCENT_ENDS if end >= highest), 100)
    bins = max(distribution.highest_bin_percent for distribution in distributions.values())
    is_flat = 0 < bins < _FLAT * high_percent
    linear_to = 10.0 ** math.floor(math.log10(bins)) if is_flat else None
    return [
        distribution.panel(
            system.key, system.label if len(distributions) > 1 else "", reach, high_percent, linear_to
        )
        for system, distribution in distributions.items()
    ]
