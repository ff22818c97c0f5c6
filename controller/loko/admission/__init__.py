"""Admission control (section 5): which flows fit, with which guarantee, and why the others do not.

`Admission` is what every scheme offers; `LokoAdmission` is the paper's own.
"""

from loko.admission.admitted_flows import AdmittedFlows, BarePath
from loko.admission.answer import Admitted, HopTerm, Refusal, Suggestion
from loko.admission.scheme import Admission, PluggedInScheme, ResourceDemand, ResourceShare, Usage
from loko.admission.suggestion import Ask, Check, suggest_more_entries, suggest_on_path, suggest_smaller
from loko.admission.token_buckets import ROUNDING, LokoAdmission
from loko.topology.conditions import Condition, SchemeConditions, StatedCondition, Terms

__all__ = [
    "ROUNDING",
    "Admission",
    "Admitted",
    "AdmittedFlows",
    "Ask",
    "BarePath",
    "Check",
    "Condition",
    "HopTerm",
    "LokoAdmission",
    "PluggedInScheme",
    "Refusal",
    "ResourceDemand",
    "ResourceShare",
    "SchemeConditions",
    "StatedCondition",
    "Suggestion",
    "Terms",
    "Usage",
    "suggest_more_entries",
    "suggest_on_path",
    "suggest_smaller",
]
