"""How sensitive overload (fig. 12a) is to parameters that no paper prints."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final, NamedTuple

import dpkt
import numpy as np
from switch_emulator import Network

from loko.control.entries import FlowEntry, five_tuple_entry
from loko.control.messages import session_segments
from loko.document import LABS, StrictModel
from loko.switch_model.device import load_profile, profile_text
from loko.switch_model.quantity import Count
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel
from loko_testbed.reproduce.figure_types.experiments import load_experiment
from loko_testbed.reproduce.figure_types.traffic.document import Sweep
from loko_testbed.reproduce.figure_types.traffic.setting import prepare, traffic
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.reproduce.studies.study import Rows, Study
from loko_testbed.simulation.runner import LOST
from loko_testbed.simulation.senders import SIMPLE
from loko_testbed.simulation.virtual import VirtualRunner

PROFILE: Final = "zodiac-fx"
ENTRIES: Final = (17, 33)
FRAME_BYTES: Final = 64
"""Frame size of fig. 12a, which has five-tuple entries in decreasing priority, the first one used."""
LARGEST_INPUT_MBPS: Final = 40.0
BUFFER_FRAME_BYTES: Final = (64, 306, 1516)
"""Frame sizes of section 3.5 whose buffer capacity is printed: 25, 9 and 3 frames."""

_SWEEP_MBPS: Final = 0.5
_PRECISION_MBPS: Final = 0.01
"""Precision of the search for the maximum; the paper's was 0.65 (section 3.4.2)."""
_LINE_RATE_MBPS: Final = 100.0
_OVERHEAD_BYTES: Final = 20  # preamble and gap
_FCS_BYTES: Final = 4
_STEADY_S: Final = 0.5
_DRAIN_NS: Final = 100_000_000
_OVERLOADED: Final = 11.0  # m_r, the right end of fig. 17a
_REPLAYS: Final = 3
_REPLAY_S: Final = 2.0
_SOURCE, _DESTINATION, _NOBODY = (IPv4Address(f"10.0.0.{host}") for host in (1, 2, 9))
_UDP: Final = (5000, 6000)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadCurve:
    """Output by input rate with one table, and the line through the points beyond the maximum."""

    entries: int
    maximum_mbps: float
    """Largest input that passes without loss."""
    input_mbps: list[float]
    output_mbps: list[float]
    slope: float
    """Change of the output per unit of input beyond the maximum; negative."""
    intercept_mbps: float
    determination: float
    """R squared of the line: 1 means that all points lie on it."""


class SensitivitySize(StrictModel):
    """How much is measured."""

    parameters: list[str] | None
    """The parameters to vary; null: all `assumptions`."""


class SensitivityTask(NamedTuple):
    """One value of one parameter; all others have their defaults. Without a parameter: all have them."""

    parameter: str
    value: int
    seed: int

    def __str__(self) -> str:
        return f"{self.parameter} = {self.value:,}" if self.parameter else "as the profile says"


def tasks(size: SensitivitySize, seed: int) -> list[SensitivityTask]:
    """Return the unchanged profile, then every other value of every assumption."""
    return [
        SensitivityTask("", 0, seed),
        *(
            SensitivityTask(parameter, value, seed)
            for parameter, quantity in assumptions().items()
            if size.parameters is None or parameter in size.parameters
            for value in _steps(quantity)
            if value != quantity.value
        ),
    ]


def measure(task: SensitivityTask) -> Rows:
    """Sweep the input of fig. 12a and replay the right end of fig. 17a; return a row for each table."""
    with _profile({task.parameter: task.value} if task.parameter else {}) as profile:
        loss, delay_ms = _fig17a(profile, task.seed)
        bursts = [longest_burst(profile, frame_bytes) for frame_bytes in BUFFER_FRAME_BYTES]
        return [
            {
                "parameter": task.parameter,
                "value": task.value,
                **asdict(curve(profile, entries)),
                "loss_of_fig17a": loss,
                "largest_delay_of_fig17a_ms": delay_ms,
                "longest_burst": bursts,
            }
            for entries in ENTRIES
        ]


def assumptions() -> dict[str, Count]:
    """Return the mechanism's parameters that have a range in the profile, as papers do not state them."""
    profile = load_profile(PROFILE)
    flow_control = profile.flow_control
    values = dict(flow_control)
    values["buffer_bytes"] = profile.integrated_switch.buffer_bytes
    return {name: quantity for name, quantity in values.items() if quantity.range is not None}


def _steps(quantity: Count) -> list[int]:
    """Return both ends of the range, the default, and a value between each two."""
    assert quantity.range is not None
    low, high = quantity.range
    ends = (low, quantity.value, high)
    between = (_between(near, other) for near, other in itertools.pairwise(ends))
    return sorted({*ends, *between})


def _between(low: int, high: int) -> int:
    spans_decades = low > 0 and high > 10 * low
    return round((low * high) ** 0.5) if spans_decades else (low + high) // 2


@contextmanager
def _profile(values: dict[str, int]) -> Iterator[str]:
    """Write a temporary profile with these values; yield its path."""
    with tempfile.TemporaryDirectory(prefix="loko-sensitivity-") as folder:
        path = Path(folder) / f"{PROFILE}.toml"
        path.write_text(profile_text(PROFILE, **values), encoding="utf-8")
        yield str(path)


def curve(profile: str, entries: int) -> OverloadCurve:
    """Measure fig. 12a for one table: the maximum by bisection, then outputs at evenly spaced inputs."""

    def output(input_mbps: float) -> tuple[float, float]:
        return _steady(profile, entries, input_mbps)

    maximum = _maximum(lambda input_mbps: np.subtract(*output(input_mbps)) <= 0)
    asked = np.arange(_SWEEP_MBPS, LARGEST_INPUT_MBPS + _SWEEP_MBPS / 2, _SWEEP_MBPS)
    sent, received = np.array([output(input_mbps) for input_mbps in asked]).T
    beyond = sent > maximum
    slope, intercept = np.polyfit(sent[beyond], received[beyond], 1)
    residuals = received[beyond] - (slope * sent[beyond] + intercept)
    variance = float(np.var(received[beyond]))
    return OverloadCurve(
        entries=entries,
        maximum_mbps=maximum,
        input_mbps=sent.tolist(),
        output_mbps=received.tolist(),
        slope=float(slope),
        intercept_mbps=float(intercept),
        determination=1 - float(np.var(residuals)) / variance if variance > 0 else 1.0,
    )


def _maximum(passes: Callable[[float], bool]) -> float:
    """Find the largest input in Mbit/s that passes, by bisection as in section 3.4.2."""
    low, high = 0.0, LARGEST_INPUT_MBPS
    while high - low > _PRECISION_MBPS:
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def _steady(profile: str, entries: int, input_mbps: float) -> tuple[float, float]:
    """Send evenly spaced frames through one switch; return input and output rate in Mbit/s."""
    network = _one_switch(profile, _decreasing_first(entries))
    _add_source(network, FRAME_BYTES, input_mbps, observed=False)
    result = network.run(duration_ns=round(_STEADY_S * 1e9), drain_ns=_DRAIN_NS)
    counts = result.flows[0]
    bits = 8 * FRAME_BYTES / _STEADY_S / 1e6
    return counts["sent"] * bits, counts["received"] * bits


def longest_burst(profile: str, frame_bytes: int) -> int:
    """Return the length in packets of the longest burst at line rate without loss (section 3.5)."""
    spacing_ns = (frame_bytes + _OVERHEAD_BYTES) * 8e3 / _LINE_RATE_MBPS
    longest = 0
    for packets in itertools.count(1):
        network = _one_switch(profile, _increasing_last(load_profile(PROFILE).table.entries.value))
        line_rate = _LINE_RATE_MBPS * frame_bytes / (frame_bytes + _OVERHEAD_BYTES)
        _add_source(network, frame_bytes, line_rate, observed=False)
        counts = network.run(duration_ns=round(packets * spacing_ns), drain_ns=_DRAIN_NS).flows[0]
        if counts["received"] < counts["sent"]:
            return longest
        longest = counts["sent"]
    raise AssertionError("a burst that is long enough overflows every buffer")


def _fig17a(profile: str, seed: int) -> tuple[float, float]:
    """Return loss and largest delay in ms of fig. 17a's packets at m_r = 11; hosts are always busy."""
    sweep = load_experiment(LABS / "two-switch" / "experiments" / "fig17a.yml")
    assert isinstance(sweep, Sweep)
    setting = prepare(sweep)
    lost = packets = 0
    largest_ns = 0
    with VirtualRunner(
        setting.lab,
        setting.admitted(),
        entries=sweep.entries,
        profile_of=dict.fromkeys(setting.lab.switches, profile),
    ) as runner:
        for run in range(_REPLAYS):
            of_run = _REPLAYS * (seed - 1) + run
            records = runner.run(traffic(setting, _OVERLOADED, SIMPLE), seconds=_REPLAY_S, seed=of_run)
            arrived = records.received_ns != LOST
            packets += len(arrived)
            lost += int(np.count_nonzero(~arrived))
            largest_ns = max(largest_ns, int((records.received_ns - records.sent_ns)[arrived].max()))
    return lost / packets, largest_ns / 1e6


def _one_switch(profile: str, entries: Sequence[FlowEntry]) -> Network:
    """Return a network with H1 at port 1 of a switch and H2 at port 2 (fig. 11a)."""
    network = Network(seed=1)
    network.add_board("s1", profile=profile, config={"ofchecks": False})
    for port, host in enumerate(("H1", "H2"), start=1):
        network.add_host(host)
        network.connect(host, 1, "s1", port)
    network.control("s1", session_segments(entries))
    return network


def _decreasing_first(count: int) -> list[FlowEntry]:
    return [_entry(place, priority=count - place, used=place == 0) for place in range(count)]


def _increasing_last(count: int) -> list[FlowEntry]:
    return [_entry(place, priority=place + 1, used=place == count - 1) for place in range(count)]


def _entry(place: int, *, priority: int, used: bool) -> FlowEntry:
    return five_tuple_entry(
        priority=priority,
        nw_src=_SOURCE,
        nw_dst=_DESTINATION if used else _NOBODY,
        tp_src=_UDP[0],
        tp_dst=_UDP[1] + place * (not used),
        output_port=2,
    )


def _add_source(network: Network, frame_bytes: int, rate_mbps: float, *, observed: bool) -> None:
    """Let H1 send frames to H2 at this rate; its generator always has a frame ready."""
    network.add_source(
        "H1",
        flow=0,
        frame=_frame(frame_bytes),
        sequence_offset=50,
        shaper_rate_bps=rate_mbps * 1e6,
        shaper_burst_bytes=frame_bytes,
        offered_rate_bps=2 * rate_mbps * 1e6,
        burst_bytes=frame_bytes,
        queue_bytes=1000 * frame_bytes,
        observed=observed,
        destination="H2",
    )


def _frame(frame_bytes: int) -> bytes:
    udp = dpkt.udp.UDP(sport=_UDP[0], dport=_UDP[1], data=bytes(frame_bytes - _FCS_BYTES - 42))
    udp.ulen = len(udp)
    ip = dpkt.ip.IP(src=_SOURCE.packed, dst=_DESTINATION.packed, p=dpkt.ip.IP_PROTO_UDP, data=udp)
    ip.len = len(ip)
    source, destination = (bytes([2, 0, 0, 0, 0, host]) for host in (1, 2))
    return bytes(dpkt.ethernet.Ethernet(src=source, dst=destination, data=ip))


def show(rows: Rows) -> Outcome:
    """Show fig. 12a with the unchanged profile, and the effect of each other value."""
    effects: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        effects.setdefault((row["parameter"], row["value"]), []).append(row)
    default = effects["", 0]
    return Outcome(
        chart=_chart(default),
        findings={
            **{f"slope_{row['entries']}": row["slope"] for row in default},
            **{f"maximum_{row['entries']}_mbps": row["maximum_mbps"] for row in default},
            "least_determination": min(row["determination"] for row in default),
            "maximum_spread_mbps": max(
                abs(row["maximum_mbps"] - before["maximum_mbps"])
                for effect in effects.values()
                for row, before in zip(effect, default, strict=True)
            ),
            "other_bursts": float(sum(row["longest_burst"] != default[0]["longest_burst"] for row in rows)),
        },
        x=AxisLabel(name="input", unit="Mbit/s"),
        profile=PROFILE,
        table=TableResult(
            columns=[
                *("parameter", "value"),
                *(f"maximum, {entries} entries [Mbit/s]" for entries in ENTRIES),
                *(f"slope, {entries} entries" for entries in ENTRIES),
                *("R²", "loss at m_r = 11", "largest delay there [ms]"),
                f"longest burst at {', '.join(map(str, BUFFER_FRAME_BYTES))} bytes",
            ],
            rows=[_table_row(effect) for effect in effects.values()],
        ),
    )


def _chart(default: Sequence[Mapping[str, Any]]) -> Chart:
    curves = []
    for row in default:
        curves.append(
            ChartCurve(label=f"{row['entries']} entries", x=row["input_mbps"], y=row["output_mbps"])
        )
        ends = [row["maximum_mbps"], LARGEST_INPUT_MBPS]
        curves.append(
            ChartCurve(
                label=f"line beyond {ends[0]:.2f} Mbit/s: slope {row['slope']:.3f},"
                f" R² = {row['determination']:.4f}",
                x=ends,
                y=[row["slope"] * end + row["intercept_mbps"] for end in ends],
                marker=False,
                dashed=True,
            )
        )
    panel = LinePanel(
        title=f"output of one switch over its input, {FRAME_BYTES}-byte packets",
        x=ChartAxis(label="input [Mbit/s]", low=0, high=LARGEST_INPUT_MBPS),
        y=ChartAxis(label="output [Mbit/s]", low=0),
        curves=curves,
    )
    return Chart(panels=[panel])


def _table_row(effect: Sequence[Mapping[str, Any]]) -> list[str | float]:
    first = effect[0]
    return [
        f"`{first['parameter']}`" if first["parameter"] else "profile",
        f"{first['value']:,}" if first["parameter"] else "as it is",
        *(f"{row['maximum_mbps']:.2f}" for row in effect),
        *(f"{row['slope']:.3f}" for row in effect),
        f"{min(row['determination'] for row in effect):.3f}",
        f"{first['loss_of_fig17a']:.1%}",
        f"{first['largest_delay_of_fig17a_ms']:.2f}",
        ", ".join(map(str, first["longest_burst"])),
    ]


STUDY: Final = Study(
    size=SensitivitySize, tasks=tasks, measure=measure, show=show, estimate_s={"virtual": 120.0}
)
