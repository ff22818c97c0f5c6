"""The service curve of a switch in a scenario, with arrival curves (sections 4 and 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa

from loko.switch_model.allocation import Allocation, allocate, scheme_named
from loko.switch_model.calculus import bytes_in
from loko.switch_model.service_curve import SwitchService, service_curve
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, FindingPlace, LinePanel, Reference
from loko_testbed.reproduce.figure_types.model.document import ServiceCurve
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult


def compute(figure: ServiceCurve) -> tuple[Outcome, pa.Table]:
    """Compute the curve with its terms. Raises `InputError` if the profile gives no worst case."""
    service = service_curve(figure.loaded_profile(), figure.scenario())
    allocations = [allocate(service, scheme_named(name)) for name in figure.allocations]
    terms = [(term.name, term.value_ns / 1e3) for term in service.terms]
    outcome = Outcome(
        chart=Chart(
            panels=[_panel(service, [allocation for allocation in allocations if allocation.feasible])]
        ),
        findings={
            "rate_mbps": service.rate_bps / 1e6,
            "processing_us": service.processing_ns / 1e3,
            "processing_ms": service.processing_ns / 1e6,
            "latency_us": service.curve.latency_ns / 1e3,
            "latency_ms": service.curve.latency_ns / 1e6,
            "buffer_bytes": float(service.capacity_bytes),
        },
        x=AxisLabel(name="time", unit="ms"),
        table=TableResult(
            columns=["term of T", "us"],
            rows=[[name, round(us, 3)] for name, us in [*terms, ("T", service.curve.latency_ns / 1e3)]],
        ),
    )
    rows = pa.table({"term": [name for name, _ in terms], "value_us": [value_us for _, value_us in terms]})
    return outcome, rows


def _panel(service: SwitchService, allocations: Sequence[Allocation]) -> LinePanel:
    """Return the arrival curves and the service curve as in figure 13a."""
    end_ns = (
        max((allocation.delay_ns for allocation in allocations), default=2 * service.curve.latency_ns) * 1.15
    )
    latency_ns = service.curve.latency_ns
    served = [0.0, 0.0, bytes_in(rate_bps=service.rate_bps, duration_ns=end_ns - latency_ns)]
    curves = [
        ChartCurve(label="service", x=[0.0, latency_ns / 1e6, end_ns / 1e6], y=list(served), marker=False)
    ]
    for allocation in allocations:
        arrived = allocation.max_burst_bytes + bytes_in(rate_bps=allocation.max_rate_bps, duration_ns=end_ns)
        curves.append(
            ChartCurve(
                label=f"arrivals, {allocation.scheme.name}",
                x=[0.0, end_ns / 1e6],
                y=[allocation.max_burst_bytes, arrived],
                marker=False,
                dashed=True,
            )
        )
    return LinePanel(
        x=ChartAxis(label="time [ms]", low=0),
        findings=[
            FindingPlace(finding="latency_ms", of="x", y=0, words="latency"),
            FindingPlace(finding="latency_us", of="x", y=0, scale=1e-3, words="latency"),
        ],
        y=ChartAxis(label="bytes", low=0, high=math.ceil(max(served[-1], service.capacity_bytes) * 1.1)),
        curves=curves,
        references=[Reference(label=f"buffer, {service.capacity_bytes} bytes", value=service.capacity_bytes)],
    )
