"""The kind ``table``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import Kind
from evaluation.kinds.table.document import Table
from evaluation.kinds.table.production import produce

KIND: Final = Kind(
    document=Table, produce=produce, estimate_s=lambda table: dict.fromkeys(map(str, table.modes), 1.0)
)
