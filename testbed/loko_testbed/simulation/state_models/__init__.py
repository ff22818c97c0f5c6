"""Models of released flows at boards, ports and slots, whose states are all visited (docs/evidence.md)."""

from loko_testbed.simulation.state_models.cases import CASES, IN_USE, check_case

__all__ = ["CASES", "IN_USE", "check_case"]
