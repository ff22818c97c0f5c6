"""Prometheus' text format of metrics, which both processes of the service write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def exposition(*metrics: Metric) -> bytes:
    """Return metrics as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Gathered(metrics))
    return generate_latest(registry)


def total(name: str, text: str, value: float) -> Metric:
    """Return a counter without labels."""
    return CounterMetricFamily(name, text, value=value)


class _Gathered(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics
