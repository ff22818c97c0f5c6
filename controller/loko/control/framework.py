"""The OpenFlow framework: os-ken, or Ryu 4.34 if the environment variable `LOKO_FRAMEWORK` is `ryu`.

This is the only place that imports either. They are related, so what they offer has the same names.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Final

NAME: Final = os.environ.get("LOKO_FRAMEWORK", "os_ken")


def _part(name: str) -> Any:
    return import_module(f"{NAME}.{name}")


hub: Final = _part("lib.hub")
if NAME == "ryu":
    hub.patch()  # before anything imports what it replaces: Ryu uses green threads
    # Ryu imports a constant that eventlet's web server no longer has; nothing here uses it.
    vars(import_module("eventlet.wsgi")).setdefault("ALREADY_HANDLED", object())

app_manager: Final = _part("base.app_manager")
controller: Final = _part("controller.controller")
handler: Final = _part("controller.handler")
ofp_event: Final = _part("controller.ofp_event")
ofp_handler: Final = _part("controller.ofp_handler")


def configure() -> None:
    """Make the framework use its default settings only."""
    if NAME == "ryu":
        _part("cfg").CONF(args=[], project="ryu", default_config_files=[])
