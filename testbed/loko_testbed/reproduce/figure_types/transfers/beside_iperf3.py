"""Transfers of iperf3 and of virtual time side by side: throughput, losses and windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
import pyarrow as pa

from loko.slicing.document import HtbPort, TrtcmPort, load_slices
from loko.switch_model.device import load_device
from loko.units import BPS_PER_MBPS
from loko_testbed.live.datapaths import missing_for_dpdk
from loko_testbed.live.isolated_request import run_isolated
from loko_testbed.measure.slices import tcp_port
from loko_testbed.measure.slices.injection import InjectionMethod, best_injection_method
from loko_testbed.measure.slices.policed_port import idle_share
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel
from loko_testbed.reproduce.figure_types.transfers.document import SlicedPort, TransfersBesideIperf3
from loko_testbed.reproduce.figure_types.transfers.transfers import (
    BUILD_S,
    SPARE,
    VIRTUAL_S_PER_GBIT,
    WARM_UP,
    TransferMeasurement,
    port_with,
    transfer_task,
    virtual_transfer,
)
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, NoteResult, TableResult
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.progress import Progress

_POLICED: Final = "dpdk"
"""The port of the polling switch, as a name in `labs/slicing/slices`."""


def parameters(figure: TransfersBesideIperf3) -> Mapping[str, Any]:
    """Return sliced port and switch, on which the result depends apart from the figure's document."""
    return {
        "injection": best_injection_method().value,
        "port": load_slices(figure.slices).model_dump(mode="json"),
        "device": load_device(figure.device).model_dump(mode="json"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Iperf3Result:
    """The result of a transfer after its warm-up, as iperf3 reports it."""

    payload_bps: float
    """Payload that the destination read."""
    retransmissions_pps: float
    window_packets: float
    """Mean over the ends of iperf3's intervals."""
    round_trip_ms: float
    """Likewise, the sender's estimate."""


def live_of(reply: tcp_port.TransferReply, seconds: float) -> Iperf3Result:
    """Return what iperf3 shows of a transfer after its warm-up. Raises `RunError` if that is nothing."""
    from_s = WARM_UP * seconds
    kept = (reply.received_end_s > from_s) & (reply.received_end_s <= seconds)
    late = reply.end_s > from_s
    before_s = reply.received_end_s[~kept & (reply.received_end_s <= from_s)]
    if not kept.any() or not late.any() or not before_s.size:
        raise RunError("iperf3 shows nothing after the first quarter of a transfer; make seconds longer")
    lasted_s = float(reply.received_end_s[kept][-1] - before_s[-1])
    return Iperf3Result(
        payload_bps=float(reply.received_bytes[kept].sum()) * 8 / lasted_s,
        retransmissions_pps=float(reply.retransmissions[late].sum()) / (seconds - from_s),
        window_packets=float(reply.window_bytes[late].mean()) / reply.segment_bytes,
        round_trip_ms=float(reply.round_trip_us[late].mean()) / 1e3,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Both:
    live: Iperf3Result
    virtual: TransferMeasurement
    reply: tcp_port.TransferReply


TransferPairs = Mapping[tuple[str, int], _Both]


def compute(figure: TransfersBesideIperf3, options: Options, progress: Progress) -> tuple[Outcome, pa.Table]:
    """Replay the figure."""
    seconds = figure.quick.seconds if options.quick else figure.seconds
    plain = load_slices(figure.slices)
    if not isinstance(plain, HtbPort):
        raise RunError(
            f"{figure.slices}: a policer of OVS-DPDK is replayed in virtual time only: give an htb port"
        )
    sliced = SlicedPort(
        name="port",
        label="HTB",
        slices=figure.slices,
        device=figure.device,
        link_rate_bps=plain.link_rate_bps,
    )
    points = list(product(figure.congestion_controls, figure.queue_rates_mbps))
    progress.begin(1 + len(points), 0, "transfers")
    injection = best_injection_method()
    asked = [(figure.congestion_controls[0], plain.link_rate_bps)]  # what the switch carries at most
    asked += [(control, round(rate * BPS_PER_MBPS)) for control, rate in points]
    requests = [
        tcp_port.TransferRequest(
            port=port_with(sliced, rate_bps),
            congestion_control=control,
            seconds=seconds,
            injection=injection,
        )
        for control, rate_bps in asked
    ]
    freely, *replies = run_isolated(tcp_port.transmit_all, requests)
    progress.advance("iperf3")
    carries_bps = live_of(freely, seconds).payload_bps
    did: dict[tuple[str, int], _Both] = {}
    for (control, rate), reply in zip(points, replies, strict=True):
        task = transfer_task(sliced, rate, figure, control, seconds=seconds, seed=options.seed)
        did[control, rate] = _Both(
            live=live_of(reply, seconds),
            virtual=virtual_transfer(task),
            reply=reply,
        )
        progress.advance(figure.name)
    more = _polling() if figure.shows == "iperf3-cpu" else {}
    if injection is InjectionMethod.KERNEL:
        more["kernel_datapath_cpu_percent"] = 100 * max(reply.busy.switch for reply in replies)
    columns = [
        *("TCP", "queue [Mbit/s]", "iperf3 [Mbit/s]", "virtual [Mbit/s]"),
        *("iperf3: sent again [1/s]", "virtual: sent again [1/s]"),
        *("iperf3: window [packets]", "virtual: window [packets]"),
        *("iperf3: round trip [ms]", "virtual: latency [ms]"),
        *("refused by the queue", "switch's CPU [%]", "interrupts' CPU [%]", "machine's CPU [%]"),
    ]
    rows: list[list[Any]] = [
        [
            *(control, rate, both.live.payload_bps / BPS_PER_MBPS, both.virtual.payload_bps / BPS_PER_MBPS),
            *(both.live.retransmissions_pps, both.virtual.retransmissions_pps),
            *(both.live.window_packets, both.virtual.window_packets),
            *(both.live.round_trip_ms, both.virtual.latency_ms),
            *(both.reply.refused_by_queue, 100 * both.reply.busy.switch),
            *(100 * both.reply.busy.softirq, 100 * both.reply.busy.machine),
        ]
        for (control, rate), both in did.items()
    ]
    outcome = Outcome(
        chart=Chart(
            panels=[_panel(figure, did)],
            caption=f"one transfer of {seconds:g} s each, without its first quarter",
        ),
        findings=_findings(did, carries_bps) | more,
        x=AxisLabel(name="queue rate", unit="Mbit/s"),
        profile="",
        table=TableResult(columns=columns, rows=rows),
        notes=[NoteResult(where="this replay", text=injection.remark)],
        runs=len(points),
        assumptions={"seconds": seconds},
    )
    return outcome, pa.table({name: [row[place] for row in rows] for place, name in enumerate(columns)})


def _polling() -> dict[str, float]:
    """Return what Open vSwitch with DPDK uses while nothing is sent; nothing where it is not installed."""
    if missing_for_dpdk() is not None:
        return {}
    port = load_slices(_POLICED)
    assert isinstance(port, TrtcmPort)
    return {"dpdk_cpu_percent": 100 * run_isolated(idle_share, port)}


def _findings(did: TransferPairs, carries_bps: float) -> dict[str, float]:
    """Return the findings; without comparisons at rates that the switch does not carry even unlimited."""
    findings = {"switch_carries_mbps": carries_bps / BPS_PER_MBPS}
    for (control, rate), both in did.items():
        of = f"{control}_{rate}"
        live, virtual = both.live, both.virtual
        findings |= {
            f"iperf3_{of}_mbps": live.payload_bps / BPS_PER_MBPS,
            f"virtual_{of}_mbps": virtual.payload_bps / BPS_PER_MBPS,
            f"window_iperf3_{of}_packets": live.window_packets,
            f"window_virtual_{of}_packets": virtual.window_packets,
            f"round_trip_iperf3_{of}_ms": live.round_trip_ms,
            f"latency_virtual_{of}_ms": virtual.latency_ms,
            f"retransmissions_iperf3_{of}_pps": live.retransmissions_pps,
            f"retransmissions_virtual_{of}_pps": virtual.retransmissions_pps,
            f"refused_by_queue_{of}_packets": float(both.reply.refused_by_queue),
            f"switch_cpu_{of}_percent": 100 * both.reply.busy.switch,
            f"interrupts_cpu_{of}_percent": 100 * both.reply.busy.softirq,
        }
        if rate * BPS_PER_MBPS > SPARE * carries_bps:
            continue
        findings |= {
            f"virtual_to_iperf3_{of}_percent": 100 * virtual.payload_bps / live.payload_bps,
            f"window_virtual_to_iperf3_{of}_percent": 100 * virtual.window_packets / live.window_packets,
            f"latency_virtual_to_iperf3_{of}_percent": 100 * virtual.latency_ms / live.round_trip_ms,
        }
        if live.retransmissions_pps > 0:
            findings[f"retransmissions_virtual_to_iperf3_{of}_percent"] = (
                100 * virtual.retransmissions_pps / live.retransmissions_pps
            )
    findings["idle_switch_cpu_percent"] = 100 * float(
        np.median([both.reply.idle.switch for both in did.values()])
    )
    findings["machine_cpu_before_percent"] = 100 * float(
        np.median([both.reply.idle.machine for both in did.values()])
    )
    return findings


def _panel(figure: TransfersBesideIperf3, did: TransferPairs) -> LinePanel:
    shown: Mapping[str, tuple[str, dict[str, Callable[[_Both], float]]]] = {
        "iperf3-throughput": (
            "payload [Mbit/s]",
            {
                "iperf3": lambda both: both.live.payload_bps / BPS_PER_MBPS,
                "virtual": lambda both: both.virtual.payload_bps / BPS_PER_MBPS,
            },
        ),
        "iperf3-window": (
            "congestion window [packets], mean",
            {
                "iperf3": lambda both: both.live.window_packets,
                "virtual": lambda both: both.virtual.window_packets,
            },
        ),
        "iperf3-cpu": (
            "CPU time [% of a core]",
            {
                "switch": lambda both: 100 * both.reply.busy.switch,
                "interrupts of the machine": lambda both: 100 * both.reply.busy.softirq,
            },
        ),
    }
    label, values = shown[figure.shows]
    rates = list(map(float, figure.queue_rates_mbps))
    curves = [
        ChartCurve(
            label=f"{control}, {name}",
            x=rates,
            y=[value(did[control, rate]) for rate in figure.queue_rates_mbps],
            dashed=name == "virtual",
        )
        for control in figure.congestion_controls
        for name, value in values.items()
    ]
    return LinePanel(
        x=ChartAxis(label="queue rate [Mbit/s]", low=0), y=ChartAxis(label=label, low=0), curves=curves
    )


def estimate_s(figure: TransfersBesideIperf3) -> dict[str, float]:
    """Estimate the time in seconds by mode."""
    controls = len(figure.congestion_controls)
    gbits = figure.seconds * controls * sum(figure.queue_rates_mbps) / 1e3
    each_s = BUILD_S + figure.seconds
    return {"live": (1 + controls * len(figure.queue_rates_mbps)) * each_s + VIRTUAL_S_PER_GBIT * gbits}
