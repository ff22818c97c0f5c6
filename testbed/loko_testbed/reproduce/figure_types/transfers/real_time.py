"""Send the transfers of a figure with iperf3, through Open vSwitch of this machine, as far as it can.

The scheduler of a port decides which switch it is: HTB is Open vSwitch in user space with tc, policers are
Open vSwitch with DPDK. Where that is not installed, its port is replayed in virtual time; a line says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from loko.slicing.document import HtbPort
from loko.units import BPS_PER_MBPS, NS_PER_S
from loko_testbed.live.datapaths import instead_of_dpdk
from loko_testbed.live.isolated_request import run_isolated
from loko_testbed.measure.slices import tcp_port
from loko_testbed.measure.slices.injection import InjectionMethod, best_injection_method
from loko_testbed.measure.slices.port import transfer_of
from loko_testbed.reproduce.figure_types.transfers.document import SlicedPort, TransfersByPort
from loko_testbed.reproduce.figure_types.transfers.transfers import (
    SPARE,
    TransferMeasurement,
    measure_transfer,
    port_with,
    transfer_task,
    virtual_transfer,
)
from loko_testbed.simulation.runner import RunError

_BUSY: Final = 0.95
"""Share of a core above which a switch that does not poll loses packets before they reach their queue."""
_HELD_UP: Final = 0.05
"""A switch that waits longer for its core than this share of a transfer adds to what is measured of it."""
_OTHERS: Final = 0.25
"""Other programs that use so many cores take them from the hosts' programs, or from the switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTransfersResult:
    """Results of a figure's transfers."""

    did: dict[tuple[str, int], TransferMeasurement]
    """By name of the port and rate of its queue."""
    findings: dict[str, float] = field(default_factory=dict)
    virtual: set[str] = field(default_factory=set)
    """Names of the ports that were replayed in virtual time where real time was asked for."""
    remarks: list[str] = field(default_factory=list)
    """Remarks for the reader on how the transfers were carried, one line each."""


def in_real_time(
    figure: TransfersByPort, seconds: float, seed: int, advance: Callable[[str], None]
) -> LiveTransfersResult:
    """Send the transfers of all ports. Raises `RunError`."""
    result = LiveTransfersResult(did={})
    assert figure.live is not None
    injection = best_injection_method()
    for port in figure.ports:
        live = _live(port)
        is_htb = isinstance(port_with(live, live.link_rate_bps), HtbPort)
        remark = None if is_htb else instead_of_dpdk(port.label)
        if remark is not None:
            result.remarks.append(remark)
            result.virtual.add(port.name)
            _transmit_virtual(figure, port, seconds, seed, result)
        else:
            if is_htb:
                result.remarks.append(f"{port.label}: {injection.remark}")
            _transmit_live(figure, live, seconds, result, injection=injection, is_htb=is_htb)
        advance(figure.name)
    if not result.did:
        raise RunError(
            f"{figure.name}: this machine's switch carries none of the rates: {result.remarks[-1]}"
        )
    return result


def _live(port: SlicedPort) -> SlicedPort:
    return port.model_copy(update={"slices": port.live_slices or port.slices})


def _transmit_virtual(
    figure: TransfersByPort, port: SlicedPort, seconds: float, seed: int, result: LiveTransfersResult
) -> None:
    assert figure.live is not None
    for rate in figure.live.queue_rates_mbps:
        task = transfer_task(port, rate, figure, figure.congestion_control, seconds=seconds, seed=seed)
        result.did[port.name, rate] = virtual_transfer(task)


def _transmit_live(
    figure: TransfersByPort,
    port: SlicedPort,
    seconds: float,
    result: LiveTransfersResult,
    *,
    injection: InjectionMethod,
    is_htb: bool,
) -> None:
    """Measure what the switch carries through a queue with the link's rate, then transfers at lower rates."""
    assert figure.live is not None
    [freely] = _transfers(figure, port, [port.link_rate_bps], seconds, injection)
    carries_bps = _measured(freely, figure, seconds).payload_bps
    result.findings[f"carries_{port.name}_mbps"] = carries_bps / BPS_PER_MBPS
    rates = [rate for rate in figure.live.queue_rates_mbps if rate * BPS_PER_MBPS <= SPARE * carries_bps]
    if len(rates) < len(figure.live.queue_rates_mbps):
        result.remarks.append(
            f"{port.label}: this machine carries {carries_bps / BPS_PER_MBPS:.0f} Mbit/s through a queue"
            f" that has the link's rate; those of more than {SPARE * carries_bps / BPS_PER_MBPS:.0f} Mbit/s"
            " are left out"
        )
    replies = _transfers(figure, port, [round(rate * BPS_PER_MBPS) for rate in rates], seconds, injection)
    for rate, reply in zip(rates, replies, strict=True):
        if is_htb and reply.busy.switch > _BUSY:
            result.remarks.append(
                f"{port.label}: at {rate} Mbit/s the switch was busy {100 * reply.busy.switch:.0f} % of the"
                " time, so that it and not the queue limited the transfer: left out"
            )
            continue
        result.did[port.name, rate] = _measured(reply, figure, seconds)
        result.findings[f"switch_cpu_{port.name}_{rate}_percent"] = 100 * reply.busy.switch
    waited = max((reply.busy.waited for reply in replies), default=0.0)
    others = max((reply.idle.machine - reply.idle.switch for reply in (freely, *replies)), default=0.0)
    result.findings[f"switch_waited_{port.name}_percent"] = 100 * waited
    result.findings[f"others_cpu_{port.name}_percent"] = 100 * others
    if waited > _HELD_UP or others > _OTHERS:
        result.remarks.append(
            f"{port.label}: disturbed: before a transfer other programs used up to {others:.1f} cores, and"
            f" the switch waited for its own in up to {100 * waited:.0f} % of one; so it is also the machine"
            " that is measured"
        )


def _transfers(
    figure: TransfersByPort,
    port: SlicedPort,
    rates_bps: Sequence[int],
    seconds: float,
    injection: InjectionMethod,
) -> list[tcp_port.TransferReply]:
    requests = [
        tcp_port.TransferRequest(
            port=port_with(port, rate_bps),
            congestion_control=figure.congestion_control,
            seconds=seconds,
            injection=injection,
            tapped=True,
        )
        for rate_bps in rates_bps
    ]
    return run_isolated(tcp_port.transmit_all, requests) if requests else []


def _measured(reply: tcp_port.TransferReply, figure: TransfersByPort, seconds: float) -> TransferMeasurement:
    duration_ns = round(seconds * NS_PER_S)
    return measure_transfer(transfer_of(reply, duration_ns), figure.frame_bytes, duration_ns)
