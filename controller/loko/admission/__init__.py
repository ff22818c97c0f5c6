"""Admission control (section 5): which flows fit, with which guarantee, and why the others do not.

`Admission` is what every scheme offers; `LokoAdmission` is the paper's own.
"""

from loko.admission.advice import Ask, Check, more_entries, what_fits, what_fits_on
from loko.admission.answer import Admitted, Change, HopTerm, Refusal
from loko.admission.register import PathAlone, Register
from loko.admission.scheme import Admission, Demand, Share, Usage
from loko.admission.token_buckets import ROUNDING, LokoAdmission
from loko.conditions import Condition, SchemeConditions, StatedCondition, Terms

__all__ = [
    "ROUNDING",
    "Admission",
    "Admitted",
    "Ask",
    "Change",
    "Check",
    "Condition",
    "Demand",
    "HopTerm",
    "LokoAdmission",
    "PathAlone",
    "Refusal",
    "Register",
    "SchemeConditions",
    "Share",
    "StatedCondition",
    "Terms",
    "Usage",
    "more_entries",
    "what_fits",
    "what_fits_on",
]
