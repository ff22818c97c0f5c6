"""Metrics of the flow manager: flows, switches, measured delays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from loko.service.breaks import ViolationCause
from loko.service.counters import LoopStalls
from loko.service.delays import DelayStatistics
from loko.service.exposition import exposition, total
from loko.service.flow_manager import FlowManager
from loko.service.outcome import FlowState
from loko.service.views import switch_ports
from loko.units import NS_PER_S


def manager_metrics(
    manager: FlowManager,
    delays: DelayStatistics,
    stalls: LoopStalls,
    *,
    restarts: int,
    is_storage_available: bool,
) -> bytes:
    """Return the flow manager's metrics as they are now. `restarts` are those of the OpenFlow application."""
    return exposition(
        *_flows(manager),
        *_switches(manager),
        *_delays(delays),
        total("loko_openflow_restarts", "Times its application was started again.", restarts),
        GaugeMetricFamily(
            "loko_store_available", "1 while the disk takes changes.", value=is_storage_available
        ),
        total("loko_stalls", "Times the service was kept from its work.", stalls.count),
        total("loko_stall_seconds", "Time for which it was, in all.", stalls.total_s),
    )


def _flows(manager: FlowManager) -> Iterator[Metric]:
    flows = GaugeMetricFamily("loko_flows", "Flows by state.", labels=["state"])
    states = Counter(managed.state for managed in manager.flows.values())
    for state in FlowState:
        flows.add_metric([state.value], states[state])
    yield flows
    broken = GaugeMetricFamily(
        "loko_flows_broken", "Flows whose promise is broken, by cause.", labels=["cause"]
    )
    counts = manager.broken()
    for cause in ViolationCause:
        broken.add_metric([cause.value], counts[cause])
    yield broken
    if manager.protected is not None:
        yield GaugeMetricFamily(
            "loko_flows_on_backup", "Flows on backup paths.", value=len(manager.on_backup)
        )
        yield GaugeMetricFamily(
            "loko_flows_on_one_path",
            "Duplicated flows of which one path has a fault.",
            value=len(manager.on_one_path),
        )
        yield GaugeMetricFamily(
            "loko_next_failure_covered",
            "1 while the reserved paths cover the next failure.",
            value=not manager.uncovered(),
        )
    mark = manager.admitter.conditions.mark()
    guarantees = GaugeMetricFamily(
        "loko_flow_guarantee_seconds", "Bound on the delay of a flow's packets.", labels=["flow", *mark]
    )
    for name, managed in manager.flows.items():
        if managed.state is FlowState.LOST:
            continue
        guarantee_ns = manager.admitter.guarantee_ns(managed.grant)
        guarantees.add_metric([name, *mark.values()], guarantee_ns / NS_PER_S)
    yield guarantees


def _switches(manager: FlowManager) -> Iterator[Metric]:
    connected = GaugeMetricFamily("loko_switch_connected", "1 while it has a session.", labels=["switch"])
    complete = GaugeMetricFamily(
        "loko_switch_complete", "1 while it holds exactly what it should.", labels=["switch"]
    )
    foreign_entries = GaugeMetricFamily(
        "loko_switch_foreign_entries", "Entries of others in its table.", labels=["switch"]
    )
    ports = GaugeMetricFamily(
        "loko_switch_ports_amiss",
        "Ports of cables without a link, and ports with a link where the lab has no cable.",
        labels=["switch", "kind"],
    )
    shares = ["switch", "quantity", "unit"]
    used = GaugeMetricFamily("loko_switch_used", "What flows have of its allocation.", labels=shares)
    allowed = GaugeMetricFamily("loko_switch_allocated", "What flows may have of it.", labels=shares)
    mark = manager.admitter.conditions.mark()
    delay = GaugeMetricFamily("loko_switch_delay_seconds", "Bound on its delay.", labels=["switch", *mark])
    for name, driver in manager.drivers.items():
        usage = manager.admitter.usage(name)
        connected.add_metric([name], driver.phase.name != "AWAY")
        complete.add_metric([name], driver.complete)
        foreign_entries.add_metric([name], len(driver.foreign_entries))
        values = switch_ports(manager, name)
        ports.add_metric([name, "down"], len(values["down_ports"]))
        ports.add_metric([name, "unexpected"], len(values["unexpected_ports"]))
        delay.add_metric([name, *mark.values()], usage.delay_ns / NS_PER_S)
        for share in usage.shares:
            labels = [name, share.quantity, share.unit]
            used.add_metric(labels, share.used)
            allowed.add_metric(labels, share.allowed)
    yield from (connected, complete, foreign_entries, ports, used, allowed, delay)
    yield GaugeMetricFamily(
        "loko_sessions",
        "OpenFlow sessions with switches.",
        value=sum(driver.phase.name != "AWAY" for driver in manager.drivers.values()),
    )


def _delays(delays: DelayStatistics) -> Iterator[Metric]:
    packets = CounterMetricFamily(
        "loko_flow_packets",
        "Measured packets: sent, received, lost, late.",
        labels=["flow", "fate"],
    )
    recent = SummaryMetricFamily("loko_flow_delay_seconds", "Delays of its latest packets.", labels=["flow"])
    most = GaugeMetricFamily(
        "loko_flow_delay_max_seconds", "Greatest measured delay of a flow.", labels=["flow"]
    )
    for name, values in delays.values().items():
        for fate in ("sent", "received", "lost", "late"):
            packets.add_metric([name, fate], values[fate])
        for quantile, key in (("0.5", "p50_ns"), ("0.99", "p99_ns")):
            if values[key] is not None:
                labels = {"flow": name, "quantile": quantile}
                recent.add_sample("loko_flow_delay_seconds", labels, values[key] / NS_PER_S)
        if values["max_ns"] is not None:
            most.add_metric([name], values["max_ns"] / NS_PER_S)
    yield from (packets, recent, most)
