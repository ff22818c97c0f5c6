"""Metrics of the REST process: answers and clients.

Apart from those of the flow manager, so that this process need not load what only that one needs.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from loko.service.connections import Clients
from loko.service.counters import RequestMetrics
from loko.service.exposition import exposition, total


def client_metrics(clients: Clients, totals: RequestMetrics) -> bytes:
    """Return the metrics as they are now."""
    return exposition(*_requests(totals), *_clients(clients))


def _requests(metrics: RequestMetrics) -> Iterator[Metric]:
    answers = CounterMetricFamily(
        "loko_http_answers", "Answers over REST by method and status.", labels=["method", "status"]
    )
    for (method, status), count in sorted(metrics.answers.items()):
        answers.add_metric([method, str(status)], count)
    refusals = CounterMetricFamily(
        "loko_refusals",
        "Requests that were refused by reason, and by what runs out where a flow does not fit.",
        labels=["reason", "quantity"],
    )
    for (reason, quantity), count in sorted(metrics.refusals.items()):
        refusals.add_metric([reason, quantity], count)
    yield from (answers, refusals)


def _clients(clients: Clients) -> Iterator[Metric]:
    taken = GaugeMetricFamily("loko_clients", "What clients take at the moment.", labels=["kind"])
    taken.add_metric(["connections"], len(clients.places))
    taken.add_metric(["streams"], clients.streams.in_all)
    taken.add_metric(["changes"], clients.changes.in_all)
    yield taken
    yield total("loko_clients_turned_away", "Connections that had no place.", clients.turned_away)
    yield total("loko_clients_too_slow", "Connections whose clients took too long.", clients.too_slow)
