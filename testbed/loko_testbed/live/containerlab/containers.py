"""The containers of a lab, as the confined tree gets to know them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Containers:
    """The containers of a lab."""

    namespaces: Mapping[str, str]
    """The file of each node's network namespace, by name of the node."""
