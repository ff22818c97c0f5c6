"""Loko: predictable latency on low-cost switches (CoNEXT 2019).

The core is pure: no I/O besides reading profiles, labs and flow files, no clock, no threads. Only
`loko.controller` talks to switches. Rates are in bit/s, sizes in bytes, times in ns; names carry the unit.

For programs and notebooks (docs/library.md)::

    from loko import Flow, Lab, Profile, load_lab, load_profile, model, plan

The rest of the package may change from version to version.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from loko.admission import Admitted, Refusal
    from loko.controller.building import flow_mod, flow_mods, packet_out
    from loko.device import Profile, load_profile
    from loko.document import InputError
    from loko.flow import Flow
    from loko.frame import frame_of
    from loko.lab import Lab, load_lab
    from loko.notebook_api import model, plan
    from loko.planning import Plan
    from loko.requests import Request, load_requests
    from loko.service_curve import SwitchService

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
    "Flow": "flow",
    "InputError": "document",
    "Lab": "lab",
    "Plan": "planning",
    "Profile": "device",
    "Refusal": "admission",
    "Request": "requests",
    "SwitchService": "service_curve",
    "flow_mod": "controller.building",
    "flow_mods": "controller.building",
    "frame_of": "frame",
    "load_lab": "lab",
    "load_profile": "device",
    "load_requests": "requests",
    "model": "notebook_api",
    "packet_out": "controller.building",
    "plan": "notebook_api",
}
"""The module of each name, imported on first use: every command imports this package first."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
