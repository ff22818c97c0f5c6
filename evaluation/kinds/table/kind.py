"""The kind ``table``."""

from __future__ import annotations

from typing import Final

from evaluation.kinds import Kind
from evaluation.kinds.table.document import Table
from evaluation.kinds.table.production import produce

KIND: Final = Kind(document=Table, produce=produce, estimate_s=lambda _: {"virtual": 1.0, "live": 1.0})
