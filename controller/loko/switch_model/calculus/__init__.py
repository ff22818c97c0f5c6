"""Deterministic network calculus: token buckets and one server, servers of ports, and networks of them."""

from loko.switch_model.calculus.coarse_bounds import CoarseBounds, PassingFlow
from loko.switch_model.calculus.ports import (
    Arriving,
    backlog_of_port_bytes,
    delay_of_port_ns,
    leftover_service,
    longest_busy_ns,
)
from loko.switch_model.calculus.token_buckets import (
    NOTHING,
    RateLatency,
    TokenBucket,
    aggregate,
    backlog_bound_bytes,
    bytes_in,
    delay_bound_ns,
    output_curve,
    time_ns,
)
from loko.switch_model.calculus.total_flow import PathStep, PortServer, ServerLoad, TotalFlow, UnsettledError

__all__ = [
    "NOTHING",
    "Arriving",
    "CoarseBounds",
    "PassingFlow",
    "PathStep",
    "PortServer",
    "RateLatency",
    "ServerLoad",
    "TokenBucket",
    "TotalFlow",
    "UnsettledError",
    "aggregate",
    "backlog_bound_bytes",
    "backlog_of_port_bytes",
    "bytes_in",
    "delay_bound_ns",
    "delay_of_port_ns",
    "leftover_service",
    "longest_busy_ns",
    "output_curve",
    "time_ns",
]
