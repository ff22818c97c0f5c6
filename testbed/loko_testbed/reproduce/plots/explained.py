"""Drawings that explain: a frame's way through the board with its times, and the curves behind a guarantee.

``python -m loko_testbed.reproduce.plots.explained docs/images`` draws them for the pages (`make drawings`).
All their numbers come from the model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from loko.switch_model.calculus import TokenBucket, backlog_bound_bytes, bytes_in, delay_bound_ns
from loko.switch_model.device import Profile, load_profile
from loko.switch_model.scenario import ActionType, Case, MatchType, Scenario
from loko.switch_model.service_curve import SwitchService, processing, service_curve
from loko.topology.lab import load_lab
from loko.units import PS_PER_NS
from loko_testbed.reproduce.plots.drawing import HEAD, Point, write
from loko_testbed.reproduce.plots.marks import Spec, as_it_is, field, layer, pixels
from loko_testbed.reproduce.plots.overview import draw_components, draw_ring
from loko_testbed.reproduce.plots.theme import EDGE, REFERENCE, SECOND, WHOLE, WIDTH

FRAME_BYTES: Final = 306
ENTRIES: Final = 17
"""The evaluation's frames and tables (section 6.1)."""
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


def draw_way(profile: Profile, case: Case) -> Spec:
    """Draw each stage as a bar over time, from top to bottom."""
    stages = way(profile, case)
    rows = [
        {
            "row": row,
            "begin": stage.begin_ns / 1e3,
            "end": stage.end_ns / 1e3,
            "fill": _FILLS[stage.place],
            "length": f"{(stage.end_ns - stage.begin_ns) / 1e3:.1f}",
        }
        for row, stage in enumerate(stages)
    ]
    names = {"labelExpr": f"{json.dumps([stage.name for stage in stages])}[datum.value]", "ticks": False}
    y: Spec = {"y": {"field": "row", "type": "ordinal", "axis": names, "title": None}}
    label = "time since the first bit has come [us]"
    end = field("end", title=label, scale={"domain": [0, 1.07 * stages[-1].end_ns / 1e3], "nice": False})
    x, begin = {"x": field("x", title=label)}, {"x": field("begin", title=label)}
    arrived_us, departs_us = stages[0].end_ns / 1e3, stages[-1].begin_ns / 1e3
    told = f"processing time {departs_us - arrived_us:.1f} us (equation 4)"
    instants = [{"x": arrived_us}, {"x": departs_us}]
    red: Spec = {"color": REFERENCE, "clip": False}
    layers = [
        layer("rule", x, instants, color=REFERENCE, strokeDash=[4, 3]),
        layer("bar", {**begin, "x2": {"field": "end"}, **y, "fill": as_it_is("fill")}, rows, stroke=EDGE),
        layer("text", {"x": end, **y, "text": as_it_is("length")}, rows, align="left", dx=6, fontSize=10),
        *_measure(x | {"y": {"value": -8}}, (arrived_us, 0), (departs_us, 0)),
        layer("text", {**x, "y": {"value": -18}}, [{"x": (arrived_us + departs_us) / 2}], text=told, **red),
    ]
    title = f"A frame of {case.frame_bytes} bytes through an idle board with {case.entries} entries"
    return _picture(title, layers)


def draw_curves(service: SwitchService, flows: TokenBucket) -> Spec:
    """Draw arrival curve and service curve, and the largest distances between them: delay and backlog."""
    curve = service.curve
    delay_ns, backlog_bytes = delay_bound_ns(flows, curve), backlog_bound_bytes(flows, curve)
    until_ns = 1.35 * delay_ns
    burst, latency_ms = flows.burst_bytes, curve.latency_ns / 1e6
    sent = burst + bytes_in(rate_bps=flows.rate_bps, duration_ns=until_ns)
    carried = bytes_in(rate_bps=curve.rate_bps, duration_ns=until_ns - curve.latency_ns)
    axes = {
        "x": {"scale": {"domain": [0, until_ns / 1e6], "nice": False}, "title": "length of an interval [ms]"},
        "y": {"scale": {"domain": [0, 1.3 * max(sent, carried)]}, "title": "bytes in it"},
    }
    xy = {of: field(of, **axis) for of, axis in axes.items()}

    def line(points: Sequence[tuple[float, float]], colour: str) -> Spec:
        return layer("line", xy, [{"x": x / 1e6, "y": y} for x, y in points], color=colour, strokeWidth=2)

    texts = [
        (delay_ns / 2, 0.95 * burst, f"delay at most T + b/R = {delay_ns / 1e6:.2f} ms", REFERENCE),
        (
            1.75 * curve.latency_ns,
            0.72 * backlog_bytes,
            f"backlog at most\nb + r T = {backlog_bytes:.0f} bytes",
            REFERENCE,
        ),
        (
            until_ns / 2,
            0.65 * (burst + sent),
            f"arrival curve: burst b = {burst:.0f} bytes,\nrate r = {flows.rate_bps / 1e6:.2f} Mbit/s",
            SECOND,
        ),
        (
            0.85 * until_ns,
            0.45 * carried,
            f"service curve: latency T = {latency_ms:.3f} ms,\nrate R = {curve.rate_bps / 1e6:.2f} Mbit/s",
            EDGE,
        ),
    ]
    rows = [{"x": x_ns / 1e6, "y": y, "text": text, "colour": colour} for x_ns, y, text, colour in texts]
    told = xy | {"text": as_it_is("text"), "color": as_it_is("colour")}
    layers = [
        line([(0, 0), (0, burst), (until_ns, sent)], SECOND),
        line([(0, 0), (curve.latency_ns, 0), (until_ns, carried)], EDGE),
        *_measure(xy, (0, burst), (delay_ns / 1e6, burst)),
        *_measure(xy, (latency_ms, 0), (latency_ms, backlog_bytes)),
        layer("text", told, rows, fontSize=11, lineBreak="\n"),
    ]
    return _picture("The guarantee is the greatest horizontal distance of two curves", layers)


def _measure(axes: Spec, begin: Point, end: Point) -> list[Spec]:
    """Return an arrow with two heads between two points that lie beside or above each other."""
    turned = 0 if begin[1] == end[1] else -90
    rows = [
        {"x": x, "y": y, "x2": far_x, "y2": far_y, "angle": angle}
        for (x, y), (far_x, far_y), angle in ((begin, end, 180 + turned), (end, begin, turned))
    ]
    far = {"x2": {"field": "x2"}} if begin[1] == end[1] else {"y2": {"field": "y2"}}
    look: Spec = {"color": REFERENCE, "clip": False}
    heads = layer(
        "point", axes | {"angle": pixels("angle")}, rows, shape=HEAD, filled=True, opacity=1, size=64, **look
    )
    return [layer("rule", axes | far, rows[:1], **look), heads]


def _picture(title: str, layers: list[Spec]) -> Spec:
    return {**WHOLE, "width": WIDTH, "height": 270, "title": title, "layer": layers}


def drawings() -> dict[str, Spec]:
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
    """Write each drawing as SVG and PNG. The same code gives the same bytes."""
    for name, spec in drawings().items():
        write(spec, folder / f"{name}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
