"""The allocation `optimised`: splits of all switches, chosen for an expected mix (docs/model.md, 13)."""

from loko.optimised.search import Judged, optimised_splits
from loko.optimised.streams import Stream, expected_requests, streams_of

__all__ = ["Judged", "Stream", "expected_requests", "optimised_splits", "streams_of"]
