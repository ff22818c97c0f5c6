"""Networks that survive failures: backup paths, 1+1 duplication, and the further cable that would help."""

from loko.admission.protection.failures import NetworkFailure, failures_of
from loko.admission.protection.fast_failover import FailoverGroup
from loko.admission.protection.largest_protected import LargestProtectedSet, largest_protected
from loko.admission.protection.missing_cables import HelpfulCable, most_helpful_cable
from loko.admission.protection.planner import (
    MoveTiming,
    ProtectedFlow,
    ProtectedPlan,
    Protection,
    Recovery,
    TableChange,
    protect,
)

__all__ = [
    "FailoverGroup",
    "HelpfulCable",
    "LargestProtectedSet",
    "MoveTiming",
    "NetworkFailure",
    "ProtectedFlow",
    "ProtectedPlan",
    "Protection",
    "Recovery",
    "TableChange",
    "failures_of",
    "largest_protected",
    "most_helpful_cable",
    "protect",
]
