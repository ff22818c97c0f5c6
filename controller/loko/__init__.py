"""Loko: predictable latency on low-cost switches (CoNEXT 2019).

The core is pure: no I/O besides reading profiles, labs and flow files, no clock, no threads. Only
`loko.control` talks to switches. Rates are in bit/s, sizes in bytes, times in ns; names carry the unit.

For programs and notebooks (docs/library.md)::

    from loko import Flow, Lab, Profile, load_lab, load_profile, model, plan

The rest of the package may change from version to version.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from loko.admission import Admitted, Refusal
    from loko.admission.planning import Plan
    from loko.control.building import flow_mod, flow_mods, packet_out
    from loko.document import InputError
    from loko.notebook_api import model, plan
    from loko.switch_model.device import Profile, load_profile
    from loko.switch_model.flow import Flow
    from loko.switch_model.service_curve import SwitchService
    from loko.topology.frame import frame_of
    from loko.topology.lab import Lab, load_lab
    from loko.topology.requests import Request, load_requests

__all__ = [
    "Admitted",
    "Flow",
    "InputError",
    "Lab",
    "Plan",
    "Profile",
    "Refusal",
    "Request",
    "SwitchService",
    "flow_mod",
    "flow_mods",
    "frame_of",
    "load_lab",
    "load_profile",
    "load_requests",
    "model",
    "packet_out",
    "plan",
]

_MODULES: Final = {
    "Admitted": "admission",
    "Flow": "switch_model.flow",
    "InputError": "document",
    "Lab": "topology.lab",
    "Plan": "admission.planning",
    "Profile": "switch_model.device",
    "Refusal": "admission",
    "Request": "topology.requests",
    "SwitchService": "switch_model.service_curve",
    "flow_mod": "control.building",
    "flow_mods": "control.building",
    "frame_of": "topology.frame",
    "load_lab": "topology.lab",
    "load_profile": "switch_model.device",
    "load_requests": "topology.requests",
    "model": "notebook_api",
    "packet_out": "control.building",
    "plan": "notebook_api",
}
"""The module of each name, imported on first use: every command imports this package first."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
