"""Networks that survive failures: backup paths, 1+1 duplication, and the further cable that would help."""

from loko.admission.protection.failures import NetworkFailure, failure_of_switch, failures_of
from loko.admission.protection.fast_failover import FailoverGroup
from loko.admission.protection.missing_cables import HelpfulCable, most_helpful_cable
from loko.admission.protection.planner import (
    MoveTiming,
    ProtectedAdmission,
    ProtectedFlow,
    ProtectedPlan,
    Protection,
    Recovery,
    TableChange,
    protect,
)
from loko.admission.protection.survival import Survival

__all__ = [
    "FailoverGroup",
    "HelpfulCable",
    "MoveTiming",
    "NetworkFailure",
    "ProtectedAdmission",
    "ProtectedFlow",
    "ProtectedPlan",
    "Protection",
    "Recovery",
    "Survival",
    "TableChange",
    "failure_of_switch",
    "failures_of",
    "most_helpful_cable",
    "protect",
]
