"""Measure Loko's preconditions on a switch live, for the emulated board and for Open vSwitch.

``python -m benchmarks determinism`` measures both like ``loko bench preconditions``, and draws the
distributions of their processing times side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from benchmarks.encoding import encoded
from benchmarks.measure import BenchmarkError, MeasuredRow
from loko.document import InputError
from loko.switch_model.scenario import TABLE_1_ENTRIES, ActionType, MatchType
from loko.units import NS_PER_US
from loko_testbed.cli.bench.live import measured_store
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.measure.bench.inventory import BENCHES, Hardware, load_inventory
from loko_testbed.measure.bench.preconditions import (
    SAMPLES,
    SPREAD,
    Precondition,
    preconditions,
    reduced_parts,
)
from loko_testbed.measure.bench.procedures.dp_time import PROCEDURE as DP_TIME
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.reproduce.plots.canvas import BOXES, EDGE, REFERENCE, STYLE, box_statistics
from loko_testbed.simulation.runner import RunError

SWITCHES: Final = {"zodiac-fx-live": "emulated Zodiac FX", "openvswitch": "Open vSwitch, userspace datapath"}
SIZE: Final = 306
QUICK_SAMPLES: Final = 100
_PICTURE_INCHES: Final = (7.6, 3.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSwitch:
    """The results for a switch."""

    title: str
    preconditions: tuple[Precondition, ...]
    boxes_us: Mapping[str, dict[str, Any]]
    """Processing times of frames of `SIZE` bytes by number of entries, as boxes for matplotlib."""


def measure(folder: Path, *, quick: bool, tell: Callable[[str], None]) -> dict[str, MeasuredSwitch]:
    """Measure both switches; samples that exist already are reused. Raises `BenchmarkError`."""
    switches = {}
    for name, title in SWITCHES.items():
        tell(f"  {title}")
        inventory = load_inventory(BENCHES / f"{name}.yml")
        assert not isinstance(inventory, Hardware)
        own = folder / name
        own.mkdir(parents=True, exist_ok=True)
        try:
            store, wire = measured_store(inventory, own, samples=QUICK_SAMPLES if quick else SAMPLES)
        except (InputError, RunError) as error:
            raise BenchmarkError(str(error)) from None
        switches[name] = _evaluated(title, store, wire)
    return switches


def _evaluated(title: str, store: SampleStore, wire: LinkTiming) -> MeasuredSwitch:
    samples = store.samples(part.key for part in reduced_parts())
    tables = [
        TableCase(entries=entries, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT)
        for entries in TABLE_1_ENTRIES
    ]
    boxes = {str(table.entries): _box(samples[DP_TIME.key(table)][SIZE]) for table in tables}
    return MeasuredSwitch(title=title, preconditions=tuple(preconditions(samples, wire)), boxes_us=boxes)


def rows(switches: Mapping[str, MeasuredSwitch]) -> list[MeasuredRow]:
    """Return a row for each precondition of each switch."""
    said = {True: "holds", False: "fails", None: "unknown"}
    return [
        (f"{switch.title}: {each.name}", said[each.holds], each.measured)
        for switch in switches.values()
        for each in switch.preconditions
    ]


def values(switches: Mapping[str, MeasuredSwitch]) -> dict[str, Any]:
    """Convert results to plain values for JSON."""
    return {name: asdict(switch) for name, switch in switches.items()}


def of_values(switches: Mapping[str, Any]) -> dict[str, MeasuredSwitch]:
    """Restore results from `values`."""
    return {
        name: MeasuredSwitch(
            title=switch["title"],
            preconditions=tuple(Precondition(**each) for each in switch["preconditions"]),
            boxes_us=switch["boxes_us"],
        )
        for name, switch in switches.items()
    }


def pictures(switches: Mapping[str, MeasuredSwitch]) -> dict[str, bytes]:
    """Return the picture by file suffix, without date and with reproducible identifiers."""
    with mpl.rc_context(STYLE):
        return encoded(_draw(switches))


def _draw(switches: Mapping[str, MeasuredSwitch]) -> Figure:
    figure = Figure(figsize=_PICTURE_INCHES)
    axes = figure.subplots(1, len(switches), sharey=True)
    for each, colour, switch in zip(axes, BOXES, switches.values(), strict=True):
        each.spines["right"].set_visible(False)
        each.set_yscale("log")
        boxes = list(switch.boxes_us.values())
        box_statistics(each, boxes, list(range(len(boxes))), widths=0.6, facecolor=colour)
        medians = np.array([box["med"] for box in boxes])
        each.plot(range(len(boxes)), SPREAD * medians, "_", color=REFERENCE, markersize=12)
        each.set_xticks(range(len(boxes)), list(switch.boxes_us))
        each.set_xlabel("entries in the table")
        worst = max(box["whishi"] / box["med"] for box in boxes)
        each.set_title(f"{switch.title}\np99.9 up to {worst:.2f} times the median", loc="left", fontsize=9)
    axes[0].set_ylabel(f"processing time, {SIZE} bytes [us]")
    legend = [
        Patch(facecolor="white", edgecolor=EDGE, label="whiskers 0.1 % and 99.9 %, × least and largest"),
        Patch(facecolor=REFERENCE, label=f"{SPREAD:g} times the median: Loko presumes p99.9 below"),
    ]
    figure.legend(handles=legend, loc="lower center", ncols=2, frameon=False, fontsize=7.5)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    return figure


def _box(times_ns: NDArray[np.int64]) -> dict[str, Any]:
    low, q1, median, q3, high = map(float, np.percentile(times_ns, (0.1, 25, 50, 75, 99.9)) / NS_PER_US)
    return {
        "whislo": low,
        "q1": q1,
        "med": median,
        "q3": q3,
        "whishi": high,
        "fliers": [float(times_ns.min()) / NS_PER_US, float(times_ns.max()) / NS_PER_US],
    }
