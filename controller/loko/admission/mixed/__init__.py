"""Admission for labs in which some switches have one server for all ports, and others a queue for each port.

Each switch is bounded as what it is, and the bounds are composed along each path (docs/mixed-labs.md).
"""

from loko.admission.mixed.admission import MixedAdmission

__all__ = ["MixedAdmission"]
