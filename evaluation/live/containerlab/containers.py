"""What the confined tree is told of a lab that containerlab has built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Containers:
    """The containers of a lab."""

    namespaces: Mapping[str, str]
    """By node: the file of its network namespace."""
