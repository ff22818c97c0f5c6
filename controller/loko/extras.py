"""Optional packages of an installation, and what to type where one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PROJECT: Final = "loko-testbed"
_EXTRAS: Final[Mapping[str, str]] = {
    "cryptography": "figures",
    "distributed": "dask",
    "fastapi": "service",
    "fastapi_swagger": "service",
    "fpdf": "figures",
    "httptools": "service",
    "ortools": "solvers",
    "os_ken": "service",
    "prometheus_client": "service",
    "pyarrow": "figures",
    "uvicorn": "service",
    "uvloop": "service",
    "vl_convert": "figures",
}
"""The extra in pyproject.toml that brings a package, by the package's name in Python."""


def missing_package(module: str | None, extra: str = "") -> str | None:
    """Return a line that says which extra brings a module that is missing; None if none does.

    `extra` is the one that brings all that the caller needs, if one does.
    """
    package = (module or "").partition(".")[0]
    if package not in _EXTRAS:
        return None
    return f"the package '{package}' is missing: {installing(extra or _EXTRAS[package])}"


def installing(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install '{_PROJECT}[{extra}]'"
