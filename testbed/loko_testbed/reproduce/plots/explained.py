"""Drawings that explain: a frame's way through the board with its times, and the curves behind a guarantee.

``python -m loko_testbed.reproduce.plots.explained docs/images`` draws them for the pages (`make drawings`).
All their numbers come from the model.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from loko.switch_model.calculus import TokenBucket, backlog_bound_bytes, bytes_in, delay_bound_ns
from loko.switch_model.device import Profile, load_profile
from loko.switch_model.scenario import ActionType, Case, MatchType, Scenario
from loko.switch_model.service_curve import SwitchService, processing, service_curve
from loko.topology.lab import load_lab
from loko.units import PS_PER_NS
from loko_testbed.reproduce.plots.canvas import EDGE, REFERENCE, SECOND, SOFT, STYLE
from loko_testbed.reproduce.plots.overview import draw_components, draw_ring

FRAME_BYTES: Final = 306
ENTRIES: Final = 17
"""The evaluation's frames and tables (section 6.1)."""
_WIDTH_INCHES: Final = 7.6
_BEHIND: Final = {"facecolor": "white", "edgecolor": "none", "pad": 1}
_FILLS: Final = {"wire": "#dfe4ec", "chip": "#b6c2d6", "CPU": "#8d99ae", "wait": "#ffffff"}


class Stage(NamedTuple):
    """One stage of a frame's way through the board, or a wait."""

    name: str
    place: str
    """Where this takes place: wire, chip, CPU, or wait."""
    begin_ns: float
    """Time since the frame's first bit reached the board."""
    end_ns: float


def way(profile: Profile, case: Case) -> tuple[Stage, ...]:
    """Return the stages of a frame that finds the board idle, in order (docs/architecture.md, delay terms).

    It waits half a main loop, as it does on average. It departs p_FX (equation 4) after it has arrived.
    """
    times = processing(profile, case)
    wire_ns = float(profile.wire_ns(profile.ports.preamble_bytes.value + case.frame_bytes))
    chip_ns = profile.integrated_switch.transit_ps.value / PS_PER_NS
    loop_ns = profile.cpu.loop_ps.value / PS_PER_NS
    inner_ns = sum(term.value_ns for term in times.link_terms) / 2
    lengths = (
        ("from the wire", "wire", wire_ns),
        ("integrated switch", "chip", chip_ns),
        ("to the CPU", "wire", inner_ns),
        ("waits for the main loop", "wait", loop_ns / 2),
        (f"looks {case.entries} entries up", "CPU", times.cpu_ns - 2 * chip_ns - loop_ns / 2),
        ("from the CPU", "wire", inner_ns),
        ("integrated switch", "chip", chip_ns),
        ("onto the wire", "wire", wire_ns),
    )
    stages, at_ns = [], 0.0
    for name, place, length_ns in lengths:
        stages.append(Stage(name, place, at_ns, at_ns + length_ns))
        at_ns += length_ns
    return tuple(stages)


def draw_way(profile: Profile, case: Case) -> Figure:
    """Draw each stage as a bar over time, from top to bottom."""
    stages = way(profile, case)
    figure = Figure(figsize=(_WIDTH_INCHES, 3.5))
    axes = figure.add_axes((0.245, 0.15, 0.73, 0.73))
    axes.spines["right"].set_visible(False)
    axes.set_title(
        f"A frame of {case.frame_bytes} bytes through an idle board with {case.entries} entries",
        loc="left",
    )
    for row, stage in enumerate(stages):
        length_us = (stage.end_ns - stage.begin_ns) / 1e3
        hatch = "////" if stage.place == "wait" else None
        axes.barh(
            row, length_us, left=stage.begin_ns / 1e3, height=0.7, color=_FILLS[stage.place], edgecolor=EDGE,
            linewidth=0.7, hatch=hatch,
        )  # fmt: skip
        axes.text(
            stage.end_ns / 1e3 + 2,
            row,
            f"{length_us:.1f}",
            va="center",
            color=EDGE,
            fontsize=8.5,
            bbox=_BEHIND,
        )
    arrived_us, departs_us = stages[0].end_ns / 1e3, stages[-1].begin_ns / 1e3
    for instant_us in (arrived_us, departs_us):
        axes.axvline(instant_us, color=REFERENCE, linewidth=0.9, linestyle="--", zorder=0)
    axes.annotate(
        "",
        xy=(arrived_us, -0.75),
        xytext=(departs_us, -0.75),
        arrowprops={"arrowstyle": "<->", "color": REFERENCE},
    )
    axes.text(
        (arrived_us + departs_us) / 2, -0.82,
        f"processing time {departs_us - arrived_us:.1f} us (equation 4)",
        ha="center", va="bottom", color=REFERENCE, fontsize=8.5,
    )  # fmt: skip
    axes.set_yticks(range(len(stages)), [stage.name for stage in stages])
    axes.set_ylim(len(stages) - 0.4, -1.5)
    axes.set_xlim(0, stages[-1].end_ns / 1e3 * 1.07)
    axes.set_xlabel("time since the first bit has come [us]")
    return figure


def draw_curves(service: SwitchService, flows: TokenBucket) -> Figure:
    """Draw arrival curve and service curve, and the largest distances between them: delay and backlog."""
    curve = service.curve
    delay_ns, backlog_bytes = delay_bound_ns(flows, curve), backlog_bound_bytes(flows, curve)
    until_ns = 1.35 * delay_ns
    figure = Figure(figsize=(_WIDTH_INCHES, 3.7))
    axes = figure.add_axes((0.1, 0.14, 0.87, 0.76))
    axes.spines["right"].set_visible(False)
    axes.set_title("The guarantee is the greatest horizontal distance of two curves", loc="left")
    times_ns = np.array([0.0, until_ns])
    sent = [flows.burst_bytes + bytes_in(rate_bps=flows.rate_bps, duration_ns=at) for at in times_ns]
    axes.plot([0.0, *(times_ns / 1e6)], [0.0, *sent], color=SECOND, linewidth=1.8)
    carried = bytes_in(rate_bps=curve.rate_bps, duration_ns=until_ns - curve.latency_ns)
    axes.plot([0, curve.latency_ns / 1e6, until_ns / 1e6], [0, 0, carried], color=EDGE, linewidth=1.8)
    _measure(axes, (0.0, flows.burst_bytes), (delay_ns, flows.burst_bytes))
    axes.text(
        delay_ns / 2e6, flows.burst_bytes * 0.97, f"delay at most T + b/R = {delay_ns / 1e6:.2f} ms",
        ha="center", va="top", color=REFERENCE,
    )  # fmt: skip
    _measure(axes, (curve.latency_ns, 0.0), (curve.latency_ns, backlog_bytes))
    axes.text(
        curve.latency_ns / 1e6 + delay_ns / 60e6, backlog_bytes * 0.72,
        f"backlog at most b + r T = {backlog_bytes:.0f} bytes", color=REFERENCE, va="center",
    )  # fmt: skip
    axes.text(
        until_ns / 2e6, (sent[0] + sent[1]) / 2 * 1.06,
        f"arrival curve: burst b = {flows.burst_bytes:.0f} bytes,\n"
        f"rate r = {flows.rate_bps / 1e6:.2f} Mbit/s",
        color=SECOND, ha="center", va="bottom",
    )  # fmt: skip
    axes.text(
        until_ns / 1e6, carried * 0.45,
        f"service curve: latency T = {curve.latency_ns / 1e6:.3f} ms,\n"
        f"rate R = {curve.rate_bps / 1e6:.2f} Mbit/s",
        color=EDGE, ha="right", va="top",
    )  # fmt: skip
    axes.set_xlim(0, until_ns / 1e6)
    axes.set_ylim(0, 1.3 * max(*sent, carried))
    axes.set_xlabel("length of an interval [ms]")
    axes.set_ylabel("bytes in it")
    axes.tick_params(colors=SOFT)
    return figure


def _measure(axes: Axes, begin: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate(
        "",
        xy=(begin[0] / 1e6, begin[1]),
        xytext=(end[0] / 1e6, end[1]),
        arrowprops={"arrowstyle": "<->", "color": REFERENCE, "shrinkA": 0, "shrinkB": 0},
    )


def drawings() -> dict[str, Figure]:
    """Return all drawings by the names of their files."""
    profile = load_profile("zodiac-fx")
    scenario = Scenario(
        entries=ENTRIES,
        match=MatchType.FIVE_TUPLE,
        action=ActionType.OUTPUT,
        packet_sizes_bytes=(FRAME_BYTES,),
    )
    service = service_curve(profile, scenario)
    case = service.longest.case
    flows = TokenBucket(rate_bps=service.rate_bps / 5, burst_bytes=9 * FRAME_BYTES)
    return {
        "frame-way": draw_way(profile, case),
        "curves": draw_curves(service, flows),
        "components": draw_components(),
        "ring": draw_ring(load_lab("ring"), FRAME_BYTES),
    }


def main(folder: Path) -> None:
    """Write each drawing as SVG and PNG. The same code gives the same SVG."""
    with mpl.rc_context(STYLE):
        for name, figure in drawings().items():
            metadata = {"Date": None, "Creator": None}
            figure.savefig(folder / f"{name}.svg", facecolor="white", metadata=metadata)
            figure.savefig(folder / f"{name}.png", facecolor="white", dpi=160, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
